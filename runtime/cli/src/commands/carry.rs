//! `outlast export`, `import`, `blob`, `backup`, `du`: runs and stores carried about, and what they weigh.

use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use outlast_runtime::host::Session;
use serde_json::{Value, json};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::open::{self, Workers};
use crate::out;

/// Arguments of `export`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArguments {
    /// The run
    id: String,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes a run as records, one a line.
pub(crate) async fn export(context: Context<'_>, arguments: &ExportArguments) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let text = records(&session, &arguments.id).await?;
    match arguments.out.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => {
            files::replace(path, &text).map_err(|error| files::unwritable(path, &error))?;
            out::say(&format!("run {} is in {}", arguments.id, path.display()));
        }
        None => out::result(String::from_utf8_lossy(&text).trim_end_matches('\n'))?,
    }
    open::close(session).await;
    Ok(Exit::Done)
}

/// Returns a run as records, one a line.
pub(crate) async fn records(session: &Session, run: &str) -> Result<Vec<u8>, Failure> {
    let (mut text, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = session.call(async |client| client.export(run, cursor.as_deref()).await).await;
        let page = page.map_err(|error| Failure::from(error).of_run(run))?;
        for record in &page.items {
            serde_json::to_writer(&mut text, record).map_err(|error| {
                Failure::new(Exit::Failed, format!("a record cannot be written: {error}"))
            })?;
            text.push(b'\n');
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(text);
        }
    }
}

/// Arguments of `import`.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArguments {
    /// The file that `export` wrote, or - for stdin
    #[arg(value_name = "FILE")]
    file: String,
}

/// Keeps a run that was exported.
pub(crate) async fn import(context: Context<'_>, arguments: &ImportArguments) -> Result<Exit, Failure> {
    let text = match arguments.file.as_str() {
        "-" => std::io::read_to_string(std::io::stdin())
            .map_err(|error| Failure::usage(format!("cannot read stdin: {error}")))?,
        path => fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("{path} cannot be read: {error}")))?,
    };
    let mut records: Vec<Value> = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let record = serde_json::from_str(line).map_err(|error| {
            Failure::usage(format!("{}, line {}: not a record: {error}", arguments.file, i + 1))
        })?;
        records.push(record);
    }
    let session = open::session(context.data, Workers::None, None).await?;
    let kept = session.call(async |client| client.import(&records).await).await?;
    if context.json {
        out::json(&kept)?;
    } else {
        let how = if kept.existing { "was here already" } else { "is here" };
        out::result(&format!(
            "run {} of {} {how}, with {} events",
            kept.run.id, kept.run.flow, kept.run.events
        ))?;
    }
    open::close(session).await;
    Ok(Exit::Done)
}

/// Arguments of `blob`.
#[derive(Debug, clap::Args)]
pub(crate) struct BlobArguments {
    /// The hash, as a text names it: `blob:HASH` or HASH alone
    #[arg(value_name = "HASH")]
    hash: String,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Fetches what a result names by hash.
pub(crate) async fn blob(context: Context<'_>, arguments: &BlobArguments) -> Result<Exit, Failure> {
    let hash = arguments.hash.strip_prefix("blob:").unwrap_or(&arguments.hash);
    let session = open::session(context.data, Workers::None, None).await?;
    let bytes = session.call(async |client| client.blob(hash).await).await?;
    open::close(session).await;
    match arguments.out.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => files::replace(path, &bytes).map_err(|error| files::unwritable(path, &error)),
        None if std::io::stdout().is_terminal() => out::result(&out::tame(&String::from_utf8_lossy(&bytes))),
        None => out::bytes(&bytes),
    }?;
    Ok(Exit::Done)
}

/// Arguments of `backup`.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArguments {
    /// A directory that is not there yet; to restore, use it as the data directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Copies the store, also while it is in use.
pub(crate) async fn backup(context: Context<'_>, arguments: &BackupArguments) -> Result<Exit, Failure> {
    let directory = std::path::absolute(&arguments.directory)
        .map_err(|error| Failure::usage(format!("{}: {error}", arguments.directory.display())))?;
    let session = open::session(context.data, Workers::None, None).await?;
    let copied = session.call(async |client| client.backup(&directory).await).await?;
    if context.json {
        out::json(&copied)?;
    } else {
        out::result(&format!("the store is in {}", directory.display()))?;
        out::say(&format!("to use it: outlast --data {} runs", directory.display()));
    }
    open::close(session).await;
    Ok(Exit::Done)
}

/// Arguments of `du`.
#[derive(Debug, clap::Args)]
pub(crate) struct DuArguments {
    /// A run [default: all, the largest first]
    id: Option<String>,
}

/// Shows what runs weigh.
pub(crate) async fn du(context: Context<'_>, arguments: &DuArguments) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let items = match &arguments.id {
        Some(id) => {
            let usage = session.call(async |client| client.usage(id).await).await;
            vec![usage.map_err(|error| Failure::from(error).of_run(id))?]
        }
        None => all(&session).await?,
    };
    let bytes = |usage: &Value| usage["bytes"].as_u64().unwrap_or_default();
    let sum: u64 = items.iter().map(bytes).sum();
    match (context.json, &arguments.id) {
        (true, Some(_)) => out::json(items.first().unwrap_or(&Value::Null))?,
        (true, None) => out::json(&json!({ "items": items, "next": null, "bytes": sum }))?,
        (false, id) => {
            for usage in &items {
                out::result(&line(usage))?;
            }
            if id.is_none() {
                let runs = items.iter().filter(|usage| usage["deleted"] != true).count();
                out::result(&format!("{sum:>14} bytes in {runs} runs"))?;
            }
        }
    }
    open::close(session).await;
    Ok(Exit::Done)
}

async fn all(session: &Session) -> Result<Vec<Value>, Failure> {
    let (mut items, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = session.call(async |client| client.usages(cursor.as_deref()).await).await?;
        items.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            items.sort_by_key(|usage: &Value| std::cmp::Reverse(usage["bytes"].as_u64()));
            return Ok(items);
        }
    }
}

fn line(usage: &Value) -> String {
    let number = |name: &str| usage[name].as_u64().unwrap_or_default();
    let shared = match number("shared_events") {
        0 => String::new(),
        shared => format!(", {shared} of them shared"),
    };
    let (bytes, run) = (number("bytes"), usage["run"].as_str().unwrap_or_default());
    if usage["deleted"] == true {
        return format!("{bytes:>14} {run}  deleted; what is left goes, or its forks share it");
    }
    format!(
        "{bytes:>14} {run}  history {}, values {}, snapshot {}; {} events{shared}",
        number("history_bytes"),
        number("blob_bytes"),
        number("snapshot_bytes"),
        number("events"),
    )
}
