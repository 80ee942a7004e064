//! Tests of putting answers together.

use super::*;
use crate::model::error::Kind;
use crate::model::{NOT_RUN, Part, ToolCall};

/// An answer as these tests look at it.
#[derive(Debug)]
struct Assembled {
    text: String,
    calls: Vec<ToolCall>,
    parts: Vec<Part>,
}

fn piece(delta: Json) -> Json {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn end(reason: &str) -> Json {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn assemble(pieces: &[Json]) -> Result<Assembled, ModelError> {
    let mut assembly = Box::new(Assembly::new("chat/m"));
    for piece in pieces {
        assembly.add(piece)?;
    }
    let parts = assembly.heard().answer("9_0")?.parts;
    let (mut text, mut calls) = (String::new(), Vec::new());
    for part in &parts {
        match part {
            Part::Text { text: more } => text.push_str(more),
            Part::ToolUse { call } => calls.push(call.clone()),
            Part::Reasoning { .. } => {}
            Part::Image { .. } | Part::ToolAnswer { .. } => panic!("{part:?} is nothing a model says"),
        }
    }
    Ok(Assembled { text, calls, parts })
}

/// Assembles pieces of calls and writes each call as `id name args`.
fn calls(pieces: &[Json]) -> Vec<String> {
    let pieces: Vec<Json> = pieces.iter().map(|call| piece(json!({"tool_calls": [call]}))).collect();
    let answer = assemble(&[pieces, vec![end("tool_calls")]].concat()).unwrap();
    answer.calls.iter().map(|call| format!("{} {} {}", call.id, call.name, call.args)).collect()
}

fn call(index: Option<u64>, id: &str, name: &str, args: &str) -> Json {
    let mut call = json!({"type": "function", "function": {}});
    if let Some(index) = index {
        call["index"] = index.into();
    }
    if !id.is_empty() {
        call["id"] = id.into();
    }
    if !name.is_empty() {
        call["function"]["name"] = name.into();
    }
    if !args.is_empty() {
        call["function"]["arguments"] = args.into();
    }
    call
}

const TWO: [&str; 2] = ["a read {\"path\":\"x\"}", "b list {\"path\":\"y\"}"];

/// Case MOD-09.
#[test]
fn calls_with_indexes_come_out_whole_however_they_are_cut() {
    let cases: Vec<(&str, Vec<Json>)> = vec![
        (
            "as documented",
            vec![
                call(Some(0), "a", "read", ""),
                call(Some(0), "", "", "{\"path\":"),
                call(Some(0), "", "", "\"x\"}"),
                call(Some(1), "b", "list", ""),
                call(Some(1), "", "", "{\"path\":\"y\"}"),
            ],
        ),
        (
            "interleaved",
            vec![
                call(Some(0), "a", "read", ""),
                call(Some(1), "b", "list", ""),
                call(Some(1), "", "", "{\"path\":"),
                call(Some(0), "", "", "{\"path\":"),
                call(Some(1), "", "", "\"y\"}"),
                call(Some(0), "", "", "\"x\"}"),
            ],
        ),
        (
            "index 0 throughout, ids differ",
            vec![
                call(Some(0), "a", "read", "{\"path\":\"x\"}"),
                call(Some(0), "b", "list", "{\"path\":\"y\"}"),
            ],
        ),
    ];
    for (what, pieces) in cases {
        assert_eq!(calls(&pieces), TWO, "{what}");
    }
}

/// Case MOD-09.
#[test]
fn calls_with_odd_ids_and_names_come_out_whole() {
    let cases: Vec<(&str, Vec<Json>)> = vec![
        (
            "no index, whole calls",
            vec![call(None, "a", "read", "{\"path\":\"x\"}"), call(None, "b", "list", "{\"path\":\"y\"}")],
        ),
        (
            "no index, id in every piece, interleaved",
            vec![
                call(None, "a", "read", "{\"path\":"),
                call(None, "b", "list", "{\"path\":"),
                call(None, "a", "", "\"x\"}"),
                call(None, "b", "", "\"y\"}"),
            ],
        ),
        (
            "name and id repeated",
            vec![
                call(Some(0), "a", "read", "{\"pa"),
                call(Some(0), "a", "read", "th\":\"x\"}"),
                call(Some(1), "b", "list", "{\"path\":\"y\"}"),
                call(Some(1), "b", "list", ""),
            ],
        ),
        (
            "first index 1",
            vec![
                call(Some(1), "a", "read", "{\"path\":\"x\"}"),
                call(Some(2), "b", "list", "{\"path\":\"y\"}"),
            ],
        ),
        (
            "the name in parts",
            vec![
                call(Some(0), "a", "re", ""),
                call(Some(0), "", "ad", ""),
                call(Some(0), "", "", "{\"path\":\"x\"}"),
                call(Some(1), "b", "list", "{\"path\":\"y\"}"),
            ],
        ),
        (
            "the id late",
            vec![
                call(Some(0), "", "read", ""),
                call(Some(0), "a", "", "{\"path\":\"x\"}"),
                call(Some(1), "b", "list", "{\"path\":\"y\"}"),
            ],
        ),
    ];
    for (what, pieces) in cases {
        assert_eq!(calls(&pieces), TWO, "{what}");
    }
}

/// Case MOD-09.
#[test]
fn calls_without_ids_get_some() {
    let without = |index| vec![call(index, "", "read", "{\"n\":1}"), call(index, "", "read", "{\"n\":2}")];
    for index in [None, Some(0)] {
        assert_eq!(
            calls(&without(index)),
            ["call_9_0_1 read {\"n\":1}", "call_9_0_2 read {\"n\":2}"],
            "{index:?}"
        );
    }
    let same = [call(Some(0), "a", "read", "{\"n\":1}"), call(Some(1), "a", "read", "{\"n\":2}")];
    assert_eq!(calls(&same), ["a read {\"n\":1}", "a_2 read {\"n\":2}"]);
    let object = json!({"id": "a", "function": {"name": "read", "arguments": {"n": 1}}});
    assert_eq!(calls(&[object]), ["a read {\"n\":1}"]);
}

#[test]
fn arguments_that_are_no_object_are_marked_and_kept() {
    for (args, problem) in [
        ("{\"a\":", "EOF"),
        ("[1]", "another kind"),
        ("\"text\"", "another kind"),
        ("7", "another kind"),
        ("null", "it is null"),
        ("{\"a\":1,}", "trailing comma"),
        ("{\"a\":1,\"a\":2}", "\"a\" stands twice"),
        ("{\"a\":{\"b\":1,\"b\":2}}", "\"b\" stands twice"),
        ("{\"a\":1} sure!", "trailing characters"),
        ("", "it is empty"),
    ] {
        let answer =
            assemble(&[piece(json!({"tool_calls": [call(Some(0), "a", "read", args)]})), end("tool_calls")]);
        let found = answer.unwrap().calls.remove(0).args;
        let text = found.as_str().unwrap_or_else(|| panic!("{args} came through as {found}"));
        assert!(
            text.starts_with(NOT_RUN) && text.contains(problem) && text.ends_with(args),
            "{args}: {text}"
        );
    }
}

#[test]
fn calls_of_a_cut_answer_are_all_marked() {
    let first = call(Some(0), "a", "write", "{\"path\":\"x\"}");
    let second = call(Some(1), "b", "write", "{\"path\":");
    let answer = assemble(&[piece(json!({"tool_calls": [first, second]})), end("length")]).unwrap();
    for call in &answer.calls {
        assert!(call.args.as_str().unwrap().contains("cut at the token limit"), "{call:?}");
    }
    let text = assemble(&[piece(json!({"content": "long"})), end("length")]).unwrap().text;
    assert_eq!(text, "long\n\n[cut at the token limit]");
}

#[test]
fn what_is_no_whole_answer_is_an_error() {
    let text = || piece(json!({"content": "half"}));
    for (what, pieces, kind) in [
        ("nothing", vec![], Kind::Cut),
        ("no end", vec![text()], Kind::Cut),
        ("half a call", vec![piece(json!({"tool_calls": [call(Some(0), "a", "read", "{")]}))], Kind::Cut),
        ("an empty answer", vec![piece(json!({"content": ""})), end("stop")], Kind::Cut),
        ("white space", vec![piece(json!({"content": " \n"})), end("stop")], Kind::Cut),
        (
            "an error",
            vec![text(), json!({"error": {"message": "overloaded", "code": 529}})],
            Kind::Overloaded,
        ),
        ("an error without choices", vec![text(), json!({"error": "too many requests"})], Kind::RateLimited),
        ("a filter", vec![text(), end("content_filter")], Kind::Refused),
        ("a refusal", vec![piece(json!({"refusal": "I will not"})), end("stop")], Kind::Refused),
        ("an end with an error", vec![text(), end("error")], Kind::Overloaded),
    ] {
        assert_eq!(assemble(&pieces).unwrap_err().kind, kind, "{what}");
    }
}

#[test]
fn an_answer_without_end_is_refused() {
    let mut assembly = Assembly::new("chat/m");
    let error = loop {
        if let Err(error) = assembly.add(&piece(json!({"content": "x".repeat(1 << 20)}))) {
            break error;
        }
    };
    assert_eq!((error.kind, error.retryable), (Kind::Cut, false));
}

#[test]
fn reasoning_is_kept_with_what_goes_back_with_it() {
    let signed = |id: &str, signature: Json| {
        let mut call = call(None, id, "read", "{}");
        if !signature.is_null() {
            call["extra_content"] = json!({"google": {"thought_signature": signature}});
        }
        call
    };
    let detail = |text: &str, more: Json| {
        let mut detail = json!({"type": "reasoning.text", "index": 0, "text": text});
        detail.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        piece(json!({"reasoning_details": [detail]}))
    };
    for (what, pieces, text, data) in [
        (
            "two fields for one thought",
            vec![
                piece(json!({"reasoning_content": "hm", "reasoning": "hm"})),
                piece(json!({"reasoning_content": "m"})),
            ],
            "hmm",
            json!({"by": "chat/m", "field": "reasoning_content"}),
        ),
        (
            "details in pieces",
            vec![detail("a", json!({})), detail("b", json!({"signature": "s1"}))],
            "",
            json!({"by": "chat/m", "details": [{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s1"}]}),
        ),
        (
            "a signature on the second call",
            vec![piece(json!({"tool_calls": [signed("a", Json::Null), signed("b", json!("s2"))]}))],
            "",
            json!({"by": "chat/m", "extra_content": [null, {"google": {"thought_signature": "s2"}}]}),
        ),
    ] {
        let pieces = [pieces, vec![piece(json!({"content": "x"})), end("stop")]].concat();
        let answer = assemble(&pieces).unwrap();
        let kept = Part::Reasoning { text: text.to_owned(), data: Some(data) };
        assert_eq!(answer.parts[0], kept, "{what}");
    }
}
