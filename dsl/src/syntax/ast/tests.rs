//! The views on small texts, and on the example as a whole.

use super::*;
use crate::diag::FileId;
use crate::syntax::parse;

fn file(text: &str) -> File {
    let parse = parse(FileId(0), text);
    assert_eq!(parse.diagnostics(), [], "{text}");
    parse.file()
}

/// The first node of this production.
fn first<N: AstNode>(text: &str) -> N {
    let found = file(text).syntax().descendants().find_map(N::cast);
    found.unwrap_or_else(|| panic!("the production is not in {text}"))
}

fn texts(names: impl Iterator<Item = NameRef>) -> Vec<String> {
    names.map(|name| name.text()).collect()
}

fn source(node: Option<impl AstNode>) -> Option<String> {
    node.map(|node| node.source())
}

fn state(body: &str) -> String {
    format!("flow A() {{ state S {{ {body} }} }}")
}

#[test]
fn declarations_and_their_documentation() {
    let text = "// license\n\n/// One.\n///  Two.\n// not this\ntype A { /// F.\n x: int? = 1 }\n\n/// lost\n\nerror E";
    let file = file(text);
    let decls: Vec<Decl> = file.decls().collect();
    let [Decl::Type(record), Decl::Error(error)] = decls.as_slice() else { panic!("found {decls:?}") };
    assert_eq!(record.docs().as_deref(), Some("One.\n Two."));
    assert_eq!(record.span().of(text), "type A { /// F.\n x: int? = 1 }");
    assert_eq!(error.docs(), None);
    let field: Field = record.fields().next().unwrap();
    assert_eq!(field.docs().as_deref(), Some("F."));
    assert_eq!(
        (text_of(field.name()).as_deref(), source(field.default()).as_deref()),
        (Some("x"), Some("1"))
    );
    let ty = field.ty().unwrap();
    assert!(ty.is_optional() && ty.argument().is_none());
}

#[test]
fn an_activity_with_every_clause() {
    let activity: Activity = first(
        "activity a(x: int) -> T raises E, F within 5m in all 1h silent 30s retry R costs <= 0.40 queue \"q\" \
         effect from dev verify v undo u always unknown holds",
    );
    assert_eq!(texts(activity.raises()), ["E", "F"]);
    let ms =
        [activity.within(), activity.in_all(), activity.silent()].map(|bound| bound.and_then(|b| b.ms()));
    assert_eq!(ms, [Some(300_000), Some(3_600_000), Some(30_000)]);
    assert_eq!(activity.retry().map(|name| name.text()).as_deref(), Some("R"));
    assert_eq!(activity.costs().and_then(|cost| cost.kind()), Some(LiteralKind::Number("0.40".to_owned())));
    assert_eq!(activity.queue().and_then(|queue| queue.plain()).as_deref(), Some("q"));
    let effect = activity.effect().unwrap();
    assert_eq!(effect.word(), Some(EffectWord::From));
    assert_eq!(source(effect.catalogue()).as_deref(), Some("dev"));
    assert_eq!(source(effect.verify()).as_deref(), Some("v"));
    let undo = activity.undo().unwrap();
    assert_eq!((source(undo.activity()).as_deref(), undo.is_always()), (Some("u"), true));
    assert!(activity.unknown_holds().is_some());
}

#[test]
fn retry_rules() {
    let rule: RetryRule =
        first("retry R { on E, timeout up to 6 attempts wait 1s doubling to 1m hint retry_after }");
    let names: Vec<_> = rule.outcomes().filter_map(|outcome| source(outcome.name())).collect();
    assert_eq!(names, ["E", "timeout"]);
    assert_eq!(rule.attempts().and_then(|n| n.value()), Some(6));
    let waits = [rule.wait(), rule.doubling_to()].map(|wait| wait.and_then(|wait| wait.ms()));
    assert_eq!(waits, [Some(1_000), Some(60_000)]);
    assert_eq!(source(rule.hint()).as_deref(), Some("retry_after"));
}

#[test]
fn results_of_flows() {
    for (result, ty, variants) in [
        ("list<int>", Some("list<int>"), 0),
        ("T", Some("T"), 0),
        ("A | B { x: int }", None, 2),
        ("T { x: int }", None, 1),
    ] {
        let found: FlowResult = first(&format!("flow F() -> {result} {{ start S }}"));
        assert_eq!((source(found.ty()).as_deref(), found.variants().count()), (ty, variants), "{result}");
    }
}

