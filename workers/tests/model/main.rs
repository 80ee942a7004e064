//! The model worker against a server with the habits and faults of real ones.

#![expect(clippy::unwrap_used, reason = "a broken test bench should stop the test")]

mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_workers::sdk::{Activity, Done, Failure, Task, TaskContext};
use outlast_workers::{Json, ModelConfig, OpenAiSettings, Prices, model};
use serde_json::json;
use server::{Answer, Server};

fn settings(server: &Server) -> OpenAiSettings {
    OpenAiSettings {
        url: server.url.clone(),
        name: "m-1".to_owned(),
        idle_ms: Some(300),
        prices: Some(Prices { input: "1".to_owned(), output: "2".to_owned() }),
        ..OpenAiSettings::default()
    }
}

fn activity(settings: OpenAiSettings, name: &str) -> Arc<dyn Activity> {
    let activities = model::activities(&ModelConfig::Openai(settings)).unwrap();
    activities.into_iter().find(|activity| activity.offer().name == name).unwrap()
}

fn context(input: Json) -> TaskContext {
    TaskContext::alone(Task { input, op: "9.0".to_owned(), ..Task::default() })
}

async fn ask(server: &Server, messages: Json, schemas: Json) -> Result<Done, Failure> {
    let task = context(json!({"messages": messages, "schemas": schemas}));
    activity(settings(server), "model").run(task).await
}

async fn ask_hello(server: &Server) -> Result<Done, Failure> {
    ask(server, json!([user("hello")]), json!([])).await
}

fn user(text: &str) -> Json {
    json!({"role": "user", "text": text, "parts": []})
}

fn data(value: &Json) -> String {
    format!("data: {value}\n\n")
}

fn text(text: &str) -> String {
    data(&json!({"model": "m-1-2026", "choices": [{"index": 0, "delta": {"content": text}}]}))
}

