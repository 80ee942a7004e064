//! The machines that several tests drive: small ones for one concept each, and an agent with nearly everything.

use outlast_dsl::machine::*;

use super::build::*;

/// `do work(x)`; ok, problem and unknown end with what they got.
pub(crate) fn one(effect: EffectClass) -> Machine {
    let arrows = vec![on(Outcome::Ok, end(to_json(local(0)))), on(Outcome::Problem, end(to_json(payload())))];
    let mut flow = flow("One", vec![state("Work", do_(0, vec![Expr::Param(0)]), arrows)]);
    flow.params = vec![field("x", Type::Int)];
    let mut machine = machine(vec![flow]);
    machine.activities = vec![activity("work", &[("x", Type::Int)], Type::Text, effect)];
    machine
}

/// The same with a retry policy: on problem up to `attempts`.
pub(crate) fn retried(effect: EffectClass, attempts: u32) -> Machine {
    let mut machine = one(effect);
    machine.retries = vec![Retry {
        name: "R".to_owned(),
        rules: vec![RetryRule {
            on: vec!["problem".to_owned()],
            attempts_max: attempts,
            wait_ms: 1_000,
            wait_ms_max: Some(8_000),
            hint: None,
        }],
        then_hold: false,
    }];
    machine.activities[0].retry = Some(RetryIx(0));
    machine
}

fn call_type() -> TypeDef {
    let fields = vec![field("id", Type::Text), field("name", Type::Text), field("args", Type::Json)];
    TypeDef { name: "ToolCall".to_owned(), kind: TypeKind::Record(fields) }
}

fn reply_type() -> TypeDef {
    let calls = field("calls", list(Type::Named(TypeIx(0))));
    let variants = vec![
        VariantDef { name: "Tools".to_owned(), fields: vec![calls] },
        VariantDef { name: "Text".to_owned(), fields: vec![field("text", Type::Text)] },
    ];
    TypeDef { name: "Reply".to_owned(), kind: TypeKind::Union(variants) }
}

fn catalogue() -> Catalogue {
    let tool = |name: &str, effect, permission| Tool {
        name: name.to_owned(),
        description: format!("does {name}"),
        input: serde_json::json!({"type": "object"}),
        effect,
        permission,
    };
    Catalogue {
        name: "dev".to_owned(),
        tools: vec![
            tool("read", ToolEffect::Pure, Permission::Allow),
            tool("shell", ToolEffect::Once, Permission::Ask),
        ],
    }
}

fn arm(tag: &str, field: &str, goal: Goal) -> Arm {
    let fields = vec![(field.to_owned(), Slot(5))];
    Arm { tag: tag.to_owned(), fields, guard: None, acts: Vec::new(), goal }
}

/// A small agent: model turns, tools with approval in a nested flow, messages, limits. Activities: 0 model, 1 tool, 2 tool_effect.
pub(crate) fn agent() -> Machine {
    let call = Type::Named(TypeIx(0));
    let mut machine = machine(vec![agent_flow(), tool_flow()]);
    machine.types = vec![call_type(), reply_type()];
    machine.catalogues = vec![catalogue()];
    let approved = Type::Approved(Box::new(call.clone()));
    let mut model =
        activity("model", &[("log", list(Type::Text))], Type::Named(TypeIx(1)), EffectClass::Idempotent);
    model.costs = Some("0.40".to_owned());
    model.in_all_ms = Some(3_600_000);
    let from = EffectClass::From(CatalogueIx(0), 0, Some(ActivityIx(2)));
    let tool = activity("tool", &[("call", approved)], Type::Text, from);
    let verdict = Type::Verdict(Box::new(Type::Text));
    let tool_effect = activity("tool_effect", &[("call", call)], verdict, EffectClass::Idempotent);
    machine.activities = vec![model, tool, tool_effect];
    machine
}

