//! How each example goes when all goes well: what its workers give, what people answer and say.
//!
//! Leaves playing them to `examples`. Invariant: what is given depends on what is asked alone, so a story has one end, however often it is
//! interrupted.

use serde_json::{Value as Json, json};

/// See the module.
pub(crate) struct Story {
    /// Its file in `examples`.
    pub(crate) file: &'static str,
    pub(crate) flow: &'static str,
    pub(crate) input: Json,
    /// What an activity gives for its input.
    pub(crate) gives: fn(&str, &Json) -> Json,
    /// What a person answers, beside `approve`.
    pub(crate) value: Option<Json>,
    /// What is said when it waits for a message: names and values, one after the other; then time passes.
    pub(crate) says: Vec<(&'static str, Json)>,
}

pub(crate) fn stories() -> Vec<Story> {
    [with_workers(), with_people(), without_people()].into_iter().flatten().collect()
}

fn story(file: &'static str, flow: &'static str, input: Json, gives: fn(&str, &Json) -> Json) -> Story {
    Story { file, flow, input, gives, value: None, says: Vec::new() }
}

/// The examples for which there are workers.
fn with_workers() -> Vec<Story> {
    vec![
        Story {
            says: vec![("closed", Json::Null)],
            ..story("agent.flow", "Agent", json!({"task": "look"}), agent)
        },
        story("deploy.flow", "Deploy", json!({"version": "2"}), |activity, _| match activity {
            "append_effect" => json!({"type": "NotHappened"}),
            _ => json!("index.html"),
        }),
        story("report.flow", "Report", json!({}), |activity, _| match activity {
            "list" => json!(["a.md", "b.md", "c.png"]),
            "append_effect" => json!({"type": "NotHappened"}),
            _ => json!("as it was asked"),
        }),
    ]
}

/// Flows of the kind that users have, in which people are asked.
fn with_people() -> Vec<Story> {
    vec![
        story("flows/document.flow", "Document", json!({"url": "there"}), |activity, _| match activity {
            "classify" => json!({"type": "Invoice", "amount": "20"}),
            "check" => json!({"sure": false, "remarks": ["no date"]}),
            _ => json!("text"),
        }),
        story("flows/incident.flow", "Incident", alert(), |activity, _| match activity {
            "page" => Json::Null,
            _ => json!("as it was asked"),
        }),
        Story {
            value: Some(json!({"type": "Cat"})),
            ..story(
                "flows/labelling.flow",
                "Labelling",
                json!({"batch": "b", "pictures": ["p1", "p2"]}),
                |activity, _| match activity {
                    "propose" => json!({"type": "Unicorn"}),
                    _ => json!("stored"),
                },
            )
        },
    ]
}

/// Flows of the kind that users have, in which nobody is asked if all goes well.
fn without_people() -> Vec<Story> {
    vec![
        story("flows/nightly.flow", "Nightly", json!({"night": "2027-01-15"}), |activity, input| {
            match activity {
                "accounts" => json!(["a-2", "a-1"]),
                "movements" => json!([format!("paid by {}", input["account"])]),
                "send" => Json::Null,
                _ => json!("report"),
            }
        }),
        story("flows/refund.flow", "RefundDesk", order(), |activity, _| match activity {
            "write_credit" => json!("c-1"),
            "restock" => json!(1),
            "pay" => json!({"id": "p-1"}),
            "find_payment" => json!({"type": "NotHappened"}),
            _ => Json::Null,
        }),
        story(
            "flows/research.flow",
            "Research",
            json!({"question": "why"}),
            |activity, input| match activity {
                "plan" => json!(["q1", "q2", "q3", "q4", "q5"]),
                "search" => json!({"source": input["query"], "text": "found"}),
                _ => json!("text"),
            },
        ),
        story("flows/rollout.flow", "Rollout", rollout(), |activity, _| match activity {
            "health" => json!({"ok": true, "text": "fine"}),
            "announce" => Json::Null,
            _ => json!("installed"),
        }),
        Story {
            says: vec![("Wrote", json!({"text": "thanks"}))],
            ..story(
                "flows/support.flow",
                "Support",
                json!({"customer": "ada", "about": "a parcel"}),
                |activity, _| match activity {
                    "answer" => json!({"type": "Reply", "text": "with the neighbours"}),
                    _ => Json::Null,
                },
            )
        },
    ]
}

/// A model that looks around first, and then has something to say.
fn agent(activity: &str, input: &Json) -> Json {
    let message = json!({"role": "assistant", "text": "well", "parts": []});
    let begins = input["messages"].as_array().is_some_and(|messages| messages.len() == 1);
    let call = |id: &str, name: &str, args: Json| json!({"id": id, "name": name, "args": args});
    match activity {
        "model" if begins => {
            let read = call("c1", "read", json!({"path": "a"}));
            let shell = call("c2", "shell", json!({"command": "ls"}));
            json!({"type": "Tools", "calls": [read, shell], "message": message})
        }
        "model" => json!({"type": "Text", "text": "well", "message": message}),
        "tool" => {
            let call = input["call"].get("value").unwrap_or(&input["call"]);
            json!({"id": call["id"], "text": "seen", "ok": true})
        }
        "tool_effect" => json!({"type": "NotHappened"}),
        _ => json!({}),
    }
}

fn alert() -> Json {
    json!({"alert": {"id": "i-1", "service": "mail", "text": "it is slow"}})
}

fn order() -> Json {
    json!({"order": {"id": "o-1", "customer": "ada", "amount": "20", "items": ["book"]}})
}

fn rollout() -> Json {
    json!({"version": "2", "before": "1", "canary": "c", "nodes": ["n1", "n2", "n3"], "wave": 2})
}
