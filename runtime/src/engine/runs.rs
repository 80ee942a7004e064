//! The calls of drivers and clients.
//!
//! Leaves deciding to the shards. Invariant: an answer is given when what it says is durable.

use std::sync::Arc;
use std::time::Duration;

use outlast_dsl::machine::Machine;
use outlast_kernel::Json;
use outlast_kernel::event::{Choice, Settlement};
use outlast_kernel::ids::{Millis, OpId, RunId, Seq};
use outlast_kernel::input::Input;
use outlast_protocol::requests::{self, Accepted, List};
use outlast_protocol::run::RunView;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Filter, Status, Summary};
use serde_json::json;

use super::Engine;
use super::context::Context;
use super::core::Core;
use super::errors::{self, run_id};
use super::frames::emit_json;
use super::history::{each_after, stored};
use super::message::{Look, Message, StartRun, Unread};
use super::view;
use super::watch::Watch;
use crate::limits;

impl Core {
    /// As [`Engine::start`].
    pub(crate) async fn start(
        &self,
        request: requests::Start,
        by: &str,
    ) -> Result<(RunView, bool), ApiError> {
        let ctx = &self.ctx;
        let run = match &request.id {
            Some(id) => run_id(id)?,
            None => run_id(&ctx.random.id(ctx.clock.now()))?,
        };
        let hash = match request.machine {
            Some(hash) => hash,
            None => {
                let flow = ctx.flows.get(&request.flow).ok_or_else(|| errors::no_flow(&request.flow))?;
                flow.machine
            }
        };
        let machine = ctx.flows.ready(&hash)?;
        if machine.root().name != request.flow {
            let message = format!("machine {hash} is of flow {}, not {}", machine.root().name, request.flow);
            return Err(ApiError::new(Code::Invalid, message).at("machine"));
        }
        let profile = request.profile.unwrap_or_default();
        let config = self.configure(profile, request.permissions.unwrap_or_default())?;
        let start = StartRun {
            run: run.clone(),
            flow: request.flow,
            hash,
            machine,
            input: request.input,
            config,
            seed: ctx.random.number(),
            messages: request
                .messages
                .into_iter()
                .map(|message| message_input(message, by))
                .collect::<Result<_, _>>()?,
            by: by.to_owned(),
        };
        self.ask(&run, |reply| Message::Start(Box::new(start), reply)).await
    }
}

impl Engine {
    /// Starts a run, or finds the one that the same request started before (`true`). First messages with ids that it does not have yet are
    /// then sent to it, so several may start one run at once, each with its own; those without ids belong to the request that began it.
    ///
    /// # Errors
    /// [`Code::Invalid`], [`Code::NotFound`] (flow), [`Code::Conflict`], [`Code::DiskFull`].
    pub async fn start(&self, request: requests::Start, by: &str) -> Result<(RunView, bool), ApiError> {
        let mut named = request.messages.clone();
        named.retain(|message| message.id.is_some());
        let (view, existing) = self.start_or_find(request, by).await?;
        if !existing || named.is_empty() {
            return Ok((view, existing));
        }
        // Another request was first. What this one brings is told apart from a repetition by its ids alone.
        for message in named {
            self.message(&view.id, message, by).await?;
        }
        Ok((self.get(&view.id).await?, existing))
    }

    /// As [`Engine::start`], for who may start runs and send nothing to one that is there.
    pub(crate) async fn start_or_find(
        &self,
        request: requests::Start,
        by: &str,
    ) -> Result<(RunView, bool), ApiError> {
        self.core.start(request, by).await
    }

