//! What is set: keys, options, limits, addresses.

use outlast_protocol::profile::Endpoint;
use outlast_tests::model_server::speak::{TOKENS, pieces};
use outlast_tests::model_server::{Ending, ModelServer, Protocol, Reply, Stop};
use outlast_workers::model;
use serde_json::json;

use super::*;

#[tokio::test]
async fn the_key_goes_to_the_server_and_nowhere_else() {
    let key = std::env::var(KEY_VARIABLE).unwrap();
    for protocol in Protocol::ALL {
        let body = json!({"error": {"message": format!("wrong key {key}!")}}).to_string();
        let error = json!({"error": {"type": "overloaded_error", "message": format!("no room for {key}")}});
        let server = ModelServer::giving([
            Reply::Plain(401, vec![], body),
            Reply::Stream(vec![format!("data: {error}\n\n")], Ending::Close),
        ]);
        let failure = ask_hello(protocol, &server).await.unwrap_err();
        let expected = format!(
            "wrong key [secret {KEY_VARIABLE}]! (the key is that of the environment variable {KEY_VARIABLE})"
        );
        assert!(failure.text.ends_with(&expected), "{}", failure.text);
        assert!(
            ask_hello(protocol, &server)
                .await
                .unwrap_err()
                .text
                .ends_with(&format!("no room for [secret {KEY_VARIABLE}]"))
        );
        let missing = Endpoint { key_env: Some("OUTLAST_TEST_NO_SUCH_KEY".to_owned()), ..endpoint(&server) };
        let input = json!({"messages": [user("hello")]});
        let failure = run(&config(protocol, missing), "model", input.clone()).await.unwrap_err();
        assert_eq!(failure.kind, "Auth");
        assert!(failure.text.contains("OUTLAST_TEST_NO_SUCH_KEY"), "{}", failure.text);
        assert_eq!(server.seen().bodies.len(), 2, "nothing was sent without it");
        let failure =
            run(&config(protocol, Endpoint { key_env: None, ..endpoint(&server) }), "model", input).await;
        assert_eq!(failure.unwrap_err().kind, "Auth");
    }
}

/// An error is cut to a length; what is cut is no key any more.
#[tokio::test]
async fn no_part_of_the_key_is_shown_where_an_error_is_cut() {
    let key = std::env::var(KEY_VARIABLE).unwrap();
    for protocol in Protocol::ALL {
        let before = "x".repeat(1_000 - "the model's server reported an error: ".len() - key.len() / 2);
        let message = format!("{before}{key}");
        let error = json!({"error": {"type": "overloaded_error", "message": message}});
        let event = |text: String| Reply::Stream(vec![text], Ending::Close);
        let json_type = vec![("content-type", "application/json".to_owned())];
        for reply in [
            Reply::Plain(500, vec![], error.to_string()),
            Reply::Plain(500, vec![], message.clone()),
            Reply::Plain(200, json_type, error.to_string()),
            event(format!("data: {error}\n\n")),
            event(format!("event: error\ndata: {}\n\n", json!({"message": message}))),
            event(format!("event: error\ndata: {message}\n\n")),
        ] {
            let server = ModelServer::giving([reply]);
            let failure = ask_hello(protocol, &server).await.unwrap_err();
            assert!(!failure.text.contains(&key[..key.len() / 2 - 5]), "{protocol:?}: {}", failure.text);
        }
    }
}

#[tokio::test]
async fn every_attempt_of_an_operation_has_the_same_idempotency_key() {
    for protocol in Protocol::ALL {
        let server = ModelServer::start(|_| Reply::Text("ok".to_owned()));
        let asking = activity(&config(protocol, endpoint(&server)), "generate");
        for (op, attempt) in [("1", 1), ("1", 2), ("2", 1)] {
            let task =
                Task { input: json!({"prompt": "x"}), key: format!("run/{op}"), attempt, ..Task::default() };
            asking.run(TaskContext::alone(task)).await.unwrap();
        }
        let seen = server.seen();
        let keys: Vec<Option<&String>> = seen.headers.iter().map(|all| all.get("idempotency-key")).collect();
        match protocol {
            Protocol::Chat | Protocol::Responses => {
                assert!(keys[0].is_some() && keys[0] == keys[1] && keys[1] != keys[2], "{keys:?}");
                assert!(keys.iter().flatten().all(|key| !key.contains("run")), "{keys:?}");
            }
            // It knows no such header.
            Protocol::Anthropic => assert_eq!(keys, [None; 3]),
        }
    }
}

