//! What goes wrong: errors by kind, and streams that are no whole answer.

use std::time::{Duration, Instant};

use outlast_protocol::profile::Endpoint;
use outlast_tests::model_server::speak::pieces;
use outlast_tests::model_server::{Ending, ModelServer, Part, Protocol, Reply, Stop};
use outlast_workers::Json;
use serde_json::json;

use super::*;

#[tokio::test]
async fn errors_come_out_by_kind() {
    let header = |name: &'static str, value: &str| vec![(name, value.to_owned())];
    for (status, headers, body, kind, retryable, wait) in [
        (429, header("retry-after", "7"), "{}", "RateLimited", true, Some(7_000)),
        (429, header("retry-after-ms", "250"), "{}", "RateLimited", true, Some(250)),
        (429, header("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), "{}", "RateLimited", true, Some(0)),
        (429, vec![], "", "RateLimited", true, Some(1_000)),
        (429, vec![], "{\"error\":{\"message\":\"try again in 1m30s.\"}}", "RateLimited", true, Some(90_000)),
        (429, vec![], "{\"error\":{\"code\":\"insufficient_quota\"}}", "RateLimited", false, Some(1_000)),
        (
            529,
            vec![],
            "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
            "Overloaded",
            true,
            None,
        ),
        (503, header("retry-after", "2"), "busy", "Overloaded", true, Some(2_000)),
        (500, vec![], "<html>", "Overloaded", true, None),
        (401, vec![], "{\"error\":{\"message\":\"bad key\"}}", "Auth", false, None),
        (403, vec![], "", "Auth", false, None),
        (400, vec![], "{\"error\":{\"message\":\"API key expired\"}}", "Auth", false, None),
        (400, vec![], "{\"error\":{\"code\":\"context_length_exceeded\"}}", "ContextOverflow", false, None),
        (
            400,
            vec![],
            "{\"error\":{\"message\":\"prompt is too long: 9 > 8\"}}",
            "ContextOverflow",
            false,
            None,
        ),
        (413, vec![], "{\"error\":{\"type\":\"request_too_large\"}}", "ContextOverflow", false, None),
        (400, vec![], "{\"error\":{\"code\":\"content_policy_violation\"}}", "Refused", false, None),
        (404, vec![], "no such model", "BadRequest", false, None),
        (408, vec![], "", "Timeout", true, None),
        // A redirect would carry the key elsewhere.
        (307, header("location", "http://127.0.0.1:1/"), "", "BadRequest", false, None),
    ] {
        for protocol in Protocol::ALL {
            let server = ModelServer::giving([Reply::Plain(status, headers.clone(), body.to_owned())]);
            let failure = ask_hello(protocol, &server).await.unwrap_err();
            let found = (failure.kind.as_str(), failure.retryable, failure.retry_after);
            assert_eq!(
                found,
                (kind, retryable, wait.map(Duration::from_millis)),
                "{protocol:?} {status} {body}"
            );
            assert_eq!(server.seen().bodies.len(), 1, "one attempt is one request");
        }
    }
}

/// Cases STR-02 (c), STR-03: however a stream is cut, it is an error, or the whole answer when only its farewell is missing.
#[tokio::test]
async fn no_cut_of_a_stream_is_an_answer() {
    for protocol in Protocol::ALL {
        let parts = [thought("hm"), text("I will look"), call("a", "{\"path\":\"x\"}"), call("b", "{}")];
        let all = pieces(protocol, "m-1", &parts, Stop::End);
        let server = ModelServer::giving([Reply::Stream(all.clone(), Ending::Close)]);
        let whole = ask_hello(protocol, &server).await.unwrap().value;
        let mut accepted = 0;
        for (count, piece) in all.iter().enumerate() {
            for (end, ending) in [(piece.len() / 2, Ending::Break), (0, Ending::Close), (0, Ending::Break)] {
                let mut cut = all[..count].to_vec();
                cut.push(piece[..end].to_owned());
                let server = ModelServer::giving([Reply::Stream(cut, ending.clone())]);
                match ask_hello(protocol, &server).await {
                    Ok(done) => {
                        accepted += 1;
                        assert_eq!(done.value, whole, "{protocol:?}: {count} pieces, {ending:?}");
                    }
                    Err(failure) => assert_eq!(
                        (failure.kind.as_str(), failure.retryable),
                        ("Cut", true),
                        "{protocol:?}: {count} pieces, {ending:?}"
                    ),
                }
            }
        }
        // Behind the end of the answer come at most two events.
        assert!(accepted <= 6, "{protocol:?}: {accepted} cuts were accepted");
    }
}

/// Cases STR-02 and STR-03.
#[tokio::test]
async fn what_is_no_answer_is_never_a_success() {
    let overloaded = json!({"type": "error", "error": {"message": "Overloaded", "type": "overloaded_error"}});
    for protocol in Protocol::ALL {
        let all = pieces(protocol, "m-1", &[text("half "), call("a", "{\"path\":\"x\"}")], Stop::End);
        let begun = |rest: String| [&all[..all.len() / 2], &[rest]].concat();
        let stream = |pieces| Reply::Stream(pieces, Ending::Close);
        let said = |parts: Vec<Part>, stop| Reply::Says(parts, stop);
        let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow down"}}});
        let json_type = vec![("content-type", "application/json".to_owned())];
        for (what, reply, kind) in [
            ("an error after half a call", stream(begun(format!("data: {overloaded}\n\n"))), "Overloaded"),
            (
                "an error event",
                stream(begun("event: error\ndata: {\"message\":\"too many requests\"}\n\n".into())),
                "RateLimited",
            ),
            ("no JSON", stream(begun("data: oops\n\n".into())), "Cut"),
            ("nothing", stream(vec![]), "Cut"),
            ("an empty body", Reply::Plain(200, vec![], String::new()), "Cut"),
            (
                "pings only",
                stream(vec![": ping\n\n".to_owned(), "event: ping\ndata: {\"type\":\"ping\"}\n\n".into()]),
                "Cut",
            ),
            ("an empty answer", said(vec![], Stop::End), "Cut"),
            ("white space", said(vec![text(" \n")], Stop::End), "Cut"),
            ("a thought and no answer", said(vec![thought("hm")], Stop::End), "Cut"),
            ("a filter", said(vec![text("half")], Stop::Refused), "Refused"),
            ("half of a whole answer", Reply::Plain(200, json_type.clone(), "{\"cho".to_owned()), "Cut"),
            ("an error with 200", Reply::Plain(200, json_type.clone(), overloaded.to_string()), "Overloaded"),
        ] {
            let server = ModelServer::giving([reply]);
            let result = ask_hello(protocol, &server).await;
            assert_eq!(result.map_err(|failure| failure.kind), Err(kind.to_owned()), "{protocol:?}: {what}");
        }
        if protocol == Protocol::Responses {
            let server = ModelServer::giving([stream(begun(format!("data: {failed}\n\n")))]);
            assert_eq!(ask_hello(protocol, &server).await.unwrap_err().kind, "RateLimited");
        }
    }
}

/// What a stream cost before it broke is counted, where the server has said it.
#[tokio::test]
async fn what_a_broken_answer_cost_is_told() {
    let all = pieces(Protocol::Anthropic, "m-1", &[text("I will look "), text("twice")], Stop::End);
    let overloaded = "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n".to_owned();
    for (what, rest, ending, kind) in [
        ("a break", vec![], Ending::Break, "Cut"),
        ("silence", vec![], Ending::Silence, "Timeout"),
        ("an error", vec![overloaded], Ending::Close, "Overloaded"),
        ("no JSON", vec!["data: oops\n\n".to_owned()], Ending::Close, "Cut"),
    ] {
        let begun = [&all[..all.len() / 2], &rest].concat();
        let server = ModelServer::giving([Reply::Stream(begun, ending)]);
        let hasty = Endpoint { idle_ms: Some(300), ..endpoint(&server) };
        let hello = json!({"messages": [user("hello")]});
        let failure = run(&config(Protocol::Anthropic, hasty), "model", hello).await.unwrap_err();
        assert_eq!(failure.kind, kind, "{what}: {failure}");
        assert!(failure.cost.is_some(), "{what}: {failure:?}");
    }
}

/// Case STR-04: silence ends the attempt, and signs of life alone do not keep it.
#[tokio::test]
async fn silence_ends_the_attempt_and_pings_do_not_count() {
    for protocol in Protocol::ALL {
        let all = pieces(protocol, "m-1", &[text("half of it")], Stop::End);
        for (what, begun, ending) in [
            ("headers only", vec![], Ending::Silence),
            ("text, then nothing", all[..all.len() / 2].to_vec(), Ending::Silence),
            ("comments for ever", vec![], Ending::Forever(": ping\n\n".to_owned())),
            (
                "pings for ever",
                vec![],
                Ending::Forever("event: ping\ndata: {\"type\": \"ping\"}\n\n".to_owned()),
            ),
        ] {
            let server = ModelServer::giving([Reply::Stream(begun, ending)]);
            let hasty = config(protocol, Endpoint { idle_ms: Some(200), ..endpoint(&server) });
            let started = Instant::now();
            let failure = run(&hasty, "model", json!({"messages": [user("hello")]})).await.unwrap_err();
            // A flood of pings may reach the limit of bytes first.
            assert!(["Timeout", "Cut"].contains(&failure.kind.as_str()), "{protocol:?}, {what}: {failure}");
            assert!(started.elapsed() < Duration::from_secs(30), "{what}: {:?}", started.elapsed());
        }
    }
}

#[tokio::test]
async fn a_whole_answer_needs_no_farewell() {
    for protocol in [Protocol::Chat, Protocol::Anthropic] {
        let mut all = pieces(protocol, "m-1", &[text("all")], Stop::End);
        all.pop();
        let server = ModelServer::giving([Reply::Stream(all, Ending::Silence)]);
        let hasty = config(protocol, Endpoint { idle_ms: Some(300), ..endpoint(&server) });
        let done = run(&hasty, "model", json!({"messages": [user("hello")]})).await.unwrap();
        assert_eq!(done.value["text"], "all", "{protocol:?}");
    }
}

/// Case STR-05: whatever comes without end ends the attempt at a limit that the error names.
#[tokio::test]
async fn answers_without_end_are_refused_in_bounded_memory() {
    for protocol in Protocol::ALL {
        let long = "x".repeat(1 << 16);
        let all = pieces(protocol, "m-1", &[call("a", &format!("\"{long}\""))], Stop::End);
        // The last large piece but the one that gives the whole: a piece of arguments.
        let is_large = |piece: &&String| piece.len() > 1 << 15 && piece.len() < 1 << 16;
        let grows = all.iter().rfind(is_large).unwrap().clone();
        let begun: Vec<String> = all.iter().take_while(|piece| !is_large(piece)).cloned().collect();
        for (what, begun, piece) in [
            ("arguments", begun, grows),
            ("one line", vec![], long.clone()),
            ("one event", vec![], format!("data: {long}\n")),
        ] {
            let server = ModelServer::giving([Reply::Stream(begun, Ending::Forever(piece))]);
            let failure = ask_hello(protocol, &server).await.unwrap_err();
            assert_eq!((failure.kind.as_str(), failure.retryable), ("Cut", false), "{what}: {failure}");
            assert!(failure.text.contains("more than"), "{protocol:?}, {what}: {failure}");
        }
    }
}

/// Case STR-05: a great many small pieces are one answer.
#[tokio::test]
async fn a_hundred_thousand_pieces_are_one_answer() {
    let words = "a ".repeat(100_000);
    // The protocol whose last event says everything once more.
    let all = pieces(Protocol::Responses, "m-1", &[text(&words)], Stop::End);
    // Few chunks of many events, so that the test measures the reader and not the socket.
    let chunks: Vec<String> = all.chunks(1_000).map(<[String]>::concat).collect();
    let server = ModelServer::giving([Reply::Stream(chunks, Ending::Close)]);
    assert_eq!(ask_hello(Protocol::Responses, &server).await.unwrap().value["text"], json!(words));
}

/// Case MOD-11: whoever has to shorten a conversation is told what takes the room.
#[tokio::test]
async fn an_overflow_says_what_is_large() {
    let body: Json = json!({"error": {"code": "context_length_exceeded", "message": "too long"}});
    let server = ModelServer::giving([Reply::Plain(400, vec![], body.to_string())]);
    let failure =
        ask(Protocol::Chat, &server, &[user("short"), user(&"long ".repeat(1_000))]).await.unwrap_err();
    assert!(
        failure.text.contains("bytes sent: system 0, tools ") && failure.text.contains("the longest 50"),
        "{failure}"
    );
}
