//! The tools of the scripted server: each does one thing that servers do, right or wrong.
//!
//! `note` leaves a line in the ledger between the two gates that test workers have too. Leaves the protocol to its parent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Out, Server, append};

/// How often a file is looked for.
pub(crate) const LOOK: Duration = Duration::from_millis(2);

/// The code of an error that names pages which must be opened first.
pub(crate) const PAGE_NEEDED: i64 = -32042;

/// What `visit` asks for.
pub(crate) fn page(arguments: &Value) -> Value {
    json!({"mode": "url", "message": "Log in, please", "url": arguments["url"], "elicitationId": "e1"})
}

/// A tool as it is listed.
pub(crate) fn tool(name: &str, about: &str, properties: &Value) -> Value {
    json!({"name": name, "description": about, "inputSchema": {"type": "object", "properties": properties}})
}

/// Name, description, arguments, annotations.
const TOOLS: &[(&str, &str, &str, &str)] = &[
    ("echo", "Gives back a text.", r#"{"text": {"type": "string"}}"#, r#"{"readOnlyHint": true}"#),
    ("note", "Writes a line into the ledger.", r#"{"name": {"type": "string"}}"#, "{}"),
    (
        "put",
        "Writes a line into the ledger, as often as wanted.",
        r#"{"name": {"type": "string"}}"#,
        r#"{"idempotentHint": true}"#,
    ),
    ("crash", "Ends the server.", "{}", "{}"),
    ("crash_pure", "Ends the server.", "{}", r#"{"readOnlyHint": true}"#),
    ("hang", "Never answers.", "{}", r#"{"readOnlyHint": true}"#),
    ("hang_once", "Never answers.", "{}", "{}"),
    ("fail", "Fails.", "{}", r#"{"readOnlyHint": true}"#),
    ("refuse", "Answers with an error of the protocol.", "{}", r#"{"readOnlyHint": true}"#),
    ("image", "Gives a picture.", "{}", r#"{"readOnlyHint": true}"#),
    ("huge", "Gives a long line.", r#"{"bytes": {"type": "integer"}}"#, r#"{"readOnlyHint": true}"#),
    ("hologram", "Gives what no client knows.", "{}", r#"{"readOnlyHint": true}"#),
    ("ask", "Asks a person for an account.", "{}", "{}"),
    (
        "visit",
        "Wants a person to open a page; `needed`: says so with an error until there is a file `visited`.",
        r#"{"url": {"type": "string"}, "needed": {"type": "boolean"}}"#,
        "{}",
    ),
    ("sample", "Asks the client for a model, and for nonsense.", "{}", "{}"),
    ("roots", "Asks for the roots.", "{}", r#"{"readOnlyHint": true}"#),
    ("progress", "Tells how far it is.", "{}", r#"{"readOnlyHint": true}"#),
    ("endless_progress", "Tells how far it is, and never ends.", "{}", r#"{"readOnlyHint": true}"#),
    (
        "late",
        "Answers when another call has been answered.",
        r#"{"name": {"type": "string"}}"#,
        r#"{"readOnlyHint": true}"#,
    ),
    ("change", "Gets the server another tool.", "{}", r#"{"readOnlyHint": true}"#),
    ("task", "Works on as a task.", r#"{"name": {"type": "string"}}"#, "{}"),
    ("env", "Gives its environment.", "{}", r#"{"readOnlyHint": true}"#),
    ("meta", "Gives what came beside the arguments.", "{}", r#"{"readOnlyHint": true}"#),
];

pub(crate) fn built_in(only: Option<&[String]>) -> Vec<Value> {
    let wanted = |name: &str| only.is_none_or(|only| only.iter().any(|one| one == name));
    let all = TOOLS.iter().filter(|(name, ..)| wanted(name));
    all.map(|(name, about, properties, annotations)| {
        let mut tool = tool(name, about, &serde_json::from_str(properties).unwrap());
        tool["annotations"] = serde_json::from_str(annotations).unwrap();
        tool
    })
    .collect()
}

fn text(text: impl Into<String>) -> Option<Result<Value, (i64, String)>> {
    Some(Ok(json!({"content": [{"type": "text", "text": text.into()}]})))
}

/// Calls a tool.
pub(crate) fn call(server: &Server, message: &Value, out: &Out) -> Option<Result<Value, (i64, String)>> {
    let params = &message["params"];
    let (args, meta) = (&params["arguments"], &params["_meta"]);
    let name = args["name"].as_str().unwrap_or("nameless");
    match params["name"].as_str().unwrap_or_default() {
        "echo" => text(args["text"].as_str().unwrap_or("(nothing)")),
        "note" | "put" => {
            note(name, meta);
            text(format!("noted {name}"))
        }
        "crash" | "crash_pure" => {
            note("crash", meta);
            eprintln!("a bug has been met");
            std::process::exit(3)
        }
        "hang" | "hang_once" => None,
        "fail" => {
            Some(Ok(json!({"content": [{"type": "text", "text": "it did not work"}], "isError": true})))
        }
        "refuse" => {
            let more = "r".repeat(args["bytes"].as_u64().unwrap_or(0) as usize);
            Some(Err((-32602, format!("these arguments are no good{more}"))))
        }
        "image" => {
            Some(Ok(json!({"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]})))
        }
        "huge" => text("h".repeat(args["bytes"].as_u64().unwrap_or(0) as usize)),
        "hologram" => Some(Ok(json!({"content": [{"type": "hologram", "depth": 3}]}))),
        "late" => {
            pass(name, "Before");
            text(format!("late {name}"))
        }
        "change" => {
            server.change(out);
            text("changed")
        }
        "fresh" => text("fresh"),
        "task" => {
            note(name, meta);
            let mut created = task(name);
            created["resultType"] = json!("task");
            Some(Ok(created))
        }
        "env" => {
            let mut names: Vec<String> =
                std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
            names.sort();
            text(names.join("\n"))
        }
        "meta" => text(meta.to_string()),
        _ => converse(server, message, out),
    }
}

/// Calls a tool that has more to say than its answer.
fn converse(server: &Server, message: &Value, out: &Out) -> Option<Result<Value, (i64, String)>> {
    let (params, meta) = (&message["params"], &message["params"]["_meta"]);
    match params["name"].as_str().unwrap_or_default() {
        "ask" => {
            let schema = json!({"type": "object", "properties": {"account": {"type": "string"}}, "required": ["account"]});
            let more = "?".repeat(params["arguments"]["bytes"].as_u64().unwrap_or(0) as usize);
            let question = json!({"message": format!("Which account?{more}"), "requestedSchema": schema});
            for _before in 1..params["arguments"]["times"].as_u64().unwrap_or(1) {
                server.ask("elicitation/create", &question, out);
            }
            text(server.ask("elicitation/create", &question, out)["result"].to_string())
        }
        "visit" if params["arguments"]["needed"] != true => {
            let answer = server.ask("elicitation/create", &page(&params["arguments"]), out);
            if answer["result"]["action"] == "accept" {
                let done = json!({"elicitationId": "e1"});
                (out.lock().unwrap())(
                    &json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": done}),
                );
            }
            append("visits.jsonl", &answer);
            text(format!("{} {}", answer["result"], answer["error"]))
        }
        "visit" if Path::new("visited").exists() => text("welcome back"),
        "visit" => Some(Err((PAGE_NEEDED, "log in first".to_owned()))),
        "sample" => {
            let codes: Vec<Value> = ["sampling/createMessage", "no/such/method"]
                .iter()
                .map(|method| {
                    server.ask(method, &json!({"messages": [], "maxTokens": 1}), out)["error"]["code"].clone()
                })
                .collect();
            text(json!(codes).to_string())
        }
        "roots" => text(server.ask("roots/list", &json!({}), out).to_string()),
        "progress" | "endless_progress" => {
            let endless = params["name"] == "endless_progress";
            let more = "p".repeat(params["arguments"]["bytes"].as_u64().unwrap_or(0) as usize);
            for step in (1..=4).chain(std::iter::repeat_n(4, if endless { usize::MAX } else { 0 })) {
                let params = json!({"progressToken": meta["progressToken"], "progress": step, "total": 4, "message": format!("step {step}{more}")});
                (out.lock().unwrap())(
                    &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
                );
                if server.is_cancelled(&message["id"]) {
                    return None;
                }
                std::thread::park_timeout(LOOK);
            }
            text("done")
        }
        other => Some(Err((-32602, format!("there is no tool {other}")))),
    }
}

/// A task as it stands: done when its gates are open; while `Asks` is closed, it asks a person. It is on disk, so it outlives the
/// server.
pub(crate) fn task(name: &str) -> Value {
    let working = gate(name, "Task").exists();
    let stamp = "2027-01-01T00:00:00Z";
    let mut task = json!({"taskId": name, "createdAt": stamp, "lastUpdatedAt": stamp, "ttlMs": null, "pollIntervalMs": 1,
        "statusMessage": "at it", "status": if working { "working" } else { "completed" }});
    if gate(name, "Asks").exists() {
        task["status"] = json!("input_required");
        task["inputRequests"] = json!({"q": {"method": "elicitation/create", "params": {"message": "Which account?",
            "requestedSchema": {"type": "object", "properties": {"account": {"type": "string"}}}}}});
    } else if working {
        std::fs::write(gate(name, "Task").with_extension("reached"), "").unwrap();
    } else {
        task["result"] = json!({"content": [{"type": "text", "text": format!("task {name} is done")}]});
    }
    task
}

fn gate(name: &str, at: &str) -> PathBuf {
    Path::new(&format!("{name}.{at}.gate")).to_owned()
}

fn note(name: &str, meta: &Value) {
    pass(name, "Before");
    let of = |field: &str| meta[format!("outlast/{field}")].clone();
    append(
        "ledger.jsonl",
        &json!({"name": name, "run": of("run"), "op": of("op"), "attempt": of("attempt"),
                "key": of("idempotency-key"), "pid": std::process::id()}),
    );
    pass(name, "After");
}

/// Stands at a gate while it is closed.
fn pass(name: &str, at: &str) {
    let gate = gate(name, at);
    if gate.exists() {
        std::fs::write(gate.with_extension("reached"), "").unwrap();
    }
    while gate.exists() {
        std::thread::park_timeout(LOOK);
    }
}
