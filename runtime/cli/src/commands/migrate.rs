//! `outlast diff`, `migrate`: another version of a flow, and the runs that are to go on with it.

use std::path::{Path, PathBuf};

use outlast_dsl::CheckedFlow;
use outlast_dsl::machine::differences;
use outlast_protocol::requests::{Compatibility, Migrate};
use outlast_protocol::run::RunView;
use outlast_runtime::client::Wanted;
use outlast_runtime::host::Session;
use serde_json::{Value, json};

use super::Context;
use crate::diagnostics::Told;
use crate::failure::{Exit, Failure};
use crate::flow_file::FlowFile;
use crate::limits::RUNS_PAGE;
use crate::open::{self, Workers};
use crate::out;

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArguments {
    /// The file as it was
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The file as it is to be
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Also say of every run of the old flows whether it can go on with the new ones
    #[arg(long)]
    runs: bool,
}

/// Shows what differs between two versions, and what that means for runs.
pub(crate) async fn diff(context: Context<'_>, arguments: &DiffArguments) -> Result<Exit, Failure> {
    let (old, new) = (flows(&arguments.old)?, flows(&arguments.new)?);
    let mut differences = Vec::new();
    for flow in &new {
        let before = old.iter().find(|before| before.name == flow.name);
        differences.push(difference(&flow.name, before, Some(flow)));
    }
    for gone in old.iter().filter(|before| !new.iter().any(|flow| flow.name == before.name)) {
        differences.push(difference(&gone.name, Some(gone), None));
    }
    let mut fits = Vec::new();
    if arguments.runs {
        let session = open::session(context.data, Workers::None, None).await?;
        for flow in &new {
            let hashes: Vec<String> =
                old.iter().filter(|before| before.name == flow.name).map(hash).collect();
            let machine = String::from_utf8_lossy(&flow.machine.encode()).into_owned();
            let request = Compatibility { machine };
            for run in unfinished(&session, &flow.name).await? {
                if hashes.contains(&run.machine) {
                    let fit =
                        session.call(async |client| client.compatibility(&run.id, &request).await).await;
                    fits.push(fit.map_err(|error| Failure::from(error).of_run(&run.id))?);
                }
            }
        }
        open::close(session).await;
    }
    if context.json {
        out::json(&json!({ "flows": differences, "runs": fits }))?;
        return Ok(Exit::Done);
    }
    for difference in &differences {
        out::result(&told(difference))?;
    }
    for fit in &fits {
        out::result(&said(fit))?;
    }
    Ok(Exit::Done)
}

/// Arguments of `migrate`.
#[derive(Debug, clap::Args)]
pub(crate) struct MigrateArguments {
    /// The runs
    #[arg(value_name = "RUN", required_unless_present = "flow")]
    runs: Vec<String>,
    /// All unfinished runs of this flow
    #[arg(long, value_name = "F", conflicts_with = "runs")]
    flow: Option<String>,
    /// The new version; it is deployed, so new runs have it too
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// What happens to open operations that do not fit: cut (they count as failed) or again (they are opened anew) [default: the run
    /// is listed, and migrates when they are closed and this command is given again]
    #[arg(long, value_name = "WHAT", value_parser = ["cut", "again"])]
    open: Option<String>,
}

/// Lets runs go on with another version, each wholly or not at all. Exits with 1 if one of them does not.
pub(crate) async fn migrate(context: Context<'_>, arguments: &MigrateArguments) -> Result<Exit, Failure> {
    let new = flows(&arguments.to)?;
    let file = FlowFile::read(&arguments.to)?;
    let session = open::session(context.data, Workers::None, None).await?;
    let mut runs = Vec::new();
    match &arguments.flow {
        Some(flow) => runs.extend(unfinished(&session, flow).await?),
        None => {
            for id in &arguments.runs {
                let run = session.call(async |client| client.run(id).await).await;
                runs.push(run.map_err(|error| Failure::from(error).of_run(id))?);
            }
        }
    }
    if runs.is_empty() {
        out::say(&format!(
            "no run of {} is unfinished; the new version is deployed, for new runs",
            arguments.flow.as_deref().unwrap_or_default()
        ));
    }
    let missing = runs.iter().find(|run| !new.iter().any(|flow| flow.name == run.flow));
    if let Some(run) = missing {
        let message = format!("{} has no flow {}, which run {} is of", file.name, run.flow, run.id);
        return Err(Failure::usage(message).of_run(&run.id));
    }
    session.call(async |client| client.deploy(&file.deploy(None)).await).await?;
    let mut fits = Vec::new();
    for run in &runs {
        let Some(flow) = new.iter().find(|flow| flow.name == run.flow) else { continue };
        let request = Migrate { machine: hash(flow), open: arguments.open.clone() };
        let fit = session.call(async |client| client.migrate(&run.id, &request).await).await;
        fits.push(fit.map_err(|error| Failure::from(error).of_run(&run.id))?);
    }
    let all = fits.iter().all(|fit| matches!(fit["fit"].as_str(), Some("done" | "same")));
    if context.json {
        out::json(&json!({ "runs": fits }))?;
    } else {
        for fit in &fits {
            out::result(&said(fit))?;
        }
    }
    open::close(session).await;
    Ok(if all { Exit::Done } else { Exit::Failed })
}

