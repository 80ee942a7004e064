//! `outlast fmt`: lays flow files out in the one way there is.
//!
//! Leaves the layout, and what sugar stands for, to the language. Invariants: a file is replaced as a whole or not at all, and only if
//! its layout changes; with `--expand` nothing is replaced.

use std::path::{Path, PathBuf};

use outlast_dsl::diag::FileId;
use outlast_dsl::{ExpandError, FormatError, SourceFile, expand, format, gather};
use similar::TextDiff;

use crate::diagnostics::{self, Told};
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

/// Lays out all files; a broken one does not keep the others from it.
pub(crate) fn fmt(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut outcomes = Vec::new();
    for path in &arguments.files {
        outcomes.push(if arguments.expand { expanded(path)? } else { one(path, arguments.check)? });
    }
    if outcomes.contains(&Outcome::Refused) {
        return Ok(Exit::Usage);
    }
    let differs = arguments.check && outcomes.contains(&Outcome::Differs);
    Ok(if differs { Exit::Failed } else { Exit::Done })
}

fn one(path: &Path, check: bool) -> Result<Outcome, Failure> {
    let (name, text) = read(path)?;
    let formatted = match format(FileId(0), &text) {
        Ok(formatted) => formatted,
        Err(error) => {
            tell(&name, text, &error);
            return Ok(Outcome::Refused);
        }
    };
    let outcome = if formatted == text { Outcome::AsItWas } else { Outcome::Differs };
    if check {
        if outcome == Outcome::Differs {
            out::result(difference(&name, &text, &formatted).trim_end_matches('\n'))?;
        }
    } else if is_stdin(path) {
        if !formatted.is_empty() {
            out::result(formatted.trim_end_matches('\n'))?;
        }
    } else if outcome == Outcome::Differs {
        let cannot = |error| Failure::new(Exit::Failed, format!("cannot write {name}: {error}"));
        files::replace(path, &formatted).map_err(cannot)?;
    }
    Ok(outcome)
}

/// The change as a unified diff. Lines are split here because the library takes lines that end differently for equal.
fn difference(name: &str, before: &str, after: &str) -> String {
    let before: Vec<&str> = before.split_inclusive('\n').collect();
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let difference = TextDiff::configure().newline_terminated(true).diff_slices(&before, &after);
    difference.unified_diff().header(name, name).to_string()
}

fn tell(name: &str, text: String, error: &FormatError) {
    match error {
        FormatError::Syntax(diagnostics) => {
            let source = SourceFile { name: name.to_owned(), text };
            diagnostics::tell(&[source], diagnostics, Told::Errors);
        }
        FormatError::Changed => out::say(&format!(
            "{name} is left as it is: its layout could not be changed without changing more; please report this"
        )),
    }
}

/// Shows a file with its sugar written out; errors are told as `check` tells them.
fn expanded(path: &Path) -> Result<Outcome, Failure> {
    let (name, text) = read(path)?;
    let file = SourceFile { name, text };
    let attachments = gather(std::slice::from_ref(&file), |used| files::read_text(Path::new(used)).ok());
    match expand(&file, &attachments) {
        Ok(expanded) => {
            if !expanded.is_empty() {
                out::result(expanded.trim_end_matches('\n'))?;
            }
            return Ok(Outcome::AsItWas);
        }
        Err(ExpandError::Wrong(checked)) => {
            diagnostics::tell(&checked.files, &checked.diagnostics, Told::All);
        }
        Err(ExpandError::Unwritable { at, message }) => {
            out::say(&format!(
                "{}:{}:{}: this cannot be written out: {message}",
                file.name, at.line, at.column
            ));
        }
        Err(ExpandError::Changed) => out::say(&format!(
            "{}: written out, this would mean something else; please report this",
            file.name
        )),
    }
    Ok(Outcome::Refused)
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
