//! The calls of workers, over a network that may lose them or their answers.

use outlast_protocol::Code;
use outlast_protocol::worker::{
    Outcome, OutcomeKind, Poll, Progress, ReceiptStatus, Report, Task, TaskError, TaskProgress,
};
use outlast_runtime::engine::Clock as _;
use serde_json::{Value as Json, json};

use crate::deed::{Lost, WORKERS};
use crate::seen::{Verdict, demand};
use crate::world::World;

impl World {
    /// Asks for tasks.
    pub(crate) async fn poll(&mut self, worker: u8, lost: Lost) -> Verdict {
        let Some(session) = self.session(worker).await else { return Ok(()) };
        let at = usize::from(worker);
        if lost == Lost::Request {
            return Ok(());
        }
        let poll = Poll { session, max: 2, wait_ms: 0, leaving: false };
        match self.engine.poll(poll).await {
            Ok(polled) if lost == Lost::Nothing => {
                self.workers[at].answered(self.clock.now());
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
        let others = self.workers.iter().filter(|other| other.may_act_on(&task.run, &task.op));
        let beside: Vec<&str> = others.map(|other| other.name.as_str()).collect();
        demand(task.effect != "once" || beside.is_empty(), || {
            format!("{} {} is handed out while {beside:?} may still act on it", task.run, task.op)
        })?;
        self.workers[at].hands.push(task);
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
        let Some(session) = self.session(worker).await else { return Ok(()) };
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
        self.workers[at].answered(self.clock.now());
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
        if let Some(session) = self.session(worker).await {
            let _whatever = self.engine.report(Report { session, results }).await;
        }
        Ok(())
    }

    /// Gives a sign of life, and stops what must be stopped.
    pub(crate) async fn beat(&mut self, worker: u8) {
        let at = usize::from(worker);
        if self.workers[at].is_stopped {
            return;
        }
        let now = self.clock.now();
        if let Some(session) = self.session(worker).await {
            let held = self.workers[at].hands.iter().map(|task| task.token.clone());
            let held = held.chain(self.workers[at].outbox.iter().map(|(task, _)| task.token.clone()));
            let tasks = held.map(|token| TaskProgress { token, ..TaskProgress::default() }).collect();
            match self.engine.progress(Progress { session: session.clone(), tasks }).await {
                Ok(()) => self.workers[at].answered(now),
                Err(error) => self.refused(at, error.code),
            }
            if let Ok(control) = self.engine.control(&session, 0).await {
                control.cancel.iter().for_each(|token| self.workers[at].stop(token));
            }
        }
        self.workers[at].fence(now);
    }

    /// A stopped worker goes on; it asks before it acts.
    pub(crate) async fn wake(&mut self, worker: u8) -> Verdict {
        self.workers[usize::from(worker)].is_stopped = false;
        self.beat(worker).await;
        Ok(())
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
    async fn session(&mut self, worker: u8) -> Option<String> {
        let at = usize::from(worker);
        debug_assert!(worker < WORKERS);
        if self.workers[at].is_stopped {
            return None;
        }
        if self.workers[at].is_cut {
            self.workers[at].fails = true;
            return None;
        }
        if let Some(session) = &self.workers[at].session {
            return Some(session.clone());
        }
        let now = self.clock.now();
        match self.engine.register(self.workers[at].register()).await {
            Ok(registered) => {
                let worker = &mut self.workers[at];
                worker.answered(now);
                worker.session = Some(registered.session.clone());
                worker.hands.retain(|task| !registered.drop.contains(&task.token));
                worker.outbox.retain(|(task, _)| !registered.drop.contains(&task.token));
                Some(registered.session)
            }
            Err(error) => {
                self.refused(at, error.code);
                None
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
