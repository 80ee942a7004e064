//! Forks: a run that goes on from an event of another one, which it leaves as it is.
//!
//! Leaves the first step of the fork to its shard. Invariant: only what is durable is shared; a `once` operation that any run of the
//! shared history has begun is never run in the fork.

use std::collections::BTreeSet;

use outlast_kernel::event::{ChildrenOfFork, Event, EventKind};
use outlast_kernel::ids::{OpId, RunId, Seq};
use outlast_kernel::operation::{Class, OperationKind};
use outlast_kernel::{Json, State};
use outlast_protocol::requests::{self, List};
use outlast_protocol::run::RunView;
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{Head, Store};
use serde_json::json;

use super::Engine;
use super::context::Context;
use super::errors::{self, run_id};
use super::history::{each_after, fold_until};
use super::live::activities;
use super::message::Message;
use crate::limits;

/// A fork to begin.
pub(crate) struct ForkRun {
    pub(crate) run: RunId,
    pub(crate) parent: RunId,
    pub(crate) at: Seq,
    /// The event that was asked for; none: the newest fit one.
    pub(crate) asked: Option<Seq>,
    /// The state at the fork point.
    pub(crate) prefix: State,
    /// The head that it begins with.
    pub(crate) head: Head,
    /// `once` operations that are open at the fork point and were begun since.
    pub(crate) begun: Vec<OpId>,
    pub(crate) children: ChildrenOfFork,
    pub(crate) by: String,
}

impl Engine {
    /// Forks a run at an event, or finds the fork that the same request made before (`true`). Without an event: at the newest one at
    /// which no `once` operation is open and the run goes on.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`] (no such event, or none that fits), [`Code::Conflict`] (the id), [`Code::DiskFull`].
    pub async fn fork(
        &self,
        run: &str,
        request: requests::Fork,
        by: &str,
    ) -> Result<(RunView, bool), ApiError> {
        let parent = self.known(run)?;
        let ctx = self.core.ctx.clone();
        let fork = match &request.id {
            Some(id) => run_id(id)?,
            None => run_id(&ctx.random.id(ctx.clock.now()))?,
        };
        let children = match request.children.as_deref() {
            None | Some("unknown") => ChildrenOfFork::Unknown,
            Some("share") => ChildrenOfFork::Share,
            Some("again") => ChildrenOfFork::Again,
            Some(other) => {
                let message = format!("children {other:?}; `unknown`, `share` or `again` is expected");
                return Err(ApiError::new(Code::Invalid, message).at("children"));
            }
        };
        let (run, by) = (fork.clone(), by.to_owned());
        let prepare = move || prepare(&ctx, run, &parent, request.at.map(Seq), (children, by));
        let prepared = tokio::task::spawn_blocking(prepare).await;
        let prepared = prepared.unwrap_or_else(|e| {
            Err(ApiError::new(Code::Internal, format!("the history could not be read: {e}")))
        })?;
        self.core.ask(&fork, |reply| Message::Fork(Box::new(prepared), reply)).await
    }

    /// Returns the runs that share histories with a run: the first of them, then its forks, each before its own forks. `next` names a
    /// run whose forks were left out, if there are too many.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn tree(&self, run: &str) -> Result<List<RunView>, ApiError> {
        let run = self.known(run)?;
        let store = &self.core.ctx.store;
        let told = |e| errors::store(&e);
        store.head(&run).map_err(told)?.ok_or_else(|| errors::no_run(&run))?;
        let mut root = run;
        for segment in store.lineage(&root).map_err(told)? {
            if store.head(&segment.run).map_err(told)?.is_some()
                || store.remains(&segment.run).map_err(told)?.is_some()
            {
                root = segment.run;
                break;
            }
        }
        let (mut items, mut open) = (Vec::new(), vec![root]);
        while let Some(run) = open.pop() {
            if items.len() >= limits::TREE_RUNS_MAX {
                return Ok(List { items, next: Some(run.to_string()) });
            }
            let forks = store.forks(&run, None, limits::TREE_RUNS_MAX).map_err(told)?;
            match self.get(run.as_str()).await {
                Ok(view) => items.push(view),
                // It was deleted; its forks are there.
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => return Err(error),
            }
            open.extend(forks.into_iter().rev().map(|(_, fork)| fork));
        }
        Ok(List { items, next: None })
    }
}

/// Shows where a fork came from, as the contract does.
pub(crate) fn forked_from(parent: &RunId, at: Seq) -> Json {
    json!({ "run": parent, "at": at })
}

