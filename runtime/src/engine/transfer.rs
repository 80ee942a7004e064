//! Runs as records that can be carried to another store, and back.
//!
//! One record a line: `run`, then `machine`, `source`, `profile` and `blob` before the event that needs or names them, one `event` for each,
//! and `end`.
//! Leaves files to the caller. Invariant: what is brought is folded before it is kept, so nothing enters the store that its machine
//! does not explain; the records of a run that was brought are the records that it was brought with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outlast_dsl::machine::Machine;
use outlast_kernel::event::{Event, EventKind};
use outlast_kernel::ids::{Millis, RunId, Seq};
use outlast_kernel::{Json, Ready};
use outlast_protocol::requests::List;
use outlast_protocol::run::RunView;
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{BlobId, BlobPut, Origin, Put, Table, named};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Engine;
use super::context::Context;
use super::errors;
use super::flows::Source;
use super::forks::forked_from;
use super::frames::Fold;
use super::history;
use super::message::Message;
use super::seal::Seal;
use super::view::{Facts, spawned_from};
use crate::limits;

/// Counts the version of the records.
const FORMAT: u32 = 1;

/// The first record of a run.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    id: RunId,
    /// The run and event that it was forked from.
    parent: Option<(RunId, Seq)>,
    format: u32,
    flow: String,
    /// The runs whose events come first, and the last of them for each.
    lineage: Vec<(RunId, Seq)>,
    events: u64,
}

/// A run to be kept with all its events.
pub(crate) struct BringRun {
    pub(crate) run: RunId,
    pub(crate) fold: Fold,
    pub(crate) events: Vec<Event>,
    pub(crate) facts: Facts,
    pub(crate) origin: Option<Origin>,
    /// Its machines, their texts, and its environments.
    pub(crate) puts: Vec<Put>,
    /// What texts of its events name.
    pub(crate) blobs: Vec<Vec<u8>>,
}

impl Engine {
    /// Returns the records of a run, page by page: `next` is the cursor of the next page.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::InvalidCursor`].
    pub async fn export(&self, run: &str, cursor: Option<String>) -> Result<List<Json>, ApiError> {
        let run = self.known(run)?;
        let ctx = self.core.ctx.clone();
        let read = tokio::task::spawn_blocking(move || page(&ctx, &run, cursor.as_deref())).await;
        read.unwrap_or_else(|e| {
            Err(ApiError::new(Code::Internal, format!("the history could not be read: {e}")))
        })
    }

    /// Keeps a run that was exported, or finds it if it is here already (`true`).
    ///
    /// # Errors
    /// [`Code::Invalid`] if the records are not whole or their machine does not explain them, [`Code::Conflict`] if another run has the
    /// id, [`Code::DiskFull`].
    pub async fn import(&self, records: Vec<Json>) -> Result<(RunView, bool), ApiError> {
        let now = self.core.ctx.clock.now();
        let read = tokio::task::spawn_blocking(move || bring(records, now)).await;
        let mut brought = read.unwrap_or_else(|e| {
            Err(ApiError::new(Code::Internal, format!("the records could not be read: {e}")))
        })?;
        // Before the events that name them.
        for bytes in std::mem::take(&mut brought.blobs) {
            let kept = self.core.ctx.committer.put_blob(BlobPut { bytes, at: now }).await;
            kept.map_err(|refused| errors::refused(&refused))?;
        }
        let run = brought.run.clone();
        self.core.ask(&run, |reply| Message::Bring(Box::new(brought), reply)).await
    }
}

