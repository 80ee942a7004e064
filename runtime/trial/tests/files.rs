//! The tests in whole files: the examples, the standard library, and the scenarios of `scenarios/`.
//!
//! Leaves what the command line makes of them to its own tests. Invariant: each file's tests hold, with a crash before and after every
//! event, and where they are said to, they take every arrow.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use outlast_dsl::{SourceFile, check};
use outlast_trial::{Report, run};

fn files_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|found| found == "flow")).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Runs the tests of a file; all must hold.
#[track_caller]
fn ran(path: &Path) -> Report {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dev.tools.json");
    let attachments = BTreeMap::from([("dev.tools.json".to_owned(), fs::read_to_string(tools).unwrap())]);
    let name = path.display().to_string();
    let file = SourceFile { name: name.clone(), text: fs::read_to_string(path).unwrap() };
    let checked = check(&[file], &attachments);
    assert_eq!(checked.diagnostics, [], "{name}");
    let report = run(&checked, |_| true);
    let failed = report.results.iter().filter(|result| result.failure.is_some());
    let failed: Vec<_> = failed.map(|result| (&result.name, &result.failure)).collect();
    assert!(failed.is_empty(), "{name}: {failed:#?}");
    assert!(!report.results.is_empty(), "{name} has no tests");
    report
}

/// The arrows of a file that its tests, which hold, never take.
#[track_caller]
fn untaken(path: &Path) -> Vec<String> {
    let untaken = ran(path).coverage.untaken().into_iter().map(|arrow| {
        let state = arrow.state.unwrap_or_default();
        format!("{}:{} {}.{state}: {}", arrow.line.file, arrow.line.line, arrow.flow, arrow.line.snippet)
    });
    untaken.collect()
}

#[track_caller]
fn takes_every_arrow<'p>(files: impl IntoIterator<Item = &'p PathBuf>) {
    let untaken: Vec<String> = files.into_iter().flat_map(|path| untaken(path)).collect();
    assert!(untaken.is_empty(), "never taken:\n{}", untaken.join("\n"));
}

#[test]
fn the_tests_of_the_examples_take_every_arrow() {
    takes_every_arrow(&files_in("../../examples/flows"));
}

#[test]
fn the_tests_of_the_standard_library_take_every_arrow() {
    let with_flows = |path: &&PathBuf| fs::read_to_string(path).unwrap().contains("\nflow ");
    let files = files_in("../../dsl/src/std");
    let with_flows: Vec<_> = files.iter().filter(with_flows).collect();
    assert!(!with_flows.is_empty());
    takes_every_arrow(with_flows);
}

#[test]
fn the_scenarios_come_out_right() {
    takes_every_arrow(&files_in("tests/scenarios"));
}
