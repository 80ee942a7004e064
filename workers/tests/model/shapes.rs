//! What comes back: text, calls, values that fit a schema, figures and cost.

use outlast_tests::model_server::{ModelServer, Protocol, Reply, Stop};
use serde_json::json;

use super::*;

#[tokio::test]
async fn text_is_streamed_counted_and_given_whole() {
    for protocol in Protocol::ALL {
        let server = ModelServer::giving([Reply::Text("Hello 日本 and you".to_owned())]);
        let task = context(json!({"messages": [user("hello")], "schemas": []}));
        let done = activity(&config(protocol, endpoint(&server)), "model").run(task.clone()).await.unwrap();
        let said = "Hello 日本 and you";
        let message = json!({"role": "assistant", "text": said, "parts": [{"type": "Text", "text": said}]});
        assert_eq!(done.value, json!({"type": "Text", "text": said, "message": message}), "{protocol:?}");
        assert_eq!(task.unsent(), said, "{protocol:?}");
        let usage = done.usage.unwrap();
        for (name, value) in [("input_tokens", 1_000), ("cached_tokens", 400), ("output_tokens", 250)] {
            assert_eq!(usage[name], value, "{protocol:?}: {usage}");
        }
        let stop = match protocol {
            Protocol::Chat => "stop",
            Protocol::Responses => "completed",
            Protocol::Anthropic => "end_turn",
        };
        assert_eq!((&usage["model"], &usage["stop"]), (&json!("m-1"), &json!(stop)));
        // 600 at 1, 400 at 0.1, 250 at 2, for a million.
        assert_eq!(done.cost.as_deref(), Some("0.00114"), "{protocol:?}");
    }
}

#[tokio::test]
async fn calls_come_whole_and_in_order() {
    for protocol in Protocol::ALL {
        let parts = vec![
            text("looking"),
            call("a", "{\"path\":\"x\"}"),
            call("b", "{\"path\":\"日本\"}"),
            call("c", "{}"),
        ];
        let server = ModelServer::giving([Reply::Says(parts, Stop::End)]);
        let reply = ask_hello(protocol, &server).await.unwrap().value;
        let call = |id: &str, args: Json| json!({"id": id, "name": "read", "args": args});
        let calls = json!([
            call("a", json!({"path": "x"})),
            call("b", json!({"path": "日本"})),
            call("c", json!({}))
        ]);
        assert_eq!((&reply["type"], &reply["calls"]), (&json!("Tools"), &calls), "{protocol:?}");
        assert_eq!(reply["message"]["parts"][1]["call"], calls[0], "{protocol:?}");
    }
}

#[tokio::test]
async fn prompts_are_answered_with_text() {
    for protocol in Protocol::ALL {
        let server = ModelServer::giving([Reply::Text("a poem".to_owned())]);
        let input = json!({"prompt": "write", "system": "be brief"});
        let done = run(&config(protocol, endpoint(&server)), "generate", input).await.unwrap();
        assert_eq!(done.value, "a poem");
        let sent = server.seen().bodies[0].to_string();
        assert!(sent.contains("be brief") && server.seen().faults.is_empty(), "{protocol:?}: {sent}");
    }
}

/// The schema of a Flow record with a text, a number that may be left out, and a variant.
fn invoice() -> Json {
    let variant = |name: &str| json!({"type": "object", "properties": {"type": {"const": name}}, "required": ["type"], "additionalProperties": false});
    json!({"type": "object", "required": ["from", "state"], "additionalProperties": false,
        "properties": {"from": {"type": "string"}, "total": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "state": {"$ref": "#/$defs/State"}},
        "$defs": {"State": {"anyOf": [variant("Paid"), variant("Open")]}}})
}

#[tokio::test]
async fn values_fit_the_schema_that_was_asked_for() {
    let value = json!({"from": "Ann", "total": null, "state": {"type": "Paid"}});
    let list = json!({"type": "array", "items": {"type": "string"}});
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    for protocol in Protocol::ALL {
        for (what, schema, said, expected, held) in [
            ("a record", invoice(), value.to_string(), Ok(value.clone()), true),
            ("a list", list.clone(), "{\"value\": [\"a\"]}".to_owned(), Ok(json!(["a"])), true),
            ("a map", map.clone(), "```json\n{\"a\": 1}\n```".to_owned(), Ok(json!({"a": 1})), false),
            ("prose", invoice(), "It is paid.".to_owned(), Err("Cut".to_owned()), true),
        ] {
            let server = ModelServer::giving([Reply::Text(said)]);
            let input = json!({"prompt": "read it", "schema": schema, "system": "be exact"});
            let done = run(&config(protocol, endpoint(&server)), "extract", input).await;
            let found = done.map(|done| done.value).map_err(|failure| failure.kind);
            assert_eq!(found, expected, "{protocol:?}: {what}");
            let seen = server.seen();
            assert_eq!(seen.faults, Vec::<String>::new(), "{protocol:?}: {what}");
            let body = seen.bodies[0].clone();
            let strict = match protocol {
                Protocol::Chat => body["response_format"]["json_schema"]["strict"] == true,
                Protocol::Responses => body["text"]["format"]["strict"] == true,
                Protocol::Anthropic => body["output_config"]["format"]["type"] == "json_schema",
            };
            assert_eq!(strict, held, "{protocol:?}: {what}: {body}");
            assert!(held || body.to_string().contains("additionalProperties"), "the model is told: {body}");
        }
        let server = ModelServer::giving([]);
        let input = json!({"prompt": "read it", "schema": "Invoice"});
        let failure = run(&config(protocol, endpoint(&server)), "extract", input).await.unwrap_err();
        assert_eq!((failure.kind.as_str(), server.seen().bodies.len()), ("BadInput", 0));
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let args = "{\"path\":\"x\"}";
    for (protocol, body) in [
        (
            Protocol::Chat,
            json!({"model": "m", "choices": [{"message": {"content": "all", "tool_calls": [
            {"id": "a", "function": {"name": "read", "arguments": args}}]}, "finish_reason": "tool_calls"}]}),
        ),
        (
            Protocol::Responses,
            json!({"object": "response", "status": "completed", "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "all"}]},
            {"type": "function_call", "call_id": "a", "name": "read", "arguments": args}]}),
        ),
        (
            Protocol::Anthropic,
            json!({"type": "message", "stop_reason": "tool_use", "content": [
            {"type": "text", "text": "all"}, {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x"}}]}),
        ),
    ] {
        let headers = vec![("content-type", "application/json; charset=utf-8".to_owned())];
        let server = ModelServer::giving([Reply::Plain(200, headers, body.to_string())]);
        let reply = ask_hello(protocol, &server).await.unwrap().value;
        let call = json!([{"id": "a", "name": "read", "args": {"path": "x"}}]);
        assert_eq!((&reply["calls"], &reply["message"]["text"]), (&call, &json!("all")), "{protocol:?}");
    }
}
