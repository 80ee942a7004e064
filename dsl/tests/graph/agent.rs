//! The Agent of the language's description as a machine written by hand, and small odd machines.
//!
//! Leaves checking to the checker's own tests. Invariant: indexes fit the tables beside them.

use outlast_dsl::machine::*;

pub(crate) fn local(slot: u32) -> Expr {
    Expr::Local(Slot(slot))
}

pub(crate) fn text(value: &str) -> Expr {
    Expr::Lit(Literal::Text(value.to_owned()))
}

fn int(value: i64) -> Expr {
    Expr::Lit(Literal::Int(value))
}

fn hours(n: u64) -> Wait {
    Wait::Within(Expr::Lit(Literal::Duration(n * 3_600_000)))
}

fn data(at: u32) -> Expr {
    Expr::Data(DataIx(at))
}

fn call(function: u32, args: Vec<Expr>) -> Expr {
    Expr::Call(FunctionIx(function), args)
}

fn field(expr: Expr, name: &str) -> Expr {
    Expr::Field(Box::new(expr), name.to_owned())
}

fn variant(tag: &str, fields: Vec<(&str, Expr)>) -> Expr {
    let fields = fields.into_iter().map(|(name, expr)| (name.to_owned(), expr)).collect();
    Expr::Variant(TypeIx(0), tag.to_owned(), fields)
}

pub(crate) fn to(state: u32, args: Vec<Expr>) -> Goal {
    Goal::State(StateIx(state), args)
}

pub(crate) fn param(name: &str) -> Param {
    FieldDef { name: name.to_owned(), ty: Type::Json, default: None }
}

fn bind(fields: &[(&str, u32)]) -> Bind {
    Bind {
        whole: None,
        fields: fields.iter().map(|(name, slot)| ((*name).to_owned(), Slot(*slot))).collect(),
    }
}