fn end(reason: &str) -> String {
    data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

fn done() -> String {
    "data: [DONE]\n\n".to_owned()
}

fn said(what: &str) -> Answer {
    Answer::Stream(vec![text(what), end("stop"), done()])
}

#[tokio::test]
async fn text_is_streamed_counted_and_given_whole() {
    let usage = data(&json!({"choices": [], "usage": {"prompt_tokens": 1_000, "completion_tokens": 250}}));
    let pieces =
        vec![": ping\n\n".to_owned(), text("Hel"), text("lo 日"), text("本"), end("stop"), usage, done()];
    let server = Server::start([Answer::Stream(pieces)]).await;
    let task = context(json!({"messages": [user("hello")], "schemas": []}));
    let done = activity(settings(&server), "model").run(task.clone()).await.unwrap();
    let message =
        json!({"role": "assistant", "text": "Hello 日本", "parts": [{"type": "Text", "text": "Hello 日本"}]});
    assert_eq!(done.value, json!({"type": "Text", "text": "Hello 日本", "message": message}));
    assert_eq!(task.unsent(), "Hello 日本");
    let usage = json!({"model": "m-1-2026", "input_tokens": 1_000, "output_tokens": 250, "stop": "stop"});
    assert_eq!((done.usage.unwrap(), done.cost.as_deref()), (usage, Some("0.0015")));
}

#[tokio::test]
async fn prompts_are_answered_with_text() {
    let server = Server::start([said("a poem")]).await;
    let task = context(json!({"prompt": "write", "system": "be brief"}));
    let done = activity(settings(&server), "generate").run(task).await.unwrap();
    assert_eq!(done.value, "a poem");
    let sent = json!([{"role": "system", "content": "be brief"}, {"role": "user", "content": "write"}]);
    assert_eq!(server.facts().bodies[0]["messages"], sent);
}

#[tokio::test]
async fn calls_go_there_and_back() {
    let call = |index: u64, id: &str, args: &str| {
        data(&json!({"choices": [{"delta": {"tool_calls": [
            {"index": index, "id": id, "function": {"name": "read", "arguments": args}}]}}]}))
    };
    let first = Answer::Stream(vec![
        text("looking"),
        call(0, "a", "{\"path\":\"x\"}"),
        call(1, "b", "{\"path\":"),
        end("tool_calls"),
        done(),
    ]);
    let server = Server::start([first, said("done")]).await;
    let schema = json!({"name": "read", "description": "Reads.", "input": {
        "$schema": "x", "type": "object", "properties": {"path": {"type": ["string", "null"]}, "m": {"const": 1}}}});
    let reply = ask(&server, json!([user("go")]), json!([schema])).await.unwrap().value;
    assert_eq!((&reply["type"], &reply["calls"][0]["args"]), (&json!("Tools"), &json!({"path": "x"})));
    let broken = reply["calls"][1]["args"].as_str().unwrap();
    assert!(broken.starts_with("not run: the arguments are not one JSON object"), "{broken}");
    assert_eq!(reply["message"]["parts"][2]["call"], reply["calls"][1]);
    // The history of that turn is accepted by a strict server, whatever was in it.
    let answer = |id: &str| {
        let result = json!({"id": id, "text": "", "ok": true});
        json!({"role": "tool", "text": "", "parts": [{"type": "ToolAnswer", "result": result}]})
    };
    let history = json!([user("go"), reply["message"], answer("b"), user(" "), user("and?"), user("well?")]);
    ask(&server, history, json!([schema])).await.unwrap();
    let bodies = &server.facts().bodies;
    assert_eq!(bodies[1]["messages"].as_array().unwrap().len(), 5);
    assert_eq!(bodies[1]["messages"][4]["content"], "and?\n\nwell?");
    assert_eq!(bodies[0]["tools"][0]["function"]["parameters"]["properties"]["path"]["type"], "string");
}

#[tokio::test]
async fn errors_come_out_by_kind() {
    for (status, headers, body, kind, retryable, wait) in [
        (429, vec![("retry-after", "7")], "{}", "RateLimited", true, Some(7_000)),
        (429, vec![("retry-after-ms", "250")], "{}", "RateLimited", true, Some(250)),
        (429, vec![], "", "RateLimited", true, Some(1_000)),
        (503, vec![("retry-after", "2")], "busy", "Overloaded", true, Some(2_000)),
        (500, vec![], "<html>", "Overloaded", true, None),
        (401, vec![], "{\"error\":{\"message\":\"bad key\"}}", "Auth", false, None),
        (400, vec![], "{\"error\":{\"code\":\"context_length_exceeded\"}}", "ContextOverflow", false, None),
        (404, vec![], "no such model", "BadRequest", false, None),
        // A redirect would carry the key elsewhere.
        (307, vec![("location", "http://127.0.0.1:1/")], "", "BadRequest", false, None),
    ] {
        let server = Server::start([Answer::Plain(status, headers, body.to_owned())]).await;
        let failure = ask_hello(&server).await.unwrap_err();
        let found = (failure.kind.as_str(), failure.retryable, failure.retry_after);
        assert_eq!(found, (kind, retryable, wait.map(Duration::from_millis)), "{status} {body}");
    }
}

#[tokio::test]
async fn what_is_no_whole_answer_is_never_a_success() {
    let call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"w\"";
    let error = data(&json!({"error": {"message": "Overloaded", "type": "overloaded_error"}}));
    let event = "event: error\ndata: {\"message\":\"too many requests\"}\n\n".to_owned();
    let html = |body: &str| Answer::Plain(200, vec![("content-type", "text/event-stream")], body.to_owned());
    for (what, answer, kind) in [
        ("no end", Answer::Stream(vec![text("half")]), "Cut"),
        ("half a call", Answer::Stream(vec![text("x"), call.to_owned()]), "Cut"),
        ("a broken connection", Answer::Broken(vec![text("half")]), "Cut"),
        ("nothing", Answer::Stream(vec![]), "Cut"),
        ("an empty body", html(""), "Cut"),
        ("pings only", html(": ping\n\n: ping\n\n"), "Cut"),
        ("an empty answer", Answer::Stream(vec![end("stop"), done()]), "Cut"),
        ("no JSON", html("data: oops\n\n"), "Cut"),
        ("an error after text", Answer::Stream(vec![text("half"), error]), "Overloaded"),
        ("an error event", Answer::Stream(vec![text("half"), event]), "RateLimited"),
        ("a filter", Answer::Stream(vec![text("half"), end("content_filter"), done()]), "Refused"),
        (
            "half of a whole answer",
            Answer::Plain(200, vec![("content-type", "application/json")], "{\"cho".into()),
            "Cut",
        ),
    ] {
        let server = Server::start([answer]).await;
        let result = ask_hello(&server).await;
        assert_eq!(result.map_err(|failure| failure.kind), Err(kind.to_owned()), "{what}");
    }
}

#[tokio::test]
async fn silence_ends_the_attempt_and_pings_do_not_count() {
    let stalled = |pieces: Vec<String>| Answer::Stalled(pieces);
    for (what, answer) in [
        ("headers only", stalled(vec![])),
        ("text, then nothing", stalled(vec![text("half")])),
        ("pings for ever", Answer::Endless(": ping\n\n".to_owned())),
        ("empty pieces for ever", Answer::Endless(text(""))),
    ] {
        let server = Server::start([answer]).await;
        let started = Instant::now();
        let failure = ask_hello(&server).await.unwrap_err();
        // A flood of pings may reach the limit of bytes first.
        assert!(["Timeout", "Cut"].contains(&failure.kind.as_str()), "{what}: {failure}");
        assert!(started.elapsed() < Duration::from_secs(10), "{what}: {:?}", started.elapsed());
    }
}

#[tokio::test]
async fn a_whole_answer_needs_no_farewell() {
    let server = Server::start([Answer::Stalled(vec![text("all"), end("stop")])]).await;
    assert_eq!(ask_hello(&server).await.unwrap().value["text"], "all");
}

#[tokio::test]
async fn answers_without_end_are_refused_in_bounded_memory() {
    for (what, answer) in [
        ("text", Answer::Endless(text(&"x".repeat(1 << 16)))),
        ("one line", Answer::Endless("x".repeat(1 << 16))),
        ("one event", Answer::Endless(format!("data: {}\n", "x".repeat(1 << 16)))),
    ] {
        let server = Server::start([answer]).await;
        let patient = OpenAiSettings { idle_ms: Some(60_000), ..settings(&server) };
        let task = context(json!({"messages": [user("hello")]}));
        let failure = activity(patient, "model").run(task).await.unwrap_err();
        assert_eq!((failure.kind.as_str(), failure.retryable), ("Cut", false), "{what}: {failure}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = json!({"model": "m", "choices": [{"message": {"content": "all", "tool_calls": [
        {"id": "a", "function": {"name": "read", "arguments": {"path": "x"}}}]}, "finish_reason": "tool_calls"}]});
    let answer =
        Answer::Plain(200, vec![("content-type", "application/json; charset=utf-8")], body.to_string());
    let server = Server::start([answer]).await;
    let reply = ask_hello(&server).await.unwrap().value;
    assert_eq!((&reply["type"], &reply["calls"][0]["args"]), (&json!("Tools"), &json!({"path": "x"})));
}

