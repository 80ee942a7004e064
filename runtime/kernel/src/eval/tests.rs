//! Tables of expressions: what each operator and builtin gives, and where it faults.

use outlast_dsl::machine::{
    BinaryOp, Builtin, Cond, Expr, FORMAT, FlowIx, Fold, ForIn, Literal, Machine, MatchArm, Slot,
};

use super::*;
use crate::json::value_to_json;
use serde_json::json;

fn machine() -> Machine {
    Machine {
        format: FORMAT,
        edition: 1,
        root: FlowIx(0),
        flows: Vec::new(),
        activities: Vec::new(),
        functions: Vec::new(),
        retries: Vec::new(),
        types: Vec::new(),
        catalogues: Vec::new(),
    }
}

fn run(expr: &Expr) -> Result<Value, Fault> {
    let machine = machine();
    constant(&machine, &Shapes::new(&machine), expr)
}

/// Checks that an expression gives a value with this JSON.
#[track_caller]
fn check(expr: Expr, expected: serde_json::Value) {
    match run(&expr) {
        Ok(value) => assert_eq!(value_to_json(&value), expected, "{expr:?}"),
        Err(fault) => panic!("{fault}: {expr:?}"),
    }
}

fn t(text: &str) -> Expr {
    Expr::Lit(Literal::Text(text.to_owned()))
}

fn i(int: i64) -> Expr {
    Expr::Lit(Literal::Int(int))
}

fn d(text: &str) -> Expr {
    Expr::Lit(Literal::Decimal(text.to_owned()))
}

fn f(text: &str) -> Expr {
    Expr::Lit(Literal::Float(text.to_owned()))
}

fn ms(ms: u64) -> Expr {
    Expr::Lit(Literal::Duration(ms))
}

fn yes(value: bool) -> Expr {
    Expr::Lit(Literal::Bool(value))
}

fn l(items: &[i64]) -> Expr {
    Expr::List(items.iter().copied().map(i).collect())
}

fn m(entries: &[(&str, i64)]) -> Expr {
    Expr::Map(entries.iter().map(|(key, value)| (t(key), i(*value))).collect())
}

fn b(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary(op, Box::new(left), Box::new(right))
}

fn call(builtin: Builtin, args: &[Expr]) -> Expr {
    Expr::Builtin(builtin, args.to_vec())
}

fn none() -> Expr {
    Expr::Lit(Literal::None)
}

#[test]
fn operators_give_what_the_edition_says() {
    use BinaryOp::{Add, And, Div, Eq, Ge, Gt, In, Le, Lt, Mul, Ne, Or, Rem, Sub};
    for (expr, expected) in [
        (b(Add, i(2), i(3)), json!(5)),
        (b(Add, d("0.1"), d("0.2")), json!("0.3")),
        (b(Add, f("0.5"), f("1")), json!(1.5)),
        (b(Add, t("a"), t("b")), json!("ab")),
        (b(Add, l(&[1]), l(&[2, 3])), json!([1, 2, 3])),
        (b(Add, ms(60_000), ms(500)), json!("1m500ms")),
        (b(Sub, ms(5), ms(9)), json!("0s")),
        (b(Sub, i(2), i(3)), json!(-1)),
        (b(Mul, ms(1_000), i(90)), json!("1m30s")),
        (b(Mul, d("1.10"), d("2")), json!("2.2")),
        (b(Div, i(7), i(2)), json!(3)),
        (b(Div, i(-7), i(2)), json!(-3)),
        (b(Div, i(7), i(0)), json!(null)),
        (b(Div, d("1"), d("3")), json!("0.333333333333333333")),
        (b(Div, d("0.000000000000000001"), d("2")), json!("0")),
        (b(Div, d("0.000000000000000003"), d("2")), json!("0.000000000000000002")),
        (b(Div, f("1"), f("0")), json!(null)),
        (b(Rem, i(-7), i(2)), json!(-1)),
        (b(Rem, i(7), i(0)), json!(null)),
        (b(Eq, l(&[1, 2]), l(&[1, 2])), json!(true)),
        (b(Ne, m(&[("a", 1)]), m(&[("a", 2)])), json!(true)),
        (b(Lt, t("Z"), t("a")), json!(true)),
        (b(Le, i(2), i(2)), json!(true)),
        (b(Gt, f("2.5"), f("2.4")), json!(true)),
        (b(Ge, d("2.50"), d("2.5")), json!(true)),
        (b(In, i(2), l(&[1, 2])), json!(true)),
        (b(In, t("a"), m(&[("a", 1)])), json!(true)),
        (b(In, t("nan"), t("banana")), json!(true)),
        (b(And, yes(false), b(Lt, i(1), none())), json!(false)),
        (b(Or, yes(true), i(1)), json!(true)),
        (Expr::Not(Box::new(yes(true))), json!(false)),
        (Expr::Neg(Box::new(f("0"))), json!(0.0)),
        (Expr::Neg(Box::new(d("1.5"))), json!("-1.5")),
        (Expr::Else(Box::new(none()), Box::new(i(1))), json!(1)),
        (Expr::Index(Box::new(l(&[4, 5])), Box::new(i(1))), json!(5)),
        (Expr::Index(Box::new(l(&[4, 5])), Box::new(i(-1))), json!(null)),
        (Expr::Index(Box::new(m(&[("a", 1)])), Box::new(t("a"))), json!(1)),
        (
            Expr::Text(vec![t("n="), i(1), t(" "), none(), t(" "), l(&[1]), ms(90_000), f("1")]),
            json!("n=1 none [1]1m30s1.0"),
        ),
    ] {
        check(expr, expected);
    }
}