fn page(ctx: &Context, run: &RunId, cursor: Option<&str>) -> Result<List<Json>, ApiError> {
    let told = |e| errors::store(&e).of_run(run);
    let (head, _) = ctx.store.head(run).map_err(told)?.ok_or_else(|| errors::no_run(run))?;
    let mut items = Vec::new();
    let (mut after, until, mut seal) = match cursor {
        Some(cursor) => parse_cursor(cursor, head.seq).ok_or_else(|| {
            let message = format!("{cursor:?} is no cursor of this export");
            ApiError::new(Code::InvalidCursor, message).of_run(run)
        })?,
        None => {
            items.push(header(ctx, run, head.seq)?);
            (Seq(0), head.seq, Seal::default())
        }
    };
    let mut bytes = 0;
    while after < until && bytes < limits::EXPORT_PAGE_BYTES {
        let page = ctx.store.history(run, after, limits::EXPORT_PAGE_EVENTS).map_err(told)?;
        if page.is_empty() {
            return Err(history::broken(run, &format!("its history ends at event {after}")));
        }
        for event in page.into_iter().take_while(|event| event.n <= until) {
            after = event.n;
            items.extend(needed(ctx, run, &event.kind)?);
            for id in named(std::slice::from_ref(&event)) {
                if let Some(blob) = ctx.store.blob(&id).map_err(told)? {
                    bytes += blob.len();
                    items.push(blob_record(run, id, blob));
                }
            }
            bytes += super::draft::event_weight(&event);
            let parent =
                if event.n == Seq(1) { json!(run) } else { json!(format!("{run}/{}", event.n.0 - 1)) };
            let id = format!("{run}/{}", event.n);
            let record = json!({ "record": "event", "id": id, "parent": parent, "event": event });
            if event.n == until && breaks(Breakage::ExportMore) {
                items.push(record.clone());
            }
            if event.n < until || !breaks(Breakage::ExportLess) {
                items.push(record);
            }
        }
    }
    items.iter().for_each(|record| seal.take(record));
    if after < until {
        return Ok(List { items, next: Some(format!("{after}-{until}-{}", seal.text())) });
    }
    let (id, parent) = (format!("{run}/end"), format!("{run}/{until}"));
    items.push(json!({ "record": "end", "id": id, "parent": parent, "seal": seal.text() }));
    Ok(List { items, next: None })
}

fn parse_cursor(cursor: &str, newest: Seq) -> Option<(Seq, Seq, Seal)> {
    let mut parts = cursor.splitn(3, '-');
    let mut number = || Some(Seq(parts.next()?.parse().ok()?));
    let (after, until) = (number()?, number()?);
    let seal = Seal::parse(parts.next()?)?;
    (after < until && until <= newest).then_some((after, until, seal))
}

fn header(ctx: &Context, run: &RunId, newest: Seq) -> Result<Json, ApiError> {
    let told = |e| errors::store(&e).of_run(run);
    let summary = ctx.store.summary(run).map_err(told)?.ok_or_else(|| errors::no_run(run))?;
    let lineage: Vec<(RunId, Seq)> =
        ctx.store.lineage(run).map_err(told)?.into_iter().map(|segment| (segment.run, segment.to)).collect();
    let flow = summary.flow.clone();
    let parent = Facts::of(summary).parent.filter(|_| !lineage.is_empty());
    let parent = parent
        .and_then(|parent| Some((RunId::new(parent["run"].as_str()?).ok()?, Seq(parent["at"].as_u64()?))));
    let header = Header { id: run.clone(), parent, format: FORMAT, flow, lineage, events: newest.0 };
    let mut record = serde_json::to_value(header).unwrap_or_default();
    record["record"] = json!("run");
    Ok(record)
}

/// Returns the records that an event needs: its machine with its text, its environment.
fn needed(ctx: &Context, run: &RunId, kind: &EventKind) -> Result<Vec<Json>, ApiError> {
    let (machine, profile) = match kind {
        EventKind::Started(started) => (Some(&started.machine), Some(&started.config.profile)),
        EventKind::Migrated(migrated) => (Some(&migrated.to), None),
        EventKind::Configured { config } => (None, Some(&config.profile)),
        EventKind::Forked { .. }
        | EventKind::Done { .. }
        | EventKind::Failed { .. }
        | EventKind::Begun { .. }
        | EventKind::Lost { .. }
        | EventKind::Void { .. }
        | EventKind::Handle { .. }
        | EventKind::Settled { .. }
        | EventKind::Released { .. }
        | EventKind::TimerFired { .. }
        | EventKind::Message { .. }
        | EventKind::Withdrawn { .. }
        | EventKind::Closed
        | EventKind::Answered { .. }
        | EventKind::Spawned { .. }
        | EventKind::ChildEnded { .. }
        | EventKind::Delivered { .. }
        | EventKind::Cancelled { .. }
        | EventKind::Terminated { .. } => (None, None),
    };
    let mut records = Vec::new();
    let get =
        |table, key: &str| ctx.store.get(table, key.as_bytes()).map_err(|e| errors::store(&e).of_run(run));
    if let Some(hash) = machine {
        let text = ctx.flows.machine(hash)?.encode();
        let text = String::from_utf8_lossy(&text).into_owned();
        records.push(json!({ "record": "machine", "id": hash, "parent": run, "machine": text }));
        if let Some(source) = get(Table::Source, hash)?.and_then(|bytes| read_json(&bytes)) {
            records.push(json!({ "record": "source", "id": hash, "parent": hash, "source": source }));
        }
    }
    if let Some(name) = profile
        && let Some(profile) = get(Table::Profile, name)?.and_then(|bytes| read_json(&bytes))
    {
        records.push(json!({ "record": "profile", "id": name, "parent": run, "profile": profile }));
    }
    Ok(records)
}

