//! What an editor is told, in tables: `$0` in a text is the cursor.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use outlast_dsl::SourceFile;
use outlast_dsl::diag::{Diagnostic, FileId};
use outlast_dsl::editor::{Editor, FoldKind, RenameError, folds, symbols};

const FLOW: &str = r#"error Bad { why: text }
/// Adds one.
activity add(n: int) -> int raises Bad within 1m effect pure
/// Twice as much.
fn twice(n: int) -> int = n + n
type Shape = Round { size: int } | Flat
/// Counts.
flow Count(limit: int) -> int {
  message Stop { why: text }
  data total: int = 0
  limit visits(Add) <= 10 else -> end total
  start Add(limit)
  /// Adds up.
  state Add(left: int) {
    do add(left) as sum
    on ok  set total += sum -> Look(twice(sum))
    on problem as p -> end size(p.text)
  }
  state Look(seen: int) { choose
    if seen > total -> Add(seen)
    else -> end total
  }
}
"#;

fn editor(text: &str) -> Editor {
    Editor::new(&[SourceFile { name: "x.flow".to_owned(), text: text.to_owned() }], &BTreeMap::new())
}

/// The example with the cursor inside of `word`, where it stands for the `nth` time.
fn at(word: &str, nth: usize) -> u32 {
    let found = FLOW.match_indices(word).nth(nth).unwrap().0;
    u32::try_from(found + 1).unwrap()
}

#[test]
fn the_example_is_right() {
    assert!(!editor(FLOW).diagnostics().iter().any(Diagnostic::is_error));
}

#[test]
fn hovering_shows_declarations_and_types() {
    let editor = editor(FLOW);
    for (word, nth, title, docs) in [
        ("add(left)", 0, "activity add(n: int) -> int raises Bad within 1m effect pure", Some("Adds one.")),
        ("twice(sum)", 0, "fn twice(n: int) -> int", Some("Twice as much.")),
        ("Add(seen)", 0, "state Add(left: int)", Some("Adds up.")),
        ("Bad within", 0, "error Bad { why: text }", None),
        ("sum))", 0, "sum: int", None),
        ("total\n", 0, "data total: int", None),
        ("left)", 0, "left: int", None),
        ("Count(limit", 0, "flow Count(limit: int) -> int", Some("Counts.")),
    ] {
        let hover = editor.hover(FileId(0), at(word, nth)).unwrap_or_else(|| panic!("nothing at {word}"));
        assert_eq!((hover.title.as_str(), hover.docs.as_deref()), (title, docs), "{word}");
    }
    assert_eq!(editor.hover(FileId(0), at("text)", 0)).unwrap().title, "text", "a field has a type");
}

#[test]
fn names_lead_to_their_declarations_and_back() {
    let editor = editor(FLOW);
    for (word, nth, declared, count) in [
        ("add(left)", 0, "add(n", 2),
        ("Add(seen)", 0, "Add(left: int)", 4),
        ("Look(twice", 0, "Look(seen", 2),
        ("sum))", 0, "sum\n", 3),
        ("total += ", 0, "total: int", 5),
        ("seen > ", 0, "seen: int", 3),
        ("n + n", 0, "n: int) -> int =", 3),
        ("p.text", 0, "p ->", 2),
        ("limit)", 0, "limit: int", 2),
        ("Bad within", 0, "Bad {", 2),
    ] {
        let found =
            editor.definition(FileId(0), at(word, nth)).unwrap_or_else(|| panic!("nothing at {word}"));
        assert_eq!(found.span.start + 1, at(declared, 0), "{word}");
        let references = editor.references(FileId(0), at(word, nth));
        assert_eq!(references.len(), count, "{word}: {references:?}");
        assert!(references.contains(&found), "{word}");
    }
    assert_eq!(editor.definition(FileId(0), at("size(p", 0)), None, "a builtin is declared nowhere");
}