#[test]
fn what_does_not_fit_is_a_fault_with_its_cause() {
    use BinaryOp::{Add, Mul, Sub};
    let huge = call(Builtin::Range, &[i(0), i(i64::MAX)]);
    let deep = (0..300).fold(i(1), |inner, _| Expr::Neg(Box::new(inner)));
    let nested = (0..70).fold(i(1), |inner, _| Expr::List(vec![inner]));
    let big = || t(&"x".repeat(40 << 20));
    for (expr, fault) in [
        (b(Add, i(i64::MAX), i(1)), "overflow: 9223372036854775807 + 1"),
        (b(Sub, i(i64::MIN), i(1)), "overflow: -9223372036854775808 - 1"),
        (b(Mul, f("1e308"), f("10")), "overflow: 1e+308 * 10.0"),
        (b(Mul, ms(1), i(-1)), "overflow: 1ms * -1"),
        (Expr::Neg(Box::new(i(i64::MIN))), "overflow: --9223372036854775808"),
        (huge, "more than 2000000 steps of evaluation in one event"),
        (deep, "a value of more than 64 levels, or evaluation nested more than 160 times"),
        (nested, "a value of more than 64 levels, or evaluation nested more than 160 times"),
        (b(Add, big(), big()), "a value of more than 67108864 bytes"),
        (
            call(Builtin::Join, &[Expr::List(vec![big(), big()]), t("")]),
            "a value of more than 67108864 bytes",
        ),
        (b(Add, i(1), t("a")), "the machine contradicts itself: `+` got a int"),
        (Expr::Param(3), "the machine contradicts itself: no variable at 3"),
    ] {
        assert_eq!(run(&expr).map_err(|fault| fault.to_string()), Err(fault.to_owned()));
    }
}

#[test]
fn builtins_give_what_the_edition_says() {
    use Builtin::*;
    let slots = || {
        let slot = |tag: &str, fields| Expr::BuiltinRecord(Some(tag.to_owned()), fields);
        Expr::List(vec![slot("Done", vec![("value".to_owned(), i(1))]), slot("Cut", Vec::new())])
    };
    for (builtin, args, expected) in [
        (Size, vec![t("zoë")], json!(3)),
        (Size, vec![m(&[("a", 1)])], json!(1)),
        (FirstN, vec![l(&[1, 2, 3]), i(2)], json!([1, 2])),
        (FirstN, vec![t("zoë!"), i(3)], json!("zoë")),
        (LastN, vec![l(&[1, 2, 3]), i(2)], json!([2, 3])),
        (LastN, vec![t("zoë"), i(-1)], json!("")),
        (Range, vec![i(2), i(5)], json!([2, 3, 4])),
        (Range, vec![i(5), i(2)], json!([])),
        (Min, vec![i(2), i(5)], json!(2)),
        (Max, vec![d("2"), d("5")], json!("5")),
        (Sort, vec![l(&[3, 1, 2])], json!([1, 2, 3])),
        (Keys, vec![m(&[("b", 1), ("a", 2)])], json!(["a", "b"])),
        (Values, vec![m(&[("b", 1), ("a", 2)])], json!([2, 1])),
        (Put, vec![m(&[("b", 1)]), t("b"), i(2)], json!({"b": 2})),
        (Join, vec![Expr::List(vec![t("a"), t("b")]), t(", ")], json!("a, b")),
        (Split, vec![t("a,b,"), t(",")], json!(["a", "b", ""])),
        (Split, vec![t("aë"), t("")], json!(["a", "ë"])),
        (StartsWith, vec![t("abc"), t("ab")], json!(true)),
        (Contains, vec![t("abc"), t("d")], json!(false)),
        (Find, vec![t("zoëx"), t("x")], json!(3)),
        (Find, vec![t("zoë"), t("x")], json!(null)),
        (Trim, vec![t("\t a \u{a0}\n")], json!("a \u{a0}")),
        (Lower, vec![t("ÄB")], json!("Äb")),
        (ParseInt, vec![t(" 12 ")], json!(12)),
        (ParseInt, vec![t("9223372036854775808")], json!(null)),
        (ParseDecimal, vec![t("1.50")], json!("1.5")),
        (ParseDecimal, vec![t("x")], json!(null)),
        (Done, vec![slots()], json!([1])),
        (NotDone, vec![l(&[7, 8]), slots()], json!([8])),
        (Now, vec![], json!("1970-01-01T00:00:00.000Z")),
    ] {
        check(call(builtin, &args), expected);
    }
}

