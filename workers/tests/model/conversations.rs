//! What is sent: conversations that no provider refuses, whatever happened to them.

use outlast_protocol::profile::Endpoint;
use outlast_tests::model_server::speak::{heard, sign};
use outlast_tests::model_server::{ModelServer, Protocol, Reply, Stop};
use outlast_tests::random::{Random, repeats};
use outlast_workers::Json;
use serde_json::json;

use super::*;

/// Case MOD-10, same model: what was thought comes back byte for byte, also with calls and in the next turn.
#[tokio::test]
async fn thoughts_go_back_as_they_came() {
    for protocol in Protocol::ALL {
        let parts =
            vec![thought("I must \"read\"\n\u{2028}日本 x"), text("looking"), call("a", "{\"path\":\"x\"}")];
        let server = ModelServer::giving([
            Reply::Says(parts, Stop::End),
            Reply::Text("done".to_owned()),
            Reply::Text("again".to_owned()),
        ]);
        let first = ask(protocol, &server, &[user("go")]).await.unwrap().value["message"].clone();
        let mut history = vec![user("go"), first, answer("a", "A")];
        let second = ask(protocol, &server, &history).await.unwrap().value["message"].clone();
        history.extend([second, user("on")]);
        ask(protocol, &server, &history).await.unwrap();
        assert_eq!(server.seen().faults, Vec::<String>::new(), "{protocol:?}");
    }
}

/// Case MOD-10, switched model: the thoughts of another model are dropped, whole.
#[tokio::test]
async fn thoughts_go_to_no_other_model() {
    for (from, to) in Protocol::ALL.into_iter().flat_map(|from| Protocol::ALL.map(|to| (from, to))) {
        let parts = vec![thought("secret"), text("looking"), call("a", "{\"path\":\"x\"}")];
        let server = ModelServer::giving([Reply::Says(parts, Stop::End), Reply::Text("done".to_owned())]);
        let first = ask(from, &server, &[user("go")]).await.unwrap().value["message"].clone();
        let other = config(to, Endpoint { name: "m-2".to_owned(), ..endpoint(&server) });
        let history = [user("go"), first, answer("a", "A")];
        run(&other, "model", json!({"messages": history})).await.unwrap();
        assert_eq!(server.seen().faults, Vec::<String>::new(), "{from:?} to {to:?}");
        let sent = server.seen().bodies[1].to_string();
        assert!(
            !sent.contains("secret") && !sent.contains(&sign("m-1", "secret")),
            "{from:?} to {to:?}: {sent}"
        );
    }
}

/// Cases MOD-06 and MOD-07: whatever a model gave, the history with it can be sent again.
#[tokio::test]
async fn odd_arguments_are_not_run_and_can_be_sent_again() {
    let odd = [
        "{\"a\":",
        "[1]",
        "\"text\"",
        "7",
        "null",
        "{\"a\":1,}",
        "{\"a\":1,\"a\":2}",
        "{} sure!",
        "{\"a\": \"\u{1}\"}",
        "  ",
        "",
    ];
    for protocol in Protocol::ALL {
        let calls = odd.iter().enumerate().map(|(at, args)| call(&format!("c{at}"), args)).collect();
        let server = ModelServer::giving([Reply::Says(calls, Stop::End), Reply::Text("I see".to_owned())]);
        let reply = ask(protocol, &server, &[user("go")]).await.unwrap().value;
        for (call, given) in reply["calls"].as_array().unwrap().iter().zip(odd) {
            if protocol == Protocol::Anthropic && given.is_empty() {
                // There an input without any piece is `{}`: that is how a call without arguments is written.
                assert_eq!(call["args"], json!({}));
                continue;
            }
            let args = call["args"].as_str().unwrap();
            assert!(
                args.starts_with("not run: the arguments are not one JSON object"),
                "{protocol:?}: {args}"
            );
        }
        let answers = (0..odd.len()).map(|at| answer(&format!("c{at}"), if at % 2 == 0 { "" } else { "no" }));
        let history: Vec<Json> = [user("go"), reply["message"].clone()].into_iter().chain(answers).collect();
        ask(protocol, &server, &history).await.unwrap();
        assert_eq!(server.seen().faults, Vec::<String>::new(), "{protocol:?}");
    }
}

/// Case MOD-08: no call of an answer that was cut is run, complete ones neither.
#[tokio::test]
async fn calls_of_an_answer_that_was_cut_are_marked() {
    for protocol in Protocol::ALL {
        let parts = vec![call("a", "{\"path\":\"x\"}"), call("b", "{\"path\":")];
        let server = ModelServer::giving([
            Reply::Says(parts, Stop::Length),
            Reply::Says(vec![text("half of")], Stop::Length),
            Reply::Says(vec![thought("too long")], Stop::Length),
        ]);
        let reply = ask_hello(protocol, &server).await.unwrap().value;
        for call in reply["calls"].as_array().unwrap() {
            assert!(
                call["args"].as_str().unwrap().contains("cut at the token limit"),
                "{protocol:?}: {call}"
            );
        }
        let said = ask_hello(protocol, &server).await.unwrap().value;
        assert_eq!(said["text"], "half of\n\n[cut at the token limit]", "{protocol:?}");
        let failure = ask_hello(protocol, &server).await.unwrap_err();
        assert_eq!((failure.kind.as_str(), failure.retryable), ("Cut", false), "{protocol:?}: {failure}");
        assert_eq!(failure.cost.as_deref(), Some("0.00114"), "what was thought is paid for");
    }
}

