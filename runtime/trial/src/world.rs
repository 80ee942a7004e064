//! The world of a test: its runs, its clock, its stubs, and what was seen so far.
//!
//! Leaves deciding what happens next to `play`. Invariant: an event reaches the state that a crash leaves (`folded`) only through its
//! encoded form, and nothing else does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use outlast_dsl::machine::{FlowIx, Machine};
use outlast_kernel::event::{Config, Event, EventKind, Started};
use outlast_kernel::ids::{Millis, OpId, RunId, Seq};
use outlast_kernel::operation::{ActivityOp, Effects, Operation, OperationKind, Outcome, Phase};
use outlast_kernel::{Functions, Json, State, check_input};

use crate::diff::shown;
use crate::failure::Problem;
use crate::hands::Hand;
use crate::limits::{BEGIN_MS, EVENTS_MAX, EVENTS_SHOWN};
use crate::stubs::Stubs;

/// An operation of one of the runs.
pub(crate) type OpKey = (usize, OpId);

/// An arrow or a state by its place: flow, state, part.
pub(crate) type Place = (String, Option<String>, String);

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// The state that lives.
    pub(crate) state: State,
    /// The run and operation that spawned it.
    pub(crate) parent: Option<(RunId, OpId)>,
    ancestors: Vec<RunId>,
    /// The state that is folded from the encoded history alone.
    pub(crate) folded: State,
    /// How many events it has.
    pub(crate) events: usize,
    /// The last ones, newest last.
    pub(crate) newest: VecDeque<Arc<Event>>,
}

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// How often each activity was called.
    pub(crate) calls: BTreeMap<String, u64>,
    /// How many attempts of each activity were handed out.
    pub(crate) attempts: BTreeMap<String, u64>,
    pub(crate) emits: Vec<Json>,
    /// How many of the emitted values were expected.
    pub(crate) emits_met: usize,
    pub(crate) asked: Vec<(OpKey, String)>,
    /// The states of the started flow that were entered.
    pub(crate) path: Vec<String>,
    pub(crate) taken: BTreeSet<Place>,
}

/// Everything that a test changes. Cloning it is cheap.
#[derive(Clone, Debug)]
pub(crate) struct World<'t> {
    machines: Arc<BTreeMap<String, Arc<Machine>>>,
    pub(crate) values: Arc<Functions>,
    pub(crate) now: Millis,
    pub(crate) config: Config,
    /// The flow and arguments of the run that is to begin.
    pub(crate) start: Option<(String, Json)>,
    /// The started run first.
    pub(crate) runs: Vec<Run>,
    pub(crate) stubs: Stubs<'t>,
    pub(crate) hands: Vec<Hand>,
    pub(crate) tally: Tally,
    /// Operations whose result is recorded.
    pub(crate) finished: BTreeSet<OpKey>,
    /// What only the world knows of `once` attempts that a crash cut off: their result, or that they did not happen.
    pub(crate) truths: BTreeMap<OpKey, Option<Json>>,
    /// How the step before was refused: code and reason.
    pub(crate) refused: Option<(&'static str, String)>,
    /// Whether the test expects that a fault has stopped the run.
    pub(crate) may_block: bool,
}

