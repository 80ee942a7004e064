//! The built-in agent with the tools of MCP servers: given by `--mcp`, approved by a person, asking people themselves.
//!
//! The server is `outlast-test-mcp`. Leaves single calls to the tests of the workers, flows of one's own to `servers.rs`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::model_server::{KEY, ModelServer, Reply, last_text, messages};
use outlast_tests::process::{Process, until};
use outlast_tests::world::{Role, World, binary};
use serde_json::{Value, json};

/// The file that names the servers: not the usual one.
const FILE: &str = "other.json";

/// A model that calls this tool when a person speaks, and repeats what it was answered.
fn calls(tool: &'static str, args: Value) -> ModelServer {
    ModelServer::start(move |body| match messages(body).last() {
        Some(last) if last["role"] == "user" => Reply::Call(tool, args.clone()),
        Some(_) | None => Reply::Text(format!("heard: {}", last_text(body, "tool"))),
    })
}

fn configure(world: &World, servers: &Value) {
    world.write(FILE, &json!({"mcpServers": servers}).to_string());
}

fn world_of(model: &ModelServer) -> World {
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    configure(&world, &json!({"bank": {"command": binary("outlast-test-mcp"), "args": ["{}"]}}));
    world
}

fn id_of(chat: &mut Process) -> String {
    let line = chat.line("the run", |line| line.contains("run agent-"));
    line.split_whitespace().find(|word| word.starts_with("agent-")).unwrap().to_owned()
}

#[test]
fn the_agent_calls_tools_of_servers_after_a_person_said_yes() {
    let model = calls("bank__note", json!({"name": "n"}));
    let world = world_of(&model);
    let mut chat = world.start(&["chat", "--mcp", FILE]);
    chat.say("note it");
    let id = id_of(&mut chat);
    chat.line("the question", |line| line.contains("? Run bank__note?"));
    // The server's tools stand beside the agent's own, and whoever hosts the run next finds the same file.
    let offered = model.seen().bodies[0]["tools"].to_string();
    assert!(offered.contains("\"shell\"") && offered.contains("\"bank__echo\""), "{offered}");
    chat.kill();
    world.kill(Role::Tool);
    let mut chat = world.start(&["chat", "--resume", &id]);
    chat.line("the question", |line| line.contains("? Run bank__note?"));
    chat.say("y");
    chat.line("the answer", |line| line.contains("heard: noted n"));
    assert_eq!(world.file("ledger.jsonl").lines().count(), 1);
}