fn agent_flow() -> Flow {
    let stop = Outcome::Message(MessageIx(1));
    let think = {
        let mut ok = on(Outcome::Ok, go(2));
        ok.acts = vec![add(0, list_of(vec![text("reply")]))];
        let mut said = arm("Text", "text", go(2));
        said.acts = vec![Act::Emit(local(5))];
        ok.then = Then::Arms(vec![arm("Tools", "calls", go_with(1, vec![local(5)])), said]);
        state("Think", do_(0, vec![data(0)]), vec![ok])
    };
    let act = {
        let body = EachBody::Run(FlowIx(1), vec![local(1)], None, Some(Slot(4)));
        let results = on(Outcome::Ok, go(0)).act(add(0, local(3)));
        let stopped = on(stop, go(2)).act(set(1, to_json(local(3))));
        state("Act", Effect::Each(Box::new(each(Expr::Arg(0), 2, body))), vec![results, stopped])
    };
    let idle = {
        let said =
            on(Outcome::Message(MessageIx(0)), go(0)).act(add(0, list_of(vec![get(payload(), "text")])));
        let wait = Await { closed: true, ..await_(&[0], within(86_400_000)) };
        let over = on_all(
            &[Outcome::Closed, Outcome::Timeout],
            end(to_json(list_of(vec![to_json(data(0)), data(1)]))),
        );
        state("Idle", Effect::Await(wait), vec![said, on(stop, Goal::Stay), over])
    };
    let mut flow = flow("Agent", vec![think, act, idle]);
    flow.params = vec![field("task", Type::Text)];
    flow.messages = vec![message("Say", &[("text", Type::Text)], false), message("Stop", &[], true)];
    flow.data = vec![
        datum("log", list(Type::Text), list_of(vec![Expr::Param(0)])),
        datum("cut", Type::Json, Expr::Lit(Literal::Json("null".to_owned()))),
    ];
    flow.arrows = vec![on(stop, go(2)), on(Outcome::Problem, go(2))];
    flow.limits = vec![
        limit(Measure::Visits(StateIx(0), Some(StateIx(2))), int(4), end(to_json(text("too many turns")))),
        limit(Measure::Cost, decimal("2.00"), end(to_json(text("too expensive")))),
    ];
    flow
}

fn tool_flow() -> Flow {
    let gate = {
        let allow = Expr::Allow(CatalogueIx(0), Box::new(Expr::Param(0)));
        let allowed = Branch {
            cond: Some(Cond { test: allow, bind: Some(Slot(0)) }),
            acts: Vec::new(),
            goal: go_with(2, vec![local(0)]),
        };
        let other = Branch { cond: None, acts: Vec::new(), goal: go(1) };
        state("Gate", Effect::Choose(vec![allowed, other]), Vec::new())
    };
    let approve = {
        let mut question = ask("Run it?", &[(1, "owner")]);
        question.show = Some(Expr::Param(0));
        question.shown = Type::Named(TypeIx(0));
        let approved = on(Outcome::Approve, go_with(2, vec![payload()]));
        let rejected = on(Outcome::Reject, end(get(payload(), "note")));
        let late = on(Outcome::Timeout, end(text("nobody answered")));
        state("Approve", Effect::Ask(Box::new(question)), vec![approved, rejected, late])
    };
    let work = {
        let ok = on(Outcome::Ok, end(local(0)));
        let bad = on_all(&[Outcome::Unknown, Outcome::Problem], end(get(payload(), "text")));
        state("Run", do_(1, vec![Expr::Arg(0)]), vec![ok, bad])
    };
    let mut flow = flow("OneTool", vec![gate, approve, work]);
    flow.params = vec![field("call", Type::Named(TypeIx(0)))];
    flow.result = Type::Text;
    flow
}

/// `each x in xs at most 2` of `work(x)`.
pub(crate) fn fan_out(change: impl FnOnce(&mut Each)) -> Machine {
    let mut group = each(Expr::Param(0), 2, EachBody::Do(ActivityIx(0), vec![local(1)], Some(Slot(4))));
    change(&mut group);
    let result = || to_json(local(3));
    let arrows = vec![
        on(Outcome::Ok, end(result())),
        on(Outcome::Problem, end(to_json(list_of(vec![result(), to_json(payload())])))),
        on(Outcome::Message(MessageIx(0)), end(result())),
    ];
    let mut flow = flow("Fan", vec![state("All", Effect::Each(Box::new(group)), arrows)]);
    flow.params = vec![field("xs", list(Type::Int))];
    flow.messages = vec![message("Stop", &[], true)];
    let mut machine = machine(vec![flow]);
    machine.activities = vec![activity("work", &[("x", Type::Int)], Type::Text, EffectClass::Once(None))];
    machine.activities[0].unknown_holds = true;
    machine
}

/// So many attempts, then a person is waited for.
pub(crate) fn held(attempts: u32) -> Machine {
    let mut machine = retried(EffectClass::Idempotent, attempts);
    machine.retries[0].then_hold = true;
    machine
}

/// `work` is `once` and `look` tells whether it happened.
pub(crate) fn verified() -> Machine {
    let mut machine = retried(EffectClass::Once(Some(ActivityIx(1))), 3);
    let verdict = Type::Verdict(Box::new(Type::Text));
    machine.activities.push(activity("look", &[("x", Type::Int)], verdict, EffectClass::Pure));
    machine
}

