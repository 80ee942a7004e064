//! Machines written by hand, and a run that is driven by inputs as an engine would.
//!
//! Leaves assertions to the tests. Invariant: every accepted input goes through decide and apply, in that order.
#![expect(dead_code, reason = "each test file uses its own part")]

pub(crate) mod build;
pub(crate) mod machines;
pub(crate) mod trips;

use std::sync::Arc;

use outlast_dsl::machine::Machine;
use outlast_kernel::event::{
    ChildrenOfFork, Choice, Config, Event, EventKind, Failure, LostWhy, OnOpen, Started, Tokens,
};
use outlast_kernel::ids::{Attempt, Millis, OpId, RunId};
use outlast_kernel::input::{Input, Refusal, Report};
use outlast_kernel::operation::{
    ActivityOp, Class, Effects, Operation, OperationKind, Outcome, Phase, Question,
};
use outlast_kernel::{Json, State, check_input};

/// A moment in 2027, as good as any.
pub(crate) const START: Millis = Millis(1_800_000_000_000);

/// A run with its history.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) state: State,
    pub(crate) history: Vec<Event>,
    pub(crate) now: Millis,
    pub(crate) random: u64,
    /// What the last event did.
    pub(crate) effects: Effects,
    /// The machine that it was started with, and those that it was migrated to, in order.
    pub(crate) machines: Vec<Arc<Machine>>,
    /// Everything that was shown, and all states that were entered.
    pub(crate) emits: Vec<Json>,
    pub(crate) entered: Vec<String>,
}

/// Compiles one flow of a text that must be right.
#[track_caller]
pub(crate) fn compiled(text: &str, flow: &str) -> Machine {
    let source = outlast_dsl::SourceFile { name: "test.flow".to_owned(), text: text.to_owned() };
    let checked = outlast_dsl::check(&[source], &std::collections::BTreeMap::new());
    let found = checked.flows.into_iter().find(|checked| checked.name == flow);
    found.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics)).machine
}

pub(crate) fn run_id(text: &str) -> RunId {
    RunId::new(text).expect("a run id")
}

pub(crate) fn started(machine: &Machine, input: Json, config: Config) -> Event {
    let started = Started {
        flow: machine.root().name.clone(),
        machine: machine.hash().0,
        edition: machine.edition,
        input: check_input(machine, input).expect("the input fits"),
        seed: 7,
        config,
        parent: None,
        ancestors: Vec::new(),
        by: String::new(),
    };
    Event {
        n: outlast_kernel::ids::Seq(1),
        time: START,
        digest: 0,
        kind: EventKind::Started(Box::new(started)),
    }
}

impl Run {
    pub(crate) fn start(machine: Machine, input: Json) -> Run {
        Run::start_with(machine, input, Config::default())
    }

    pub(crate) fn start_with(machine: Machine, input: Json, config: Config) -> Run {
        let event = started(&machine, input, config);
        let machine = Arc::new(machine);
        let (state, effects) = State::start(Arc::clone(&machine), run_id("r1"), &event).expect("it starts");
        let mut run = Run {
            state,
            history: vec![event],
            now: START,
            random: 0,
            effects: Effects::default(),
            machines: vec![machine],
            emits: Vec::new(),
            entered: Vec::new(),
        };
        run.took(effects);
        run
    }

    fn took(&mut self, effects: Effects) {
        self.emits.extend(effects.emits.iter().map(|emit| emit.value.clone()));
        self.entered.extend(effects.entered.iter().cloned());
        self.effects = effects;
    }

    /// Appends an event and applies it.
    pub(crate) fn append(&mut self, kind: EventKind) {
        let event = Event { n: self.state.last().next(), time: self.now, digest: self.state.digest(), kind };
        let effects = self.state.apply(&event).unwrap_or_else(|error| panic!("{error}: {event:?}"));
        self.history.push(event);
        self.took(effects);
    }

    /// Gives an input to the run.
    pub(crate) fn give(&mut self, input: &Input) -> Result<(), Refusal> {
        for kind in self.state.decide(input, self.now, self.random)? {
            self.append(kind);
        }
        Ok(())
    }