/// Returns the record of a blob: as text if it is text, else as hexadecimal digits.
fn blob_record(run: &RunId, id: BlobId, bytes: Vec<u8>) -> Json {
    let id = id.to_string();
    match String::from_utf8(bytes) {
        Ok(text) => json!({ "record": "blob", "id": id, "parent": run, "text": text }),
        Err(error) => {
            let hex: String = error.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            json!({ "record": "blob", "id": id, "parent": run, "hex": hex })
        }
    }
}

/// Reads what [`blob_record`] wrote.
fn blob_bytes(record: &Json) -> Option<Vec<u8>> {
    if let Some(text) = record["text"].as_str() {
        return Some(text.as_bytes().to_vec());
    }
    let hex = record["hex"].as_str().filter(|hex| hex.len() % 2 == 0 && hex.is_ascii())?;
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).ok();
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn read_json(bytes: &[u8]) -> Option<Json> {
    serde_json::from_slice(bytes).ok()
}

/// What records hold beside the header and the events.
#[derive(Default)]
struct Kept {
    machines: BTreeMap<String, Arc<Machine>>,
    puts: Vec<Put>,
    blobs: Vec<Vec<u8>>,
    known: BTreeSet<(Table, String)>,
}

/// Reads records and folds their events.
fn bring(records: Vec<Json>, now: Millis) -> Result<BringRun, ApiError> {
    let invalid = |message: String| ApiError::new(Code::Invalid, message);
    let mut records = records.into_iter().enumerate().map(|(i, record)| (i + 1, record));
    let not_first = || invalid("the first record is that of a run: this is no export".to_owned());
    let (_, first) = records.next().filter(|(_, r)| r["record"] == "run").ok_or_else(not_first)?;
    if let Some(format) = first["format"].as_u64().filter(|format| *format > u64::from(FORMAT)) {
        let message = format!("the records have format {format}, this release reads up to {FORMAT}");
        return Err(invalid(message).hint("use a newer release"));
    }
    let mut seal = Seal::default();
    seal.take(&first);
    let header: Header = part(1, first)?;
    let (mut kept, mut events, mut ended) = (Kept::default(), Vec::new(), None);
    for (line, mut record) in records {
        if ended.is_some() {
            return Err(invalid(format!("line {line}: nothing is expected after the end")));
        }
        if record["record"] != "end" {
            seal.take(&record);
        }
        match record["record"].as_str() {
            Some("event") => events.push(part::<Event>(line, record["event"].take())?),
            Some("end") => ended = Some(record["seal"] == json!(seal.text())),
            Some("machine" | "source" | "profile") => kept.take(line, record)?,
            Some("blob") => kept.take_blob(line, &record)?,
            Some(_) | None => {
                let kinds = "`machine`, `source`, `profile`, `blob`, `event` or `end`";
                return Err(invalid(format!("line {line}: a record of {kinds} is expected")));
            }
        }
    }
    let Some(sealed) = ended.filter(|_| events.len() as u64 == header.events) else {
        let message = format!("the records are not whole: {} of {} events", events.len(), header.events);
        return Err(invalid(message).of_run(&header.id).hint("export the run again"));
    };
    // Last, because what is wrong elsewhere says more.
    let brought = whole(header, kept, events, now)?;
    if !sealed {
        let message = "the records are not those that were exported: the seal of the end does not fit them";
        return Err(invalid(message.to_owned()).of_run(&brought.run).hint("export the run again"));
    }
    Ok(brought)
}

fn part<T: DeserializeOwned>(line: usize, record: Json) -> Result<T, ApiError> {
    serde_json::from_value(record)
        .map_err(|error| ApiError::new(Code::Invalid, format!("line {line} does not fit: {error}")))
}

impl Kept {
    fn take_blob(&mut self, line: usize, record: &Json) -> Result<(), ApiError> {
        let bytes = blob_bytes(record).filter(|bytes| record["id"] == json!(BlobId::of(bytes).to_string()));
        let wrong = || format!("line {line}: the bytes of the blob do not have its hash: they were changed");
        self.blobs.push(bytes.ok_or_else(|| ApiError::new(Code::Invalid, wrong()))?);
        Ok(())
    }