#[test]
fn names_are_found_across_files() {
    let lib = SourceFile { name: "lib.flow".to_owned(), text: "fn one() -> int = 1\n".to_owned() };
    let text = "use \"lib.flow\" { one }\nfn two() -> int = one() + one()\n";
    let own = SourceFile { name: "x.flow".to_owned(), text: text.to_owned() };
    let editor = Editor::new(&[own], &BTreeMap::from([(lib.name, lib.text)]));
    let call = u32::try_from(text.rfind("one").unwrap()).unwrap();
    if editor.diagnostics().is_empty() {
        let found = editor.definition(FileId(0), call).unwrap();
        assert_eq!((found.file, found.span.start), (FileId(1), 3));
        assert_eq!(editor.references(FileId(1), 4).len(), 4);
    } else {
        panic!("{:?}", editor.diagnostics());
    }
}

fn renamed(word: &str, to: &str) -> Result<String, RenameError> {
    let mut edits = editor(FLOW).rename(FileId(0), at(word, 0), to)?;
    let mut text = FLOW.to_owned();
    edits.sort_by_key(|edit| edit.place);
    for edit in edits.iter().rev() {
        text.replace_range(edit.place.span.start as usize..edit.place.span.end as usize, &edit.text);
    }
    Ok(text)
}

#[test]
fn a_renamed_text_means_the_same() {
    for (word, to, part) in [
        ("add(left)", "plus", "do plus(left) as sum"),
        ("Add(seen)", "More", "state More was Add(left: int)"),
        ("total: int", "all_of_it", "set all_of_it += sum"),
        ("sum))", "found", "do add(left) as found"),
        ("Bad within", "Worse", "raises Worse"),
    ] {
        let text = renamed(word, to).unwrap();
        assert!(text.contains(part), "{text}");
        assert!(!editor(&text).diagnostics().iter().any(Diagnostic::is_error), "{text}");
    }
}

#[test]
fn names_that_would_change_the_meaning_are_refused() {
    for (word, to, why) in [
        ("add(left)", "Plus", RenameError::BadName),
        ("add(left)", "twice", RenameError::Taken),
        ("Add(seen)", "Look", RenameError::Taken),
        ("sum))", "left", RenameError::Taken),
        ("sum))", "end", RenameError::Reserved),
        ("twice(sum)", "size", RenameError::Reserved),
        ("size(p", "length", RenameError::NoName),
        ("Bad within", "Message", RenameError::Taken),
    ] {
        assert_eq!(renamed(word, to), Err(why), "{word} -> {to}");
    }
}

#[test]
fn completions_fit_their_place() {
    completes(&[
        (
            "flow F(a: int) { start S state S { do add(a) on ok -> $0 } state T {} }",
            "S T stay end fail",
            "add a",
        ),
        (
            "flow F(a: int) { start S state S { do add(a) on $0 -> stay } message M }",
            "ok timeout problem failed M",
            "S a Bad approve unknown closed",
        ),
        (
            "activity dear() raises Bad within 1m effect once\nflow F() { start S state S { do dear() on ok -> end on timeout if 1 < 2 -> end on $0 -> end } }",
            "Bad failed timeout problem unknown",
            "ok reject",
        ),
        (
            "flow F() { message M message N start S state S { await M within 1h on M -> end on ti$0 -> end } }",
            "timeout problem N",
            "ok M failed",
        ),
        (
            "flow F() { start S state S { ask \"?\" to \"x\" within 1h on $0 } }",
            "approve reject timeout",
            "ok answer failed",
        ),
        ("flow F() { start S state S { do nobody() on $0 } }", "ok Bad reject", "S"),
        ("activity b() raises $0", "Bad", "ok timeout"),
        ("flow F(a: int) { start S state S { do a$0 on ok -> stay } }", "add", "S a"),
        ("fn f(p: Problem) -> text = p.$0\n", "text kind attempts", "f size"),
        ("fn f(m: Message) -> text = m.te$0\n", "text role parts", "f size"),
        ("fn f(p: $0) -> text = \"\"\n", "int text Bad Message list", "add f"),
        ("fn f(abc: int) -> int = $0\n", "abc f size assistant", "Bad add"),
    ]);
}

