//! What a conversation knows of its run beside what was said: its environment, its flow, its rules, and where a person spoke.
//!
//! Leaves showing it to `about`. Invariant: everything comes from the runtime, so a run that was started elsewhere is known as well.

use outlast_dsl::machine::Machine;
use outlast_protocol::profile::Profile;
use outlast_protocol::run::RunView;
use outlast_runtime::host::Session;
use serde_json::Value;

use super::transcript;
use crate::flow_file::Chosen;

/// Something that a person said to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remark {
    /// Its event.
    pub(super) n: u64,
    pub(super) text: String,
    /// The message's own id; empty: it began the run.
    id: String,
}

/// What is known of a run.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) remarks: Vec<Remark>,
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
            Some("started") => {
                event["input"].as_object().and_then(|input| input.values().find_map(Value::as_str))
            }
            Some("message") => transcript::said(&event["value"]),
            Some(_) | None => None,
        };
        let id = event["id"].as_str().unwrap_or_default();
        if let (Some(text), Some(n)) = (text, event["n"].as_u64()) {
            self.remarks.push(Remark { n, text: text.to_owned(), id: id.to_owned() });
        }
        if event["kind"] == "withdrawn" {
            self.remarks.retain(|remark| remark.id != id);
        }
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
        ] {
            known.take(&event);
        }
        let remarks: Vec<(u64, &str)> =
            known.remarks.iter().map(|said| (said.n, said.text.as_str())).collect();
        assert_eq!(remarks, [(1, "tidy"), (4, "more")]);
        assert_eq!(known.config, json!({ "grants": ["b"] }));
    }
}
