//! `outlast check`: everything that is wrong with flow files, in one pass; with `--fix`, less of it afterwards.
//!
//! Leaves what is wrong and how it is mended to the language. Invariant: a file is replaced as a whole or not at all.

use std::path::{Path, PathBuf};

use outlast_dsl::diag::FileId;
use outlast_dsl::fix::{Change, fix};
use serde_json::{Value, json};

use super::Context;
use crate::diagnostics::{self, Told};
use crate::failure::{Exit, Failure};
use crate::files;
use crate::flow_file::FlowFile;
use crate::out;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Flow files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Make the changes that are sure to be meant, and say which
    #[arg(long)]
    fix: bool,
}

/// Checks files; each is a program of its own.
pub(crate) fn check(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let (mut errors, mut all, mut flows, mut changes) = (0, Vec::new(), Vec::new(), Vec::new());
    let told = if context.json { Told::Nothing } else { Told::All };
    let mut unreadable = Vec::new();
    for path in &arguments.files {
        // What cannot be read does not keep the others from being checked.
        let mut file = match FlowFile::read(path) {
            Ok(file) => file,
            Err(failure) => {
                errors += 1;
                match context.json {
                    true => unreadable.extend(failure.error().cloned()),
                    false => drop(failure.report(false)),
                }
                continue;
            }
        };
        if arguments.fix {
            for change in mend(path, &mut file)? {
                match context.json {
                    true => changes.push(as_json(&file.name, &change)),
                    false => out::say(&told_change(&file.name, &change)),
                }
            }
        }
        let checked = file.check();
        errors += diagnostics::tell(&checked.files, &checked.diagnostics, told);
        match diagnostics::as_json(&checked.files, &checked.diagnostics) {
            serde_json::Value::Array(items) => all.extend(items),
            other => all.push(other),
        }
        flows.extend(
            checked
                .flows
                .into_iter()
                .map(|flow| json!({ "name": flow.name, "version": flow.version, "file": file.name })),
        );
    }
    if context.json {
        let mut report = json!({ "ok": errors == 0, "diagnostics": all, "flows": flows });
        if !unreadable.is_empty() {
            report["errors"] = json!(unreadable);
        }
        if arguments.fix {
            report["changes"] = Value::from(changes);
        }
        out::json(&report)?;
    } else if errors == 0 && flows.is_empty() {
        out::say("ok, but there are no flows in it");
    } else if errors == 0 {
        let names: Vec<&str> = flows.iter().filter_map(|flow| flow["name"].as_str()).collect();
        out::say(&format!("ok: {}", names.join(", ")));
    } else {
        out::say(&format!("{errors} error{} found", if errors == 1 { "" } else { "s" }));
    }
    Ok(if errors == 0 { Exit::Done } else { Exit::Usage })
}

/// Mends a file with the fixes that are sure; returns what was changed.
fn mend(path: &Path, file: &mut FlowFile) -> Result<Vec<Change>, Failure> {
    let fixed = fix(&file.text, |text| {
        let mut changed = file.clone();
        text.clone_into(&mut changed.text);
        let mut diagnostics = changed.check().diagnostics;
        // Files that this one uses are mended when they are named.
        diagnostics.retain(|one| one.file == FileId::default());
        diagnostics
    });
    if fixed.text != file.text {
        files::replace(path, fixed.text.as_bytes())
            .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
        file.text = fixed.text;
    }
    Ok(fixed.changes)
}

fn told_change(name: &str, change: &Change) -> String {
    let (old, new) = (out::tame(&change.old), out::tame(&change.new));
    let what = match (old.is_empty(), new.is_empty()) {
        (true, _) => format!("inserted `{new}`"),
        (false, true) => format!("removed `{old}`"),
        (false, false) => format!("replaced `{old}` by `{new}`"),
    };
    format!("{name}:{}:{}: fixed {}: {what}", change.at.line, change.at.column, change.code)
}

fn as_json(name: &str, change: &Change) -> Value {
    json!({
        "file": name,
        "line": change.at.line,
        "column": change.at.column,
        "code": change.code,
        "message": change.message,
        "old": change.old,
        "new": change.new,
    })
}
