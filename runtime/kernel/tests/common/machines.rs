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
