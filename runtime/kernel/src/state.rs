//! The state of a run: the whole resumable configuration, folded from its events.
//!
//! Leaves time, disks and workers to the engine: [`State::decide`] says which events an input causes and changes nothing,
//! [`State::apply`] changes the state by one event. Invariant: a pure fold; a fault or a diverged event changes nothing of the
//! configuration. Start at [`State::apply`]; one event is worked off in `turn`.

mod activity;
mod arrow;
mod ask;
mod audit;
mod body;
mod budget;
mod cancel;
mod carry;
mod children;
mod dispatch;
mod doubt;
mod enter;
mod failure;
mod fork;
mod group;
mod leave;
mod limit;
pub(crate) mod message;
mod ops;
mod parts;
mod results;
mod retry;
mod saga;
mod snapshot;
mod turn;
mod view;

pub use snapshot::{Snapshot, SnapshotError};

pub(crate) use activity::attempts_used;
pub(crate) use ask::free_role;
pub use children::ChildStart;
pub(crate) use failure::{declared, error_value};

pub(crate) use parts::{
    Active, ActivityWork, AskWork, FlowNode, Member, NodeId, NodeKind, Op, Owner, Parent, Work,
};
pub(crate) use retry::{attempts_left, rule, wait_until};

use std::sync::Arc;

use outlast_dsl::machine::Machine;
use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync, VectorSync};
use rust_decimal::Decimal;

use crate::Json;
use crate::event::{Config, Event, EventKind, Tokens};
use crate::fault::Fault;
use crate::ids::{Millis, OpId, RunId, Seq};
use crate::json::value_to_json;
use crate::operation::{Blocked, Effects, Operation, Outcome};
use crate::program::{Program, Ready};
use parts::{Cancelling, EndedChild, Mail, Node, Undo};
use turn::{Stop, Turn};

/// The whole resumable configuration of one run. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) program: Arc<Program>,
    pub(crate) core: Core,
}

/// Everything that events change.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub(crate) run: RunId,
    pub(crate) hash: Arc<str>,
    pub(crate) last: Seq,
    pub(crate) time: Millis,
    pub(crate) seed: u64,
    pub(crate) config: Arc<Config>,
    pub(crate) nodes: RedBlackTreeMapSync<NodeId, Arc<Node>>,
    pub(crate) root: Option<NodeId>,
    pub(crate) ops: RedBlackTreeMapSync<OpId, Arc<Op>>,
    /// Deadlines and timers, earliest first.
    pub(crate) due: RedBlackTreeSetSync<(Millis, OpId)>,
    pub(crate) digest: u64,
    /// Unread messages by the event that brought them.
    pub(crate) mail: RedBlackTreeMapSync<Seq, Arc<Mail>>,
    pub(crate) mail_bytes: u64,
    pub(crate) closed: bool,
    /// Ids that senders gave, with a hash of what they sent.
    pub(crate) seen: RedBlackTreeMapSync<Arc<str>, (u64, Seq)>,
    pub(crate) spent: Decimal,
    pub(crate) tokens: Tokens,
    pub(crate) reserved: Decimal,
    /// Operations that wait for room in the budget.
    pub(crate) waiting: RedBlackTreeSetSync<OpId>,
    /// Questions that were decided, oldest first.
    pub(crate) decided: Arc<Vec<(OpId, String)>>,
    /// The end that is due once `also do` has settled.
    pub(crate) ending: Option<Arc<Outcome>>,
    pub(crate) outcome: Option<Arc<Outcome>>,
    pub(crate) cancelling: Option<Arc<Cancelling>>,
    pub(crate) blocked: Option<Arc<Blocked>>,
    /// Events that a blocked run could not apply, the one that blocked it first.
    pub(crate) held: VectorSync<Arc<Event>>,
    /// The run and operation that spawned this one, and all runs above it.
    pub(crate) parent: Option<Arc<(RunId, OpId)>>,
    pub(crate) ancestors: Arc<[RunId]>,
    /// Spawned runs that ended, by their handles.
    pub(crate) ended: RedBlackTreeMapSync<RunId, Arc<EndedChild>>,
    /// The undo stacks of all sagas.
    pub(crate) undos: RedBlackTreeMapSync<OpId, Arc<Undo>>,
    /// Sagas that were cut off from outside and undo on their own.
    pub(crate) orphans: RedBlackTreeSetSync<NodeId>,
}