    /// Returns a run.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn get(&self, run: &str) -> Result<RunView, ApiError> {
        let run = self.known(run)?;
        // What has ended does not change: no need to bring it into memory.
        let summary = self.core.ctx.store.summary(&run).map_err(|e| errors::store(&e))?;
        if let Some(summary) = summary.filter(|summary| summary.status == Status::Ended) {
            return stored_view(summary);
        }
        Ok(self.look(&run).await?.view)
    }

    /// Returns the flow of a run.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub(crate) fn flow_of(&self, run: &str) -> Result<String, ApiError> {
        let run = self.known(run)?;
        let summary = self.core.ctx.store.summary(&run).map_err(|e| errors::store(&e))?;
        summary.map(|summary| summary.flow).ok_or_else(|| errors::no_run(&run))
    }

    /// Returns the flow of a machine that is kept.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub(crate) fn flow_of_machine(&self, hash: &str) -> Result<String, ApiError> {
        Ok(self.machine(hash)?.root().name.clone())
    }

    /// Returns a machine that was deployed or came with a run.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub(crate) fn machine(&self, hash: &str) -> Result<Arc<Machine>, ApiError> {
        self.core.ctx.flows.machine(hash)
    }

    async fn look(&self, run: &RunId) -> Result<Look, ApiError> {
        self.core.ask(run, |reply| Message::Look(run.clone(), reply)).await
    }

    /// Reads the id of a run that should exist.
    pub(super) fn known(&self, run: &str) -> Result<RunId, ApiError> {
        RunId::new(run)
            .map_err(|_| errors::no_run(run.chars().take(limits::QUOTED_CHARS).collect::<String>()))
    }

    /// Returns runs, newest first. Whether work is in hand is known to the engine only, so runs with work are looked at. A page may hold
    /// fewer than asked for, even none, while `next` names another.
    ///
    /// # Errors
    /// [`Code::InvalidCursor`].
    pub async fn list(&self, filter: Filter) -> Result<List<RunView>, ApiError> {
        let wanted = filter.statuses.clone();
        let mut stored = filter;
        // The store takes ready work as running; whether a worker has it, or nobody can go on with it, is seen below.
        if wanted.contains(&Status::Waiting) || wanted.contains(&Status::Blocked) {
            stored.statuses.push(Status::Running);
        }
        if wanted.contains(&Status::Blocked) {
            stored.besides.extend(self.core.ctx.quarantine.runs());
        }
        let page = self.core.ctx.store.summaries(&stored).map_err(|e| errors::store(&e))?;
        let mut items = Vec::new();
        for summary in page.items {
            let shut_away = self.core.ctx.quarantine.holds(&summary.run);
            let view = if summary.status == Status::Running || shut_away {
                self.look(&summary.run).await?.view
            } else {
                stored_view(summary)?
            };
            let fits = |status: &Status| match status {
                Status::Running => view.status == "running",
                Status::Waiting => view.status == "waiting",
                Status::Blocked => view.status == "blocked",
                Status::Ended => view.status == "ended",
            };
            if wanted.is_empty() || wanted.iter().any(fits) {
                items.push(view);
            }
        }
        Ok(List { items, next: page.next })
    }

    /// Returns a run when it ended, when only people can move it, or after `wait`.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn result(&self, run: &str, wait: Duration) -> Result<RunView, ApiError> {
        let run = self.known(run)?;
        let until = self.until(wait);
        loop {
            let Look { view, motion, mut changed } = self.look(&run).await?;
            if motion.is_for_the_caller() {
                return Ok(view);
            }
            // A step after which it still goes on by itself is no reason to look again.
            let moved = async {
                loop {
                    changed.changed().await.map_err(|_| errors::stopping())?;
                    if changed.borrow_and_update().is_for_the_caller() {
                        return Ok(());
                    }
                }
            };
            tokio::select! {
                moved = moved => moved?,
                () = self.core.ctx.clock.sleep_until(until) => return Ok(self.look(&run).await?.view),
            }
        }
    }

    fn until(&self, wait: Duration) -> Millis {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).min(limits::WAIT_MS_MAX);
        self.core.ctx.clock.now().plus(wait_ms)
    }

    /// Sends a message; type `closed` says that no more will come.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`], [`Code::RunEnded`], [`Code::NotListening`], [`Code::MailboxFull`], [`Code::Conflict`].
    pub async fn message(&self, run: &str, request: requests::Send, by: &str) -> Result<Accepted, ApiError> {
        self.input(run, vec![message_input(request, by)?]).await
    }

    /// Sends a message and waits until the run took it: `{"handled": n}`, or `{"unread_at_end": true}`.
    ///
    /// # Errors
    /// As [`Engine::message`].
    pub async fn message_handled(
        &self,
        run: &str,
        request: requests::Send,
        by: &str,
    ) -> Result<Json, ApiError> {
        let id = request.id.clone();
        let Accepted { accepted } = self.message(run, request, by).await?;
        let id = id.unwrap_or_else(|| accepted.to_string());
        let run = self.known(run)?;
        loop {
            let asked = self.core.ask(&run, |reply| Message::Unread(run.clone(), id.clone(), reply)).await?;
            match asked {
                Unread::Taken => return Ok(json!({ "handled": accepted })),
                Unread::AtEnd => return Ok(json!({ "unread_at_end": true })),
                Unread::Still(mut changed) => {
                    changed.changed().await.map_err(|_| errors::stopping())?;
                }
            }
        }
    }

    /// Pulls an unread message back.
    ///
    /// # Errors
    /// [`Code::NotFound`] if it is not unread.
    pub async fn withdraw(
        &self,
        run: &str,
        request: requests::Withdraw,
        _by: &str,
    ) -> Result<Accepted, ApiError> {
        self.input(run, vec![Input::Withdraw { id: request.id }]).await
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`], [`Code::AlreadyDecided`], [`Code::Conflict`], [`Code::Forbidden`], [`Code::RunEnded`].
    pub async fn answer(&self, run: &str, request: requests::Answer, by: &str) -> Result<Accepted, ApiError> {
        let choice = match request.choice.as_str() {
            "approve" => Choice::Approve,
            "reject" => Choice::Reject,
            "answer" => Choice::Answer,
            other => {
                let message = format!("choice {other:?}; `approve`, `reject` or `answer` is expected");
                return Err(ApiError::new(Code::Invalid, message).at("choice"));
            }
        };
        let question = request.question.as_deref().map(op_id).transpose()?;
        let mut inputs = Vec::new();
        if let Some(pattern) = request.always {
            inputs.push(Input::Grant { pattern });
        }
        inputs.push(Input::Answer {
            question,
            choice,
            value: request.value,
            note: request.note.unwrap_or_default(),
            by: by.to_owned(),
            role: request.role,
            shown: request.shown,
        });
        self.input(run, inputs).await
    }

    /// Stops a run with its clean-up.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::AlreadyEnding`], [`Code::RunEnded`].
    pub async fn cancel(&self, run: &str, by: &str) -> Result<Accepted, ApiError> {
        self.input(run, vec![Input::Cancel { by: by.to_owned() }]).await
    }

    /// Stops a run at once.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::RunEnded`].
    pub async fn terminate(&self, run: &str, by: &str) -> Result<Accepted, ApiError> {
        self.input(run, vec![Input::Terminate { by: by.to_owned() }]).await
    }

    /// Settles an operation in doubt.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`].
    pub async fn settle(&self, run: &str, request: requests::Settle, by: &str) -> Result<Accepted, ApiError> {
        let verdict = match (request.verdict.as_str(), request.result) {
            ("happened", result) => Settlement::Happened(result.unwrap_or_default()),
            ("not_happened", None) => Settlement::NotHappened,
            ("fail", None) => Settlement::Fail,
            ("not_happened" | "fail", Some(_)) => {
                return Err(ApiError::new(Code::Invalid, "a result belongs to `happened` only").at("result"));
            }
            (other, _) => {
                let message = format!("verdict {other:?}; `happened`, `not_happened` or `fail` is expected");
                return Err(ApiError::new(Code::Invalid, message).at("verdict"));
            }
        };
        self.input(run, vec![Input::Settle { op: op_id(&request.op)?, verdict, by: by.to_owned() }]).await
    }

    /// Gives a held operation fresh attempts; lets a run that is quarantined go on.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::DiskFull`].
    pub async fn release(
        &self,
        run: &str,
        request: requests::Release,
        by: &str,
    ) -> Result<Accepted, ApiError> {
        if let Ok(run) = RunId::new(run)
            && self.core.ctx.quarantine.holds(&run)
        {
            return self.end_quarantine(&run).await;
        }
        if request.op.is_empty() {
            let run = self.known(run)?;
            self.look(&run).await?;
            return Err(ApiError::new(Code::Invalid, format!("run {run} is not quarantined"))
                .of_run(&run)
                .at("op")
                .hint("name the held operation; `outlast doctor` shows it"));
        }
        self.input(run, vec![Input::Release { op: op_id(&request.op)?, by: by.to_owned() }]).await
    }

    async fn end_quarantine(&self, run: &RunId) -> Result<Accepted, ApiError> {
        let quarantine = &self.core.ctx.quarantine;
        let put = quarantine.release(run);
        self.core.put_instead(put).await.map_err(|refused| errors::refused(&refused))?;
        quarantine.released(run);
        match self.core.ask(run, |reply| Message::Release(run.clone(), reply)).await {
            Ok(()) => Ok(Accepted { accepted: self.look(run).await?.view.events }),
            // Its first step was what ended the process. Now it may begin.
            Err(error) if error.code == Code::NotFound => Ok(Accepted { accepted: 0 }),
            Err(error) => Err(error),
        }
    }

    async fn input(&self, run: &str, inputs: Vec<Input>) -> Result<Accepted, ApiError> {
        let run = self.known(run)?;
        let Seq(accepted) = self.core.ask(&run, |reply| Message::Inputs(run.clone(), inputs, reply)).await?;
        Ok(Accepted { accepted })
    }

    /// Returns stored events after `after` as the contract shows them, each with the messages that it made the run take, and emits
    /// after the event that caused them. Of a run that is quarantined there is neither: only folding its history would tell.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn events(&self, run: &str, after: u64, limit: usize) -> Result<List<Json>, ApiError> {
        self.page(run, after, limit, |ctx, run, part| {
            let mut items = Vec::new();
            if ctx.quarantine.holds(run) {
                let events = stored(&*ctx.store, run, part)?;
                items.extend(events.iter().map(|event| event.to_json(run)));
            } else {
                each_after(ctx, run, part, &mut |told| {
                    let mut event = told.event.to_json(run);
                    if !told.effects.handled.is_empty() {
                        event["handled"] = json!(told.effects.handled);
                    }
                    items.push(event);
                    items.extend(told.effects.emits.iter().map(|emit| emit_json(run, told.event.n, emit)));
                    true
                })?;
            }
            Ok(items)
        })
        .await
    }

    /// Reads a page of a history, aside: what some events after `after` come to. The list's `next` is the last event of the page.
    ///
    /// # Errors
    /// [`Code::NotFound`], and those of `read`.
    pub(super) async fn page<T: std::marker::Send + 'static>(
        &self,
        run: &str,
        after: u64,
        limit: usize,
        read: impl FnOnce(&Context, &RunId, (Seq, Seq)) -> Result<Vec<T>, ApiError> + std::marker::Send + 'static,
    ) -> Result<List<T>, ApiError> {
        let run = self.known(run)?;
        let core = self.core.clone();
        let limit = limit.clamp(1, limits::EVENTS_PAGE_MAX) as u64;
        let read = move || {
            let head = core.ctx.store.head(&run).map_err(|e| errors::store(&e))?;
            let (head, _) = head.ok_or_else(|| errors::no_run(&run))?;
            let (after, until) = (after.min(head.seq.0), head.seq.0.min(after.saturating_add(limit)));
            let items = read(&core.ctx, &run, (Seq(after), Seq(until)))?;
            let next = (until < head.seq.0).then(|| until.to_string());
            Ok(List { items, next })
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|e| {
            Err(ApiError::new(Code::Internal, format!("the history could not be read: {e}")))
        })
    }

    /// Follows a run: the frames after `last_event_id` (`RUN/n.k`). Without one, a `state` frame says where the run stands, and all
    /// frames from the first on follow.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::InvalidCursor`].
    pub async fn watch(&self, run: &str, last_event_id: Option<&str>) -> Result<Watch, ApiError> {
        let run = self.known(run)?;
        Watch::begin(self.core.clone(), run, last_event_id).await
    }
}

fn message_input(request: requests::Send, by: &str) -> Result<Input, ApiError> {
    let fits =
        |id: &String| (1..=limits::NAME_BYTES_MAX).contains(&id.len()) && !id.contains(char::is_control);
    if !request.id.as_ref().is_none_or(fits) {
        let most = limits::NAME_BYTES_MAX;
        let message = format!("a message's id has 1 to {most} bytes and no control characters");
        return Err(ApiError::new(Code::Invalid, message).at("id"));
    }
    if request.name == "closed" {
        return Ok(Input::Close);
    }
    Ok(Input::Message { id: request.id, name: request.name, value: request.value, from: by.to_owned() })
}

fn op_id(text: &str) -> Result<OpId, ApiError> {
    text.parse()
        .map_err(|e: outlast_kernel::ids::InvalidOpId| ApiError::new(Code::Invalid, e.to_string()).at("op"))
}

fn stored_view(summary: Summary) -> Result<RunView, ApiError> {
    view::stored(summary)
        .map_err(|e| ApiError::new(Code::Internal, format!("a run's summary cannot be read: {e}")))
}
