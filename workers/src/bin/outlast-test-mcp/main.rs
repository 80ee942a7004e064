//! A scripted MCP server for tests: real tools with real effects, and a switch for every fault that servers in the wild have.
//!
//! `outlast-test-mcp SCRIPT`; the script is JSON (see [`Script`]). Speaks through standard input and output, or over HTTP on a free
//! port whose address it writes into a file. Leaves what is right to the tests. Invariant: a line of the ledger is on disk before the
//! call that wrote it goes on.

#![expect(clippy::unwrap_used, reason = "a broken test server should stop its test")]

mod http;
mod oauth;
mod tools;

use std::collections::HashMap;
use std::io::{BufRead as _, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::{Value, json};

/// What the server does, beside what is right.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Script {
    /// Tools as they are listed, beside the built-in ones.
    tools: Vec<Value>,
    /// Only these built-in tools; all if left out.
    only: Option<Vec<String>>,
    /// So many more tools `bulk_1` …
    bulk: usize,
    /// Tools on a page; 0: all on one.
    page: usize,
    /// `stuck`: the cursor never moves on; `endless`: there is always another page; `empty`: the last page has an empty cursor;
    /// `changes`: there is another tool, and the client is told, when it asks for the second page.
    cursor: String,
    /// What is written to standard output before anything else, as it is.
    banner: String,
    /// What is written before each answer, as it is.
    noise: String,
    /// So many bytes of rubbish, without a line break, before the handshake.
    rubbish: usize,
    /// So many bytes on standard error, at the start and with each call.
    flood: usize,
    /// Ends with this code at once.
    exit: Option<i32>,
    /// Never answers the handshake.
    mute: bool,
    /// Waits until there is no such file before it answers the handshake.
    wait_while: Option<PathBuf>,
    /// The version that it says it speaks.
    version: Option<String>,
    /// Knows no `initialize`, only `server/discover`.
    modern: bool,
    /// Ignores the end of its input and SIGTERM.
    stubborn: bool,
    /// Serves HTTP and writes its address here.
    http: Option<PathBuf>,
    /// Over HTTP: answers 404 for sessions, always.
    forgetful: bool,
    /// Refuses to list its tools as long as there is such a file.
    unlisted_while: Option<PathBuf>,
    /// Never answers `tasks/update` and `tasks/cancel`.
    deaf: bool,
    /// Over HTTP: wants a login, and is its own authorization server.
    oauth: Option<oauth::Rules>,
}

/// The server, as all its threads share it.
struct Server {
    script: Script,
    /// Answers of the client that are waited for, by id.
    waiting: Mutex<HashMap<String, Sender<Value>>>,
    /// Requests that the client has cancelled.
    cancelled: Mutex<Vec<Value>>,
    /// Whether `change` was called.
    changed: Mutex<bool>,
    logins: Mutex<oauth::Known>,
}

/// The way to the client, for one request or for all.
type Out = Arc<Mutex<dyn FnMut(&Value) + Send>>;

fn main() {
    let script = std::env::args().nth(1).unwrap();
    let script: Script = serde_json::from_str(&script).unwrap();
    if script.stubborn {
        // A shell that ignores SIGTERM and its input stands for all that do not end by themselves.
        let mut shell = std::process::Command::new("sh");
        let mut child = shell.args(["-c", "trap '' TERM; while :; do sleep 1; done"]).spawn().unwrap();
        std::fs::write("stubborn.pid", child.id().to_string()).unwrap();
        std::thread::spawn(move || child.wait());
    }
    flood(script.flood);
    if let Some(code) = script.exit {
        eprintln!("cannot find libfancy.so");
        std::process::exit(code);
    }
    let server = Arc::new(Server {
        script,
        waiting: Mutex::default(),
        cancelled: Mutex::default(),
        changed: Mutex::default(),
        logins: Mutex::default(),
    });
    match &server.script.http {
        Some(address) => http::serve(&server, address),
        None => stdio(&server),
    }
}

fn stdio(server: &Arc<Server>) {
    print!("{}{}", server.script.banner, "x".repeat(server.script.rubbish));
    std::io::stdout().flush().unwrap();
    let noise = server.script.noise.clone();
    let out: Out = Arc::new(Mutex::new(move |message: &Value| {
        let mut stdout = std::io::stdout().lock();
        // The client may be gone; then nobody wants to know.
        let _gone = writeln!(stdout, "{noise}{message}").and_then(|()| stdout.flush());
    }));
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (server, out) = (server.clone(), out.clone());
        std::thread::spawn(move || server.take(&message, &out));
    }
    if server.script.stubborn {
        loop {
            std::thread::park();
        }
    }
}

fn flood(bytes: usize) {
    let line = format!("{}\n", "e".repeat(99));
    for _ in 0..bytes / line.len() {
        eprint!("{line}");
    }
}