/// A history that its machine does not explain: another machine, another kernel, or a damaged history. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {n} does not fit: {expected} is expected, found {found}")]
pub struct Diverged {
    /// The event.
    pub n: Seq,
    /// What the state expects.
    pub expected: String,
    /// What the event says.
    pub found: String,
}

impl State {
    /// Begins a run with its first event.
    ///
    /// # Errors
    /// [`Diverged`] if the event starts no run of this machine. A fault gives a blocked state.
    pub fn start(machine: impl Into<Ready>, run: RunId, event: &Event) -> Result<(State, Effects), Diverged> {
        let Ready(program) = machine.into();
        let diverged = |expected: String, found: String| Diverged { n: event.n, expected, found };
        let EventKind::Started(started) = &event.kind else {
            return Err(diverged("started".to_owned(), event.kind.name().to_owned()));
        };
        let hash = Arc::clone(program.hash());
        if started.machine != *hash {
            return Err(diverged(format!("machine {hash}"), format!("machine {}", started.machine)));
        }
        let mut state = State { program, core: Core::new(run, hash) };
        state.core.time = event.time;
        let effects = state.apply(event)?;
        Ok((state, effects))
    }

    /// Applies the next event; a `Migrated` one needs [`State::apply_migrated`]. A fault leaves the configuration as it was and blocks the run; later events are then kept in order.
    ///
    /// # Errors
    /// [`Diverged`] if the event cannot follow; nothing is changed.
    pub fn apply(&mut self, event: &Event) -> Result<Effects, Diverged> {
        let diverged = |(expected, found): (String, String)| Diverged { n: event.n, expected, found };
        self.follows(event)?;
        if self.core.blocked.is_some() && !dispatch::frees(&event.kind) {
            self.keep(event);
            return Ok(Effects::default());
        }
        let program = Arc::clone(&self.program);
        let mut turn = Turn::new(&program, self.core.clone(), event);
        let mut applied = turn.dispatch(&event.kind);
        // No limit bounds a clean-up: one that goes round in circles is given up, as if its time were over. Others go on.
        while let (Err(Stop::Fault(Fault::Transitions)), Some(circling)) = (&applied, turn.s.cleans_up()) {
            let mut gives_up = std::mem::take(&mut turn.gives_up);
            if !gives_up.insert(circling) {
                break;
            }
            turn = Turn::new(&program, self.core.clone(), event);
            turn.gives_up = gives_up;
            applied = turn.dispatch(&event.kind);
        }
        match applied {
            Ok(()) => {
                let (core, effects) = turn.finish();
                self.core = core;
                Ok(effects)
            }
            Err(Stop::Diverged(expected, found)) => Err(diverged((expected, found))),
            Err(Stop::Fault(_)) if matches!(event.kind, EventKind::Cancelled { .. }) => {
                // Cleaning up is not possible, but stopping is.
                let mut turn = Turn::new(&program, self.core.clone(), event);
                turn.stop_at_once(Outcome::Cancelled);
                let (core, effects) = turn.finish();
                self.core = core;
                Ok(effects)
            }
            Err(Stop::Fault(fault)) => {
                let blocked = turn.blocked(&fault);
                self.core.blocked = Some(Arc::new(blocked));
                self.keep(event);
                Ok(Effects::default())
            }
        }
    }

    /// Says why the event cannot come next.
    pub(crate) fn follows(&self, event: &Event) -> Result<(), Diverged> {
        self.fits(event).map_err(|(expected, found)| Diverged { n: event.n, expected, found })
    }

    /// Returns the pair of what is expected and found, if the event cannot come next.
    fn fits(&self, event: &Event) -> Result<(), (String, String)> {
        let core = &self.core;
        if event.n != core.last.next() {
            return Err((format!("event {}", core.last.next()), format!("event {}", event.n)));
        }
        if event.time < core.time {
            return Err((format!("a time from {} on", core.time.0), event.time.0.to_string()));
        }
        if event.digest != core.digest {
            return Err((format!("digest {:016x}", core.digest), format!("digest {:016x}", event.digest)));
        }
        if matches!(event.kind, EventKind::Started(_)) != (core.last == Seq(0)) {
            return Err(("started as the first event only".to_owned(), event.kind.name().to_owned()));
        }
        if core.outcome.is_some() && !matches!(event.kind, EventKind::Forked { .. }) {
            return Err(("no event after the end".to_owned(), event.kind.name().to_owned()));
        }
        Ok(())
    }

