//! Writing sugar out, from outside: its cases, and every program of this repository that has `steps`.
//!
//! A case of `cases/expand/*.md` is a heading, a `flow` block, and the `expanded` block that it becomes or the `refused` block that
//! says why not. `UPDATE_GOLDEN=1` writes what should be there. Invariant: whatever is expanded here means what it meant.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod markdown;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use outlast_dsl::diag::FileId;
use outlast_dsl::machine::Machine;
use outlast_dsl::syntax::kind::SyntaxKind;
use outlast_dsl::syntax::parse;
use outlast_dsl::{Checked, ExpandError, SourceFile, check, expand, format};

use markdown::blocks;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// What the programs use: a catalogue, and a file with names to import.
fn attachments() -> BTreeMap<String, String> {
    let tools = fs::read_to_string(root().join("../examples/dev.tools.json")).unwrap();
    let other = "type Receipt { id: text }\n\
        activity pay(amount: int) -> Receipt within 1m effect pure\n\
        flow Payment(amount: int) -> Paid { receipt: Receipt } | Unpaid {\n  start A\n  \
        state A { do pay(amount) as r on ok -> end Paid { receipt: r } on problem -> end Unpaid }\n}\n";
    [("dev.tools.json", tools), ("other.flow", other.to_owned())]
        .map(|(name, text)| (name.to_owned(), text))
        .into()
}

fn source(text: &str) -> SourceFile {
    SourceFile { name: "x.flow".to_owned(), text: text.to_owned() }
}

fn checked(text: &str) -> Checked {
    check(&[source(text)], &attachments())
}

fn files_under(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_under(&path, all);
        } else if path.extension().is_some_and(|found| found == "flow" || found == "md") {
            all.push(path);
        }
    }
}

/// Every text of this repository without errors that has `steps`.
fn programs() -> Vec<String> {
    let mut files =
        vec![root().join("README.md"), root().join("REFERENCE.md"), root().join("COMING_FROM.md")];
    for folder in ["tests", "src/std", "../examples", "../tests/flows", "../runtime/trial/tests"] {
        files_under(&root().join(folder), &mut files);
    }
    let mut all = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        match file.extension().is_some_and(|found| found == "md") {
            true => all.extend(
                blocks(&text)
                    .into_iter()
                    .filter(|(_, kind, _)| kind.starts_with("flow"))
                    .map(|(.., text)| text),
            ),
            false => all.push(text),
        }
    }
    all.retain(|text| has_steps(text) && !has_errors(&checked(text)));
    all
}

fn has_errors(checked: &Checked) -> bool {
    checked.diagnostics.iter().any(|one| one.is_error())
}

fn has_steps(text: &str) -> bool {
    parse(FileId(0), text).syntax().descendants().any(|node| node.kind() == SyntaxKind::Steps)
}

/// The machines of a text, whose states are known by their numbers only.
fn machines(text: &str) -> Vec<Machine> {
    let checked = checked(text);
    assert!(!has_errors(&checked), "{:?} in\n{text}", checked.diagnostics);
    let mut all: Vec<Machine> = checked.flows.into_iter().map(|flow| flow.machine).collect();
    for flow in all.iter_mut().flat_map(|machine| &mut machine.flows) {
        for (at, state) in flow.states.iter_mut().enumerate() {
            state.name = at.to_string();
        }
    }
    all
}

fn comments(text: &str) -> Vec<String> {
    let tree = parse(FileId(0), text).syntax();
    let tokens = tree.descendants_with_tokens().filter_map(|element| element.into_token());
    let comments = tokens.filter(|token| matches!(token.kind(), SyntaxKind::Comment | SyntaxKind::Doc));
    let mut all: Vec<String> = comments.map(|token| token.text().trim_end().to_owned()).collect();
    all.sort();
    all.dedup();
    all
}

/// Expands a text and looks at what must hold of every text.
fn expanded(text: &str) -> Result<String, ExpandError> {
    let found = expand(&source(text), &attachments())?;
    assert!(!has_steps(&found), "{found}");
    assert_eq!(machines(&found), machines(text), "another machine:\n{found}");
    assert_eq!(expand(&source(&found), &attachments()).as_ref(), Ok(&found), "expanding twice changes it");
    assert_eq!(format(FileId(0), &found).as_ref(), Ok(&found), "not formatted");
    assert_eq!(comments(&found), comments(text), "comments:\n{found}");
    Ok(found)
}

/// What a case becomes: the kind of its second block, and its text.
fn outcome(text: &str) -> (&'static str, String) {
    match expanded(text) {
        Ok(found) => ("expanded", found),
        Err(ExpandError::Unwritable { at, message }) => {
            ("refused", format!("{}:{} {message}\n", at.line, at.column))
        }
        Err(ExpandError::Wrong(checked)) => panic!("{:?} in\n{text}", checked.diagnostics),
        Err(ExpandError::Changed) => panic!("it would mean something else:\n{text}"),
    }
}

#[test]
fn the_cases_of_expanding_hold() {
    let path = root().join("tests/cases/expand/steps.md");
    let text = fs::read_to_string(&path).unwrap();
    let (mut updated, mut failures) = (text.clone(), String::new());
    let blocks = blocks(&text);
    for pair in blocks.chunks(2) {
        let [(name, flow, before), (_, kind, after)] = pair else { panic!("a block alone") };
        assert_eq!(flow, "flow", "{name}");
        let (found_kind, found) = outcome(before);
        if (found_kind, &found) != (kind.as_str(), after) {
            let _ = writeln!(failures, "{name}:\n{found}instead of\n{after}");
            let old = format!("```flow\n{before}```\n\n```{kind}\n{after}```\n");
            assert!(updated.contains(&old), "{name}: one empty line between the blocks");
            updated =
                updated.replacen(&old, &format!("```flow\n{before}```\n\n```{found_kind}\n{found}```\n"), 1);
        }
    }
    let updates = std::env::var_os("UPDATE_GOLDEN").is_some();
    if updates {
        fs::write(&path, updated).unwrap();
    }
    assert!(failures.is_empty() || updates, "{failures}");
    assert!(blocks.len() >= 20, "only {} blocks", blocks.len());
}

#[test]
fn every_program_with_steps_means_the_same_written_out() {
    let all = programs();
    assert!(all.len() >= 12, "only {} programs have steps", all.len());
    for text in all {
        match expanded(&text) {
            Ok(_) | Err(ExpandError::Unwritable { .. }) => {}
            Err(error) => panic!("{error:?} in\n{text}"),
        }
    }
}

#[test]
fn a_text_without_sugar_is_laid_out() {
    let text = "flow  F( ){ start A // why\n state A{ after 1m->end } }";
    assert_eq!(expanded(text).as_ref(), Ok(&format(FileId(0), text).unwrap()));
}

#[test]
fn a_text_with_errors_is_refused_with_what_checking_it_finds() {
    for text in ["flow F( {", "flow F() { start A state A { steps { one = do a() } on ok -> end } }"] {
        let Err(ExpandError::Wrong(found)) = expand(&source(text), &attachments()) else { panic!("{text}") };
        assert_eq!(*found, checked(text));
    }
}