#[test]
fn an_arrow_and_its_parts() {
    let arrow: Arrow = first(&state(
        "on ok, dev.E { x, end: done } if v? as w set a = 1, b -= 2 discard M settle d as NotHappened also do f(1) emit 3 -> T(x)"
            .replace("v?", "v")
            .as_str(),
    ));
    let outcomes = arrow.outcomes().unwrap();
    let names: Vec<_> =
        outcomes.names().map(|name| (source(name.qualifier()), source(name.name()))).collect();
    assert_eq!(names, [(None, Some("ok".to_owned())), (Some("dev".to_owned()), Some("E".to_owned()))]);
    let binds = outcomes.fields().unwrap().binds();
    let binds: Vec<_> =
        binds.map(|bind| (bind.field().map(|(text, _)| text), text_of(bind.name()))).collect();
    let pair = |a: &str, b: &str| (Some(a.to_owned()), Some(b.to_owned()));
    assert_eq!(binds, [pair("x", "x"), pair("end", "done")]);
    let cond = arrow.guard().unwrap().cond().unwrap();
    assert_eq!((source(cond.expr()).as_deref(), text_of(cond.binding()).as_deref()), (Some("v"), Some("w")));
    let acts = arrow.acts();
    let ops: Vec<_> = acts.assigns().map(|assign| assign.op()).collect();
    assert_eq!(ops, [AssignOp::Set, AssignOp::Subtract]);
    assert_eq!(texts(acts.discards()), ["M"]);
    assert_eq!((acts.settles().count(), acts.also_dos().count(), acts.emits().count()), (1, 1, 1));
    assert_eq!(acts.iter().count(), 5);
    let Some(Target::State(place)) = arrow.goal().unwrap().target() else { panic!("it goes to a state") };
    assert_eq!((source(place.state()).as_deref(), place.args().unwrap().args().count()), (Some("T"), 1));
}

#[test]
fn targets_and_timers() {
    for (goal, check) in [
        ("stay", (|target| matches!(target, Target::Stay(_))) as fn(&Target) -> bool),
        ("end", |target| matches!(target, Target::End(None))),
        ("end x", |target| matches!(target, Target::End(Some(Expr::Name(_))))),
        ("fail E {}", |target| matches!(target, Target::Fail(Some(Expr::Construct(_))))),
    ] {
        let arrow: TimerArrow = first(&state(&format!("every 1h -> {goal}")));
        assert_eq!(arrow.word(), TimerWord::Every);
        let target = Arrow::Timer(arrow).goal().and_then(|goal| goal.target());
        assert!(target.as_ref().is_some_and(check), "{goal}: {target:?}");
    }
}

#[test]
fn groups_and_waits() {
    let each: Each = first(&state(
        "each x, i in xs at most n until u draining keep going within 1m as rs { do a(x) on ok yield x }",
    ));
    let exprs = [each.over(), each.at_most(), each.until()].map(source);
    assert_eq!(exprs, ["xs", "n", "u"].map(|text| Some(text.to_owned())));
    let names = [each.item(), each.second(), each.binding()].map(|name| text_of(name).unwrap());
    assert_eq!(names, ["x", "i", "rs"]);
    assert!(each.is_draining() && each.keeps_going() && each.yields().count() == 1);
    assert!(matches!(each.bound().unwrap().limitation(), Limitation::Within(Some(_))));

    let each: Each = first(&state("each x in xs at most n keep going until t { do a(x) }"));
    assert!(
        each.until().is_none() && matches!(each.bound().unwrap().limitation(), Limitation::Until(Some(_)))
    );

    let ask: Ask = first(&state("ask \"q\" show v editable for T to \"a\" and 2 of \"b\" within forever"));
    assert_eq!(source(ask.question()).as_deref(), Some("\"q\""));
    assert!(ask.show().unwrap().is_editable() && ask.answer().is_some());
    let who: Vec<_> =
        ask.who().map(|who| (who.count().and_then(|n| n.value()), source(who.role()))).collect();
    assert_eq!(who, [(None, Some("\"a\"".to_owned())), (Some(2), Some("\"b\"".to_owned()))]);
    assert_eq!(ask.bound().map(|bound| bound.limitation()), Some(Limitation::Forever));

    let parallel: Parallel = first(&state("parallel { a: do f() b: await M within 1h } join b within 1d"));
    assert!(matches!(parallel.join(), Some(Join::Region(_))) && parallel.bound().is_some());
    assert_eq!(
        parallel.regions().filter_map(|region| text_of(region.name())).collect::<Vec<_>>(),
        ["a", "b"]
    );
}