    fn keep(&mut self, event: &Event) {
        self.core.last = event.n;
        self.core.time = event.time;
        self.core.held.push_back_mut(Arc::new(event.clone()));
    }

    /// Returns the number of the last event.
    #[must_use]
    pub fn last(&self) -> Seq {
        self.core.last
    }

    /// Returns the time of the last event.
    #[must_use]
    pub fn time(&self) -> Millis {
        self.core.time
    }

    /// Returns the run's id.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.core.run
    }

    /// Returns the machine.
    #[must_use]
    pub fn machine(&self) -> &Arc<Machine> {
        &self.program.machine
    }

    /// Returns the digest of the open operations, which goes into the next event.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.core.digest
    }

    /// Returns an open operation.
    #[must_use]
    pub fn operation(&self, id: OpId) -> Option<&Operation> {
        self.core.ops.get(&id).map(|op| self.view(op))
    }

    /// Walks over the open operations in the order of their ids.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.core.ops.values().map(|op| self.view(op))
    }

    /// Returns how the run ended.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        self.core.outcome.as_deref()
    }

    /// Returns how the run will end, once all that is left to be undone, delivered or settled is.
    #[must_use]
    pub fn ending(&self) -> Option<&Outcome> {
        self.core.ending.as_deref()
    }

    /// Returns why the run is blocked.
    #[must_use]
    pub fn blocked(&self) -> Option<&Blocked> {
        self.core.blocked.as_deref()
    }

    /// Returns the unread messages, oldest first: id, type and fields. Those that a blocked run holds are among them.
    #[must_use]
    pub fn unread(&self) -> Vec<(String, String, Json)> {
        let name = |mail: &Mail| self.program.flow(mail.flow).messages[mail.message as usize].name.clone();
        let read = |mail: &Arc<Mail>| (mail.id.clone(), name(mail), value_to_json(&mail.value));
        let mut unread: Vec<_> = self.core.mail.values().map(read).collect();
        for event in &self.core.held {
            match &event.kind {
                EventKind::Message { id, name, value, .. } => {
                    unread.push((id.clone(), name.clone(), value.clone()));
                }
                EventKind::Withdrawn { id } => {
                    if let Some(at) = unread.iter().position(|(known, ..)| known == id) {
                        unread.remove(at);
                    }
                }
                _ => {}
            }
        }
        unread
    }

    /// Returns the money spent, a decimal.
    #[must_use]
    pub fn cost(&self) -> String {
        self.core.spent.to_string()
    }

    /// Returns the tokens that language models read and wrote, as far as workers have told.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.core.tokens
    }

    /// Returns the money reserved for open operations, a decimal.
    #[must_use]
    pub fn reserved(&self) -> String {
        self.core.reserved.to_string()
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.core.config
    }

    /// Says whether a cancel was accepted and cleaning up is not over.
    #[must_use]
    pub fn is_cancelling(&self) -> bool {
        self.core.cancelling.is_some() && self.core.outcome.is_none()
    }

    /// Returns the path of the active states, such as `Act` or `Check/Review.Ask`; groups have no path of their own.
    #[must_use]
    pub fn path(&self) -> String {
        let mut next = self.core.top();
        let first = next.and_then(|id| self.core.nodes.get(&id));
        let mut path = match first.map(|node| &node.kind) {
            Some(NodeKind::Flow(flow)) => flow.prefix.to_string(),
            Some(NodeKind::Group(_)) | None => String::new(),
        };
        while let Some(node) = next.and_then(|id| self.core.nodes.get(&id)) {
            let NodeKind::Flow(flow) = &node.kind else { break };
            if !path.is_empty() && !path.ends_with('.') {
                path.push('/');
                path.push_str(&self.program.flow(flow.flow).name);
                path.push('.');
            }
            path.push_str(&self.program.state(flow.flow, flow.state).name);
            next = match flow.active {
                Active::Child(child) => Some(child),
                Active::Idle | Active::Stopped | Active::Undoing | Active::Op(_) => None,
            };
        }
        path
    }

    /// Returns a data field of the run's own flow; none once the flow has ended.
    #[must_use]
    pub fn data(&self, name: &str) -> Option<Json> {
        let NodeKind::Flow(flow) = &self.core.nodes.get(&self.core.root?)?.kind else { return None };
        let at = self.program.flow(flow.flow).data.iter().position(|data| data.name == name)?;
        flow.data.get(at).map(value_to_json)
    }

    /// Says whether an active state would take a message of this type at once.
    #[must_use]
    pub fn listens(&self, message: &str) -> bool {
        self.core.blocked.is_none() && message::listener(&self.program, &self.core, message).is_some()
    }

    /// Returns the earliest timer or deadline that is due before a moment, as the event to append.
    #[must_use]
    pub fn timer_due(&self, before: Millis) -> Option<EventKind> {
        let (due, op) = self.first_due().filter(|(due, _)| *due < before)?;
        Some(EventKind::TimerFired { op, due })
    }

    /// Returns when the earliest timer or deadline is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Millis> {
        self.first_due().map(|(due, _)| due)
    }

    fn first_due(&self) -> Option<(Millis, OpId)> {
        let waits = self.core.blocked.is_none() && self.core.outcome.is_none();
        if waits { self.core.due.first().copied() } else { None }
    }

    /// Returns a copy that belongs to another run: the prefix of a fork, before its `Forked` event.
    #[must_use]
    pub fn for_fork(&self, run: RunId) -> State {
        let mut fork = self.clone();
        fork.core.run = run;
        // Views show idempotency keys, which belong to a run.
        let ops: Vec<_> = fork.core.ops.iter().map(|(id, op)| (*id, Arc::new(op.edit()))).collect();
        fork.core.ops = ops.into_iter().collect();
        fork
    }

    /// Returns a rough count of the bytes of memory that the state holds.
    #[must_use]
    pub fn weight(&self) -> usize {
        let core = &self.core;
        let values =
            |values: &[crate::value::Value]| values.iter().map(crate::value::Value::size).sum::<u64>();
        let nodes: u64 = core
            .nodes
            .values()
            .map(|node| match &node.kind {
                NodeKind::Flow(flow) => 300 + values(&flow.params) + values(&flow.args) + values(&flow.data),
                NodeKind::Group(group) => 200 + values(&group.items) + 64 * group.members.len() as u64,
            })
            .sum();
        let ops: u64 = core
            .ops
            .values()
            .map(|op| match &op.work {
                Work::Activity(work) => 400 + values(&work.args),
                Work::Ask(work) => 400 + work.show.size(),
                Work::Spawn(work) | Work::Child(work) => 400 + values(&work.args),
                Work::Timer(_)
                | Work::Await(_)
                | Work::AwaitEnded(..)
                | Work::CancelChild(..)
                | Work::TellParent(_) => 200,
            })
            .sum();
        let rest = core.mail_bytes + 96 * core.seen.size() as u64 + 1_000;
        usize::try_from(nodes + ops + rest).unwrap_or(usize::MAX)
    }
}

