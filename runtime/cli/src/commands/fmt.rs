//! `outlast fmt`: lays flow files out in the one way there is.
//!
//! Leaves the layout, and what sugar stands for, to the language. Invariants: a file is replaced as a whole or not at all, and only if
//! its layout changes; with `--expand` nothing is replaced.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use outlast_dsl::diag::FileId;
use outlast_dsl::{ExpandError, FormatError, SourceFile, expand, format, gather};

use crate::diagnostics::{self, Told};
use crate::diff;
use crate::failure::{Exit, Failure};
use crate::flow_file::read_text;
use crate::limits::FILE_BYTES_MAX;
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
            out::result(diff::unified(&name, &text, &formatted).trim_end_matches('\n'))?;
        }
    } else if is_stdin(path) {
        if !formatted.is_empty() {
            out::result(formatted.trim_end_matches('\n'))?;
        }
    } else if outcome == Outcome::Differs {
        let cannot = |error| Failure::new(Exit::Failed, format!("cannot write {name}: {error}"));
        replace(path, &formatted).map_err(cannot)?;
    }
    Ok(outcome)
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
    let attachments = gather(std::slice::from_ref(&file), |used| read_text(Path::new(used)).ok());
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
        true => Ok(("stdin".to_owned(), read_stdin()?)),
        false => Ok((path.display().to_string(), read_text(path)?)),
    }
}

fn read_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("cannot read stdin: {error}")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::usage(format!("stdin is over {FILE_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage("stdin is not UTF-8 text"))
}

/// Writes a new file beside the old one and puts it in its place, so that nobody ever sees half of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // What a link leads to is replaced, not the link.
    let path = fs::canonicalize(path)?;
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = write_new(&beside, text)
        .and_then(|()| fs::set_permissions(&beside, fs::metadata(&path)?.permissions()))
        .and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // The error to tell is the first one.
        let _still_there = fs::remove_file(&beside);
    }
    written
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
