//! The audit: what a run's history says about who did what, and what was done again.
//!
//! Keeps nothing of its own: each record is an event, with what the events before it say of its operation. Invariant: what is remembered
//! while a history is read is no more than the run has open.

use std::collections::BTreeMap;

use outlast_kernel::event::Event;
use outlast_kernel::ids::{Attempt, OpId, RunId, Seq};
use outlast_kernel::operation::{ActivityOp, Class, Effects};
use outlast_kernel::text::time_text;
use outlast_kernel::{Json, State};
use outlast_protocol::ApiError;
use outlast_protocol::audit::AuditRecord;
use outlast_protocol::requests::List;

use super::Engine;
use super::history::each_after;
use super::live::{activities, activity_of};

impl Engine {
    /// Returns what stored events after `after` say about who did what.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn audit(&self, run: &str, after: u64, limit: usize) -> Result<List<AuditRecord>, ApiError> {
        self.page(run, after, limit, |ctx, run, (after, until)| {
            let (mut items, mut open) = (Vec::new(), Open::default());
            // One event earlier: what was open after it is what later ones are about.
            let earlier = Seq(after.0.saturating_sub(1));
            each_after(ctx, run, (earlier, until), &mut |told| {
                if told.event.n <= after {
                    open = Open::of(told.state);
                } else {
                    items.extend(open.record(run, told.event));
                    open.follow(told.event, told.effects, told.state, run);
                }
                true
            })?;
            Ok(items)
        })
        .await
    }
}

/// What is open at a point of a history.
#[derive(Default)]
struct Open(BTreeMap<OpId, Doing>);

/// An activity that is open.
struct Doing {
    activity: String,
    tool: Option<String>,
    class: Class,
    /// Why the newest attempt was not the last.
    again: Option<String>,
}

impl Doing {
    fn of(op: &ActivityOp) -> Doing {
        let again = match &op.last {
            Some(failure) => Some(format!("failed: {}", failure.kind)),
            None => (op.attempt > Attempt(1)).then(|| "lost".to_owned()),
        };
        let tool = op.input["call"]["name"].as_str().map(str::to_owned);
        Doing { activity: op.activity.clone(), tool, class: op.class, again }
    }
}

/// Events that nobody did: the clock, and news between runs.
const UNTOLD: &[&str] = &["timer_fired", "handle", "child_ended", "delivered"];

impl Open {
    fn of(state: &State) -> Open {
        Open(activities(state).map(|(id, op)| (id, Doing::of(op))).collect())
    }

    /// Says what an event is to an auditor; none if nobody did anything.
    fn record(&self, run: &RunId, event: &Event) -> Option<AuditRecord> {
        let shown = event.to_json(run);
        let text = |value: &Json| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let what = event.kind.name();
        if UNTOLD.contains(&what) {
            return None;
        }
        let doing = shown["op"].as_str().and_then(|op| op.parse().ok()).and_then(|op| self.0.get(&op));
        let attempt = shown["attempt"].as_u64().and_then(|attempt| u32::try_from(attempt).ok());
        let runs = matches!(what, "begun" | "done" | "failed" | "lost" | "void");
        Some(AuditRecord {
            time: time_text(event.time),
            run: run.to_string(),
            n: event.n.0,
            what: what.to_owned(),
            by: by(what, &shown),
            role: text(&shown["role"]),
            op: text(&shown["op"]),
            activity: doing.map(|doing| doing.activity.clone()).or_else(|| text(&shown["activity"])),
            tool: doing.and_then(|doing| doing.tool.clone()),
            effect: doing.map(|doing| class(doing.class).to_owned()),
            attempt,
            again: doing.and_then(|doing| doing.again.clone()).filter(|_| runs && attempt > Some(1)),
            detail: detail(what, &shown),
        })
    }

    /// Goes on after an event.
    fn follow(&mut self, event: &Event, effects: &Effects, state: &State, run: &RunId) {
        let shown = event.to_json(run);
        let again = match event.kind.name() {
            "lost" => format!("lost: {}", shown["why"].as_str().unwrap_or_default()),
            "failed" => format!("failed: {}", shown["error"]["kind"].as_str().unwrap_or_default()),
            "void" => "never reached a worker".to_owned(),
            "settled" => "settled: not_happened".to_owned(),
            "released" => "released".to_owned(),
            _ => String::new(),
        };
        let op = shown["op"].as_str().and_then(|op| op.parse().ok());
        if let Some(doing) = op.and_then(|op: OpId| self.0.get_mut(&op)).filter(|_| !again.is_empty()) {
            doing.again = Some(again);
        }
        for id in &effects.closed {
            self.0.remove(id);
        }
        for id in &effects.opened {
            if let Some(op) = state.operation(*id).and_then(activity_of) {
                self.0.insert(*id, Doing::of(op));
            }
        }
    }
}

/// Returns who did it. A run that another one spawned was started by that one.
fn by(what: &str, shown: &Json) -> Option<String> {
    let name = if what == "message" { &shown["from"] } else { &shown["by"] };
    match name.as_str() {
        // Why a run was cancelled stands after the name.
        Some(name) if !name.is_empty() => Some(name.split(": ").next().unwrap_or(name).to_owned()),
        Some(_) | None if what == "started" => {
            shown["parent"]["run"].as_str().map(|run| format!("run:{run}"))
        }
        Some(_) | None => None,
    }
}

/// Returns what else there is to say, on one line.
fn detail(what: &str, shown: &Json) -> Option<String> {
    let text = |value: &Json| value.as_str().map(str::to_owned);
    match what {
        "started" => text(&shown["flow"]),
        "forked" => Some(format!("{}@{}", shown["parent"]["run"].as_str()?, shown["parent"]["at"])),
        "message" => text(&shown["type"]),
        "withdrawn" => text(&shown["id"]),
        "answered" => text(&shown["choice"]),
        "settled" => text(&shown["verdict"]),
        "migrated" => text(&shown["to"]),
        "spawned" => text(&shown["child"]).or_else(|| text(&shown["result"])),
        "configured" => Some(format!("grants {}", shown["config"]["grants"])),
        "begun" => text(&shown["worker"]),
        "failed" => text(&shown["error"]["kind"]),
        "lost" => text(&shown["why"]),
        "cancelled" => shown["by"].as_str()?.split_once(": ").map(|(_, why)| why.to_owned()),
        _ => None,
    }
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Pure => "pure",
        Class::Idempotent => "idempotent",
        Class::Once => "once",
    }
}
