//! The calls of workers, over a network that may lose them or their answers.

use outlast_protocol::Code;
use outlast_protocol::worker::{
    Outcome, OutcomeKind, Poll, Progress, ReceiptStatus, Report, Task, TaskError, TaskProgress,
};
use outlast_runtime::engine::Clock as _;
use serde_json::{Value as Json, json};

use crate::deed::{Lost, WORKERS};
use crate::seen::{Verdict, demand};
use crate::worker::{ADOPT_WITHIN_MS, LEASE_MS, Worker};
use crate::world::World;

impl World {
    /// Asks for tasks.
    pub(crate) async fn poll(&mut self, worker: u8, lost: Lost) -> Verdict {
        let Some(session) = self.session(worker).await? else { return Ok(()) };
        let at = usize::from(worker);
        if lost == Lost::Request {
            return Ok(());
        }
        let poll = Poll { session, max: 2, wait_ms: 0, leaving: false };
        match self.engine.poll(poll).await {
            Ok(polled) if lost == Lost::Nothing => {
                self.workers[at].answered(self.clock.now(), self.life);
                for task in polled.tasks {
                    self.take(at, task)?;
                }
            }
            Ok(_) => {}
            Err(error) => self.refused(at, error.code),
        }
        Ok(())
    }

    /// A task arrives.
    fn take(&mut self, at: usize, task: Task) -> Verdict {
        self.seen.handed_out(&task)?;
        // After a restart only what must not happen twice waits until the lease of whoever has it is over.
        let now = self.clock.now();
        let binds = |other: &Worker| task.effect == "once" || other.life_seen == self.life;
        let others =
            self.workers.iter().filter(|other| binds(other) && other.may_act_on(&task.run, &task.op, now));
        let beside: Vec<&str> = others.map(|other| other.name.as_str()).collect();
        demand(beside.is_empty(), || {
            format!("{} {} is handed out while {beside:?} may still act on it", task.run, task.op)
        })?;
        let kept = self.workers.iter().find(|other| self.may_come_back_with(other, &task));
        demand(kept.is_none(), || {
            let other = kept.map(|other| &other.name);
            format!("{} {} is handed out while {other:?} may come back with it", task.run, task.op)
        })?;
        let worker = &mut self.workers[at];
        worker.named_at.insert(task.token.clone(), now);
        worker.hands.push(task);
        Ok(())
    }

    /// Whether a worker has this very attempt from the process before, and still has time to come back with it.
    fn may_come_back_with(&self, worker: &Worker, task: &Task) -> bool {
        let is_awaited =
            worker.life_seen + 1 == self.life && worker.renewed_at.0 + LEASE_MS > self.opened_at.0;
        let same = |held: &Task| (&held.run, &held.op, held.attempt) == (&task.run, &task.op, task.attempt);
        let has_it = worker.hands.iter().any(same) || worker.outbox.iter().any(|(held, _)| same(held));
        is_awaited && has_it && self.clock.now().0 < self.opened_at.0 + ADOPT_WITHIN_MS
    }

    /// A worker that came back may keep what it lists only if that attempt was not given up.
    async fn kept(&mut self, at: usize, keep: &[String]) -> Verdict {
        let worker = &self.workers[at];
        let held = worker.hands.iter().chain(worker.outbox.iter().map(|(task, _)| task));
        let kept: Vec<Task> = held.filter(|task| keep.contains(&task.token)).cloned().collect();
        for task in kept {
            let Ok(page) = self.engine.events(&task.run, 0, 1_000).await else { continue };
            let over = page.items.into_iter().find(|event| {
                let of_it = event["op"] == task.op && event["attempt"] == task.attempt;
                of_it && ["done", "failed", "lost", "void"].iter().any(|kind| event["kind"] == *kind)
            });
            demand(over.is_none(), || {
                format!("a worker may keep {} {}, of which {over:?}", task.run, task.op)
            })?;
        }
        Ok(())
    }

    /// Carries an attempt out.
    pub(crate) fn work(&mut self, worker: u8, hand: u8) -> Verdict {
        let Some(task) = self.hand(worker, hand) else { return Ok(()) };
        let value = self.result(&task);
        if task.activity != "paid" {
            self.seen.carried_out(&task)?;
        }
        let kind = OutcomeKind::Done { value, cost: None, usage: None };
        self.workers[usize::from(worker)].outbox.push((task, kind));
        Ok(())
    }

    /// What an attempt gives: asked whether it was paid, the truth.
    fn result(&self, task: &Task) -> Json {
        match task.activity.as_str() {
            "paid" => {
                let mut all = self.seen.effects.iter();
                match all.any(|effect| effect.activity == "pay" && effect.run == task.run) {
                    true => json!({ "type": "Happened", "result": format!("paid by {}", task.run) }),
                    false => json!({ "type": "NotHappened" }),
                }
            }
            "pay" | "wire" => json!(format!("paid by {}", task.run)),
            _ => json!(task.input["x"].as_i64().unwrap_or(0)),
        }
    }

    /// An attempt fails, if that is something which its activity may do.
    pub(crate) fn fail(&mut self, worker: u8, hand: u8) -> Verdict {
        let tasks = &self.workers[usize::from(worker)].hands;
        let may = tasks.get(usize::from(hand)).is_some_and(|task| ["look", "put"].contains(&&*task.activity));
        if let Some(task) = self.hand(worker, hand).filter(|_| may) {
            let error =
                TaskError { kind: "Busy".into(), text: "no".into(), retryable: true, ..TaskError::default() };
            let kind = OutcomeKind::Failed { error, cost: None, usage: None };
            self.workers[usize::from(worker)].outbox.push((task, kind));
        }
        Ok(())
    }

