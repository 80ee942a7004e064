//! Machines that no checker would let through, or that are too large to write as text.
//!
//! Leaves sensible machines to the checker.

use outlast_dsl::machine::*;

pub(crate) fn local(slot: u32) -> Expr {
    Expr::Local(Slot(slot))
}

pub(crate) fn text(value: &str) -> Expr {
    Expr::Lit(Literal::Text(value.to_owned()))
}

pub(crate) fn to(state: u32, args: Vec<Expr>) -> Goal {
    Goal::State(StateIx(state), args)
}

pub(crate) fn param(name: &str) -> Param {
    FieldDef { name: name.to_owned(), ty: Type::Json, default: None }
}

pub(crate) fn on(outcomes: &[Outcome], bind: Bind, goal: Goal) -> Arrow {
    Arrow {
        on: outcomes.to_vec(),
        payload: Payload::Own,
        bind,
        guard: None,
        acts: Vec::new(),
        then: Then::Goal(goal),
    }
}

pub(crate) fn state(name: &str, params: &[&str], effect: Effect, arrows: Vec<Arrow>) -> StateDef {
    StateDef {
        name: name.to_owned(),
        was: None,
        params: params.iter().map(|name| param(name)).collect(),
        effect,
        arrows,
        timers: Vec::new(),
        frame: 16,
    }
}

pub(crate) fn flow(name: &str, params: &[&str], states: Vec<StateDef>) -> Flow {
    Flow {
        name: name.to_owned(),
        version: 1,
        saga: false,
        params: params.iter().map(|name| param(name)).collect(),
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
        frame: 16,
    }
}

pub(crate) fn machine(flows: Vec<Flow>) -> Machine {
    let activity = |name: &str, params: &[&str]| Activity {
        name: name.to_owned(),
        params: params.iter().map(|name| param(name)).collect(),
        result: Type::Json,
        raises: Vec::new(),
        within_ms: 1_000,
        in_all_ms: None,
        silent_ms: None,
        retry: None,
        costs: None,
        queue: "default".to_owned(),
        effect: EffectClass::Pure,
        undo: None,
        unknown_holds: false,
    };
    let functions = ["first", "second"];
    let function = |name: &&str| Function {
        name: (*name).to_owned(),
        params: 0,
        body: Expr::Lit(Literal::Nothing),
        frame: 0,
    };
    Machine {
        format: FORMAT,
        edition: 1,
        root: FlowIx(0),
        flows,
        activities: vec![activity("model", &["messages", "schemas"]), activity("tool", &["call"])],
        functions: functions.iter().map(function).collect(),
        retries: Vec::new(),
        types: vec![
            TypeDef { name: "Agent.result".to_owned(), kind: TypeKind::Union(Vec::new()) },
            TypeDef { name: "ContextOverflow".to_owned(), kind: TypeKind::Error(Vec::new()) },
        ],
        catalogues: vec![Catalogue { name: "dev".to_owned(), tools: Vec::new() }],
    }
}
