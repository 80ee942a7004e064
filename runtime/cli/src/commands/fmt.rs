//! `outlast fmt`: lays flow files out in the one way there is.
//!
//! Leaves the layout, and what sugar stands for, to the language. Invariants: a file is replaced as a whole or not at all, and only if
//! its layout changes; with `--expand` nothing is replaced.

use std::path::{Path, PathBuf};

use outlast_dsl::diag::{Diagnostic, FileId};
use outlast_dsl::{ExpandError, FormatError, SourceFile, expand, format, gather};
use serde_json::{Value, json};
use similar::TextDiff;

use super::Context;
use crate::diagnostics;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::out;

/// Arguments of `fmt`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Flow files; `-` is stdin, laid out on stdout
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing: show what would change, and exit with 1 if anything would
    #[arg(long)]
    check: bool,
    /// Change nothing: show the text with its sugar (`steps`) written out as the states that it stands for
    #[arg(long, conflicts_with = "check")]
    expand: bool,
}

/// What became of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    AsItWas,
    Differs,
    Refused,
}

/// What is told of a file.
struct Report {
    name: String,
    outcome: Outcome,
    /// What is shown on stdout: the text of stdin or of sugar, or the difference.
    shown: Option<String>,
    /// Why it was refused, for people.
    told: Option<String>,
    /// Why it was refused, for tools.
    diagnostics: Value,
}

/// Lays out all files; a broken one does not keep the others from it.
pub(crate) fn fmt(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let (mut outcomes, mut all) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        let report = match read(path) {
            Ok((name, text)) if arguments.expand => expanded(name, text),
            Ok((name, text)) => one(path, name, text, arguments.check)?,
            Err(failure) => Report::refused(path.display().to_string(), told_of(&failure), json!([])),
        };
        outcomes.push(report.outcome);
        if context.json {
            all.push(report.as_json(arguments));
        } else {
            report.tell()?;
        }
    }
    let refused = outcomes.contains(&Outcome::Refused);
    let differs = arguments.check && outcomes.contains(&Outcome::Differs);
    if context.json {
        out::json(&json!({ "ok": !refused && !differs, "files": all }))?;
    }
    Ok(match (refused, differs) {
        (true, _) => Exit::Usage,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Done,
    })
}

impl Report {
    fn new(name: String, outcome: Outcome, shown: Option<String>) -> Report {
        Report { name, outcome, shown, told: None, diagnostics: json!([]) }
    }

    fn refused(name: String, told: String, diagnostics: Value) -> Report {
        Report { name, outcome: Outcome::Refused, shown: None, told: Some(told), diagnostics }
    }

    fn tell(&self) -> Result<(), Failure> {
        if let Some(told) = &self.told {
            out::say(told.trim_end_matches('\n'));
        }
        match &self.shown {
            Some(shown) if !shown.is_empty() => out::result(shown.trim_end_matches('\n')),
            Some(_) | None => Ok(()),
        }
    }

    fn as_json(&self, arguments: &Arguments) -> Value {
        let outcome = match self.outcome {
            Outcome::AsItWas => "unchanged",
            Outcome::Differs if arguments.check => "differs",
            Outcome::Differs => "changed",
            Outcome::Refused => "refused",
        };
        let mut all = json!({ "file": self.name, "outcome": outcome });
        if let Some(shown) = &self.shown {
            all[if arguments.check { "diff" } else { "text" }] = json!(shown);
        }
        if self.outcome == Outcome::Refused {
            all["diagnostics"] = self.diagnostics.clone();
            // The diagnostics say it better where there are any.
            if self.diagnostics == json!([]) {
                all["message"] = json!(self.told);
            }
        }
        all
    }
}

fn told_of(failure: &Failure) -> String {
    failure.error().map_or_else(String::new, |error| format!("error: {}", error.message))
}

fn one(path: &Path, name: String, text: String, check: bool) -> Result<Report, Failure> {
    let formatted = match format(FileId(0), &text) {
        Ok(formatted) => formatted,
        Err(FormatError::Syntax(diagnostics)) => {
            let source = SourceFile { name: name.clone(), text };
            return Ok(refused(name, &[source], &diagnostics));
        }
        Err(FormatError::Changed) => {
            let told = format!(
                "{name} is left as it is: its layout could not be changed without changing more; please report this"
            );
            return Ok(Report::refused(name, told, json!([])));
        }
    };
    let outcome = if formatted == text { Outcome::AsItWas } else { Outcome::Differs };
    let shown = match outcome {
        Outcome::Differs if check => Some(difference(&name, &text, &formatted)),
        Outcome::AsItWas | Outcome::Differs if !check && is_stdin(path) => Some(formatted),
        Outcome::Differs if !check => {
            let cannot = |error| Failure::new(Exit::Failed, format!("cannot write {name}: {error}"));
            files::replace(path, formatted.as_bytes()).map_err(cannot)?;
            None
        }
        Outcome::AsItWas | Outcome::Differs | Outcome::Refused => None,
    };
    Ok(Report::new(name, outcome, shown))
}

/// A file that cannot be laid out because of what is wrong with it.
fn refused(name: String, files: &[SourceFile], diagnostics: &[Diagnostic]) -> Report {
    let errors: Vec<Diagnostic> = diagnostics.iter().filter(|one| one.is_error()).cloned().collect();
    let told = diagnostics::shown_all(files, &errors);
    Report::refused(name, told, diagnostics::as_json(files, &errors))
}

/// The change as a unified diff. Lines are split here because the library takes lines that end differently for equal.
fn difference(name: &str, before: &str, after: &str) -> String {
    let before: Vec<&str> = before.split_inclusive('\n').collect();
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let difference = TextDiff::configure().newline_terminated(true).diff_slices(&before, &after);
    difference.unified_diff().header(name, name).to_string()
}

/// A file with its sugar written out.
fn expanded(name: String, text: String) -> Report {
    let file = SourceFile { name, text };
    let attachments = gather(std::slice::from_ref(&file), |used| files::read_text(Path::new(used)).ok());
    let told = match expand(&file, &attachments) {
        Ok(expanded) => return Report::new(file.name, Outcome::AsItWas, Some(expanded)),
        Err(ExpandError::Wrong(checked)) => return refused(file.name, &checked.files, &checked.diagnostics),
        Err(ExpandError::Unwritable { at, message }) => {
            format!("{}:{}:{}: this cannot be written out: {message}", file.name, at.line, at.column)
        }
        Err(ExpandError::Changed) => {
            format!("{}: written out, this would mean something else; please report this", file.name)
        }
    };
    Report::refused(file.name, told, json!([]))
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// The name and the text of a file, or of stdin.
fn read(path: &Path) -> Result<(String, String), Failure> {
    match is_stdin(path) {
        true => Ok(("stdin".to_owned(), files::read_stdin()?)),
        false => Ok((path.display().to_string(), files::read_text(path)?)),
    }
}
