//! Events as everyone reads them: full names, RFC 3339 times.
//!
//! Leaves the stored form to [`crate::event`]. Invariant: `{run, n, time, kind, …}`; fields are only ever added.

use serde_json::{Map, json};

use crate::Json;
use crate::event::{
    ChildrenOfFork, Choice, Config, Event, EventKind, Failure, LostWhy, OnOpen, Receipt, Settlement,
    SpawnResult, Started, Tokens,
};
use crate::ids::{OpId, RunId};
use crate::operation::Outcome;
use crate::text::{duration_text, time_text};

impl Event {
    /// Returns the event as every surface shows it.
    #[must_use]
    pub fn to_json(&self, run: &RunId) -> Json {
        let mut fields = Map::new();
        fields.insert("run".to_owned(), json!(run.as_str()));
        fields.insert("n".to_owned(), json!(self.n.0));
        fields.insert("time".to_owned(), json!(time_text(self.time)));
        fields.insert("kind".to_owned(), json!(self.kind.name()));
        let own = if let Some(op) = self.kind.op() {
            fields.insert("op".to_owned(), json!(op.to_string()));
            of_operation(&self.kind)
        } else {
            of_run(&self.kind)
        };
        if let Json::Object(own) = own {
            fields.extend(own.into_iter().filter(|(_, value)| !value.is_null()));
        }
        Json::Object(fields)
    }
}

impl EventKind {
    /// Returns the operation that the event is about.
    #[must_use]
    pub fn op(&self) -> Option<OpId> {
        match self {
            EventKind::Done { op, .. }
            | EventKind::Failed { op, .. }
            | EventKind::Begun { op, .. }
            | EventKind::Lost { op, .. }
            | EventKind::Void { op, .. }
            | EventKind::Handle { op, .. }
            | EventKind::Settled { op, .. }
            | EventKind::Released { op, .. }
            | EventKind::TimerFired { op, .. }
            | EventKind::Answered { op, .. }
            | EventKind::Spawned { op, .. }
            | EventKind::ChildEnded { op, .. }
            | EventKind::Delivered { op, .. } => Some(*op),
            EventKind::Started(_)
            | EventKind::Forked { .. }
            | EventKind::Configured { .. }
            | EventKind::Message { .. }
            | EventKind::Withdrawn { .. }
            | EventKind::Closed
            | EventKind::Migrated(_)
            | EventKind::Cancelled { .. }
            | EventKind::Terminated { .. } => None,
        }
    }
}

fn of_operation(kind: &EventKind) -> Json {
    match kind {
        EventKind::Done { activity, attempt, value, cost, tokens, .. } => json!({
            "activity": activity, "attempt": attempt, "value": value, "cost": cost, "tokens": of_tokens(*tokens),
        }),
        EventKind::Failed { activity, attempt, error, retry_at, cost, tokens, .. } => json!({
            "activity": activity, "attempt": attempt, "error": failure(error),
            "retry_at": retry_at.map(time_text), "cost": cost, "tokens": of_tokens(*tokens),
        }),
        EventKind::Begun { attempt, worker, .. } => json!({"attempt": attempt, "worker": worker}),
        EventKind::Lost { attempt, why, .. } => json!({"attempt": attempt, "why": lost(*why)}),
        EventKind::Void { attempt, .. } => json!({"attempt": attempt}),
        EventKind::Handle { attempt, handle, .. } => json!({"attempt": attempt, "handle": handle}),
        EventKind::Settled { verdict, by, .. } => match verdict {
            Settlement::Happened(result) => json!({"verdict": "happened", "result": result, "by": by}),
            Settlement::NotHappened => json!({"verdict": "not_happened", "by": by}),
            Settlement::Fail => json!({"verdict": "fail", "by": by}),
        },
        EventKind::Released { by, .. } => json!({"by": by}),
        EventKind::TimerFired { due, .. } => json!({"due": time_text(*due)}),
        EventKind::Answered { choice, value, note, by, role, .. } => {
            let choice = match choice {
                Choice::Approve => "approve",
                Choice::Reject => "reject",
                Choice::Answer => "answer",
            };
            let note = (!note.is_empty()).then_some(note);
            json!({"choice": choice, "value": value, "note": note, "by": by, "role": role})
        }
        EventKind::Spawned { result, .. } => match result {
            SpawnResult::Run(run) => json!({"result": "run", "child": run}),
            SpawnResult::Exists => json!({"result": "exists"}),
        },
        EventKind::ChildEnded { outcome, .. } => json!({"outcome": of_outcome(outcome)}),
        EventKind::Delivered { receipt, .. } => match receipt {
            Receipt::Ok => json!({"receipt": "ok"}),
            Receipt::Refused(why) => json!({"receipt": "refused", "why": why}),
        },
        EventKind::Started(_)
        | EventKind::Forked { .. }
        | EventKind::Configured { .. }
        | EventKind::Message { .. }
        | EventKind::Withdrawn { .. }
        | EventKind::Closed
        | EventKind::Migrated(_)
        | EventKind::Cancelled { .. }
        | EventKind::Terminated { .. } => Json::Null,
    }
}

