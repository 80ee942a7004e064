//! The examples of all codes: a wrong text is refused with its code and no other, a right one is accepted.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use outlast_dsl::diag::{catalogue, example};
use outlast_dsl::{SourceFile, check};

/// The codes that a text is told of.
fn codes(text: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let tools = fs::read_to_string(folder.join("dev.tools.json")).unwrap();
    let attachments = BTreeMap::from([("dev.tools.json".to_owned(), tools)]);
    let file = SourceFile { name: "example.flow".to_owned(), text: text.replace("<U+202E>", "\u{202e}") };
    check(&[file], &attachments).diagnostics.iter().map(|one| one.code.to_string()).collect()
}

#[test]
fn every_wrong_example_yields_its_code_and_every_right_one_yields_none() {
    let mut failures = String::new();
    for entry in catalogue::entries() {
        let Some(example) = example(entry.code) else { continue };
        let (wrong, right) = (codes(example.wrong), codes(example.right));
        if wrong != BTreeSet::from([entry.code.to_string()]) {
            failures.push_str(&format!("{}: the wrong text yields {wrong:?}\n", entry.code));
        }
        if !right.is_empty() {
            failures.push_str(&format!("{}: the right text yields {right:?}\n", entry.code));
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