/// Regions: 0 work, 1 a message, 2 a question, 3 a nested fan-out.
pub(crate) fn regions(join: Join) -> Machine {
    let region = |name: &str, result, body| Region {
        name: name.to_owned(),
        result: Slot(result),
        body,
        yields: Vec::new(),
    };
    let inner = Each {
        result: Slot(6),
        ..each(list_of(vec![int(1), int(2)]), 1, EachBody::Do(ActivityIx(0), vec![local(1)], None))
    };
    let mut wait = region("b", 4, EachBody::Await(await_(&[0], within(50_000))));
    wait.yields.push(Yield {
        on: vec![Outcome::Message(MessageIx(0))],
        payload: Payload::Own,
        bind: Bind { whole: Some(Slot(7)), fields: Vec::new() },
        guard: None,
        value: get(payload(), "n"),
    });
    let parallel = Parallel {
        regions: vec![
            region("a", 3, EachBody::Do(ActivityIx(0), vec![int(0)], None)),
            wait,
            region("c", 5, EachBody::Ask(Box::new(ask("Well?", &[(1, "owner")])))),
            region("d", 2, EachBody::Each(Box::new(inner))),
        ],
        join,
        within: Some(within(100_000)),
    };
    let results =
        || to_json(list_of(vec![to_json(local(3)), to_json(local(4)), to_json(local(5)), to_json(local(2))]));
    let arrows = vec![
        on(Outcome::Ok, end(results())),
        on(Outcome::Failed, end(to_json(list_of(vec![get(payload(), "text")])))),
        on(Outcome::Timeout, end(results())),
    ];
    let mut flow = flow("Regions", vec![state("Both", Effect::Parallel(Box::new(parallel)), arrows)]);
    flow.messages = vec![message("Go", &[("n", Type::Int)], false)];
    let mut machine = machine(vec![flow]);
    machine.activities = vec![activity("work", &[("x", Type::Int)], Type::Text, EffectClass::Idempotent)];
    machine
}

/// Timers beside a wait: `after`, `every`, a limit on age; counts ticks.
pub(crate) fn timers() -> Machine {
    let mut waiting = state("Waiting", Effect::Wait, vec![on(Outcome::Message(MessageIx(0)), go(1))]);
    let mut every = timer(TimerKind::Every, ms(10_000), Goal::Stay);
    every.acts = vec![add(0, int(1))];
    waiting.timers = vec![every, timer(TimerKind::After, ms(60_000), go(1))];
    let wait = Effect::Await(await_(&[0], within(30_000)));
    let arrows = vec![
        on(Outcome::Message(MessageIx(0)), Goal::Stay).act(add(0, int(100))),
        on(Outcome::Timeout, end(to_json(data(0)))),
    ];
    let mut flow = flow("Timers", vec![waiting, state("Then", wait, arrows)]);
    flow.messages = vec![message("Poke", &[], false)];
    flow.data = vec![datum("ticks", Type::Int, int(0))];
    flow.limits = vec![limit(Measure::Age, ms(300_000), end(to_json(text("too old"))))];
    machine(vec![flow])
}

/// A question about an editable number, to two owners and an auditor; or one for a number.
pub(crate) fn quorum(wanted: Option<Type>) -> Machine {
    let mut question = ask("How many?", &[(2, "owner"), (1, "auditor")]);
    if wanted.is_some() {
        question.to.truncate(1);
        question.to[0].count = 1;
    } else {
        question.show = Some(int(5));
        question.shown = Type::Int;
        question.editable = true;
    }
    question.answer = wanted;
    let outcomes = [Outcome::Approve, Outcome::Answer, Outcome::Reject];
    let mut arrows: Vec<_> = outcomes.map(|outcome| on(outcome, end(to_json(payload())))).into();
    arrows.push(on(Outcome::Timeout, end(to_json(text("late")))));
    machine(vec![flow("Quorum", vec![state("Ask", Effect::Ask(Box::new(question)), arrows)])])
}