#[tokio::test]
async fn options_are_added_to_what_is_sent() {
    for (protocol, option, tokens) in [
        (Protocol::Chat, "reasoning_effort", "max_tokens"),
        (Protocol::Responses, "reasoning", "max_output_tokens"),
        (Protocol::Anthropic, "thinking", "max_tokens"),
    ] {
        let server = ModelServer::start(|_| Reply::Text("{}".to_owned()));
        let options = json!({option: {"type": "adaptive"}, "output_config": {"effort": "high"}});
        let mut options = options.as_object().unwrap().clone();
        if protocol != Protocol::Anthropic {
            options.remove("output_config");
        }
        let set = Endpoint { options, max_tokens: Some(77), ..endpoint(&server) };
        let record = json!({"type": "object", "properties": {}});
        run(&config(protocol, set), "extract", json!({"prompt": "x", "schema": record})).await.unwrap();
        let body = server.seen().bodies[0].clone();
        assert_eq!((&body[option], &body[tokens]), (&json!({"type": "adaptive"}), &json!(77)), "{body}");
        if protocol == Protocol::Anthropic {
            let output = &body["output_config"];
            assert_eq!(
                (&output["effort"], &output["format"]["type"]),
                (&json!("high"), &json!("json_schema"))
            );
        }
        let own = json!({"messages": []}).as_object().unwrap().clone();
        let refused = config(protocol, Endpoint { options: own, ..endpoint(&server) });
        let error = model::activities(&refused).err().unwrap();
        assert!(error.contains("\"messages\""), "{error}");
    }
}

#[tokio::test]
async fn models_without_reasoning_are_not_asked_for_it() {
    for (name, asked) in [("gpt-4.1-mini", false), ("openai/gpt-4o", false), ("gpt-5", true), ("o3", true)] {
        let server = ModelServer::giving([Reply::Text("ok".to_owned())]);
        let named = Endpoint { name: name.to_owned(), ..endpoint(&server) };
        run(&config(Protocol::Responses, named), "generate", json!({"prompt": "x"})).await.unwrap();
        assert_eq!(!server.seen().bodies[0]["include"].is_null(), asked, "{name}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_overloaded() {
    let server = ModelServer::giving([]);
    for protocol in Protocol::ALL {
        let nowhere = Endpoint { url: "http://127.0.0.1:1/v1".to_owned(), ..endpoint(&server) };
        let input = json!({"messages": [user("hello")]});
        let failure = run(&config(protocol, nowhere), "model", input).await.unwrap_err();
        assert_eq!((failure.kind.as_str(), failure.retryable), ("Overloaded", true));
        assert!(!failure.text.contains("127.0.0.1"), "{}", failure.text);
        assert_eq!(ask(protocol, &server, &[]).await.unwrap_err().kind, "BadRequest");
    }
}

#[tokio::test]
async fn absurd_counts_of_a_server_break_nothing() {
    for protocol in Protocol::ALL {
        let all = pieces(protocol, "m-1", &[text("ok")], Stop::End);
        let absurd: Vec<String> = all
            .iter()
            .map(|piece| {
                [TOKENS.0, TOKENS.1, TOKENS.2].iter().fold(piece.clone(), |piece, count| {
                    piece.replace(&format!("\":{count}"), &format!("\":{}", u64::MAX))
                })
            })
            .collect();
        let server = ModelServer::giving([Reply::Stream(absurd, Ending::Close)]);
        let done =
            run(&config(protocol, endpoint(&server)), "generate", json!({"prompt": "x"})).await.unwrap();
        assert_eq!(done.value, "ok", "{protocol:?}");
        assert_eq!(done.usage.unwrap()["output_tokens"], json!(u64::MAX), "{protocol:?}");
    }
}