    /// Takes an attempt in hand, unless the worker cannot act or believes that its lease is over.
    fn hand(&mut self, worker: u8, hand: u8) -> Option<Task> {
        let now = self.clock.now();
        let worker = &mut self.workers[usize::from(worker)];
        if worker.is_stopped {
            return None;
        }
        worker.fence(now);
        let at = usize::from(hand);
        (at < worker.hands.len()).then(|| worker.hands.remove(at))
    }

    /// Delivers results.
    pub(crate) async fn report(&mut self, worker: u8, lost: Lost) -> Verdict {
        let at = usize::from(worker);
        if self.workers[at].outbox.is_empty() {
            return Ok(());
        }
        let Some(session) = self.session(worker).await? else { return Ok(()) };
        if lost == Lost::Request {
            return Ok(());
        }
        let sent = self.workers[at].outbox.clone();
        let results =
            sent.iter().map(|(task, kind)| Outcome { token: task.token.clone(), kind: kind.clone() });
        let answer = self.engine.report(Report { session, results: results.collect() }).await;
        let receipts = match answer {
            Ok(reported) if lost == Lost::Nothing => reported.results,
            Ok(_) => return Ok(()),
            Err(error) => {
                self.refused(at, error.code);
                return Ok(());
            }
        };
        self.workers[at].answered(self.clock.now(), self.life);
        for ((task, kind), receipt) in sent.into_iter().zip(receipts) {
            if receipt.status == ReceiptStatus::Retry {
                continue;
            }
            if let (ReceiptStatus::Accepted, OutcomeKind::Done { .. }) = (receipt.status, &kind) {
                self.seen.is_done(&task);
            }
            let worker = &mut self.workers[at];
            worker.outbox.retain(|(other, _)| other.token != task.token);
            worker.sent.push(Outcome { token: task.token, kind });
        }
        Ok(())
    }

    /// Old reports come once more: they count once.
    pub(crate) async fn repeat(&mut self, worker: u8) -> Verdict {
        let at = usize::from(worker);
        let results = self.workers[at].sent.clone();
        if results.is_empty() {
            return Ok(());
        }
        if let Some(session) = self.session(worker).await? {
            let _whatever = self.engine.report(Report { session, results }).await;
        }
        Ok(())
    }

    /// Gives a sign of life, and stops what must be stopped.
    pub(crate) async fn beat(&mut self, worker: u8) -> Verdict {
        let at = usize::from(worker);
        if self.workers[at].is_stopped {
            return Ok(());
        }
        let now = self.clock.now();
        if let Some(session) = self.session(worker).await? {
            let held = self.workers[at].hands.iter().map(|task| task.token.clone());
            let held = held.chain(self.workers[at].outbox.iter().map(|(task, _)| task.token.clone()));
            let tasks = held.map(|token| TaskProgress { token, ..TaskProgress::default() }).collect();
            match self.engine.progress(Progress { session: session.clone(), tasks }).await {
                Ok(()) => {
                    self.workers[at].answered(now, self.life);
                    self.workers[at].named_all(now);
                }
                Err(error) => self.refused(at, error.code),
            }
            if let Ok(control) = self.engine.control(&session, 0).await {
                control.cancel.iter().for_each(|token| self.workers[at].stop(token));
            }
        }
        self.workers[at].fence(now);
        Ok(())
    }

    /// A stopped worker goes on; it asks before it acts.
    pub(crate) async fn wake(&mut self, worker: u8) -> Verdict {
        self.workers[usize::from(worker)].is_stopped = false;
        self.beat(worker).await
    }

    pub(crate) async fn kill(&mut self, worker: u8, noticed: bool) -> Verdict {
        let boot = self.workers[usize::from(worker)].boot();
        self.workers[usize::from(worker)].die();
        if noticed {
            self.engine.worker_gone(&boot).await;
        }
        Ok(())
    }

    /// Does all that there is to do.
    pub(crate) async fn toil(&mut self, worker: u8) -> Verdict {
        self.report(worker, Lost::Nothing).await?;
        self.poll(worker, Lost::Nothing).await?;
        while !self.workers[usize::from(worker)].hands.is_empty() {
            self.work(worker, 0)?;
        }
        self.report(worker, Lost::Nothing).await
    }

    /// Returns a worker's session, and begins one if it has none; none if nobody can be reached.
    async fn session(&mut self, worker: u8) -> Result<Option<String>, String> {
        let at = usize::from(worker);
        debug_assert!(worker < WORKERS);
        if self.workers[at].is_stopped {
            return Ok(None);
        }
        if self.workers[at].is_cut {
            self.workers[at].fails = true;
            return Ok(None);
        }
        if let Some(session) = &self.workers[at].session {
            return Ok(Some(session.clone()));
        }
        let now = self.clock.now();
        match self.engine.register(self.workers[at].register()).await {
            Ok(registered) => {
                self.kept(at, &registered.keep).await?;
                let worker = &mut self.workers[at];
                worker.answered(now, self.life);
                worker.session = Some(registered.session.clone());
                worker.hands.retain(|task| !registered.drop.contains(&task.token));
                worker.outbox.retain(|(task, _)| !registered.drop.contains(&task.token));
                worker.named_all(now);
                Ok(Some(registered.session))
            }
            Err(error) => {
                self.refused(at, error.code);
                Ok(None)
            }
        }
    }

    fn refused(&mut self, at: usize, code: Code) {
        let worker = &mut self.workers[at];
        worker.fails = true;
        if matches!(code, Code::NotFound | Code::Superseded | Code::Unauthorized | Code::Conflict) {
            worker.session = None;
        }
    }
}