#[tokio::test]
async fn the_key_goes_to_the_server_and_nowhere_else() {
    // Any variable that is surely set serves as the key's.
    let key = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let answer =
        Answer::Plain(401, vec![], json!({"error": {"message": format!("wrong key {key}!")}}).to_string());
    let server = Server::start([answer]).await;
    let settings = OpenAiSettings { key_env: Some("CARGO_MANIFEST_DIR".to_owned()), ..settings(&server) };
    let task = || context(json!({"messages": [user("hello")], "schemas": []}));
    let failure = activity(settings.clone(), "model").run(task()).await.unwrap_err();
    assert!(failure.text.contains("wrong key [key]!"), "{}", failure.text);
    assert_eq!(server.facts().keys, [Some(format!("Bearer {key}"))]);
    let missing = OpenAiSettings { key_env: Some("OUTLAST_TEST_NO_SUCH_KEY".to_owned()), ..settings };
    let failure = activity(missing, "model").run(task()).await.unwrap_err();
    assert_eq!(failure.kind, "Auth");
    assert!(failure.text.contains("OUTLAST_TEST_NO_SUCH_KEY"), "{}", failure.text);
    assert_eq!(server.facts().keys.len(), 1, "nothing was sent without it");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_overloaded() {
    let server = Server::start([]).await;
    let settings = OpenAiSettings { url: "http://127.0.0.1:1/v1".to_owned(), ..settings(&server) };
    let task = context(json!({"messages": [user("hello")]}));
    let failure = activity(settings, "model").run(task).await.unwrap_err();
    assert_eq!((failure.kind.as_str(), failure.retryable), ("Overloaded", true));
    assert!(!failure.text.contains("127.0.0.1"), "{}", failure.text);
    assert_eq!(ask(&server, json!([]), json!([])).await.unwrap_err().kind, "BadRequest");
}