/// Cases MOD-01, MOD-02, MOD-05 and MOD-06: interruptions, stops, queued messages, repeated ids, empty texts, results that are late,
/// missing, double or nobody's, in any order.
#[tokio::test]
async fn no_conversation_is_refused_and_no_word_of_a_user_is_lost() {
    let mut random = Random::from_environment(7);
    let server = ModelServer::start(|_| Reply::Text("ok".to_owned()));
    for round in 0..repeats(150) {
        let (messages, words) = conversation(&mut random);
        for protocol in Protocol::ALL {
            let asked = ask(protocol, &server, &messages).await;
            if words.is_empty() && asked.as_ref().is_err_and(|failure| failure.text.contains("empty")) {
                continue;
            }
            asked.unwrap_or_else(|failure| panic!("round {round}, {protocol:?}: {failure}\n{messages:#?}"));
            let body = server.seen().bodies.pop().unwrap();
            let said: String = heard(&body).into_iter().map(|(_, text)| text + "\n").collect();
            let lost = words.iter().find(|word| !said.contains(word.as_str()));
            assert_eq!(lost, None, "round {round}, {protocol:?}: {body}");
        }
    }
    assert_eq!(server.seen().faults, Vec::<String>::new());
}

/// A conversation in which anything may have gone wrong, and what a user said in it.
fn conversation(random: &mut Random) -> (Vec<Json>, Vec<String>) {
    let (mut messages, mut words) = (Vec::new(), Vec::new());
    let mut open: Vec<String> = Vec::new();
    for at in 0..random.below(9) {
        match random.below(8) {
            0 => messages.push(user(["", " \n"][at as usize % 2])),
            1 | 2 => {
                words.push(format!("word{at}."));
                messages.push(user(&format!("word{at}.")));
            }
            3 => messages.push(json!({"role": "system", "text": format!("rule {at}"), "parts": []})),
            4 | 5 => {
                let mut parts = Vec::new();
                for _ in 0..random.below(4) {
                    // Ids come again, and some are odd.
                    let id = ["a", "b", "", "functions.read:0", "日本"][random.below(5) as usize].to_owned();
                    let args = [json!({"n": at}), json!("{broken"), json!([1]), json!(null)];
                    let args = args[random.below(4) as usize].clone();
                    let name = ["read", "no such/tool", ""][random.below(3) as usize];
                    parts.push(json!({"type": "ToolUse", "call": {"id": id, "name": name, "args": args}}));
                    open.push(id);
                }
                let text = ["", "\n", "said"][random.below(3) as usize];
                messages.push(json!({"role": "assistant", "text": text, "parts": parts}));
            }
            6 => {
                let id = open.pop().unwrap_or_else(|| "nobody".to_owned());
                messages.push(answer(&id, ["", "result"][random.below(2) as usize]));
            }
            _ => {
                for id in std::mem::take(&mut open) {
                    messages.push(answer(&id, "result"));
                }
            }
        }
    }
    (messages, words)
}

/// Case MOD-14: tools are told in a dialect that every provider takes.
#[tokio::test]
async fn tools_are_told_plainly() {
    for protocol in Protocol::ALL {
        let server = ModelServer::giving([Reply::Text("ok".to_owned())]);
        ask_hello(protocol, &server).await.unwrap();
        assert_eq!(server.seen().faults, Vec::<String>::new(), "{protocol:?}");
        let tools = server.seen().bodies[0]["tools"].to_string();
        assert!(
            tools.contains("\"path\":{\"type\":\"string\"}") && tools.contains("\"enum\":[1]"),
            "{tools}"
        );
    }
}

#[tokio::test]
async fn images_are_sent_in_place() {
    for protocol in Protocol::ALL {
        let server = ModelServer::giving([Reply::Text("a cat".to_owned())]);
        let image = |more: Json| {
            let mut part = json!({"type": "Image", "media": "image/png", "data": null, "url": null});
            part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            part
        };
        let parts = json!([{"type": "Text", "text": "What is this?"}, image(json!({"data": "iVBO"})),
            {"type": "Text", "text": "And this?"}, image(json!({"url": "https://example.org/x.png"}))]);
        let message = json!({"role": "user", "text": "What is this?And this?", "parts": parts});
        ask(protocol, &server, &[message]).await.unwrap();
        let seen = server.seen();
        assert_eq!(seen.faults, Vec::<String>::new(), "{protocol:?}");
        let list = if protocol == Protocol::Responses { "input" } else { "messages" };
        let sent = seen.bodies[0][list][0]["content"].as_array().unwrap();
        let order: Vec<bool> =
            sent.iter().map(|part| part["type"].as_str().unwrap().contains("image")).collect();
        assert_eq!(order, [false, true, false, true], "{protocol:?}: {sent:?}");
        let text = seen.bodies[0].to_string();
        assert!(text.contains("iVBO") && text.contains("https://example.org/x.png"), "{text}");
    }
}
