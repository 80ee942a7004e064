//! Fixes that a machine applies: what they make of habits from other languages, and that they never do harm.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use outlast_dsl::diag::{Diagnostic, FileId, catalogue, example};
use outlast_dsl::fix::{Fixed, fix};
use outlast_dsl::syntax::parse;
use outlast_dsl::{SourceFile, check};
use proptest::prelude::*;

fn tools() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/dev.tools.json");
    BTreeMap::from([("dev.tools.json".to_owned(), fs::read_to_string(path).unwrap())])
}

fn diagnose(text: &str) -> Vec<Diagnostic> {
    check(&[SourceFile { name: "x.flow".to_owned(), text: text.to_owned() }], &tools()).diagnostics
}

fn fixed(text: &str) -> Fixed {
    fix(text, diagnose)
}

fn parses(text: &str) -> bool {
    !parse(FileId(0), text).diagnostics().iter().any(Diagnostic::is_error)
}

#[test]
fn habits_become_flow() {
    for (habit, flow) in [
        ("fn f() -> int? = null", "fn f() -> int? = none"),
        (
            "fn f(a: bool, b: bool) -> bool = a && !b || b",
            "fn f(a: bool, b: bool) -> bool = a and not b or b",
        ),
        ("fn f(a:bool,b:bool)->bool=a&&b", "fn f(a:bool,b:bool)->bool=a and b"),
        ("fn f(xs: list<int>) -> int = xs.length", "fn f(xs: list<int>) -> int = size(xs)"),
        ("fn f(xs: list<int>) -> int = xs.len() + 1", "fn f(xs: list<int>) -> int = size(xs) + 1"),
        ("fn f() -> map<int> = {}", "fn f() -> map<int> = map {}"),
        ("fn f(a: int) -> bool = a = 1", "fn f(a: int) -> bool = a == 1"),
        ("fn f(a: int) -> bool = a === 1;", "fn f(a: int) -> bool = a == 1"),
        ("fn f() -> text = 'x'", "fn f() -> text = \"x\""),
        ("# one\nfn f() -> int = 1", "// one\nfn f() -> int = 1"),
        ("fn f(x: text) -> text = \"a ${x} b ${trim(x)}\"", "fn f(x: text) -> text = \"a {x} b {trim(x)}\""),
        ("Edition 1\nFn f() -> int = 1", "edition 1\nfn f() -> int = 1"),
        (
            "flow F() { start A state A { after 1h -> end\nevery 1m discard M }\nmessage M }",
            "flow F() { start A state A { after 1h -> end\nevery 1m discard M -> stay }\nmessage M }",
        ),
        ("type A { x: int y: int }", "type A { x: int, y: int }"),
        (
            "fn f(m: map<int>) -> list<int> = [v for (k, v) in m]",
            "fn f(m: map<int>) -> list<int> = [v for k, v in m]",
        ),
        ("type A { x: int }\nfn f() -> A = A { \"x\": 1 }", "type A { x: int }\nfn f() -> A = A { x: 1 }"),
    ] {
        assert_eq!(fixed(habit).text, flow, "{:?}", diagnose(habit));
    }
}

#[test]
fn a_change_says_what_it_was_for_and_where() {
    let found = fixed("fn f(a: bool) -> bool =\n  a && !a");
    let told: Vec<String> = found
        .changes
        .iter()
        .map(|one| format!("{} {}:{} {:?} -> {:?}", one.code, one.at.line, one.at.column, one.old, one.new))
        .collect();
    assert_eq!(told, ["F0141 2:5 \"&&\" -> \"and\"", "F0143 2:8 \"!\" -> \"not \""]);
}

#[test]
fn guesses_are_not_made() {
    for text in [
        "fn f(message: text) -> text = mesage",
        "fn f(a: bool) -> int = a ? 1 : 2",
        // It may be an amount of money.
        "fn f(x: decimal) -> text = \"${x}\"",
        "fn f(x: int) -> text = \"${x + 1}\"",
        // Nobody knows what it is.
        "fn f() -> text = \"${nobody}\"",
        // Where it leads must be said.
        "flow F() { message M start A state A { await M within 1h on M on timeout -> end } }",
        "editon 1",
    ] {
        assert_eq!(fixed(text).text, text);
    }
}

#[test]
fn safe_fixes_of_the_examples_mend_them() {
    for entry in catalogue::entries() {
        let Some(example) = example(entry.code) else { continue };
        let safe = |text: &str| {
            diagnose(text).into_iter().filter(|one| one.fix.as_ref().is_some_and(|fix| fix.safe)).count()
        };
        if safe(example.wrong) > 0 {
            let found = fixed(example.wrong);
            assert_eq!(diagnose(&found.text), [], "{}: {}", entry.code, found.text);
        }
    }
}

/// Habits and slips, as replacements of one word or sign.
const SLIPS: &[(&str, &str)] = &[
    (" and ", " && "),
    (" == ", " === "),
    (" == ", " = "),
    ("none", "null"),
    ("not ", "!"),
    (",", ""),
    ("->", "=>"),
    ("-> stay", ""),
    ("\"", "'"),
    ("{", "${"),
    ("size(", "length("),
    ("map {", "{"),
    (": ", " "),
    ("\n", ";\n"),
    ("//", "#"),
    ("end", "finish"),
    ("on ", "when "),
    ("}", ""),
    (")", ""),
    ("text", "txet"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is wrong: fixes come to an end, leave nothing that they could still mend, and break nothing that was whole.
    #[test]
    fn fixes_converge_and_never_break_a_text(slips in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..6)) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/agent.flow");
        let mut text = fs::read_to_string(path).unwrap();
        for (which, place) in slips {
            let (right, wrong) = SLIPS[which.index(SLIPS.len())];
            let found: Vec<usize> = text.match_indices(right).map(|(at, _)| at).collect();
            if !found.is_empty() {
                let at = found[place.index(found.len())];
                text.replace_range(at..at + right.len(), wrong);
            }
        }
        let once = fixed(&text);
        prop_assert!(parses(&once.text) || !parses(&text), "{}", once.text);
        prop_assert!(diagnose(&once.text).len() <= diagnose(&text).len() || !parses(&text));
        let twice = fixed(&once.text);
        prop_assert_eq!(twice.text, once.text);
        prop_assert!(twice.changes.is_empty());
        for change in &once.changes {
            prop_assert!(change.old != change.new);
        }
    }
}
