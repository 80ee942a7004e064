//! `outlast check`: everything that is wrong with flow files, in one pass.

use std::path::PathBuf;

use serde_json::json;

use super::Context;
use crate::diagnostics::{self, Told};
use crate::failure::{Exit, Failure};
use crate::flow_file::FlowFile;
use crate::out;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Flow files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Checks files; each is a program of its own.
pub(crate) fn check(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let (mut errors, mut all, mut flows) = (0, Vec::new(), Vec::new());
    let told = if context.json { Told::Nothing } else { Told::All };
    for path in &arguments.files {
        let file = FlowFile::read(path)?;
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
        out::json(&json!({ "ok": errors == 0, "diagnostics": all, "flows": flows }))?;
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