#[test]
fn comprehensions_walk_in_order_and_bind() {
    let over = |over: Expr, cond: Option<Expr>| {
        let cond = cond.map(|test| Cond { test, bind: None });
        Box::new(ForIn { item: Slot(0), key: Some(Slot(1)), over, cond })
    };
    let item = || Box::new(Expr::Local(Slot(0)));
    let odd = || b(BinaryOp::Eq, Expr::Else(Box::new(b(BinaryOp::Rem, *item(), i(2))), Box::new(i(0))), i(1));
    let xs = || l(&[1, 2, 3]);
    for (expr, expected) in [
        (Expr::ListFor(over(xs(), Some(odd())), item()), json!([1, 3])),
        (Expr::ListFor(over(xs(), None), Box::new(Expr::Local(Slot(1)))), json!([0, 1, 2])),
        (
            Expr::ListFor(over(m(&[("b", 1), ("a", 2)]), None), Box::new(Expr::Local(Slot(1)))),
            json!(["a", "b"]),
        ),
        (
            Expr::MapFor(over(xs(), None), Box::new(Expr::Text(vec![*item()])), item()),
            json!({"1": 1, "2": 2, "3": 3}),
        ),
        (Expr::Fold(Fold::Count, over(xs(), Some(odd())), item()), json!(2)),
        (Expr::Fold(Fold::Sum, over(xs(), None), item()), json!(6)),
        (Expr::Fold(Fold::Sum, over(l(&[]), None), item()), json!(0)),
        (Expr::Fold(Fold::SumDecimal, over(l(&[]), None), item()), json!("0")),
        (Expr::Fold(Fold::Any, over(xs(), None), Box::new(odd())), json!(true)),
        (Expr::Fold(Fold::All, over(xs(), None), Box::new(odd())), json!(false)),
        (Expr::Fold(Fold::First, over(xs(), None), item()), json!(1)),
        (Expr::Fold(Fold::Last, over(xs(), Some(odd())), item()), json!(3)),
        (Expr::Fold(Fold::Last, over(l(&[]), None), item()), json!(null)),
    ] {
        check(expr, expected);
    }
}

#[test]
fn patterns_take_the_first_arm_that_fits() {
    let slot = || Expr::BuiltinRecord(Some("Done".to_owned()), vec![("value".to_owned(), i(5))]);
    let arm = |tag: &str, field: Option<&str>, guard: Option<Expr>, body: Expr| MatchArm {
        tag: tag.to_owned(),
        fields: field.map(|name| (name.to_owned(), Slot(0))).into_iter().collect(),
        guard: guard.map(|test| Cond { test, bind: None }),
        body,
    };
    let it = || Expr::Local(Slot(0));
    let small = || b(BinaryOp::Lt, it(), i(3));
    let arms = || {
        vec![
            arm("Cut", None, None, i(0)),
            arm("Done", Some("value"), Some(small()), i(1)),
            arm("Done", Some("value"), None, it()),
        ]
    };
    check(Expr::Match(Box::new(slot()), arms()), json!(5));
    let option = || vec![arm("None", None, None, i(0)), arm("Some", Some("value"), None, it())];
    check(Expr::Match(Box::new(none()), option()), json!(0));
    check(Expr::Match(Box::new(i(7)), option()), json!(7));
    check(Expr::Is(Box::new(slot()), "Done".to_owned(), Vec::new()), json!(true));
    let bound = Cond { test: none(), bind: Some(Slot(0)) };
    check(Expr::If(Box::new(bound), Box::new(it()), Box::new(i(1))), json!(1));
    let bound = Cond { test: i(4), bind: Some(Slot(0)) };
    check(Expr::If(Box::new(bound), Box::new(it()), Box::new(i(1))), json!(4));
}