/// Reads all that a fork shares.
fn prepare(
    ctx: &Context,
    run: RunId,
    parent: &RunId,
    asked: Option<Seq>,
    (children, by): (ChildrenOfFork, String),
) -> Result<ForkRun, ApiError> {
    let told = |e| errors::store(&e).of_run(parent);
    let (newest, _) = ctx.store.head(parent).map_err(told)?.ok_or_else(|| errors::no_run(parent))?;
    let at = match asked {
        Some(at) if at == Seq(0) || at > newest.seq => {
            let message = format!("run {parent} has events 1 to {}, not {at}", newest.seq);
            return Err(ApiError::new(Code::Invalid, message).of_run(parent).at("at"));
        }
        Some(at) => at,
        None => newest_fit(ctx, parent, newest.seq)?,
    };
    let (prefix, _) = fold_until(ctx, parent, at)?;
    if prefix.state.outcome().is_some() {
        let message = format!("run {parent} has ended with event {at}: a fork there would have ended too");
        return Err(ApiError::new(Code::Invalid, message)
            .of_run(parent)
            .at("at")
            .hint(format!("fork at event {} or before, or leave the event out", at.0.saturating_sub(1))));
    }
    if children == ChildrenOfFork::Share {
        refuse_deleted_children(&*ctx.store, parent, at, &prefix.state)?;
    }
    let head = ctx.store.head_at(parent, at).map_err(told)?.ok_or_else(|| errors::no_run(parent))?;
    let begun = begun_since(&*ctx.store, parent, at, &prefix.state)?;
    Ok(ForkRun { run, parent: parent.clone(), at, asked, prefix: prefix.state, head, begun, children, by })
}

/// Refuses to share children that are not there any more: their end could not be told.
fn refuse_deleted_children(
    store: &dyn Store,
    parent: &RunId,
    at: Seq,
    prefix: &State,
) -> Result<(), ApiError> {
    for operation in prefix.operations() {
        if let OperationKind::Child(child) = &operation.kind
            && store.head(&child.run).map_err(|e| errors::store(&e))?.is_none()
        {
            let message = format!(
                "the fork would wait for run {}, which run {parent} had spawned by event {at}, and which is not here any more",
                child.run
            );
            let hint = "let the fork spawn its own (`again`), or go on without it (`unknown`)";
            return Err(ApiError::new(Code::Invalid, message).of_run(parent).at("children").hint(hint));
        }
    }
    Ok(())
}

/// Finds the newest event at which the run goes on and no `once` operation is open.
fn newest_fit(ctx: &Context, run: &RunId, newest: Seq) -> Result<Seq, ApiError> {
    let (fold, _) = fold_until(ctx, run, newest)?;
    if fits(&fold.state) {
        return Ok(newest);
    }
    let (mut found, mut begun) = (None, None);
    each_after(ctx, run, (Seq(0), newest), &mut |told| {
        if fits(told.state) {
            (found, begun) = (Some(told.event.n), None);
        } else if begun_by(told.event).is_some() {
            begun = Some(told.event.n);
        }
        true
    })?;
    // Who forks a run that is over should know what is done once more.
    if let (Some(found), Some(begun), true) = (found, begun, fold.state.outcome().is_some()) {
        let message =
            format!("run {run} has ended, and a fork would do again what it began at event {begun}");
        let hint = format!("name the event, {found} if that is meant");
        return Err(ApiError::new(Code::Invalid, message).of_run(run).at("at").hint(hint));
    }
    found.ok_or_else(|| {
        let message = format!("at every event of run {run} a `once` operation is open");
        let hint = "name the event; what was begun since is in doubt in the fork, and not run";
        ApiError::new(Code::Invalid, message).of_run(run).at("at").hint(hint)
    })
}

fn fits(state: &State) -> bool {
    let goes_on = state.outcome().is_none() && state.blocked().is_none();
    goes_on && activities(state).all(|(_, activity)| activity.class != Class::Once)
}

/// Finds the `once` operations of a prefix that its parent, or a run that the parent shares it with, has begun since.
fn begun_since(store: &dyn Store, parent: &RunId, at: Seq, prefix: &State) -> Result<Vec<OpId>, ApiError> {
    let once = activities(prefix).filter(|(_, activity)| activity.class == Class::Once);
    let once: BTreeSet<OpId> = once.map(|(op, _)| op).collect();
    if once.is_empty() || breaks(Breakage::ForgetBegunSince) {
        return Ok(Vec::new());
    }
    let told = |e| errors::store(&e).of_run(parent);
    let segments = store.lineage(parent).map_err(told)?;
    let ancestors = segments.into_iter().filter(|segment| at <= segment.to).map(|segment| segment.run);
    let mut begun = BTreeSet::new();
    for run in std::iter::once(parent.clone()).chain(ancestors) {
        if let Some(remains) = store.remains(&run).map_err(told)? {
            // Its events are gone as far as no fork shares them.
            begun.extend(remains.begun.into_iter().filter(|op| once.contains(op)));
            continue;
        }
        let mut after = at;
        loop {
            let page = store.history(&run, after, limits::HISTORY_PAGE).map_err(told)?;
            let Some(last) = page.last() else { break };
            after = last.n;
            begun.extend(page.iter().filter_map(begun_by).filter(|op| once.contains(op)));
        }
    }
    Ok(begun.into_iter().collect())
}

fn begun_by(event: &Event) -> Option<OpId> {
    if let EventKind::Begun { op, .. } = &event.kind { Some(*op) } else { None }
}
