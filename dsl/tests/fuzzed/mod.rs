//! What must hold for every text whatever: the bodies of the fuzz targets, and of the test that replays what they found.
//!
//! Leaves making texts to the fuzzer (`tests/fuzz`). Invariant: none of this panics on a text that is merely wrong.

use std::collections::BTreeMap;

use outlast_dsl::diag::{Colour, FileId, Sources, json, render};
use outlast_dsl::graph::{Format, render as draw};
use outlast_dsl::machine::Machine;
use outlast_dsl::{Checked, FormatError, SourceFile, check, format};

/// The parser keeps every byte, and what it says can be shown.
pub(crate) fn parses(text: &str) {
    let parse = outlast_dsl::syntax::parse(FileId(0), text);
    assert!(parse.syntax().text() == text, "the tree lost something");
    let mut sources = Sources::default();
    sources.add("any.flow", text);
    for diagnostic in parse.diagnostics() {
        let _ = render(diagnostic, &sources, Colour::Never);
    }
    let _ = json(parse.diagnostics(), &sources);
}

/// What the checker accepts is a machine that survives its own stored form and can be drawn.
pub(crate) fn checks(text: &str) {
    for flow in checked(text).flows {
        let bytes = flow.machine.encode();
        match Machine::decode(&bytes) {
            Ok(again) => assert!(again == flow.machine, "decoding changed {}", flow.name),
            Err(error) => panic!("{} cannot be decoded: {error}", flow.name),
        }
        assert_eq!(flow.machine.first_bad_index(), None, "{}", flow.name);
        let _ = draw(&flow.machine, Format::Ascii, None);
    }
}

/// What is well formed has one layout, which means the same.
pub(crate) fn formats(text: &str) {
    let once = match format(FileId(0), text) {
        Ok(once) => once,
        Err(FormatError::Syntax(_)) => return,
        Err(FormatError::Changed) => panic!("the layout would change more than white space"),
    };
    let twice = format(FileId(0), &once);
    assert!(twice.as_ref() == Ok(&once), "a second time changes the layout:\n{once}\n{twice:?}");
    let machines =
        |text: &str| -> Vec<Machine> { checked(text).flows.into_iter().map(|flow| flow.machine).collect() };
    assert!(machines(&once) == machines(text), "the layout means another machine");
}

fn checked(text: &str) -> Checked {
    let tools = include_str!("../../../examples/dev.tools.json").to_owned();
    let attachments = BTreeMap::from([("dev.tools.json".to_owned(), tools)]);
    check(&[SourceFile { name: "any.flow".to_owned(), text: text.to_owned() }], &attachments)
}