fn of_tokens(tokens: Tokens) -> Option<Json> {
    (!tokens.is_none()).then(|| json!({"input": tokens.input, "output": tokens.output}))
}

fn of_run(kind: &EventKind) -> Json {
    match kind {
        EventKind::Started(started) => of_started(started),
        EventKind::Forked { parent, at, begun, children, by } => {
            let begun: Vec<_> = begun.iter().map(OpId::to_string).collect();
            let children = match children {
                ChildrenOfFork::Unknown => None,
                ChildrenOfFork::Share => Some("share"),
                ChildrenOfFork::Again => Some("again"),
            };
            json!({"parent": {"run": parent, "at": at}, "begun": begun, "children": children, "by": by})
        }
        EventKind::Configured { config } => json!({"config": of_config(config)}),
        EventKind::Message { id, name, value, from } => {
            json!({"id": id, "type": name, "value": value, "from": from})
        }
        EventKind::Withdrawn { id } => json!({"id": id}),
        EventKind::Migrated(migrated) => {
            let open = |(op, what): &(OpId, OnOpen)| {
                let what = match what {
                    OnOpen::Cut => "cut",
                    OnOpen::Again => "again",
                };
                (op.to_string(), json!(what))
            };
            let map: Map<_, _> = migrated.map.iter().map(open).collect();
            json!({"from": migrated.from, "to": migrated.to, "map": map, "by": migrated.by})
        }
        EventKind::Cancelled { by } | EventKind::Terminated { by } => json!({"by": by}),
        EventKind::Closed
        | EventKind::Done { .. }
        | EventKind::Failed { .. }
        | EventKind::Begun { .. }
        | EventKind::Lost { .. }
        | EventKind::Void { .. }
        | EventKind::Handle { .. }
        | EventKind::Settled { .. }
        | EventKind::Released { .. }
        | EventKind::TimerFired { .. }
        | EventKind::Answered { .. }
        | EventKind::Spawned { .. }
        | EventKind::ChildEnded { .. }
        | EventKind::Delivered { .. } => Json::Null,
    }
}

fn of_started(started: &Started) -> Json {
    let parent = started.parent.as_ref().map(|(run, op)| json!({"run": run, "op": op.to_string()}));
    json!({
        "flow": started.flow, "machine": started.machine, "edition": started.edition, "input": started.input,
        "seed": started.seed, "config": of_config(&started.config), "parent": parent,
        "by": (!started.by.is_empty()).then_some(&started.by),
    })
}

fn of_outcome(outcome: &Outcome) -> Json {
    match outcome {
        Outcome::Done(value) => json!({"kind": "done", "value": value}),
        Outcome::Failed(error) => json!({"kind": "failed", "error": error}),
        Outcome::Cancelled => json!({"kind": "cancelled"}),
        Outcome::Terminated => json!({"kind": "terminated"}),
    }
}

fn of_config(config: &Config) -> Json {
    json!({
        "profile": config.profile, "deny": config.deny[..], "ask": config.ask[..], "allow": config.allow[..],
        "grants": config.grants,
    })
}

fn failure(error: &Failure) -> Json {
    let mut fields = error.fields.clone();
    fields.insert("kind".to_owned(), json!(error.kind));
    fields.insert("text".to_owned(), json!(error.text));
    fields.insert("retryable".to_owned(), json!(error.retryable));
    if let Some(ms) = error.retry_after_ms {
        fields.insert("retry_after".to_owned(), json!(duration_text(ms)));
    }
    Json::Object(fields)
}

fn lost(why: LostWhy) -> &'static str {
    match why {
        LostWhy::WorkerGone => "worker_gone",
        LostWhy::Lease => "lease",
        LostWhy::Timeout => "timeout",
        LostWhy::Restart => "restart",
        LostWhy::BrokenOff => "broken_off",
    }
}
