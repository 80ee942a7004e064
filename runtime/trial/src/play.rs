//! A play: the steps of a test, one after the other, and everything that happens by itself between them.
//!
//! Before each step (but `stub` and `allow`, which only prepare, and `crash at` and `lose worker`, which come in the middle), what
//! can happen happens: attempts are handed out, answered by the stubs, retried; timers that are due fire. The clock moves by
//! `advance`, and by itself for waits between attempts and for attempts that time out, never for people, messages or timers.
//! Leaves expectations to `expect` and crashes to `crash`. Invariant: the same world and step give the same play.

mod act;
mod children;
mod drive;

use std::sync::Arc;

use outlast_dsl::TestCase;
use outlast_dsl::test_case::{Expectation, StepKind, TestStep, WaitKind};
use outlast_kernel::event::{Event, EventKind};
use outlast_kernel::input::Input;

use crate::expect;
use crate::failure::{Problem, TestFailure};
use crate::hands::Comes;
use crate::world::World;

/// Why an event is appended.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// It happens by itself.
    Drive,
    /// A step wants it; who asked is told only when it is durable.
    Step(Input),
    /// A step takes an attempt away: how many it took before.
    Loss(usize),
}

/// An event that is about to be appended.
#[derive(Clone, Debug)]
pub(crate) struct Moment<'t> {
    /// The world before it.
    pub(crate) world: World<'t>,
    pub(crate) step: usize,
    pub(crate) cause: Cause,
    pub(crate) run: usize,
    pub(crate) kind: EventKind,
}

/// How far a play goes on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until<'p> {
    /// Until nothing can happen.
    Quiet,
    /// Until attempts are in hand.
    InHand,
    /// Until the run is at this path, its attempts in hand.
    At(&'p str),
}

/// A test that is played.
pub(crate) struct Play<'t> {
    test: &'t TestCase,
    world: World<'t>,
    /// The step that is played.
    step: usize,
    /// What happened, if that is recorded.
    moments: Option<Vec<Moment<'t>>>,
}

impl<'t> Play<'t> {
    /// Begins a play whose moments are recorded.
    pub(crate) fn recorded(test: &'t TestCase, world: World<'t>) -> Play<'t> {
        Play { test, world, step: 0, moments: Some(Vec::new()) }
    }

    /// Goes on with a play in another world.
    pub(crate) fn resumed(test: &'t TestCase, world: World<'t>, step: usize) -> Play<'t> {
        Play { test, world, step, moments: None }
    }

    /// Returns the world.
    pub(crate) fn world(&self) -> &World<'t> {
        &self.world
    }

    /// Returns the world, to be changed by a crash.
    pub(crate) fn world_mut(&mut self) -> &mut World<'t> {
        &mut self.world
    }

    /// Returns what was recorded.
    pub(crate) fn moments(&self) -> &[Moment<'t>] {
        self.moments.as_deref().unwrap_or_default()
    }

    /// Plays the steps from one on, and then what happens by itself.
    pub(crate) fn run_from(&mut self, first: usize) -> Result<(), Box<TestFailure>> {
        for at in first..self.test.steps.len() {
            self.step = at;
            let step = &self.test.steps[at];
            self.one(step).map_err(|problem| self.failure(problem))?;
        }
        let rest = self.settle(None, Until::Quiet).and_then(|_| self.not_blocked());
        rest.map_err(|problem| self.failure(problem))
    }

    fn one(&mut self, step: &'t TestStep) -> Result<(), Problem> {
        match &step.kind {
            StepKind::Start(args) => return self.start(args),
            StepKind::Stub(stub) => {
                self.world.stubs.add(stub);
                // What waited for an answer may have one now.
                self.world.hands.retain(|hand| !matches!(hand.comes, Comes::Unanswered(_)));
                return Ok(());
            }
            StepKind::Allow(pattern) => return self.allow(*pattern),
            StepKind::CrashAt(path) => return self.crash_at(path),
            StepKind::LoseWorker => return self.lose_worker(),
            StepKind::Send(..)
            | StepKind::Close
            | StepKind::Cancel
            | StepKind::Answer(_)
            | StepKind::Advance(_)
            | StepKind::Settle(..)
            | StepKind::Release(_)
            | StepKind::Expect(_) => {}
        }
        self.settle(None, Until::Quiet)?;
        self.world.may_block |=
            matches!(step.kind, StepKind::Expect(Expectation::Waiting(WaitKind::Blocked)));
        self.not_blocked()?;
        if looks(&step.kind) {
            self.world.unanswered()?;
        }
        let refused = self.world.refused.take();
        match &step.kind {
            StepKind::Send(name, fields) => self.send(name, fields),
            StepKind::Close => self.act(Input::Close),
            StepKind::Cancel => self.act(Input::Cancel { by: "test".to_owned() }),
            StepKind::Answer(reaction) => self.answer(reaction),
            StepKind::Advance(ms) => {
                let target = self.world.now.plus(*ms);
                self.settle(Some(target), Until::Quiet).map(drop)
            }
            StepKind::Settle(activity, verdict) => self.settle_doubt(activity, verdict),
            StepKind::Release(activity) => self.release(activity),
            StepKind::Expect(expectation) => expect::check(&mut self.world, expectation, refused),
            StepKind::Start(_)
            | StepKind::Stub(_)
            | StepKind::Allow(_)
            | StepKind::CrashAt(_)
            | StepKind::LoseWorker => Ok(()),
        }
    }

    /// A fault in a flow fails its test, unless it is expected.
    fn not_blocked(&self) -> Result<(), Problem> {
        for run in self.world.runs.iter().filter(|_| !self.world.may_block) {
            let Some(blocked) = run.state.blocked() else { continue };
            let (flow, state, part) = &blocked.place;
            let state = state.as_ref().map(|state| format!(", state {state}")).unwrap_or_default();
            return Err(Problem::new(format!("the run is blocked: {}", blocked.cause))
                .found(format!("a fault in flow {flow}{state}, {part}, at event {}", blocked.event))
                .hint("if that is meant, write `expect waiting blocked` here"));
        }
        Ok(())
    }

    /// Says at which step, after which events, a problem was met.
    pub(crate) fn failure(&self, problem: Problem) -> Box<TestFailure> {
        let step = self.test.steps.get(self.step);
        Box::new(TestFailure {
            span: step.map_or(self.test.span, |step| step.span),
            message: problem.message,
            expected: problem.expected,
            found: problem.found,
            hint: problem.hint,
            path: self.world.tally.path.clone(),
            events: self.world.runs.first().iter().flat_map(|run| run.newest.iter().map(line)).collect(),
            crash: None,
        })
    }
}

