//! What a server answered, as a model reads it: text of bounded size.
//!
//! Leaves the call to its module. Invariant: whatever blocks an answer has, the text says of each what it is, and is never longer
//! than the output of any other tool.

use std::borrow::Cow;

use serde::Deserialize;

use crate::Json;
use crate::sdk::Mask;
use crate::tools::{Capture, Captured, Reader};

/// The answer to a call, as much of it as is read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    content: Vec<Json>,
    structured_content: Json,
    is_error: Option<bool>,
}

/// The text of a server's answer, and whether it is a result.
pub(super) fn text_of(result: Json) -> (Captured, bool) {
    let content = result.get("content").is_none_or(Json::is_array);
    let how = result.get("isError").is_none_or(|is_error| is_error.is_boolean() || is_error.is_null());
    let fits = result.is_object() && content && how;
    if !fits {
        return (bounded([result.to_string().as_str()]), true);
    }
    // What is large is taken over and not copied. Of what fits nothing is odd any more.
    let answer: Answer = serde_json::from_value(result).unwrap_or_default();
    let mut pieces: Vec<Cow<str>> = answer.content.iter().map(block).collect();
    if !answer.structured_content.is_null() && !says(&pieces, &answer.structured_content) {
        pieces.push(answer.structured_content.to_string().into());
    }
    let text = bounded(pieces.iter().map(Cow::as_ref));
    let text = if text.is_empty() { "(empty)".to_owned().into() } else { text };
    (text, answer.is_error != Some(true))
}

/// Whether a piece of text is the structured part once more, as servers do for old clients: as JSON, or as the one text in it.
fn says(pieces: &[Cow<str>], structured: &Json) -> bool {
    let [piece] = pieces else { return false };
    let only =
        structured.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.values().next());
    only.and_then(Json::as_str).is_some_and(|text| text.trim() == piece.trim())
        || serde_json::from_str::<Json>(piece).is_ok_and(|value| value == *structured)
}

/// One block of an answer. What is no text is named, with its size.
fn block(block: &Json) -> Cow<'_, str> {
    let field = |name: &str| block.get(name).and_then(Json::as_str);
    let data = |what: &str, holder: &Json| {
        let field = |name: &str| holder.get(name).and_then(Json::as_str).unwrap_or_default();
        let bytes = field("data").len().max(field("blob").len()) / 4 * 3;
        format!("[{what} {}, about {bytes} bytes, not shown]", field("mimeType")).into()
    };
    match field("type") {
        Some("text") => field("text").unwrap_or_default().into(),
        Some(kind @ ("image" | "audio")) => data(kind, block),
        Some("resource_link") => format!("[resource {}]", field("uri").unwrap_or_default()).into(),
        Some("resource") => {
            let Some(resource) = block.get("resource") else {
                return "[a resource without content]".into();
            };
            match resource.get("text").and_then(Json::as_str) {
                Some(text) => text.into(),
                None => data("resource", resource),
            }
        }
        Some(_) | None => block.to_string().into(),
    }
}

/// The pieces in lines of their own, as much of them as fits.
pub(super) fn bounded<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Captured {
    let mut capture = Capture::new(Reader::Model, &Mask::default());
    for (at, piece) in pieces.into_iter().enumerate() {
        if at > 0 {
            capture.push(b"\n");
        }
        capture.push(piece.as_bytes());
    }
    capture.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::limits::MODEL_OUTPUT_BYTES;

    #[test]
    fn every_kind_of_block_is_told() {
        for (result, text, ok) in [
            (
                json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
                "a\nb",
                true,
            ),
            (json!({"content": [], "isError": true}), "(empty)", false),
            (
                json!({"content": [{"type": "image", "data": "aaaabbbb", "mimeType": "image/png"}]}),
                "[image image/png, about 6 bytes, not shown]",
                true,
            ),
            (json!({"content": [{"type": "resource", "resource": {"uri": "x", "text": "t"}}]}), "t", true),
            (
                json!({"content": [{"type": "resource_link", "uri": "file:///x"}]}),
                "[resource file:///x]",
                true,
            ),
            (json!({"content": [{"type": "hologram", "x": 1}]}), r#"{"type":"hologram","x":1}"#, true),
            (
                json!({"content": [{"type": "text", "text": "{\"a\": 1}"}], "structuredContent": {"a": 1}}),
                "{\"a\": 1}",
                true,
            ),
            (
                json!({"content": [{"type": "text", "text": "one"}], "structuredContent": {"a": 1}}),
                "one\n{\"a\":1}",
                true,
            ),
            (
                json!({"content": [{"type": "text", "text": "one"}], "structuredContent": {"content": "one\n"}}),
                "one",
                true,
            ),
            (json!({"structuredContent": [1]}), "[1]", true),
            (json!({"toolResult": "old"}), "(empty)", true),
            (json!({"content": "odd"}), r#"{"content":"odd"}"#, true),
        ] {
            let (found, is_result) = text_of(result.clone());
            assert_eq!((found.cut().as_str(), is_result), (text, ok), "{result}");
        }
    }

    /// Case LIM-04: both parts of an answer are bounded, one line or many blocks.
    #[test]
    fn huge_answers_are_cut_in_all_their_parts() {
        let line = "x".repeat(12 << 20);
        let blocks: Vec<Json> =
            (0..10_000).map(|n| json!({"type": "text", "text": format!("block {n}")})).collect();
        for result in [
            json!({"content": [{"type": "text", "text": line}], "structuredContent": {"same": line}}),
            json!({"content": blocks}),
        ] {
            let (text, ok) = text_of(result.clone());
            let text = text.cut();
            assert!(ok && text.len() < MODEL_OUTPUT_BYTES + 1_000, "{}", text.len());
            assert!(text.contains("left out"), "{}", &text[text.len() - 200..]);
        }
    }
}