    fn take(&mut self, line: usize, mut record: Json) -> Result<(), ApiError> {
        let invalid = |detail: String| ApiError::new(Code::Invalid, format!("line {line}: {detail}"));
        let id = record["id"].as_str().unwrap_or_default().to_owned();
        let (table, value) = match record["record"].as_str() {
            Some("machine") => {
                let text = record["machine"].as_str().unwrap_or_default();
                let machine = Machine::decode(text.as_bytes()).map_err(|e| invalid(e.to_string()))?;
                if machine.hash().0 != id {
                    return Err(invalid(format!("the machine is not {id}: it was changed")));
                }
                let bytes = machine.encode();
                self.machines.insert(id.clone(), Arc::new(machine));
                (Table::Machine, bytes)
            }
            Some("source") => {
                let source: Source = part(line, record["source"].take())?;
                (Table::Source, serde_json::to_vec(&source).unwrap_or_default())
            }
            Some(_) | None => {
                let profile: BTreeMap<String, Value> = part(line, record["profile"].take())?;
                (Table::Profile, serde_json::to_vec(&profile).unwrap_or_default())
            }
        };
        if id.is_empty() {
            return Err(invalid("an id is expected".to_owned()));
        }
        if self.known.insert((table, id.clone())) {
            self.puts.push(Put { table, key: id.into_bytes(), value: Some(value) });
        }
        Ok(())
    }
}

/// Folds the events and says what is true of the run.
fn whole(header: Header, kept: Kept, mut events: Vec<Event>, now: Millis) -> Result<BringRun, ApiError> {
    if breaks(Breakage::ImportLess) {
        events.pop();
    }
    let Header { id: run, parent, flow, lineage, .. } = header;
    let invalid = |message: String| ApiError::new(Code::Invalid, message).of_run(&run);
    if events.len() > limits::IMPORT_EVENTS_MAX {
        let message = format!("{} events are more than {}", events.len(), limits::IMPORT_EVENTS_MAX);
        return Err(ApiError::new(Code::TooLarge, message).of_run(&run));
    }
    let newest = events.last().map_or(Millis(0), |event| event.time);
    if newest.0.saturating_sub(now.0) > limits::CLOCK_BEHIND_MS_MAX {
        let message = "its newest event is more than an hour ahead of this computer's clock".to_owned();
        return Err(invalid(message).hint("set the clock"));
    }
    if lineage.last().map(|(_, to)| *to) != parent.as_ref().map(|(_, at)| *at) {
        return Err(invalid("its lineage does not lead to its parent".to_owned()));
    }
    let mut fold = None;
    let machine = |hash: &str| {
        let machine = kept.machines.get(hash).cloned().map(Ready::from);
        machine.ok_or_else(|| invalid(format!("the records lack machine {hash}")))
    };
    for (event, n) in events.iter().zip(1..) {
        if event.n != Seq(n) {
            return Err(invalid(format!("event {n} is expected, not {}", event.n)));
        }
        let owner = lineage.iter().find(|(_, to)| event.n <= *to).map_or(&run, |(of, _)| of);
        let folded = history::apply(fold, &run, owner, event, &machine);
        fold = Some(folded.map_err(|e| invalid(e.message))?.0);
    }
    let fold = fold.ok_or_else(|| invalid("it has no events".to_owned()))?;
    let own = lineage.last().map_or(Seq(0), |(_, to)| *to);
    let first_own = events.iter().find(|event| event.n > own);
    let came = match (first_own.map(|event| &event.kind), events.first().map(|event| &event.kind), &parent) {
        (Some(EventKind::Forked { parent: of, at, .. }), _, Some(named))
            if (of, at) == (&named.0, &named.1) =>
        {
            Some(forked_from(of, *at))
        }
        (_, _, Some(_)) => return Err(invalid("it does not begin where its parent was forked".to_owned())),
        (_, Some(EventKind::Started(started)), None) => {
            started.parent.as_ref().map(|(of, op)| spawned_from(of, *op))
        }
        (_, _, None) => None,
    };
    let started_at = first_own.map_or(newest, |event| event.time);
    let facts = Facts { flow, machine: fold.state.machine().hash().0, started_at, parent: came };
    let origin = parent.map(|parent| Origin::Copy { lineage, parent });
    Ok(BringRun { run, fold, events, facts, origin, puts: kept.puts, blobs: kept.blobs })
}
