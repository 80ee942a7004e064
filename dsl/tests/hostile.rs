//! What no person would write: nothing of it makes the checker, the formatter or the editor panic or hang.
//!
//! Leaves single mistakes to the language cases, random texts to `syntax_any_text`, and memory to `memory`. Invariant: no clock; what must
//! not grow is counted.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use outlast_dsl::diag::{Diagnostic, FileId};
use outlast_dsl::editor::{Editor, folds, symbols};
use outlast_dsl::limits::{DIAGNOSTICS_MAX, SOURCE_BYTES_MAX, SUGGESTIONS_MAX};
use outlast_dsl::{SourceFile, check, format};

/// Checks a text and does everything else with it that an editor would; returns what is wrong.
fn check_all(text: &str) -> Vec<Diagnostic> {
    let files = [SourceFile { name: "x.flow".to_owned(), text: text.to_owned() }];
    let found = check(&files, &BTreeMap::new()).diagnostics;
    let _ = (format(FileId(0), text), symbols(text), folds(text));
    let editor = Editor::new(&files, &BTreeMap::new());
    let middle = u32::try_from(text.len() / 2).unwrap();
    let _ = (editor.hover(FileId(0), middle), editor.completions(FileId(0), middle));
    found
}

fn codes(text: &str) -> Vec<String> {
    let errors = check_all(text).into_iter().filter(Diagnostic::is_error);
    errors.map(|one| one.code.to_string()).collect()
}

#[test]
fn parentheses_without_end_are_refused() {
    for open in ["(", "[", "{", "f(", "\"{", "match x { A => ", "not ", "-"] {
        let text = format!("fn f() -> int = {}", open.repeat(64 * 1024 / open.len()));
        let files = [SourceFile { name: "x.flow".to_owned(), text }];
        let found = check(&files, &BTreeMap::new()).diagnostics;
        assert!(
            !found.is_empty() && found.len() <= DIAGNOSTICS_MAX + 1,
            "{open}: {} diagnostics",
            found.len()
        );
    }
}

#[test]
fn every_construct_nests_only_so_deep() {
    for (before, open, close) in [
        ("fn f(x: int) -> int = ", "(", ")"),
        ("fn f(x: int) -> list<int> = ", "[", "]"),
        ("fn f(x: int) -> int = ", "if x == 1 then ", ""),
        ("fn f(x: int) -> int = ", "[y for y in ", "]"),
        ("fn f(x: int) -> text = ", "\"{", "}\""),
        ("fn f(x: int) -> int = ", "f(", ")"),
        ("fn f(x: ", "list<", ">) -> int = 1"),
        ("fn f(x: int) -> int = x", " + x", ""),
        ("fn f(x: Problem) -> text = x", ".text", ""),
        ("flow F() { start A state A { ", "parallel { a: ", "} join all"),
        ("flow F() { start A state A { ", "each x in [] at most 1 { ", "}"),
        ("flow F() { start A state A { ", "steps { a = ", "}"),
        ("flow F() { start A state A { after 1s ", "{ A ", "}"),
        ("", "flow F() { ", "}"),
        ("", "test \"\" { ", "}"),
    ] {
        let text = format!("{before}{}{}", open.repeat(500), close.repeat(500));
        assert!(!codes(&text).is_empty(), "{open}");
    }
}

#[test]
fn a_file_of_ten_megabytes_is_refused_at_once() {
    let line = "fn f() -> int = 1 // a remark that is rather long\n";
    let text = line.repeat(10 * 1024 * 1024 / line.len());
    assert!(text.len() > SOURCE_BYTES_MAX);
    let files = [SourceFile { name: "x.flow".to_owned(), text: text.clone() }];
    let found = check(&files, &BTreeMap::new()).diagnostics;
    let found: Vec<String> = found.iter().map(|one| one.code.to_string()).collect();
    assert_eq!(found, ["F0113"]);
    assert!(format(FileId(0), &text).is_err());
}

#[test]
fn other_line_ends_tabs_and_a_byte_order_mark_are_white_space() {
    let text = "edition 1\nfn f(x: int) -> text = \"{x}\" // é\nflow F() {\n  start A\n  state A { after 1s -> end }\n}\n";
    assert_eq!(codes(text), [] as [&str; 0]);
    let tabs = text.replace(' ', "\t");
    for other in [
        text.replace('\n', "\r\n"),
        tabs.clone(),
        format!("\u{feff}{text}"),
        format!("\u{feff}{}", tabs.replace('\n', "\r\n")),
    ] {
        assert_eq!(codes(&other), [] as [&str; 0], "{other:?}");
    }
}

#[test]
fn characters_that_turn_the_line_round_are_refused_wherever_they_stand() {
    for text in [
        "fn f() -> int = 1 // \u{202e}",
        "fn f() -> text = \"\u{2066}\"",
        "fn f() -> text = \"\"\"\n\u{202a}\n\"\"\"",
        "/// \u{200f}\nfn f() -> int = 1",
        "fn \u{2069}f() -> int = 1",
    ] {
        assert!(codes(text).contains(&"F0108".to_owned()), "{text:?}: {:?}", codes(text));
    }
    assert_eq!(codes("fn f() -> text = \"\\u{202E}\""), [] as [&str; 0], "as an escape everybody sees it");
}

#[test]
fn half_a_character_is_no_character() {
    for text in [
        "fn f() -> text = \"\\u{D800}\"",
        "fn f() -> text = \"\\u{DFFF}x\"",
        "fn f() -> text = \"\\u{110000}\"",
    ] {
        assert!(!codes(text).is_empty(), "{text}");
    }
}

#[test]
fn thousands_of_mistakes_are_told_without_looking_for_thousands_of_names() {
    let mut text = String::new();
    for at in 0..3_000 {
        let _ = writeln!(text, "fn f{at}() -> int = g{at}()");
    }
    let files = [SourceFile { name: "x.flow".to_owned(), text }];
    let found = check(&files, &BTreeMap::new()).diagnostics;
    assert_eq!(found.len(), 3_000);
    let suggested = found.iter().filter(|one| one.fix.is_some()).count();
    assert!(suggested > 0 && suggested <= SUGGESTIONS_MAX as usize, "{suggested}");
}
