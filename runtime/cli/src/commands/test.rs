//! `outlast test`: runs the tests of flow files on the kernel, with a crash before and after every event.
//!
//! Leaves running them to `outlast_trial`, and the forms of the report to `test/report` and `test/junit`. Invariant: exit 0 if all
//! tests hold, 1 if one fails, 2 if a file does not check or no test is named as wanted.

mod junit;
mod report;

use std::path::PathBuf;

use outlast_dsl::SourceFile;
use outlast_trial::Report;

use super::Context;
use crate::diagnostics::{self, Told};
use crate::failure::{Exit, Failure};
use crate::flow_file::FlowFile;
use crate::limits::NAMES_MAX;
use crate::{files, out};

/// Arguments of `test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Flow files; each is a program of its own
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Run only tests whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Write a JUnit report, for continuous integration
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Fail if fewer arrows than PERCENT were taken
    #[arg(long, value_name = "PERCENT", conflicts_with = "filter", value_parser = clap::value_parser!(u8).range(0..=100))]
    coverage_min: Option<u8>,
}

/// The tests of one file, run.
struct Ran {
    /// The file and those that it uses.
    files: Vec<SourceFile>,
    report: Report,
}

impl Ran {
    fn is_empty(&self) -> bool {
        self.report.results.is_empty()
    }
}

/// Says which tests there are, where none is named as wanted.
fn nothing_fits(filter: &str, names: &[String]) -> Failure {
    if names.is_empty() {
        return Failure::usage("these files have no tests");
    }
    let mut listed: Vec<String> = names.iter().take(NAMES_MAX).map(|name| format!("{name:?}")).collect();
    if names.len() > NAMES_MAX {
        listed.push(format!("and {} more", names.len() - NAMES_MAX));
    }
    Failure::usage(format!("no test has {filter:?} in its name"))
        .hint(format!("the tests are {}", listed.join(", ")))
}

/// Runs the tests of files.
pub(crate) fn test(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let (mut errors, mut found, mut all, mut names) = (0, Vec::new(), Vec::new(), Vec::new());
    let told = if context.json { Told::Nothing } else { Told::Errors };
    for path in &arguments.files {
        let checked = FlowFile::read(path)?.check();
        errors += diagnostics::tell(&checked.files, &checked.diagnostics, told);
        if let serde_json::Value::Array(items) = diagnostics::as_json(&checked.files, &checked.diagnostics) {
            found.extend(items);
        }
        names.extend(checked.tests.iter().map(|test| test.name.clone()));
        let wanted = |name: &str| arguments.filter.as_ref().is_none_or(|text| name.contains(text.as_str()));
        let report = outlast_trial::run(&checked, |test| wanted(&test.name));
        all.push(Ran { files: checked.files, report });
    }
    if let Some(filter) = arguments.filter.as_ref().filter(|_| errors == 0 && all.iter().all(Ran::is_empty)) {
        return Err(nothing_fits(filter, &names));
    }
    let failed: usize = all.iter().map(|ran| ran.report.failed()).sum();
    let covered = report::coverage(&all);
    let wanted = usize::from(arguments.coverage_min.unwrap_or(0));
    let ok = errors == 0 && failed == 0 && covered.percent() >= wanted;
    if let Some(path) = &arguments.junit {
        std::fs::write(path, junit::document(&all)).map_err(|error| files::unwritable(path, &error))?;
    }
    if context.json {
        out::json(&report::json(&all, &covered, ok, found))?;
    } else if errors == 0 {
        let whole = arguments.filter.is_none();
        out::result(report::text(&all, whole.then_some(&covered)).trim_end())?;
        if failed == 0 && !ok {
            out::say(&format!("{wanted} % of the arrows are to be taken, {} % were", covered.percent()));
        }
    }
    Ok(match (errors, ok) {
        (0, true) => Exit::Done,
        (0, false) => Exit::Failed,
        (_, _) => Exit::Usage,
    })
}