#[test]
fn a_mistake_elsewhere_is_in_no_completions_way() {
    completes(&[
        ("fn g( = 1\nfn f(p: Problem) -> text = p.$0\n", "text kind attempts", "f"),
        ("fn f(p: Problem) -> text = p.$0\nflow F( { state", "text kind attempts", "f"),
        ("fn f(p: Problem) -> text = p.$0\nfn g() -> int = nobody\n", "text kind attempts", "f"),
        (
            "flow F(p: Problem) -> text { start S state S { do add( on ok -> } state T { do add(1) on ok -> end p.$0 on problem -> end \"\" } }",
            "text kind attempts",
            "S",
        ),
        (
            "flow F(p: Problem) -> text { start S state S { do add(1) on ok if p. -> end \"\" on problem -> end p.$0 } }",
            "text kind attempts",
            "S",
        ),
    ]);
}

/// Checks what is offered at `$0`: all words wanted, and none of the unwanted.
fn completes(cases: &[(&str, &str, &str)]) {
    let head = "/// Adds.\nactivity add(n: int) -> int within 1m effect pure\nerror Bad\n";
    for (text, wanted, unwanted) in cases {
        let marked = format!("{head}{text}");
        let offset = u32::try_from(marked.find("$0").unwrap()).unwrap();
        let found = editor(&marked.replace("$0", "")).completions(FileId(0), offset);
        let labels: Vec<&str> = found.iter().map(|one| one.label.as_str()).collect();
        for word in wanted.split(' ') {
            assert!(labels.contains(&word), "{text}: no {word} in {labels:?}");
        }
        for word in unwanted.split(' ') {
            assert!(!labels.contains(&word), "{text}: {word} in {labels:?}");
        }
    }
}

#[test]
fn broken_texts_have_diagnostics_and_an_outline() {
    let text = "flow F( {\n  state A {\n";
    assert!(editor(text).diagnostics().iter().any(|one| one.is_error()));
    let all = symbols(FLOW);
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["Bad", "add", "twice", "Shape", "Count"]);
    let inner: Vec<(&str, &str)> =
        all[4].children.iter().map(|one| (one.word.as_str(), one.name.as_str())).collect();
    assert_eq!(inner, [("message", "Stop"), ("data", "total"), ("state", "Add"), ("state", "Look")]);
    let _ = symbols(text);
}

#[test]
fn no_place_of_any_text_makes_the_editor_panic() {
    for cut in (0..FLOW.len()).step_by(97) {
        let text = &FLOW[..cut];
        let editor = editor(text);
        for offset in (0..=text.len() + 2).step_by(41) {
            let offset = u32::try_from(offset).unwrap();
            let _ = (editor.hover(FileId(0), offset), editor.references(FileId(0), offset));
            let _ = editor.rename(FileId(0), offset, "other");
        }
        let _ = editor.completions(FileId(0), u32::try_from(cut).unwrap());
    }
}

#[test]
fn blocks_comments_and_long_texts_can_be_folded() {
    let text = "// one\n// two\n\n// alone\nfn f(\n  a: int,\n) -> text = \"\"\"\n  {\n    f(1)\n  }\n\"\"\"\ntype A { x: int }\nflow F() {\n  start S\n  state S {\n    after 1s -> end\n  }\n}\n";
    let lines = |at: u32| text[..at as usize].matches('\n').count();
    let found: Vec<(FoldKind, usize, usize)> =
        folds(text).iter().map(|fold| (fold.kind, lines(fold.span.start), lines(fold.span.end))).collect();
    use FoldKind::{Block, Comment, Text};
    let wanted = [(Comment, 0, 1), (Block, 4, 6), (Text, 6, 10), (Block, 12, 17), (Block, 14, 16)];
    assert_eq!(found, wanted);
    for cut in (0..FLOW.len()).step_by(7) {
        let all = folds(&FLOW[..cut]);
        assert!(all.is_sorted_by_key(|fold| fold.span.start), "{all:?}");
        for fold in all {
            assert!(FLOW[..cut].get(fold.span.start as usize..fold.span.end as usize).is_some(), "{fold:?}");
        }
    }
}