/// A flow that runs another one; both clean up when cancelled, with `work(100)` and `work(200)`.
pub(crate) fn clean_up() -> Machine {
    let ended = || vec![on_all(&[Outcome::Ok, Outcome::Problem], end(to_json(text("clean"))))];
    let clean = |x| state("Clean", do_(0, vec![int(x)]), ended());
    let on_cancel = || Some(OnCancel { within_ms: 5_000, goal: go(1) });
    let run = Effect::Run(FlowIx(1), Vec::new(), Some(within(40_000)), Some(Slot(0)));
    let arrows = vec![on(Outcome::Ok, end(to_json(local(0)))), on(Outcome::Problem, end(to_json(payload())))];
    let mut outer = flow("Outer", vec![state("Go", run, arrows), clean(200)]);
    outer.on_cancel = on_cancel();
    let work = state(
        "Work",
        do_(0, vec![int(1)]),
        vec![on(Outcome::Ok, end(to_json(local(0)))), on(Outcome::Problem, Goal::Fail(error()))],
    );
    let mut inner = flow("Inner", vec![work, clean(100)]);
    inner.on_cancel = on_cancel();
    inner.raises = vec![TypeIx(0)];
    let mut machine = machine(vec![outer, inner]);
    let fields = vec![field("detail", Type::Text)];
    machine.types = vec![TypeDef { name: "Broken".to_owned(), kind: TypeKind::Error(fields) }];
    machine.activities = vec![activity("work", &[("x", Type::Int)], Type::Text, EffectClass::Idempotent)];
    machine.activities[0].in_all_ms = Some(20_000);
    machine.activities[0].within_ms = 5_000;
    machine
}

fn error() -> Expr {
    Expr::Variant(TypeIx(0), "Broken".to_owned(), vec![("detail".to_owned(), text("it broke"))])
}

/// Five calls of 0.40 each against a limit of 1.00.
pub(crate) fn budget() -> Machine {
    let mut machine = fan_out(|each| {
        each.at_most = int(5);
        each.keep_going = true;
    });
    machine.activities[0].costs = Some("0.40".to_owned());
    machine.activities[0].effect = EffectClass::Idempotent;
    machine.flows[0].limits =
        vec![limit(Measure::Cost, decimal("1.00"), end(to_json(text("too expensive"))))];
    machine
}

/// Adds numbers until they no longer fit; `also` notes each.
pub(crate) fn adder() -> Machine {
    let added = on(Outcome::Message(MessageIx(0)), Goal::Stay)
        .act(add(0, get(payload(), "n")))
        .act(Act::AlsoDo(ActivityIx(0), vec![get(payload(), "n")]))
        .act(Act::Emit(data(0)));
    let wait = Await { closed: true, ..await_(&[0, 1], Wait::Forever) };
    let over = on_all(&[Outcome::Closed, Outcome::Message(MessageIx(1))], end(to_json(data(0))));
    let mut flow = flow("Adder", vec![state("Add", Effect::Await(wait), vec![added, over])]);
    flow.messages = vec![message("Add", &[("n", Type::Int)], false), message("Enough", &[], false)];
    flow.data = vec![datum("total", Type::Int, int(0))];
    let mut machine = machine(vec![flow]);
    machine.activities = vec![activity("note", &[("x", Type::Int)], Type::Nothing, EffectClass::Idempotent)];
    machine
}

/// Every machine with an input, by name.
pub(crate) fn all() -> Vec<(&'static str, Machine, serde_json::Value)> {
    let x = || serde_json::json!({"x": 3});
    let xs = || serde_json::json!({"xs": [1, 2, 3, 4, 5]});
    let none = || serde_json::json!({});
    let done = |count: i64| {
        let first = Expr::Fold(
            Fold::Count,
            Box::new(ForIn {
                item: Slot(5),
                key: None,
                over: local(3),
                cond: Some(cond(Expr::Is(Box::new(local(5)), "Done".to_owned(), Vec::new()))),
            }),
            Box::new(local(5)),
        );
        Some(cond(bin(BinaryOp::Ge, first, int(count))))
    };
    vec![
        ("pure", retried(EffectClass::Pure, 3), x()),
        ("idempotent", one(EffectClass::Idempotent), x()),
        ("once", retried(EffectClass::Once(None), 2), x()),
        ("held", held(1), x()),
        ("verified", verified(), x()),
        ("agent", agent(), serde_json::json!({"task": "t"})),
        ("each", fan_out(|_| {}), xs()),
        ("each keep going", fan_out(|each| each.keep_going = true), xs()),
        (
            "each until",
            fan_out(|each| {
                each.until = done(2);
            }),
            xs(),
        ),
        (
            "each draining",
            fan_out(|each| {
                each.until = done(1);
                each.draining = true;
                each.within = Some(within(50_000));
            }),
            xs(),
        ),
        ("all regions", regions(Join::All), none()),
        ("two regions", regions(Join::Count(2)), none()),
        ("one region", regions(Join::Region(1)), none()),
        ("timers", timers(), none()),
        ("quorum", quorum(None), none()),
        ("wanted", quorum(Some(Type::Int)), none()),
        ("clean up", clean_up(), none()),
        ("budget", budget(), xs()),
        ("adder", adder(), none()),
    ]
}
