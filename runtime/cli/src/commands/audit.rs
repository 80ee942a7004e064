//! `outlast audit`: who did what, and what was done again, read from the histories of runs.
//!
//! Leaves what an event means to an auditor to the runtime. Invariant: lines come in the order of their times, and of each run that is under
//! way at one time no more than a page is in memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use outlast_protocol::audit::AuditRecord;
use outlast_protocol::run::RunView;
use outlast_runtime::client::Wanted;
use outlast_runtime::host::Session;
use outlast_runtime::moment;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::limits::{AUDIT_PAGE, RUNS_PAGE};
use crate::open::{self, Workers};
use crate::out;

/// Arguments of `audit`.
///
/// One line for each fact: who started, messaged, answered, cancelled, terminated, forked, settled, released or migrated a run, and which
/// activity ran with which effect class; of an attempt that was not the first, why (again=…). With --json one record to a line.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The run [default: all runs]
    id: Option<String>,
    /// Only from this moment on: a time such as 2027-03-09T01:30:00Z, or how long ago, such as 24h
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only what was done by this name: local, loopback, policy, schedule …, or a token's name
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

/// Shows who did what.
pub(crate) async fn audit(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let since = arguments.since.as_deref().map(|text| moment::parse(text, SystemTime::now())).transpose();
    let since = since.map_err(|error| Failure::usage(format!("--since: {error}")))?.unwrap_or_default();
    let session = open::session(context.data, Workers::None, None).await?;
    let mut audit = Audit { session: Arc::clone(&session), coming: Vec::new(), open: BinaryHeap::new() };
    match &arguments.id {
        Some(id) => audit.begin(id.clone(), 0).await?,
        None => audit.coming = runs(&session, &since).await?,
    }
    while let Some(record) = audit.next().await? {
        if record.time >= since && is_by(&record, arguments.by.as_deref()) {
            if context.json { out::json(&record)? } else { out::result(&line(&record))? }
        }
    }
    drop(audit);
    open::close(session).await;
    Ok(Exit::Done)
}

/// A run whose records are still to come: when it began, and after which event.
struct Coming {
    started_at: String,
    id: String,
    after: u64,
}

/// Returns the runs that have moved since a moment, newest first.
async fn runs(session: &Session, since: &str) -> Result<Vec<Coming>, Failure> {
    let (mut runs, mut cursor) = (Vec::new(), None);
    loop {
        let wanted = Wanted { cursor, limit: Some(RUNS_PAGE), ..Wanted::default() };
        let page = session.call(async |client| client.runs(&wanted).await).await?;
        runs.extend(page.items.into_iter().filter(|run| run.updated_at.as_str() >= since).map(coming));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    // Forks may begin before what the list has them stand by.
    runs.sort_by(|a: &Coming, b: &Coming| b.started_at.cmp(&a.started_at));
    Ok(runs)
}

fn coming(run: RunView) -> Coming {
    // What a fork shares stands in its parent's history.
    let after = run.parent.as_ref().and_then(|parent| parent["at"].as_u64()).unwrap_or(0);
    Coming { started_at: run.started_at, id: run.id, after }
}

/// Runs on the way through their histories.
struct Audit {
    session: Arc<Session>,
    /// Those that began later than what was shown, the next one last.
    coming: Vec<Coming>,
    open: BinaryHeap<Reverse<Way>>,
}

/// A run with its next records.
struct Way {
    page: VecDeque<AuditRecord>,
    next: Option<u64>,
    id: String,
}

impl Way {
    fn place(&self) -> Option<(&str, &str, u64)> {
        self.page.front().map(|record| (record.time.as_str(), record.run.as_str(), record.n))
    }
}

impl PartialEq for Way {
    fn eq(&self, other: &Way) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Way {}

impl PartialOrd for Way {
    fn partial_cmp(&self, other: &Way) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Way {
    fn cmp(&self, other: &Way) -> std::cmp::Ordering {
        self.place().cmp(&other.place())
    }
}

impl Audit {
    /// Returns the earliest record that was not shown.
    async fn next(&mut self) -> Result<Option<AuditRecord>, Failure> {
        loop {
            let earliest = self.open.peek().and_then(|Reverse(way)| way.place()).map(|(time, ..)| time);
            let begins = self
                .coming
                .last()
                .is_some_and(|run| earliest.is_none_or(|time| run.started_at.as_str() <= time));
            let Some(run) = self.coming.pop_if(|_| begins) else { break };
            self.begin(run.id, run.after).await?;
        }
        let Some(Reverse(mut way)) = self.open.pop() else { return Ok(None) };
        let record = way.page.pop_front();
        if way.page.is_empty() {
            if let Some(after) = way.next {
                self.begin(way.id, after).await?;
            }
        } else {
            self.open.push(Reverse(way));
        }
        Ok(record)
    }

    /// Reads on until there is something to say of a run, or its history ends.
    async fn begin(&mut self, id: String, mut after: u64) -> Result<(), Failure> {
        loop {
            let page = self.session.call(async |client| client.audit(&id, after, AUDIT_PAGE).await).await;
            let page = page.map_err(|error| Failure::from(error).of_run(&id))?;
            let next = page.next.and_then(|next| next.parse().ok()).filter(|next| *next > after);
            if !page.items.is_empty() {
                self.open.push(Reverse(Way { page: page.items.into(), next, id }));
                return Ok(());
            }
            match next {
                Some(next) => after = next,
                None => return Ok(()),
            }
        }
    }
}

fn is_by(record: &AuditRecord, name: Option<&str>) -> bool {
    let Some(name) = name else { return true };
    record.by.as_deref().is_some_and(|by| by == name || by.strip_prefix("token:") == Some(name))
}

fn line(record: &AuditRecord) -> String {
    let mut line = format!("{} {} {} {}", record.time, record.run, record.n, record.what);
    let attempt = record.attempt.map(|attempt| attempt.to_string());
    for (name, value) in [
        ("by", &record.by),
        ("role", &record.role),
        ("op", &record.op),
        ("activity", &record.activity),
        ("tool", &record.tool),
        ("effect", &record.effect),
        ("attempt", &attempt),
        ("again", &record.again),
        ("detail", &record.detail),
    ] {
        if let Some(value) = value {
            let odd = value.is_empty() || value.contains(|c: char| c.is_whitespace() || c == '"');
            line += &if odd { format!(" {name}={value:?}") } else { format!(" {name}={value}") };
        }
    }
    out::tame(&line)
}