    /// Checks what must hold of every run at rest.
    #[track_caller]
    pub(crate) fn must_be_sound(&self) {
        assert_eq!(self.state.audit(), Ok(()));
        assert_eq!(self.state.blocked(), None, "at {}", self.state.path());
        assert_eq!(bytes(&self.refold()), bytes(&self.state));
    }

    /// Gives an input that must be accepted.
    #[track_caller]
    pub(crate) fn must(&mut self, input: Input) {
        if let Err(refusal) = self.give(&input) {
            panic!("{refusal}: {input:?}");
        }
    }

    /// Lets time pass; timers fire in order.
    pub(crate) fn advance(&mut self, ms: u64) {
        self.now = self.now.plus(ms);
        while let Some(kind) = self.state.timer_due(Millis(self.now.0 + 1)) {
            self.append(kind);
        }
    }

    pub(crate) fn activities(&self) -> Vec<(OpId, &ActivityOp)> {
        let activity = |op: &'_ Operation| match &op.kind {
            OperationKind::Activity(activity) => Some((op.id, activity.as_ref().clone())),
            _ => None,
        };
        let _ = activity;
        self.state
            .operations()
            .filter_map(|op| match &op.kind {
                OperationKind::Activity(activity) => Some((op.id, activity.as_ref())),
                _ => None,
            })
            .collect()
    }

    /// Returns the only open activity of a name.
    #[track_caller]
    pub(crate) fn op(&self, name: &str) -> (OpId, ActivityOp) {
        let found: Vec<_> = self.activities().into_iter().filter(|(_, op)| op.activity == name).collect();
        match found.as_slice() {
            [(id, op)] => (*id, (*op).clone()),
            other => panic!("{} open {name}", other.len()),
        }
    }

    #[track_caller]
    pub(crate) fn phase(&self, name: &str) -> Phase {
        self.op(name).1.phase
    }

    /// Begins the attempt that comes next.
    #[track_caller]
    pub(crate) fn begin(&mut self, name: &str) {
        let (op, work) = self.op(name);
        self.must(Input::Begin { op, attempt: work.attempt, worker: "w1".to_owned() });
    }

    fn hand_out(&mut self, op: OpId, work: &ActivityOp) {
        if work.class == Class::Once && !matches!(work.phase, Phase::Begun { .. }) {
            self.must(Input::Begin { op, attempt: work.attempt, worker: "w1".to_owned() });
        }
    }

    /// Reports a result of the only open activity of a name.
    #[track_caller]
    pub(crate) fn done(&mut self, name: &str, value: Json) {
        let (op, work) = self.op(name);
        self.hand_out(op, &work);
        let report = Report::Done { value, cost: None, tokens: Tokens::default() };
        self.must(Input::Reported { op, attempt: work.attempt, report });
    }

    /// Reports the result of an operation.
    #[track_caller]
    pub(crate) fn done_op(&mut self, op: OpId, value: Json) {
        let report = Report::Done { value, cost: None, tokens: Tokens::default() };
        self.must(Input::Reported { op, attempt: Attempt(1), report });
    }

    /// Reports the result of an operation, which is handed out first if it must be.
    #[track_caller]
    pub(crate) fn answer_op(&mut self, op: OpId, report: Report) {
        let found = self.activities().into_iter().find(|(id, _)| *id == op).map(|(_, work)| work.clone());
        let work = found.unwrap_or_else(|| panic!("{op} is not open"));
        self.hand_out(op, &work);
        self.must(Input::Reported { op, attempt: work.attempt, report });
    }

    #[track_caller]
    pub(crate) fn failed(&mut self, name: &str, kind: &str) {
        let (op, work) = self.op(name);
        self.hand_out(op, &work);
        let error =
            Failure { kind: kind.to_owned(), text: "no".to_owned(), retryable: true, ..Failure::default() };
        let report = Report::Failed { error, cost: None, tokens: Tokens::default() };
        self.must(Input::Reported { op, attempt: work.attempt, report });
    }

    #[track_caller]
    pub(crate) fn lost(&mut self, name: &str, why: LostWhy) {
        let (op, work) = self.op(name);
        self.must(Input::Lost { op, attempt: work.attempt, why });
    }

    pub(crate) fn message(&self, name: &str, value: Json, id: Option<&str>) -> Input {
        let id = id.map(str::to_owned);
        Input::Message { id, name: name.to_owned(), value, from: "ann".to_owned() }
    }

    #[track_caller]
    pub(crate) fn say(&mut self, name: &str, value: Json) {
        let input = self.message(name, value, None);
        self.must(input);
    }

    pub(crate) fn questions(&self) -> Vec<(OpId, &Question)> {
        self.state
            .operations()
            .filter_map(|op| match &op.kind {
                OperationKind::Question(question) => Some((op.id, question.as_ref())),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn answer(choice: Choice, by: &str) -> Input {
        Input::Answer {
            question: None,
            choice,
            value: None,
            note: String::new(),
            by: by.to_owned(),
            role: None,
            shown: None,
        }
    }

    pub(crate) fn result(&self) -> Json {
        match self.state.outcome() {
            Some(Outcome::Done(value)) => value.clone(),
            other => panic!("it is {other:?} at {} ({:?})", self.state.path(), self.state.blocked()),
        }
    }

    /// Goes on with another machine; replay gives the same bytes.
    #[track_caller]
    pub(crate) fn migrate(&mut self, machine: &Arc<Machine>, map: Vec<(OpId, OnOpen)>) {
        let before = self.state.clone();
        let kind = before.migration(machine, map, "ann".to_owned()).expect("it can go on");
        let event = Event { n: before.last().next(), time: self.now, digest: before.digest(), kind };
        let effects = self.state.apply_migrated(&event, machine).expect("it applies");
        assert_eq!(self.state.audit(), Ok(()));
        assert_eq!(self.state.snapshot().machine(), machine.hash().0);
        let mut again = before;
        assert!(again.apply(&event).is_err(), "the machine is needed");
        again.apply_migrated(&event, machine).expect("it applies");
        assert_eq!(bytes(&again), bytes(&self.state));
        let snapshot = serde_json::from_str(&bytes(&self.state)).expect("it reads back");
        let restored = State::restore(Arc::clone(machine), snapshot).expect("it is of the new machine");
        assert_eq!(bytes(&restored), bytes(&self.state));
        self.machines.push(Arc::clone(machine));
        self.history.push(event);
        self.took(effects);
    }

    /// Makes the fork of the run as it is now.
    #[track_caller]
    pub(crate) fn fork(&self) -> Run {
        let mut fork = Run { state: self.state.for_fork(run_id("fork")), ..self.clone() };
        fork.append(EventKind::Forked {
            parent: self.state.run().clone(),
            at: self.state.last(),
            begun: Vec::new(),
            children: ChildrenOfFork::Unknown,
            by: "ann".to_owned(),
        });
        fork
    }

    /// Folds the history anew.
    pub(crate) fn refold(&self) -> State {
        let mut machines = self.machines.iter();
        let mut next = || machines.next().expect("each version has its machine");
        let (mut state, _) =
            State::start(Arc::clone(next()), self.state.run().clone(), &self.history[0]).expect("it starts");
        for event in &self.history[1..] {
            match event.kind {
                EventKind::Migrated(_) => state.apply_migrated(event, next()).expect("it goes on"),
                _ => state.apply(event).expect("it folds"),
            };
        }
        state
    }
}

/// Returns the report of a result.
pub(crate) fn done(value: Json) -> Report {
    Report::Done { value, cost: None, tokens: Tokens::default() }
}

/// Returns the bytes of a state.
pub(crate) fn bytes(state: &State) -> String {
    serde_json::to_string(&state.snapshot()).expect("a snapshot is data")
}

/// Returns a line that names a state by the hash of its bytes.
pub(crate) fn fold_line(name: &str, run: &Run) -> String {
    let hash = blake3::hash(bytes(&run.state).as_bytes());
    format!("{name}: {} events, {hash}\n", run.history.len())
}

/// Compares lines with a golden file. A changed line means that old histories no longer mean what they meant.
/// `OUTLAST_WRITE_GOLDEN=1` writes the file anew.
#[track_caller]
pub(crate) fn compare_golden(file: &str, lines: &str) {
    let path = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("OUTLAST_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, lines).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("there is a golden file");
    assert_eq!(lines, golden);
}