#[test]
fn expressions_and_their_parts() {
    let binary: Binary = first("fn f() -> bool = a not in b");
    assert_eq!(binary.op(), Some(BinaryOp::NotIn));
    assert_eq!((source(binary.left()), source(binary.right())), (Some("a".to_owned()), Some("b".to_owned())));
    let entry: MapEntry = first("fn f() -> int = map { a: b }");
    assert_eq!((source(entry.key()).as_deref(), source(entry.value()).as_deref()), (Some("a"), Some("b")));
    let index: IndexExpr = first("fn f() -> int = a[b]");
    assert_eq!((source(index.value()).as_deref(), source(index.index()).as_deref()), (Some("a"), Some("b")));
    let choice: IfExpr = first("fn f() -> int = if a then b else c");
    let parts = [choice.cond().and_then(|cond| cond.expr()), choice.then(), choice.otherwise()].map(source);
    assert_eq!(parts, ["a", "b", "c"].map(|text| Some(text.to_owned())));
    let call: Call = first("fn f() -> int = g(x for x, y in xs if y)");
    let for_in = call.args().unwrap().for_in().unwrap();
    assert_eq!(text_of(for_in.second()).as_deref(), Some("y"));
    assert_eq!((source(for_in.over()).as_deref(), source(for_in.cond()).as_deref()), (Some("xs"), Some("y")));
    let path: TypePath = first("fn f() -> int = dev.T.V { a }");
    let parts = [path.catalogue(), path.qualifier(), path.last()].map(|part| part.unwrap().text);
    assert_eq!(parts, ["dev", "T", "V"]);
}

#[test]
fn texts_and_their_pieces() {
    let text: StringExpr = first("fn f() -> text = \"\"\"\n    a {x}\n      \\{b\n    \"\"\"");
    let pieces = text.pieces();
    let [StringPiece::Text(before), StringPiece::Hole(hole), StringPiece::Text(after)] = pieces.as_slice()
    else {
        panic!("found {pieces:?}")
    };
    assert_eq!(
        (before.as_str(), source(hole.expr()).as_deref(), after.as_str()),
        ("a ", Some("x"), "\n  {b")
    );
    assert!(text.is_long() && text.plain().is_none());
    assert_eq!(first::<StringExpr>("fn f() -> text = \"\"").plain().as_deref(), Some(""));
}

#[test]
fn steps_of_tests() {
    let test: Test = first(
        "test \"t\" { start A(1) stub m gives [x, fail E, timeout, unknown] answer \"q\" reject { n: 1 } by \"o\" \
         crash at S / F.T expect calls m == 2 expect path A -> B }",
    );
    let steps: Vec<Step> = test.steps().collect();
    let [
        Step::Start(_),
        Step::Stub(stub),
        Step::Answer(answer),
        Step::Crash(crash),
        Step::Expect(calls),
        Step::Expect(path),
    ] = steps.as_slice()
    else {
        panic!("found {steps:?}")
    };
    let replies: Vec<_> = stub.replies().filter_map(|reply| reply.reply()).collect();
    assert!(matches!(
        replies.as_slice(),
        [Reply::Value(_), Reply::Fail(Some(_)), Reply::Timeout, Reply::Unknown]
    ));
    let (question, by) = (answer.question().and_then(|q| q.plain()), answer.by().and_then(|by| by.plain()));
    assert_eq!((question.as_deref(), by.as_deref()), (Some("q"), Some("o")));
    assert_eq!((source(answer.choice()).as_deref(), answer.inits().count()), (Some("reject"), 1));
    let at = crash.path().unwrap();
    assert_eq!((source(at.state()).as_deref(), at.inner().len()), (Some("S"), 1));
    let Some(Check::Calls(Some(activity), Some(count))) = calls.check() else { panic!("it counts calls") };
    assert_eq!((activity.text().as_str(), count.value()), ("m", Some(2)));
    assert!(matches!(path.check(), Some(Check::Path(states)) if states.len() == 2));
}
