//! `outlast batch`: one run for each line of a file of inputs, one row for each in a file of results.
//!
//! Leaves runs to the engine and files to the library. Invariant: the same command again goes on, and every row is written once.

mod drive;
mod item;
mod order;
mod progress;
mod sink;
mod tally;

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::requests::{Permissions, Start};
use outlast_runtime::batch::{
    Earlier, IdField, Item, Items, Keep, Naming, ResultFile, ResultFileError, batch_name,
};
use outlast_runtime::duration;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Context;
use super::run::OnAsk;
use super::run::deploy_chosen;
use crate::failure::{Exit, Failure};
use crate::flow_file::{Chosen, Named};
use crate::limits::BATCH_READ_AHEAD;
use crate::open::{self, Workers};
use crate::signals::Signals;
use crate::{out, servers};
use drive::Drive;
use item::Plan;
use progress::Progress;
use sink::Sink;
use tally::Tally;

/// What is written to stdout beside results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// Nothing: results only
    Results,
    /// A JSON line for everything that happens, and one for the end
    Jsonl,
}

/// Arguments of `batch`.
///
/// Each line of the input is a JSON object with the flow's parameters, and becomes a run. An item is known by --id-field or by what its line says,
/// never by where it stands: the same command again goes on where the last one ended, does nothing twice, and writes each result once,
/// also after kill -9. Whatever ended in an earlier batch of the same data directory is found, not run again; --name begins anew. Lines that cannot be read become results of their own (status `invalid`).
///
/// Exit codes: 0 all done; 3 only people can move what is left; 4 some were cancelled; 5 some failed; 1, 2, 75, 124 as for run.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The flow: FILE or FILE:Flow
    #[arg(value_name = "FILE[:Flow]")]
    flow: String,
    /// The inputs: a file of JSON lines, or - for stdin
    #[arg(long, value_name = "IN.jsonl")]
    inputs: String,
    /// The results: a file that is added to, or - for stdout
    #[arg(long, value_name = "OUT.jsonl", default_value = "-")]
    out: String,
    /// How many runs go on at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// The field of each line that holds its id; it is the run's id, too
    #[arg(long, value_name = "F")]
    id_field: Option<String>,
    /// What the ids of this batch begin with [default: the flow's name]: the same inputs under another name are worked on anew
    #[arg(long, value_name = "NAME", value_parser = batch_name)]
    name: Option<String>,
    /// Write results in the order of the input; items that wait for a person are passed over
    #[arg(long)]
    ordered: bool,
    /// Try again what was not done, each in a new run (ID~2, ID~3 …); its earlier rows are dropped
    #[arg(long)]
    retry_failed: bool,
    /// How long one item may take from now on, such as 10m; then its run is cancelled
    #[arg(long, value_name = "D", value_parser = duration::parse_positive)]
    item_timeout: Option<Duration>,
    /// How long the whole command may take; then it leaves, and its runs stay
    #[arg(long, value_name = "D", value_parser = duration::parse_positive)]
    timeout: Option<Duration>,
    /// What to do when a person is asked
    #[arg(long, value_enum, default_value_t = OnAsk::Wait)]
    on_ask: OnAsk,
    /// A tool pattern that needs no question, such as 'shell(git *)'; with --on-ask approve
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<String>,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Output::Results)]
    output: Output,
}

/// Works through a file of inputs.
pub(crate) async fn batch(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let mut tally = Tally::default();
    let ended = work_through(context, arguments, &mut tally).await;
    out::status("");
    if arguments.output == Output::Jsonl {
        let (exit, error) = match &ended {
            Ok(exit) => (*exit, None),
            Err(failure) => (failure.exit(), failure.error()),
        };
        let mut end = json!({ "kind": "end", "exit": exit.code(), "items": tally.counts() });
        if let Some(error) = error {
            end["error"] = json!(error);
        }
        // With a reader that went away there is nobody to tell; who does not read must not hold the exit up.
        if !tally.stuck {
            out::json(&end)?;
        }
    }
    ended
}

async fn work_through(
    context: Context<'_>,
    arguments: &Arguments,
    tally: &mut Tally,
) -> Result<Exit, Failure> {
    if (arguments.on_ask == OnAsk::Approve) == arguments.allow.is_empty() {
        return Err(Failure::usage(
            "--on-ask approve and --allow PATTERN belong together: rules say what is approved",
        ));
    }
    let signals = Signals::new()?;
    // Checked before anything is opened: a wrong flow or file leaves no trace.
    let chosen = Named::new(Some(&arguments.flow)).choose()?;
    servers::demand(context.data, &chosen.flow.machine, None).await?;
    let (reader, bytes) = inputs(&arguments.inputs)?;
    let (earlier, results) = results(arguments)?;
    let session = open::session(context.data, Workers::Started, None).await?;
    let ended = match deploy_chosen(&session, &chosen).await {
        Err(failure) => Err(failure),
        Ok(start) => {
            let drive = Drive {
                session: Arc::clone(&session),
                plan: Arc::new(plan(arguments, start)),
                jobs_max: usize::from(arguments.jobs),
                ordered: arguments.ordered,
                deadline: arguments.timeout,
                earlier,
                items: read(reader, naming(&chosen, arguments))?,
                results,
                events: events(arguments)?,
                progress: Progress::new(bytes),
            };
            drive.run(signals, tally).await
        }
    };
    open::close(session).await;
    ended
}