#[test]
fn what_a_person_wrote_into_the_catalogue_holds_for_the_agent_too() {
    let model = calls("bank__put", json!({"name": "n"}));
    let world = world_of(&model);
    let pulled = world.run(&["tools", "pull", "--mcp", FILE]);
    assert_eq!(pulled.code, Some(0), "{pulled:?}");
    let written = world.file("mcp.tools.json");
    world.write("mcp.tools.json", &written.replace("\"permission\":\"ask\"", "\"permission\":\"allow\""));
    let end = world.run(&["run", "--mcp", FILE, "--task", "put it"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.stdout.contains("heard: noted n"), "{end:?}");
    assert!(end.stderr.contains("tools of MCP servers: bank (23)"), "{end:?}");
}

#[test]
fn servers_that_cannot_be_asked_are_named_and_only_required_ones_stop_the_agent() {
    let model = calls("bank__echo", json!({"text": "hello"}));
    let world = world_of(&model);
    let (bank, away) = (json!({"command": binary("outlast-test-mcp"), "args": ["{}"]}), "no-such-program");
    configure(&world, &json!({"bank": bank, "away": {"command": away}}));
    let end = world.run(&["run", "--mcp", FILE, "--task", "go"]);
    assert!(end.code == Some(0) && end.stdout.contains("heard: hello"), "{end:?}");
    assert!(end.stderr.contains("warning: MCP server away: ") && end.stderr.contains(away), "{end:?}");
    configure(&world, &json!({"bank": bank, "away": {"command": away, "required": true}}));
    let end = world.run(&["run", "--mcp", FILE, "--task", "go"]);
    assert!(end.code == Some(75) && end.stderr.contains("because away is required"), "{end:?}");
    for (arguments, words) in [
        (vec!["run", "--mcp", "missing.json", "--task", "go"], "--mcp missing.json: "),
        (vec!["chat", "--mcp", FILE, "flow.flow"], "cannot be used with"),
    ] {
        let end = world.run(&arguments);
        assert!(end.code == Some(2) && end.stderr.contains(words), "{end:?}");
    }
    world.write(FILE, "{}");
    let end = world.run(&["run", "--mcp", FILE, "--task", "go"]);
    assert!(end.code == Some(2) && end.stderr.contains("other.json names no servers"), "{end:?}");
}

/// Case MCP-09: what a server asks in the middle of a call is a question of the run. It survives a kill of everything, any driver
/// answers it, and the call is made again with the answer.
#[test]
fn what_a_server_asks_is_a_question_that_survives_a_kill() {
    let model = calls("bank__ask", json!({}));
    let world = world_of(&model);
    let mut chat = world.start(&["chat", "--mcp", FILE]);
    chat.say("how much is there?");
    let id = id_of(&mut chat);
    chat.line("the approval", |line| line.contains("? Run bank__ask?"));
    chat.say("y");
    chat.line("the server's question", |line| line.contains("? bank asks: Which account?"));
    chat.kill();
    world.kill(Role::Tool);
    world.kill(Role::Model);
    let shown = world.run(&["show", &id]).stdout;
    assert!(shown.contains("bank asks: Which account?") && shown.contains("account"), "{shown}");
    // Nothing but people can move it: a batch driver says so and leaves.
    let waits = world.run(&["run", "--id", &id]);
    assert_eq!(waits.code, Some(3), "{waits:?}");
    let answered = world.run(&["answer", &id, "answer", "--value", "\"savings\""]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let mut chat = world.start(&["chat", "--resume", &id]);
    let line = chat.line("the answer", |line| line.contains("heard: "));
    assert!(line.contains(r#""action":"accept""#) && line.contains("savings"), "{line}");
    drop(chat);
    let answers =
        model.conversations().last().unwrap().iter().filter(|message| message["role"] == "tool").count();
    assert_eq!(answers, 1, "the model has one answer to its call");
}

/// Case MCP-09: a person who does not say leaves the model with what the call gave.
#[test]
fn a_question_of_a_server_may_be_refused() {
    let model = calls("bank__ask", json!({}));
    let world = world_of(&model);
    let mut chat = world.start(&["chat", "--mcp", FILE]);
    chat.say("how much is there?");
    chat.line("the approval", |line| line.contains("? Run bank__ask?"));
    chat.say("y");
    chat.line("the server's question", |line| line.contains("? bank asks: Which account?"));
    chat.say("n none of its business");
    let line = chat.line("the answer", |line| line.contains("heard: "));
    assert!(line.contains("none of its business"), "{line}");
    until("the agent to be idle", || world.get("/v1/runs?limit=1")["items"][0]["state"] == "Idle");
}

/// Case LIM-04: what a server answers is cut for the model and kept whole, after a kill too.
#[test]
fn a_long_answer_of_a_server_is_kept_whole() {
    let bytes = 5 << 20;
    let model = calls("bank__huge", json!({"bytes": bytes}));
    let world = world_of(&model);
    let mut chat = world.start(&["chat", "--mcp", FILE]);
    chat.say("how much is there?");
    id_of(&mut chat);
    chat.line("the answer", |line| line.contains("heard: "));
    chat.kill();
    world.kill(Role::Tool);
    let seen = model.seen();
    let told = last_text(seen.bodies.last().unwrap(), "tool");
    drop(seen);
    assert!(told.len() < 60_000 && told.contains("bytes left out"), "{}", told.len());
    let at = told.find("blob:").expect("it is named");
    let fetched = world.run(&["blob", &told[at..at + "blob:".len() + 64], "--out", "whole.txt"]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    let whole = world.file("whole.txt");
    assert!(whole.len() == bytes && whole.bytes().all(|byte| byte == b'h'), "{}", whole.len());
}

/// A page that a server wants opened is a question that survives a kill of everything; each driver answers it in a word.
#[test]
fn a_page_that_a_server_wants_opened_is_a_question_with_its_whole_address() {
    let url = "https://accounts.example/login?for=outlast";
    let model = calls("bank__visit", json!({"url": url}));
    let world = world_of(&model);
    let asks =
        |line: &str| line.contains(&format!("bank asks: open a page at accounts.example yourself: <{url}>"));
    let mut chat = world.start(&["chat", "--mcp", FILE]);
    chat.say("log in");
    let id = id_of(&mut chat);
    chat.line("the approval", |line| line.contains("? Run bank__visit?"));
    chat.say("y");
    chat.line("the server's question", asks);
    chat.kill();
    world.kill(Role::Tool);
    let shown = world.run(&["show", &id]).stdout;
    assert!(asks(&shown), "{shown}");
    // The person has opened it, and says so over HTTP by the command, in the chat, or as a program.
    let answered = world.run(&["answer", &id, "answer", "--value", "\"done\""]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let mut chat = world.start(&["chat", "--resume", &id]);
    let line = chat.line("the answer", |line| line.contains("heard: "));
    assert!(line.contains(r#""action":"accept""#), "{line}");
    chat.say("once more");
    chat.line("the approval", |line| line.contains("? Run bank__visit?"));
    chat.say("y");
    chat.line("the server's question", asks);
    chat.say("no");
    let line = chat.line("the answer", |line| line.contains("heard: "));
    assert!(line.contains("does not say"), "{line}");
    chat.kill();
    let visits: Vec<Value> =
        world.file("visits.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let actions: Vec<&Value> = visits.iter().map(|visit| &visit["result"]["action"]).collect();
    assert_eq!(actions, ["cancel", "accept", "cancel"], "{visits:?}");
    let events = world.run(&["events", &id]).stdout;
    assert!(events.contains("done"), "what was answered is recorded: {events}");
}

/// A person said yes to a call of one server; what stands under its name then is another one.
#[test]
fn an_approved_call_does_not_go_to_a_server_whose_entry_was_changed() {
    let model = calls("bank__note", json!({"name": "n"}));
    let world = world_of(&model);
    let mut chat = world.start(&["chat", "--mcp", FILE]);
    chat.say("note it");
    chat.line("the question", |line| line.contains("? Run bank__note?"));
    let other = json!({"command": binary("outlast-test-mcp"), "args": ["{}"], "env": {"ACCOUNT": "other"}});
    configure(&world, &json!({ "bank": other }));
    chat.say("y");
    let line = chat.line("the answer", |line| line.contains("heard: "));
    assert!(line.contains("this has changed: the server's entry in the file that names it"), "{line}");
    assert_eq!(world.file("ledger.jsonl").lines().count(), 0);
}