impl Core {
    /// Returns the flow instance that cleans up.
    pub(crate) fn cleans_up(&self) -> Option<NodeId> {
        self.cancelling.as_ref().and_then(|cancelling| cancelling.current)
    }

    /// Returns the outermost flow instance that is active: those around the one that cleans up are stopped.
    pub(crate) fn top(&self) -> Option<NodeId> {
        self.cleans_up().or(self.root)
    }

    fn new(run: RunId, hash: Arc<str>) -> Core {
        Core {
            run,
            hash,
            last: Seq(0),
            time: Millis(0),
            seed: 0,
            config: Arc::new(Config::default()),
            nodes: RedBlackTreeMapSync::new_sync(),
            root: None,
            ops: RedBlackTreeMapSync::new_sync(),
            due: RedBlackTreeSetSync::new_sync(),
            digest: 0,
            mail: RedBlackTreeMapSync::new_sync(),
            mail_bytes: 0,
            closed: false,
            seen: RedBlackTreeMapSync::new_sync(),
            spent: Decimal::ZERO,
            tokens: Tokens::default(),
            reserved: Decimal::ZERO,
            waiting: RedBlackTreeSetSync::new_sync(),
            decided: Arc::new(Vec::new()),
            ending: None,
            outcome: None,
            cancelling: None,
            blocked: None,
            held: VectorSync::new_sync(),
            parent: None,
            ancestors: Arc::default(),
            ended: RedBlackTreeMapSync::new_sync(),
            undos: RedBlackTreeMapSync::new_sync(),
            orphans: RedBlackTreeSetSync::new_sync(),
        }
    }
}