fn plan(arguments: &Arguments, start: Start) -> Plan {
    let permissions = (arguments.on_ask == OnAsk::Approve)
        .then(|| Permissions { allow: arguments.allow.clone(), ..Permissions::default() });
    Plan {
        start: Start { permissions, ..start },
        on_ask: arguments.on_ask,
        item_timeout: arguments.item_timeout,
        retry_failed: arguments.retry_failed,
    }
}

type Reader = Box<dyn Read + Send>;

/// A pipe with a name, which is opened when it is read: opening it waits for whoever writes into it.
enum Later {
    Named(PathBuf),
    Open(File),
}

impl Read for Later {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if let Later::Named(path) = self {
            *self = Later::Open(File::open(path)?);
        }
        match self {
            Later::Named(_) => Ok(0),
            Later::Open(file) => file.read(buffer),
        }
    }
}

/// Opens the inputs; returns how many bytes they have, if that is known.
fn inputs(name: &str) -> Result<(Reader, Option<u64>), Failure> {
    if name == "-" {
        return Ok((Box::new(std::io::stdin()), None));
    }
    let cannot = |error| Failure::usage(format!("--inputs: cannot read {name}: {error}"));
    let found = std::fs::metadata(name).map_err(cannot)?;
    if found.file_type().is_fifo() {
        return Ok((Box::new(Later::Named(name.into())), None));
    }
    let file = File::open(name).map_err(cannot)?;
    if found.is_dir() {
        return Err(Failure::usage(format!(
            "--inputs: {name} is a directory; a file of JSON lines is expected"
        )));
    }
    Ok((Box::new(file), found.is_file().then_some(found.len())))
}

/// Opens the results, and finds what they hold.
fn results(arguments: &Arguments) -> Result<(Earlier, Sink), Failure> {
    if arguments.out == "-" {
        // With events, rows are events, too.
        let sink = match arguments.output {
            Output::Results => Sink::stdout()?,
            Output::Jsonl => Sink::none(),
        };
        return Ok((Earlier::default(), sink));
    }
    let keep = if arguments.retry_failed { Keep::Done } else { Keep::All };
    let opened = ResultFile::open(Path::new(&arguments.out), keep);
    let (earlier, mut appender) = opened.map_err(unusable)?;
    Ok((earlier, Sink::start(move |lines| appender.append(lines).map_err(unusable))?))
}

fn unusable(error: ResultFileError) -> Failure {
    let text = format!("--out: {error}");
    match error {
        ResultFileError::Foreign { .. } => {
            Failure::usage(text).hint("name a new file, or one of an earlier batch")
        }
        ResultFileError::Busy { .. } => Failure::new(Exit::Unavailable, text)
            .hint("wait for its end: the same batch goes on by itself there"),
        ResultFileError::Io { source, .. } if is_wrong_name(&source) => Failure::usage(text),
        _ => Failure::new(Exit::Failed, text),
    }
}

/// Whether a file cannot be opened because of how it was named, which trying again does not change.
fn is_wrong_name(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::PermissionDenied
            | ErrorKind::InvalidInput
    )
}

fn events(arguments: &Arguments) -> Result<Sink, Failure> {
    match arguments.output {
        Output::Results => Ok(Sink::none()),
        Output::Jsonl => Sink::stdout(),
    }
}

fn naming(chosen: &Chosen, arguments: &Arguments) -> Naming {
    let parameters = &chosen.flow.machine.root().params;
    let field = arguments.id_field.as_ref().map(|name| IdField {
        name: name.clone(),
        is_parameter: parameters.iter().any(|parameter| parameter.name == *name),
    });
    Naming::new(&chosen.flow.name, field).of_batch(arguments.name.as_deref())
}

/// Reads items in a thread of its own: stdin may keep it waiting for ever.
fn read(reader: Reader, naming: Naming) -> Result<mpsc::Receiver<std::io::Result<Item>>, Failure> {
    let (sender, items) = mpsc::channel(BATCH_READ_AHEAD);
    let mut source = Items::new(BufReader::new(reader), naming);
    let reading = move || {
        while let Some(item) = source.next_item().transpose() {
            let broken = item.is_err();
            if sender.blocking_send(item).is_err() || broken {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("inputs".to_owned()).spawn(reading);
    thread.map_err(|error| Failure::new(Exit::Failed, format!("no thread for the inputs: {error}")))?;
    Ok(items)
}

/// Returns an event as a line.
fn event(kind: &str, fields: Value) -> String {
    let mut event = fields;
    event["kind"] = json!(kind);
    event.to_string() + "\n"
}

/// Returns this command as a shell would read it.
fn same_command() -> String {
    let words: Vec<String> = std::env::args().skip(1).map(|word| quoted(&word)).collect();
    format!("outlast {}", words.join(" "))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in
            [("a.flow:F", "a.flow:F"), ("shell(git *)", "'shell(git *)'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
