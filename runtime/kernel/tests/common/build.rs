//! Short words for the parts of a machine.
//!
//! Invariant: what is left out is the default of the language.

use outlast_dsl::machine::*;

pub(crate) fn machine(flows: Vec<Flow>) -> Machine {
    Machine {
        format: FORMAT,
        edition: 1,
        root: FlowIx(0),
        flows,
        activities: Vec::new(),
        functions: Vec::new(),
        retries: Vec::new(),
        types: Vec::new(),
        catalogues: Vec::new(),
    }
}

pub(crate) fn flow(name: &str, states: Vec<StateDef>) -> Flow {
    Flow {
        name: name.to_owned(),
        version: 1,
        saga: false,
        params: Vec::new(),
        result: Type::Json,
        raises: Vec::new(),
        emits: None,
        messages: Vec::new(),
        data: Vec::new(),
        limits: Vec::new(),
        arrows: Vec::new(),
        on_cancel: None,
        migrations: Vec::new(),
        start: Place { state: StateIx(0), args: Vec::new() },
        states,
        frame: 8,
    }
}

pub(crate) fn state(name: &str, effect: Effect, arrows: Vec<Arrow>) -> StateDef {
    StateDef {
        name: name.to_owned(),
        was: None,
        params: Vec::new(),
        effect,
        arrows,
        timers: Vec::new(),
        frame: 8,
    }
}

pub(crate) fn field(name: &str, ty: Type) -> FieldDef {
    FieldDef { name: name.to_owned(), ty, default: None }
}

pub(crate) fn activity(name: &str, params: &[(&str, Type)], result: Type, effect: EffectClass) -> Activity {
    Activity {
        name: name.to_owned(),
        params: params.iter().map(|(name, ty)| field(name, ty.clone())).collect(),
        result,
        raises: Vec::new(),
        within_ms: 60_000,
        in_all_ms: None,
        silent_ms: None,
        retry: None,
        costs: None,
        queue: "default".to_owned(),
        effect,
        undo: None,
        unknown_holds: false,
    }
}

pub(crate) fn list(ty: Type) -> Type {
    Type::List(Box::new(ty))
}

pub(crate) fn text(text: &str) -> Expr {
    Expr::Lit(Literal::Text(text.to_owned()))
}

pub(crate) fn int(int: i64) -> Expr {
    Expr::Lit(Literal::Int(int))
}

pub(crate) fn decimal(text: &str) -> Expr {
    Expr::Lit(Literal::Decimal(text.to_owned()))
}

pub(crate) fn ms(ms: u64) -> Expr {
    Expr::Lit(Literal::Duration(ms))
}

pub(crate) fn nothing() -> Expr {
    Expr::Lit(Literal::Nothing)
}

pub(crate) fn local(slot: u32) -> Expr {
    Expr::Local(Slot(slot))
}

pub(crate) fn data(at: u32) -> Expr {
    Expr::Data(DataIx(at))
}

pub(crate) fn get(of: Expr, name: &str) -> Expr {
    Expr::Field(Box::new(of), name.to_owned())
}

pub(crate) fn bin(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    Expr::Binary(op, Box::new(a), Box::new(b))
}

pub(crate) fn list_of(items: Vec<Expr>) -> Expr {
    Expr::List(items)
}

pub(crate) fn to_json(of: Expr) -> Expr {
    Expr::ToJson(Box::new(of))
}

/// An arrow on one outcome; the payload goes to slot 7.
pub(crate) fn on(outcome: Outcome, goal: Goal) -> Arrow {
    on_all(&[outcome], goal)
}

pub(crate) fn on_all(outcomes: &[Outcome], goal: Goal) -> Arrow {
    Arrow {
        on: outcomes.to_vec(),
        payload: if outcomes.len() > 1 || outcomes[0] == Outcome::Problem {
            Payload::Problem
        } else {
            Payload::Own
        },
        bind: Bind { whole: Some(Slot(7)), fields: Vec::new() },
        guard: None,
        acts: Vec::new(),
        then: Then::Goal(goal),
    }
}

/// Where arrows put their payload.
pub(crate) fn payload() -> Expr {
    local(7)
}

impl ArrowExt for Arrow {}

/// Additions to an arrow.
pub(crate) trait ArrowExt: Into<Arrow> + Sized {
    fn act(self, act: Act) -> Arrow {
        let mut arrow: Arrow = self.into();
        arrow.acts.push(act);
        arrow
    }

    fn when(self, test: Expr) -> Arrow {
        let mut arrow: Arrow = self.into();
        arrow.guard = Some(cond(test));
        arrow
    }
}

pub(crate) fn cond(test: Expr) -> Cond {
    Cond { test, bind: None }
}

pub(crate) fn set(at: u32, value: Expr) -> Act {
    Act::Set(Assign { data: DataIx(at), op: AssignOp::Set, value })
}

pub(crate) fn add(at: u32, value: Expr) -> Act {
    Act::Set(Assign { data: DataIx(at), op: AssignOp::Add, value })
}

pub(crate) fn go(state: u32) -> Goal {
    Goal::State(StateIx(state), Vec::new())
}

pub(crate) fn go_with(state: u32, args: Vec<Expr>) -> Goal {
    Goal::State(StateIx(state), args)
}

pub(crate) fn end(value: Expr) -> Goal {
    Goal::End(value)
}

pub(crate) fn within(duration: u64) -> Wait {
    Wait::Within(ms(duration))
}

/// `do a(args)`, the result in slot 0.
pub(crate) fn do_(at: u32, args: Vec<Expr>) -> Effect {
    Effect::Do(ActivityIx(at), args, Some(Slot(0)))
}

pub(crate) fn await_(messages: &[u32], wait: Wait) -> Await {
    Await {
        messages: messages.iter().copied().map(MessageIx).collect(),
        closed: false,
        ended: Vec::new(),
        wait,
    }
}

pub(crate) fn ask(question: &str, to: &[(u32, &str)]) -> Ask {
    Ask {
        text: text(question),
        show: None,
        shown: Type::Nothing,
        editable: false,
        answer: None,
        to: to.iter().map(|(count, role)| Who { count: *count, role: text(role) }).collect(),
        wait: within(60_000),
    }
}

/// `each x in xs at most n as rs`: the item in slot 1, its index in slot 2, the results in slot 3, a result in slot 4.
pub(crate) fn each(over: Expr, at_most: i64, body: EachBody) -> Each {
    Each {
        item: Slot(1),
        index: Some(Slot(2)),
        over,
        at_most: int(at_most),
        until: None,
        draining: false,
        keep_going: false,
        within: None,
        body,
        yields: Vec::new(),
        result: Slot(3),
    }
}

pub(crate) fn message(name: &str, fields: &[(&str, Type)], now: bool) -> MessageDef {
    let fields = fields.iter().map(|(name, ty)| field(name, ty.clone())).collect();
    MessageDef { name: name.to_owned(), fields, now }
}

pub(crate) fn datum(name: &str, ty: Type, init: Expr) -> DataDef {
    DataDef { name: name.to_owned(), ty, init }
}

pub(crate) fn limit(measure: Measure, max: Expr, goal: Goal) -> Limit {
    Limit { measure, max, acts: Vec::new(), goal }
}

pub(crate) fn timer(kind: TimerKind, due: Expr, goal: Goal) -> TimerArrow {
    TimerArrow { kind, due, acts: Vec::new(), goal }
}