fn whole(slot: u32) -> Bind {
    Bind { whole: Some(Slot(slot)), fields: Vec::new() }
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

fn arm(tag: &str, fields: &[(&str, u32)], goal: Goal) -> Arm {
    Arm { tag: tag.to_owned(), fields: bind(fields).fields, guard: None, acts: Vec::new(), goal }
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
    let functions = ["last_text", "summary_request", "refused", "failed_result"];
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

/// Returns the Agent and the flow that runs one tool.
pub(crate) fn agent() -> Machine {
    let mut agent = flow("Agent", &["task", "max_turns"], vec![think(), act(), compact(), idle()]);
    let message = |name: &str, now| MessageDef { name: name.to_owned(), fields: Vec::new(), now };
    agent.messages = vec![message("Say", false), message("Stop", true)];
    agent.data = vec![DataDef { name: "messages".to_owned(), ty: Type::Json, init: Expr::List(Vec::new()) }];
    let gave_up = || Goal::End(variant("GaveUp", vec![("turns", Expr::Param(1))]));
    let limit = |measure, max| Limit { measure, max, acts: Vec::new(), goal: gave_up() };
    agent.limits = vec![
        limit(Measure::Visits(StateIx(0), Some(StateIx(3))), Expr::Param(1)),
        limit(Measure::Visits(StateIx(2), Some(StateIx(3))), int(3)),
        limit(Measure::Cost, Expr::Lit(Literal::Decimal("5.00".to_owned()))),
    ];
    agent.arrows = vec![
        on(&[Outcome::Message(MessageIx(1))], Bind::default(), to(3, vec![])),
        on(&[Outcome::Problem], whole(0), to(3, vec![])),
    ];
    let one_tool = flow("OneTool", &["call"], vec![gate(), approve(), run()]);
    machine(vec![agent, one_tool])
}

fn think() -> StateDef {
    let mut ok = on(&[Outcome::Ok], Bind::default(), Goal::Stay);
    ok.then = Then::Arms(vec![
        arm("Tools", &[("calls", 1)], to(1, vec![local(1)])),
        arm("Text", &[("text", 2)], to(3, vec![])),
    ]);
    let model = Effect::Do(ActivityIx(0), vec![data(0), Expr::Schemas(CatalogueIx(0))], Some(Slot(0)));
    let overflow = on(&[Outcome::Error(TypeIx(1))], Bind::default(), to(2, vec![]));
    state("Think", &[], model, vec![ok, overflow])
}

fn act() -> StateDef {
    let each = Each {
        item: Slot(0),
        index: None,
        over: Expr::Arg(0),
        at_most: int(4),
        until: None,
        draining: false,
        keep_going: false,
        within: None,
        body: EachBody::Run(FlowIx(1), vec![local(0)], None, Some(Slot(1))),
        yields: Vec::new(),
        result: Slot(2),
    };
    let ok = on(&[Outcome::Ok], Bind::default(), to(0, vec![]));
    let stop = on(&[Outcome::Message(MessageIx(1))], Bind::default(), to(3, vec![]));
    state("Act", &["calls"], Effect::Each(Box::new(each)), vec![ok, stop])
}

fn compact() -> StateDef {
    let args = vec![call(1, vec![data(0)]), Expr::List(Vec::new())];
    let ok = on(&[Outcome::Ok], Bind::default(), to(0, vec![]));
    state("Compact", &[], Effect::Do(ActivityIx(0), args, Some(Slot(0))), vec![ok])
}

fn idle() -> StateDef {
    let awaited = Await { messages: vec![MessageIx(0)], closed: true, ended: Vec::new(), wait: hours(720) };
    let answered = variant("Answered", vec![("text", call(0, vec![data(0)]))]);
    let say = on(&[Outcome::Message(MessageIx(0))], bind(&[("text", 0)]), to(0, vec![]));
    let stop = on(&[Outcome::Message(MessageIx(1))], Bind::default(), Goal::Stay);
    let ends = on(&[Outcome::Closed, Outcome::Timeout], Bind::default(), Goal::End(answered));
    state("Idle", &[], Effect::Await(awaited), vec![say, stop, ends])
}

fn gate() -> StateDef {
    let allow = Expr::Allow(CatalogueIx(0), Box::new(Expr::Param(0)));
    let branch = |cond, goal| Branch { cond, acts: Vec::new(), goal };
    let effect = Effect::Choose(vec![
        branch(Some(Cond { test: allow, bind: Some(Slot(0)) }), to(2, vec![local(0)])),
        branch(None, to(1, vec![])),
    ]);
    state("Gate", &[], effect, Vec::new())
}

fn approve() -> StateDef {
    let question = Expr::Text(vec![text("Run "), field(Expr::Param(0), "name"), text("?")]);
    let ask = Ask {
        text: question,
        show: Some(Expr::Param(0)),
        shown: Type::Json,
        editable: false,
        answer: None,
        to: vec![Who { count: 1, role: text("owner") }],
        wait: hours(24),
    };
    let refused = |why: Expr| Goal::End(call(2, vec![Expr::Param(0), why]));
    let arrows = vec![
        on(&[Outcome::Approve], whole(0), to(2, vec![local(0)])),
        on(&[Outcome::Reject], bind(&[("note", 1)]), refused(local(1))),
        on(&[Outcome::Timeout], Bind::default(), refused(text("nobody answered"))),
    ];
    state("Approve", &[], Effect::Ask(Box::new(ask)), arrows)
}

fn run() -> StateDef {
    let failed = Goal::End(call(3, vec![Expr::Param(0), field(local(1), "text")]));
    let arrows = vec![
        on(&[Outcome::Ok], Bind::default(), Goal::End(local(0))),
        on(&[Outcome::Unknown, Outcome::Problem], whole(1), failed),
    ];
    state("Run", &["ok"], Effect::Do(ActivityIx(1), vec![Expr::Arg(0)], Some(Slot(0))), arrows)
}