impl<'t> World<'t> {
    /// Makes the world in which nothing has happened.
    pub(crate) fn new(machines: Arc<BTreeMap<String, Arc<Machine>>>, values: Arc<Functions>) -> World<'t> {
        World {
            machines,
            values,
            now: Millis(BEGIN_MS),
            config: Config { profile: "test".to_owned(), ..Config::default() },
            start: None,
            runs: Vec::new(),
            stubs: Stubs::default(),
            hands: Vec::new(),
            tally: Tally::default(),
            finished: BTreeSet::new(),
            truths: BTreeMap::new(),
            refused: None,
            may_block: false,
        }
    }

    /// Returns how many events there are.
    pub(crate) fn events(&self) -> usize {
        self.runs.iter().map(|run| run.events).sum()
    }

    /// Begins a run.
    pub(crate) fn begin(
        &mut self,
        id: RunId,
        flow: &str,
        input: Json,
        parent: Option<(RunId, OpId)>,
    ) -> Result<(), Problem> {
        let above = parent.as_ref().and_then(|(id, _)| self.runs.iter().find(|run| run.state.run() == id));
        let machine = match above {
            None => self.machines.get(flow).cloned(),
            // A spawned run has the machine that its parent's machine holds.
            Some(above) => {
                let of = above.state.machine();
                let at = of.flows.iter().position(|known| known.name == flow);
                at.and_then(|at| u32::try_from(at).ok()).map(|at| Arc::new(of.rooted_at(FlowIx(at))))
            }
        };
        let Some(machine) = machine else {
            return Err(Problem::new(format!("there is no flow `{flow}` to start")));
        };
        let input = check_input(&machine, input).map_err(Problem::new)?;
        let ancestors = above.map_or_else(Vec::new, |above| {
            above.ancestors.iter().cloned().chain([above.state.run().clone()]).collect()
        });
        let started = Started {
            flow: flow.to_owned(),
            machine: machine.hash().0,
            edition: machine.edition,
            input,
            seed: 1,
            config: self.config.clone(),
            parent: parent.clone(),
            ancestors: ancestors.clone(),
            by: String::new(),
        };
        let kind = EventKind::Started(Box::new(started));
        let event = Event { n: Seq(1), time: self.now, digest: 0, kind };
        let stored = reread(&event)?;
        let fold = |event: &Event| {
            let folded = State::start(Arc::clone(&machine), id.clone(), event);
            folded.map_err(|diverged| Problem::promise(diverged.to_string()))
        };
        let ((state, effects), (folded, _)) = (fold(&event)?, fold(&stored)?);
        let newest = VecDeque::from([Arc::new(stored)]);
        self.runs.push(Run { state, parent, ancestors, folded, events: 1, newest });
        self.account(self.runs.len() - 1, effects);
        Ok(())
    }

    /// Appends an event to a run and applies it.
    pub(crate) fn append(&mut self, at: usize, kind: EventKind) -> Result<(), Problem> {
        if self.events() >= EVENTS_MAX {
            let hint = "look for a timer or a retry that comes again and again";
            return Err(Problem::new(format!("the test makes more than {EVENTS_MAX} events")).hint(hint));
        }
        let run = &mut self.runs[at];
        let event = Event { n: run.state.last().next(), time: self.now, digest: run.state.digest(), kind };
        let stored = reread(&event)?;
        let effects = run.state.apply(&event).map_err(|diverged| Problem::promise(diverged.to_string()))?;
        run.folded.apply(&stored).map_err(|diverged| {
            Problem::promise(format!("the history cannot be folded again: {diverged}"))
        })?;
        if let EventKind::Done { op, .. } = &stored.kind {
            self.finished.insert((at, *op));
        }
        run.events += 1;
        run.newest.push_back(Arc::new(stored));
        if run.newest.len() > EVENTS_SHOWN {
            run.newest.pop_front();
        }
        self.account(at, effects);
        Ok(())
    }

    fn account(&mut self, at: usize, effects: Effects) {
        let World { runs, truths, tally, hands, .. } = self;
        let state = &runs[at].state;
        for op in effects.opened {
            match state.operation(op).map(|op| &op.kind) {
                // Who is asked about a crash that the test knows nothing of does not count.
                Some(OperationKind::Activity(_))
                    if doubt_of(state, op).is_some_and(|of| truths.contains_key(&(at, of))) => {}
                Some(OperationKind::Activity(call)) => {
                    *tally.calls.entry(call.activity.clone()).or_default() += 1;
                }
                Some(OperationKind::Question(question)) => {
                    tally.asked.push(((at, op), question.text.clone()));
                }
                Some(
                    OperationKind::Timer
                    | OperationKind::Await(_)
                    | OperationKind::AwaitEnded { .. }
                    | OperationKind::Spawn(_)
                    | OperationKind::Child(_)
                    | OperationKind::CancelChild(_)
                    | OperationKind::TellParent(_),
                )
                | None => {}
            }
        }
        hands.retain(|hand| {
            let attempt = state.operation(hand.op).and_then(activity_of).map(|call| call.attempt);
            hand.run != at || attempt == Some(hand.attempt)
        });
        let machine = Arc::clone(state.machine());
        for taken in effects.taken {
            let flow = &machine.flows[taken.flow.at()];
            let state = taken.state.map(|state| flow.states[state.at()].name.clone());
            tally.taken.insert((flow.name.clone(), state, taken.way.to_string()));
        }
        tally.emits.extend(effects.emits.into_iter().map(|emit| emit.value));
        for path in effects.entered {
            let (flow, state) = match path.rsplit_once('/') {
                Some((_, inner)) => inner.split_once('.').unwrap_or((inner, "")),
                None => (machine.root().name.as_str(), path.as_str()),
            };
            tally.taken.insert((flow.to_owned(), Some(state.to_owned()), "state".to_owned()));
            if at == 0 && !path.contains('/') {
                enter(&mut tally.path, &path);
            }
        }
    }

    /// Returns the `once` operations with a begun attempt.
    pub(crate) fn begun(&self) -> Vec<OpKey> {
        let is_begun =
            |op: &&Operation| activity_of(op).is_some_and(|call| matches!(call.phase, Phase::Begun { .. }));
        let runs = self.runs.iter().enumerate();
        runs.flat_map(|(at, run)| run.state.operations().filter(is_begun).map(move |op| (at, op.id)))
            .collect()
    }

    /// Checks that what was folded from the encoded histories is the state that lives.
    pub(crate) fn same_folded(&self) -> Result<(), Problem> {
        for run in &self.runs {
            let bytes = |state: &State| {
                let bytes = serde_json::to_vec(&state.snapshot());
                bytes.map_err(|error| Problem::promise(format!("a state cannot be encoded: {error}")))
            };
            if bytes(&run.state)? != bytes(&run.folded)? {
                let message = "the state that is folded from the history is not the one that lived";
                return Err(Problem::promise(message));
            }
        }
        Ok(())
    }

    /// Returns how the started run ended.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.runs.first()?.state.outcome()
    }

    /// Says whether the active states, or those of a member of a group, are at a path.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        let begins = |found: &str| {
            found.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
        };
        let Some(run) = self.runs.first() else { return false };
        begins(&run.state.path()) || run.state.operations().any(|op| begins(&op.path))
    }

    /// Returns the paths at which the started run is.
    pub(crate) fn places(&self) -> Vec<String> {
        let Some(run) = self.runs.first() else { return Vec::new() };
        let own = run.state.path();
        let inner = run.state.operations().map(|op| op.path.clone());
        let mut all: Vec<String> = inner.filter(|path| path.starts_with(&own) && *path != own).collect();
        if all.is_empty() && !own.is_empty() {
            all.push(own);
        }
        all.dedup();
        all
    }

    /// Says where the started run is and what it waits for, or how it ended.
    pub(crate) fn whereabouts(&self) -> String {
        let Some(run) = self.runs.first() else { return "no run was started".to_owned() };
        if let Some(outcome) = run.state.outcome() {
            return match outcome {
                Outcome::Done(value) => format!("the run ended with {}", shown(value)),
                Outcome::Failed(error) => format!("the run failed with {}", shown(error)),
                Outcome::Cancelled => "the run was cancelled".to_owned(),
                Outcome::Terminated => "the run was terminated".to_owned(),
            };
        }
        let mut waits: Vec<String> = run.state.operations().map(|op| self.awaited(op)).collect();
        waits.sort();
        waits.dedup();
        let places = self.places().join(", ");
        if waits.is_empty() {
            format!("the run is at {places}")
        } else {
            format!("the run is at {places}, waiting for {}", waits.join(", "))
        }
    }

    fn awaited(&self, op: &Operation) -> String {
        match &op.kind {
            OperationKind::Activity(call) => match &call.phase {
                Phase::Held(why) => format!("a person, about `{}` ({why})", call.activity),
                Phase::Budget => format!("room in the budget for `{}`", call.activity),
                Phase::Ready | Phase::RetryAt(_) | Phase::Begun { .. } | Phase::Verifying(_) => {
                    format!("`{}`", call.activity)
                }
            },
            OperationKind::Timer => "a timer".to_owned(),
            OperationKind::AwaitEnded { .. } | OperationKind::Child(_) => {
                "the end of a spawned run".to_owned()
            }
            OperationKind::Spawn(_) | OperationKind::CancelChild(_) | OperationKind::TellParent(_) => {
                "another run".to_owned()
            }
            OperationKind::Await(names) if names.is_empty() => "the end of messages".to_owned(),
            OperationKind::Await(names) => format!("a message {}", names.join(" or ")),
            OperationKind::Question(question) => format!("an answer to {:?}", question.text),
        }
    }
}