/// Says whether a step looks at what the run came to: then every call needs a stub. Where a test ends, the run may go on, and who
/// interrupts it need not say what it would have come to.
fn looks(step: &StepKind) -> bool {
    match step {
        StepKind::Answer(_)
        | StepKind::Advance(_)
        | StepKind::Settle(..)
        | StepKind::Release(_)
        | StepKind::Expect(_) => true,
        StepKind::Start(_)
        | StepKind::Stub(_)
        | StepKind::Allow(_)
        | StepKind::Send(..)
        | StepKind::Close
        | StepKind::Cancel
        | StepKind::CrashAt(_)
        | StepKind::LoseWorker => false,
    }
}

/// Shows an event on a line.
fn line(event: &Arc<Event>) -> String {
    format!("{} {}", event.n, told(&event.kind))
}

/// Names an event with what it is about.
pub(crate) fn told(kind: &EventKind) -> String {
    let name = kind.name();
    match kind {
        EventKind::Started(started) => format!("{name} {}", started.flow),
        EventKind::Done { activity, value, .. } => format!("{name} {activity} {}", crate::diff::shown(value)),
        EventKind::Failed { activity, error, .. } => {
            format!("{name} {activity} {}: {}", error.kind, error.text)
        }
        EventKind::Message { name: message, value, .. } => {
            format!("{name} {message} {}", crate::diff::shown(value))
        }
        EventKind::Answered { op, choice, .. } => format!("{name} {op} {choice:?}").to_lowercase(),
        EventKind::Begun { op, .. }
        | EventKind::Void { op, .. }
        | EventKind::Lost { op, .. }
        | EventKind::Handle { op, .. }
        | EventKind::Settled { op, .. }
        | EventKind::Released { op, .. }
        | EventKind::TimerFired { op, .. }
        | EventKind::Spawned { op, .. }
        | EventKind::ChildEnded { op, .. }
        | EventKind::Delivered { op, .. } => format!("{name} {op}"),
        EventKind::Forked { .. }
        | EventKind::Migrated(_)
        | EventKind::Configured { .. }
        | EventKind::Withdrawn { .. }
        | EventKind::Closed
        | EventKind::Cancelled { .. }
        | EventKind::Terminated { .. } => name.to_owned(),
    }
}
