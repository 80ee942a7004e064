//! What tests came to, for people and for programs.
//!
//! Invariant: a failure is shown where its step stands, as a diagnostic of the language is.

use std::fmt::Write as _;

use outlast_dsl::diag::LineIndex;
use outlast_trial::{Coverage, TestFailure, TestResult};
use serde_json::{Value, json};

use super::Ran;
use crate::{diagnostics, out};

/// Returns the coverage of all files; what no test names counts as never taken.
pub(super) fn coverage(all: &[Ran]) -> Coverage {
    let mut coverage = Coverage::default();
    for ran in all {
        coverage.merge(ran.report.coverage.clone());
    }
    coverage
}

/// Returns the line and column, from 1, at which a result or its failure stands.
pub(super) fn position(ran: &Ran, result: &TestResult) -> (u32, u32) {
    let span = result.failure.as_ref().map_or(result.span, |failure| failure.span);
    let Some(file) = ran.files.get(result.file.0 as usize) else { return (1, 1) };
    let at = LineIndex::new(&file.text).position(span.start, &file.text);
    (at.line, at.column)
}

/// Returns the name of the file that a result belongs to.
pub(super) fn file_name<'r>(ran: &'r Ran, result: &TestResult) -> &'r str {
    ran.files.get(result.file.0 as usize).map_or("", |file| file.name.as_str())
}

/// Shows a failure with its place and everything that helps to see why.
pub(super) fn failure(ran: &Ran, result: &TestResult, failure: &TestFailure) -> String {
    let mut text = diagnostics::shown(&ran.files, &failure.diagnostic(result.file));
    for (word, fact) in failure.facts() {
        let _ = writeln!(text, "   = {word}: {}", out::tame(&fact));
    }
    text
}

/// Returns the report for people; with coverage if all tests were run.
pub(super) fn text(all: &[Ran], coverage: Option<&Coverage>) -> String {
    let mut text = String::new();
    let (mut tests, mut failed, mut crashes) = (0, 0, 0);
    for ran in all {
        for result in &ran.report.results {
            (tests, crashes) = (tests + 1, crashes + result.crashes);
            let name = format!("{}: {}", file_name(ran, result), out::tame(&result.name));
            match &result.failure {
                None => {
                    let _ = writeln!(text, "ok      {name}");
                }
                Some(why) => {
                    failed += 1;
                    let _ = writeln!(text, "FAILED  {name}\n{}", failure(ran, result, why));
                }
            }
        }
        if ran.report.results.is_empty() && coverage.is_some() {
            let name = ran.files.first().map_or("", |file| file.name.as_str());
            let _ = writeln!(text, "        {name}: no tests");
        }
    }
    let _ = writeln!(text, "\n{} held, {failed} failed; {crashes} crashes survived", tests - failed);
    if let Some(coverage) = coverage.filter(|coverage| coverage.arrows().1 > 0) {
        covered(&mut text, coverage);
    }
    text
}

fn covered(text: &mut String, coverage: &Coverage) {
    let ((states, all_states), (arrows, all_arrows)) = (coverage.states(), coverage.arrows());
    let _ = writeln!(
        text,
        "{states} of {all_states} states were entered, {arrows} of {all_arrows} arrows taken ({} %)",
        coverage.percent()
    );
    let untaken = coverage.untaken();
    if !untaken.is_empty() {
        let _ = writeln!(text, "never taken:");
    }
    for arrow in untaken {
        let state = arrow.state.map(|state| format!(".{state}")).unwrap_or_default();
        let line = arrow.line;
        let _ = writeln!(
            text,
            "  {}:{} {}{state}: {}",
            line.file,
            line.line,
            arrow.flow,
            out::tame(&line.snippet)
        );
    }
}

/// Returns the report for programs.
pub(super) fn json(all: &[Ran], coverage: &Coverage, ok: bool, diagnostics: Vec<Value>) -> Value {
    let of_file = |ran: &Ran| {
        let one = |result: &TestResult| {
            let (line, column) = position(ran, result);
            json!({
                "name": result.name,
                "file": file_name(ran, result),
                "line": line,
                "column": column,
                "ok": result.failure.is_none(),
                "events": result.events,
                "crashes": result.crashes,
                "failure": result.failure.as_ref().map(told),
            })
        };
        ran.report.results.iter().map(one).collect::<Vec<_>>()
    };
    let tests: Vec<Value> = all.iter().flat_map(of_file).collect();
    let untaken = coverage.untaken().into_iter().map(|arrow| {
        json!({ "flow": arrow.flow, "state": arrow.state, "file": arrow.line.file, "line": arrow.line.line,
                "text": arrow.line.snippet })
    });
    let ((states, all_states), (arrows, all_arrows)) = (coverage.states(), coverage.arrows());
    json!({
        "ok": ok,
        "diagnostics": diagnostics,
        "tests": tests,
        "coverage": {
            "percent": coverage.percent(),
            "states": { "entered": states, "all": all_states },
            "arrows": { "taken": arrows, "all": all_arrows },
            "untaken": untaken.collect::<Vec<_>>(),
        },
    })
}

fn told(failure: &TestFailure) -> Value {
    json!({
        "message": failure.message,
        "expected": failure.expected,
        "found": failure.found,
        "hint": failure.hint,
        "path": failure.path,
        "events": failure.events,
        "crash": failure.crash,
    })
}
