//! What a conversation knows of its run beside what was said: its environment, its flow, its rules, and where a person spoke.
//!
//! Leaves showing it to `about`. Invariant: everything comes from the runtime, so a run that was started elsewhere is known as well.

use outlast_dsl::machine::Machine;
use outlast_protocol::profile::Profile;
use outlast_protocol::run::RunView;
use outlast_runtime::host::Session;
use serde_json::Value;

use super::{mention, transcript};
use crate::flow_file::Chosen;

/// Something that a person said to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remark {
    /// Its event.
    pub(super) n: u64,
    /// As it was typed.
    pub(super) text: String,
    /// The message's own id; empty: it began the run.
    id: String,
}

/// What is known of a run.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) remarks: Vec<Remark>,
    /// The money that attempts told they cost.
    pub(super) told_cost: f64,
    /// Whether it was told that no more messages come.
    pub(super) is_closed: bool,
    /// Its rules about tools.
    pub(super) config: Value,
    /// None: not kept, or not looked for yet.
    pub(super) profile: Option<Profile>,
    /// None: it cannot be read, or was not looked for yet.
    pub(super) machine: Option<Machine>,
}

impl Known {
    /// Looks up a run's flow and environment.
    pub(super) async fn of(session: &Session, run: &RunView, chosen: &Chosen) -> Known {
        let profile = session.call(async |client| client.profile(&run.profile).await).await.ok();
        let machine = if chosen.flow.machine.hash().0 == run.machine {
            Some(chosen.flow.machine.clone())
        } else {
            machine_of(session, run).await
        };
        Known { profile, machine, ..Known::default() }
    }

    /// Takes in an event of the run.
    pub(super) fn take(&mut self, event: &Value) {
        let text = match event["kind"].as_str() {
            Some("started") => transcript::first_words(&event["input"]),
            Some("message") => transcript::said(&event["value"]),
            Some(_) | None => None,
        };
        let id = event["id"].as_str().unwrap_or_default();
        if let (Some(text), Some(n)) = (text, event["n"].as_u64()) {
            self.remarks.push(Remark { n, text: mention::typed(text), id: id.to_owned() });
        }
        if event["kind"] == "withdrawn" {
            self.remarks.retain(|remark| remark.id != id);
        }
        let cost = event["cost"].as_str().and_then(|cost| cost.parse::<f64>().ok());
        self.told_cost += cost.unwrap_or_default();
        self.is_closed |= event["kind"] == "closed";
        if event["config"].is_object() {
            self.config = event["config"].clone();
        }
    }
}

/// Reads a run's machine out of its export, where it stands before the event that needs it.
async fn machine_of(session: &Session, run: &RunView) -> Option<Machine> {
    let mut cursor = None::<String>;
    loop {
        let page = session.call(async |client| client.export(&run.id, cursor.as_deref()).await).await.ok()?;
        let is_it = |record: &&Value| record["record"] == "machine" && record["id"] == run.machine.as_str();
        if let Some(record) = page.items.iter().find(is_it) {
            return Machine::decode(record["machine"].as_str()?.as_bytes()).ok();
        }
        cursor = Some(page.next?);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn remarks_and_rules_are_read_from_events() {
        let mut known = Known::default();
        for event in [
            json!({ "n": 1, "kind": "started", "input": { "max": 3, "task": "tidy" }, "config": { "deny": ["a"] } }),
            json!({ "n": 4, "kind": "message", "id": "a", "type": "Say", "value": { "text": "more" } }),
            json!({ "n": 5, "kind": "message", "id": "b", "type": "Say", "value": { "text": "not this" } }),
            json!({ "n": 6, "kind": "withdrawn", "id": "b" }),
            json!({ "n": 5, "kind": "message", "type": "Stop", "value": {} }),
            json!({ "n": 6, "kind": "configured", "config": { "grants": ["b"] } }),
            json!({ "n": 7, "kind": "done", "cost": "0.25" }),
            json!({ "n": 8, "kind": "closed" }),
        ] {
            known.take(&event);
        }
        let remarks: Vec<(u64, &str)> =
            known.remarks.iter().map(|said| (said.n, said.text.as_str())).collect();
        assert_eq!(remarks, [(1, "tidy"), (4, "more")]);
        assert!(known.told_cost > 0.2 && known.is_closed);
        assert_eq!(known.config, json!({ "grants": ["b"] }));
    }
}
