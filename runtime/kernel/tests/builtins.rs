//! Every function of the language with the value that it gives, for ever: a file per edition.
//!
//! Leaves types to the checker's cases. Invariant: a line of a golden file never changes; what a function should give instead is a
//! new edition.

mod common;

use std::fmt::Write as _;

use common::{Run, compiled};
use serde_json::json;

/// Expressions; each function stands in at least one, also with what is empty, out of range, or not plain ASCII.
const EXPRESSIONS: &[&str] = &[
    "size([1, 2, 3])",
    "size(map { \"a\": 1 })",
    "size(\"häß\u{1F600}\")",
    "first_n([1, 2, 3], 2)",
    "first_n(\"häß\", 2)",
    "first_n([1], 9)",
    "first_n([1, 2], -1)",
    "last_n([1, 2, 3], 2)",
    "last_n(\"häß\", 2)",
    "range(2, 5)",
    "range(5, 2)",
    "min(2, -3)",
    "min(0.5, 0.25)",
    "max(2, -3)",
    "max(5m, 4m)",
    "sort([3, 1, 2])",
    "sort([\"b\", \"B\", \"a\", \"ä\"])",
    "sort([2m, 30s])",
    "keys(map { \"b\": 1, \"a\": 2 })",
    "values(map { \"b\": 1, \"a\": 2 })",
    "put(map { \"b\": 1 }, \"a\", 2)",
    "put(map { \"b\": 1 }, \"b\", 2)",
    "join([\"a\", \"\", \"b\"], \", \")",
    "split(\"a,b,,c\", \",\")",
    "split(\"abc\", \"\")",
    "split(\"\", \",\")",
    "starts_with(\"flow\", \"fl\")",
    "starts_with(\"flow\", \"\")",
    "contains(\"flow\", \"low\")",
    "contains(\"flow\", \"Low\")",
    "find(\"häß\", \"ß\")",
    "find(\"abc\", \"d\") ?? -1",
    "trim(\"  a b\\n\")",
    "trim(\"\u{a0}a\")",
    "lower(\"ÄBC\")",
    "parse_int(\"-12\")",
    "parse_int(\"9223372036854775808\") ?? 0",
    "parse_int(\"1.0\") ?? 0",
    "parse_int(\" 1\") ?? 0",
    "parse_decimal(\"1.50\")",
    "parse_decimal(\"-0\")",
    "parse_decimal(\"1e3\") ?? 0.0",
    "now - now",
    "new_id() == new_id()",
    "size(new_id())",
    "done(slots())",
    "not_done([1, 2, 3], slots())",
    "count(x for x in [1, 2, 3] if x > 1)",
    "sum(x for x in [1, 2, 3])",
    "any(x > 2 for x in [1, 2, 3])",
    "all(x > 2 for x in [1, 2, 3])",
    "first(x for x in [1, 2, 3] if x > 1)",
    "last(x for x in [1, 2, 3] if x > 1)",
    "last(x for x in [1] if x > 1) ?? 0",
    "7 / 2",
    "-7 / 2",
    "-7 % 3",
    "1.0 / 3",
    "0.1 + 0.2",
    "[1, 2][5] ?? 0",
    "map { \"a\": 1 }[\"a\"]",
    "\"{1} {0.50} {true} {90s}\"",
    "2 in [1, 2]",
    "\"a\" < \"B\"",
];

const HEAD: &str = "edition 1
fn slots() -> list<Slot<int>> = [Slot.Done { value: 7 }, Slot.Cut, Slot.NotStarted]
";

/// The value that an expression has.
fn value(expression: &str) -> String {
    let flow = format!(
        "{HEAD}flow F() -> json {{ start A state A {{ choose if true -> end json({expression}) else -> end json(0) }} }}"
    );
    Run::start(compiled(&flow, "F"), json!({})).result().to_string()
}

#[test]
fn every_function_gives_what_it_always_gave() {
    let mut lines = String::new();
    for expression in EXPRESSIONS {
        let _ = writeln!(lines, "{expression} => {}", value(expression));
    }
    common::compare_golden("builtins_1.txt", &lines);
}

#[test]
fn every_function_of_the_reference_is_among_them() {
    let reference = include_str!("../../../dsl/REFERENCE.md");
    let (_, functions) =
        reference.split_once("| function | gives |").expect("the reference lists the functions");
    let rows = functions.lines().skip(2).take_while(|line| line.starts_with('|'));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`'));
    let names: Vec<&str> = names.filter_map(|code| Some(code.split_once('(')?.0)).collect();
    assert!(names.len() > 20, "{names:?}");
    let missing = names.into_iter().filter(|name| {
        let is_type = name.starts_with(char::is_uppercase);
        !is_type && *name != "json" && !EXPRESSIONS.iter().any(|one| one.contains(&format!("{name}(")))
    });
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&str>::new());
}
