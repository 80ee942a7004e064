//! Frames of a run's stream, derived from what events did.
//!
//! Leaves sending and resuming to `watch`. Invariant: the same history gives the same frames with the same ids, so a stream can be
//! resumed anywhere: emits of event n have their own index k, what else n shows comes after them.

use std::collections::BTreeSet;
use std::sync::Arc;

use outlast_dsl::machine::Machine;
use outlast_kernel::Json;
use outlast_kernel::event::{Event, EventKind};
use outlast_kernel::ids::{OpId, RunId, Seq};
use outlast_kernel::operation::{Effects, Operation, OperationKind};
use outlast_kernel::{Diverged, State};
use outlast_protocol::run::{Frame, FrameKind};
use serde_json::json;

use super::view;

/// The place of a frame in a run's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(crate) Seq, pub(crate) u32);

impl Place {
    /// Reads `RUN/n.k`; none if it is of another run or malformed.
    pub(crate) fn parse(run: &RunId, id: &str) -> Option<Place> {
        let (of, place) = id.rsplit_once('/')?;
        let OpId(n, k) = place.parse().ok()?;
        (of == run.as_str()).then_some(Place(n, k))
    }
}

/// A state that is folded further, with what is needed to tell watchers of it.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    /// The run whose stream it is.
    run: RunId,
    /// The state.
    pub(crate) state: State,
    /// Its open questions.
    asked: BTreeSet<OpId>,
}

impl Fold {
    /// Goes on from a state: the run's own, or that of a run whose history it shares.
    pub(crate) fn of(run: RunId, state: State) -> Fold {
        let asked = state.operations().filter(|operation| is_question(operation)).map(|op| op.id).collect();
        Fold { run, state, asked }
    }

    /// Returns the run whose stream it is.
    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    /// Goes on from a run's first event.
    pub(crate) fn started(run: RunId, state: State, event: &Event, effects: &Effects) -> (Fold, Vec<Frame>) {
        let frames = frames(&run, &state, event, effects, &BTreeSet::new());
        (Fold::of(run, state), frames)
    }

    /// Applies an event by which the run goes on with another machine, and returns what watchers are shown of it.
    ///
    /// # Errors
    /// [`Diverged`] if the event cannot follow, or the machine is another one; nothing is changed.
    pub(crate) fn migrate(
        &mut self,
        event: &Event,
        machine: &Arc<Machine>,
    ) -> Result<(Effects, Vec<Frame>), Diverged> {
        let effects = self.state.apply_migrated(event, machine)?;
        let frames = self.shown(event, &effects);
        Ok((effects, frames))
    }

    /// Applies an event and returns what watchers are shown of it.
    ///
    /// # Errors
    /// [`Diverged`] if the event cannot follow; nothing is changed.
    pub(crate) fn apply(&mut self, event: &Event) -> Result<(Effects, Vec<Frame>), Diverged> {
        let effects = self.state.apply(event)?;
        let frames = self.shown(event, &effects);
        Ok((effects, frames))
    }

    fn shown(&mut self, event: &Event, effects: &Effects) -> Vec<Frame> {
        let frames = frames(&self.run, &self.state, event, effects, &self.asked);
        self.asked.retain(|op| self.state.operation(*op).is_some());
        for op in &effects.opened {
            if self.state.operation(*op).is_some_and(is_question) {
                self.asked.insert(*op);
            }
        }
        frames
    }
}

fn is_question(operation: &Operation) -> bool {
    matches!(operation.kind, OperationKind::Question(_))
}

fn frames(
    run: &RunId,
    state: &State,
    event: &Event,
    effects: &Effects,
    asked: &BTreeSet<OpId>,
) -> Vec<Frame> {
    let mut shown: Vec<(FrameKind, Json)> = Vec::new();
    for emit in &effects.emits {
        shown.push((FrameKind::Emit, emit_json(run, event.n, emit)));
    }
    let answered = if let EventKind::Answered { op, .. } = &event.kind { Some(*op) } else { None };
    let closed = asked.iter().filter(|op| Some(**op) != answered && state.operation(**op).is_none());
    for op in answered.iter().chain(closed) {
        let mut data = event.to_json(run);
        data["question"] = json!(op.to_string());
        shown.push((FrameKind::Answered, data));
    }
    if !effects.entered.is_empty() {
        let data = json!({ "run": run, "n": event.n, "state": state.path(), "entered": effects.entered });
        shown.push((FrameKind::State, data));
    }
    for op in &effects.opened {
        if let Some(question) = state.operation(*op).and_then(view::question) {
            let mut data = serde_json::to_value(question).unwrap_or_default();
            data["run"] = json!(run);
            shown.push((FrameKind::Question, data));
        }
    }
    if let (true, Some(outcome)) = (effects.ended, state.outcome()) {
        let mut data = serde_json::to_value(view::outcome(outcome)).unwrap_or_default();
        data["run"] = json!(run);
        shown.push((FrameKind::Ended, data));
    }
    let id = |k: usize| Some(format!("{run}/{}.{k}", event.n));
    shown.into_iter().enumerate().map(|(k, (event, data))| Frame { id: id(k), event, data }).collect()
}

/// Shows an emit as lists and streams do.
pub(crate) fn emit_json(run: &RunId, n: Seq, emit: &outlast_kernel::operation::Emit) -> Json {
    json!({ "run": run, "n": n, "k": emit.k, "kind": "emit", "value": emit.value, "path": emit.path })
}

/// Shows where a run stands now: what a watcher without a past sees first. It is no part of the stream, so it has no id.
pub(crate) fn current(state: &State) -> Frame {
    let data = json!({ "run": state.run(), "n": state.last(), "state": state.path(), "current": true });
    Frame { id: None, event: FrameKind::State, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_of_one_run() {
        let run = RunId::new("a.b~c").unwrap();
        assert_eq!(Place::parse(&run, "a.b~c/12.3"), Some(Place(Seq(12), 3)));
        for id in ["other/12.3", "a.b~c/12", "a.b~c/x.1", "12.3", "", "a.b~c/1.2.3"] {
            assert_eq!(Place::parse(&run, id), None, "{id:?}");
        }
    }
}