impl Server {
    /// Takes one message of the client.
    fn take(&self, message: &Value, out: &Out) {
        let Some(method) = message["method"].as_str() else {
            let waiting = self.waiting.lock().unwrap().remove(&message["id"].to_string());
            return waiting.into_iter().for_each(|waiting| drop(waiting.send(message.clone())));
        };
        if method == "notifications/cancelled" {
            self.cancelled.lock().unwrap().push(message["params"]["requestId"].clone());
            return append("cancelled.jsonl", &message["params"]);
        }
        if message["id"].is_null() {
            return;
        }
        let answer = match self.answer(method, message, out) {
            Some(Ok(result)) => json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
            Some(Err((code, text))) => {
                let mut error = json!({"code": code, "message": text});
                if code == tools::PAGE_NEEDED {
                    error["data"] = json!({"elicitations": [tools::page(&message["params"]["arguments"])]});
                }
                json!({"jsonrpc": "2.0", "id": message["id"], "error": error})
            }
            None => return,
        };
        (out.lock().unwrap())(&answer);
    }

    /// The answer to a request; none if there will be none.
    fn answer(&self, method: &str, message: &Value, out: &Out) -> Option<Result<Value, (i64, String)>> {
        let params = &message["params"];
        let capabilities = json!({"tools": {"listChanged": true}});
        let about = json!({"name": "scripted", "version": "1"});
        match method {
            "initialize" if self.script.modern => Some(Err((-32601, "no such method".to_owned()))),
            "initialize" if self.script.mute => None,
            "initialize" => {
                while self.script.wait_while.as_ref().is_some_and(|file| file.exists()) {
                    std::thread::park_timeout(tools::LOOK);
                }
                let asked = params["protocolVersion"].as_str().unwrap_or_default();
                let version = self.script.version.as_deref().unwrap_or(asked);
                Some(Ok(
                    json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": about}),
                ))
            }
            "server/discover" if self.script.modern => Some(Ok(json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
                "serverInfo": about, "ttlMs": 0, "cacheScope": "private",
            }))),
            "ping" => Some(Ok(json!({}))),
            "tools/list" if self.script.unlisted_while.as_ref().is_some_and(|file| file.exists()) => {
                Some(Err((-32603, "the list is being made".to_owned())))
            }
            "tools/list" => {
                let is_first = params["cursor"].is_null();
                if self.script.cursor == "changes" && !is_first && !*self.changed.lock().unwrap() {
                    self.change(out);
                }
                Some(Ok(self.page(params["cursor"].as_str())))
            }
            "tools/call" => {
                flood(self.script.flood);
                tools::call(self, message, out)
            }
            "tasks/get" => Some(Ok(tools::task(params["taskId"].as_str().unwrap_or_default()))),
            "tasks/update" => {
                append("updates.jsonl", params);
                (!self.script.deaf).then(|| Ok(json!({})))
            }
            "tasks/cancel" => {
                append("cancelled.jsonl", params);
                (!self.script.deaf).then(|| Ok(json!({})))
            }
            _ => Some(Err((-32601, "no such method".to_owned()))),
        }
    }

    /// Gets another tool and says so.
    fn change(&self, out: &Out) {
        *self.changed.lock().unwrap() = true;
        (out.lock().unwrap())(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    }

    /// One page of the tools.
    fn page(&self, cursor: Option<&str>) -> Value {
        let mut all = tools::built_in(self.script.only.as_deref());
        all.extend(self.script.tools.clone());
        all.extend(
            (1..=self.script.bulk).map(|n| tools::tool(&format!("bulk_{n}"), "One of many.", &json!({}))),
        );
        if *self.changed.lock().unwrap() {
            all.push(tools::tool("fresh", "It was not there before.", &json!({})));
            for tool in all.iter_mut().filter(|tool| tool["name"] == "note") {
                tool["description"] = json!("Does something else now.");
            }
        }
        let from: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let page = if self.script.page == 0 { all.len() } else { self.script.page };
        let tools: Vec<Value> = all.iter().skip(from).take(page).cloned().collect();
        let next = match self.script.cursor.as_str() {
            "stuck" => Some(page.to_string()),
            "endless" => Some((from + page).to_string()),
            "empty" if from + page >= all.len() => Some(String::new()),
            _ => (from + page < all.len()).then(|| (from + page).to_string()),
        };
        match next {
            Some(next) => json!({"tools": tools, "nextCursor": next}),
            None => json!({"tools": tools}),
        }
    }

    /// Asks the client for something and waits for its answer.
    fn ask(&self, method: &str, params: &Value, out: &Out) -> Value {
        let (sender, receiver) = channel();
        let id = json!(format!("ask-{method}-{:?}", std::thread::current().id()));
        self.waiting.lock().unwrap().insert(id.to_string(), sender);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        (out.lock().unwrap())(&request);
        receiver.recv().unwrap()
    }

    fn is_cancelled(&self, id: &Value) -> bool {
        self.cancelled.lock().unwrap().contains(id)
    }
}

/// Adds a line to a file of the working directory, on disk before this returns.
fn append(file: &str, line: &Value) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    // In one piece: other threads write too.
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
    file.sync_all().unwrap();
}