fn flows(path: &Path) -> Result<Vec<CheckedFlow>, Failure> {
    FlowFile::read(path)?.checked(Told::Errors)
}

fn hash(flow: &CheckedFlow) -> String {
    flow.machine.hash().0
}

async fn unfinished(session: &Session, flow: &str) -> Result<Vec<RunView>, Failure> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let wanted =
            Wanted { flow: Some(flow.to_owned()), cursor, limit: Some(RUNS_PAGE), ..Wanted::default() };
        let page = session.call(async |client| client.runs(&wanted).await).await?;
        found.extend(page.items.into_iter().filter(|run| run.outcome.is_none()));
        cursor = page.next;
        if cursor.is_none() {
            return Ok(found);
        }
    }
}

/// Says how two versions of a flow differ, part by part.
fn difference(name: &str, old: Option<&CheckedFlow>, new: Option<&CheckedFlow>) -> Value {
    let change = match (old, new) {
        (Some(old), Some(new)) if hash(old) == hash(new) => "same",
        (Some(_), Some(_)) => "changed",
        (None, _) => "new",
        (Some(_), None) => "gone",
    };
    json!({
        "flow": name, "change": change, "old": old.map(hash), "new": new.map(hash),
        "parts": old.zip(new).map(|(old, new)| differences(&old.machine, &new.machine)).unwrap_or_default(),
    })
}

fn told(difference: &Value) -> String {
    let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    let mut told = format!("{}: {}", text(difference, "flow"), text(difference, "change"));
    for part in difference["parts"].as_array().into_iter().flatten() {
        told = format!("{told}\n  {:<8} {}", text(part, "change"), text(part, "part"));
    }
    told
}

fn said(fit: &Value) -> String {
    let list = |name: &str| -> String {
        let items = fit[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        items.collect::<Vec<_>>().join("; ")
    };
    let run = fit["run"].as_str().unwrap_or_default();
    match fit["fit"].as_str().unwrap_or_default() {
        "done" => format!("run {run} goes on with the new version, from event {} on", fit["accepted"]),
        "same" => format!("run {run} has this version"),
        "ended" => format!("run {run} has ended"),
        "safe" => format!("run {run} can go on with the new version"),
        "drain" => format!(
            "run {run} stays: operations {} do not fit; when they are closed it can, or with --open cut|again",
            list("ops")
        ),
        _ => format!("run {run} stays: {}", list("needs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> CheckedFlow {
        let source = outlast_dsl::SourceFile { name: "t.flow".to_owned(), text: text.to_owned() };
        let checked = outlast_dsl::check(&[source], &std::collections::BTreeMap::new());
        checked.flows.into_iter().next().unwrap()
    }

    #[test]
    fn versions_differ_by_their_states_and_comments_make_no_difference() {
        let one = version(
            "edition 1\nflow F() -> int version 1 { start A state A { choose if 1 > 2 -> end 1 else -> end 2 } }",
        );
        let same = version(
            "edition 1\n// said\nflow F() -> int version 1 {\n  start A\n  state A { choose if 1 > 2 -> end 1 else -> end 2 } }",
        );
        let two = version(
            "edition 1\nflow F() -> int version 2 { start B state B { choose if 1 > 2 -> end 1 else -> end 2 } }",
        );
        assert_eq!(difference("F", Some(&one), Some(&same))["change"], "same");
        let changed = difference("F", Some(&one), Some(&two));
        assert_eq!(told(&changed), "F: changed\n  changed  start\n  added    state B\n  removed  state A");
        assert_eq!(told(&difference("F", None, Some(&one))), "F: new");
        assert_eq!(told(&difference("F", Some(&one), None)), "F: gone");
    }
}