/// Notes that a state is entered; the states of one `steps` block are one.
fn enter(path: &mut Vec<String>, state: &str) {
    let name = state.split('.').next().unwrap_or(state);
    let goes_on = state.contains('.') && path.last().is_some_and(|last| last == name);
    if !goes_on {
        path.push(name.to_owned());
    }
}

/// Returns what a crash leaves of an event: what its encoded form says.
fn reread(event: &Event) -> Result<Event, Problem> {
    let stored = serde_json::to_vec(event).and_then(|bytes| serde_json::from_slice(&bytes));
    stored.map_err(|error| Problem::promise(format!("an event cannot be read again: {error}")))
}

/// Returns the activity that an operation is.
pub(crate) fn activity_of(op: &Operation) -> Option<&ActivityOp> {
    match &op.kind {
        OperationKind::Activity(call) => Some(call),
        OperationKind::Timer
        | OperationKind::Await(_)
        | OperationKind::AwaitEnded { .. }
        | OperationKind::Question(_)
        | OperationKind::Spawn(_)
        | OperationKind::Child(_)
        | OperationKind::CancelChild(_)
        | OperationKind::TellParent(_) => None,
    }
}

/// Returns the operation whose doubt another one is to settle.
pub(crate) fn doubt_of(state: &State, verifier: OpId) -> Option<OpId> {
    let asks = |op: &&Operation| activity_of(op).is_some_and(|call| call.phase == Phase::Verifying(verifier));
    state.operations().find(asks).map(|op| op.id)
}
