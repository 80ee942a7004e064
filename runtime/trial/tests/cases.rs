//! The cases of `cases/*.md`: a Flow file with tests, and what they come to.
//!
//! A case is a heading, a `flow` block and a `run` block with one line for each test, `ok NAME` or `failed NAME line:column message`,
//! and below a failed one what is expected and found and the path. `UPDATE_GOLDEN=1` writes the `run` blocks; look at the difference.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use outlast_dsl::diag::LineIndex;
use outlast_dsl::{SourceFile, check};
use outlast_trial::{TestFailure, run};

fn attachments() -> BTreeMap<String, String> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dev.tools.json");
    BTreeMap::from([("dev.tools.json".to_owned(), fs::read_to_string(tools).unwrap())])
}

/// What the tests of a file come to, as a `run` block says it.
fn told(flow: &str) -> String {
    let file = SourceFile { name: "case.flow".to_owned(), text: flow.to_owned() };
    let checked = check(&[file], &attachments());
    let lines = LineIndex::new(flow);
    let mut out = String::new();
    for diagnostic in checked.diagnostics.iter().filter(|one| one.is_error()) {
        let at = lines.position(diagnostic.span.start, flow);
        let _ = writeln!(out, "{} {}:{} {}", diagnostic.code, at.line, at.column, diagnostic.message);
    }
    for result in run(&checked, |_| true).results {
        match &result.failure {
            None => {
                let _ = writeln!(out, "ok {}", result.name);
            }
            Some(failure) => {
                let at = lines.position(failure.span.start, flow);
                let _ = write!(out, "failed {} {}:{} {}", result.name, at.line, at.column, details(failure));
            }
        }
    }
    out
}

fn details(failure: &TestFailure) -> String {
    let crash = failure.crash.as_ref().map(|crash| format!(", {crash}")).unwrap_or_default();
    let mut out = format!("{}{crash}\n", failure.message);
    for (word, text) in [("expected", &failure.expected), ("found", &failure.found), ("help", &failure.hint)]
    {
        if let Some(text) = text {
            let _ = writeln!(out, "  {word}: {text}");
        }
    }
    if std::env::var_os("SHOW_EVENTS").is_some() {
        println!("{out}{:#?}", failure.events);
    }
    let _ = writeln!(out, "  path: {}", failure.path_shown());
    out
}

/// Returns a file with its `run` blocks as they are found, and the headings of the cases that differ.
fn rewritten(text: &str) -> (String, Vec<String>) {
    let (mut out, mut differ, mut heading) = (String::new(), Vec::new(), String::new());
    let (mut flow, mut block) = (String::new(), None::<(String, String)>);
    for line in text.lines() {
        match &mut block {
            Some((kind, body)) if line == "```" => {
                match kind.as_str() {
                    "flow" => flow.clone_from(body),
                    "run" => {
                        let found = told(&flow);
                        if found != *body {
                            differ.push(format!("{heading}\nexpected:\n{body}\nfound:\n{found}"));
                        }
                        out.push_str(&found);
                    }
                    kind => panic!("{heading}: a block `{kind}` does not belong here"),
                }
                block = None;
                out.push_str("```\n");
            }
            Some((kind, body)) => {
                body.push_str(line);
                body.push('\n');
                if kind != "run" {
                    out.push_str(line);
                    out.push('\n');
                }
            }
            None => {
                if let Some(name) = line.strip_prefix("## ") {
                    heading = name.to_owned();
                }
                block = line.strip_prefix("```").map(|kind| (kind.to_owned(), String::new()));
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    (out, differ)
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn the_cases_of_tests_hold() {
    let mut failures = Vec::new();
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        let (written, differ) = rewritten(&text);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, written).unwrap();
        } else {
            failures.extend(differ.into_iter().map(|case| format!("{}: {case}", file.display())));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
