//! Which words of a person mean what to a flow: the message that text becomes, the message that stops, the parameter that begins.

use outlast_dsl::machine::{FieldDef, Flow, Type};
use outlast_protocol::requests::Send;
use outlast_protocol::run::WaitingFor;
use serde_json::json;

/// How a flow is talked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Voice {
    /// The message type and field that text becomes.
    say: Option<(String, String)>,
    /// The message that stops what goes on.
    stop: Option<String>,
    /// The message that shortens the conversation.
    compact: Option<String>,
    /// The parameter that the first text becomes.
    pub(super) first: Option<String>,
    /// Parameters that would have to be given besides.
    pub(super) missing: Vec<String>,
}

impl Voice {
    /// Reads it off a flow.
    pub(super) fn of(flow: &Flow) -> Voice {
        let lone_text = |fields: &[FieldDef]| match fields {
            [field] if field.ty == Type::Text => Some(field.name.clone()),
            [_] | [] | [..] => None,
        };
        let say = flow.messages.iter().filter(|message| !message.now);
        let say = say.filter_map(|message| Some((message.name.clone(), lone_text(&message.fields)?))).next();
        let bare = |name: &str| {
            let found =
                flow.messages.iter().find(|message| message.name == name && message.fields.is_empty());
            found.map(|message| message.name.clone())
        };
        let needed = flow.params.iter().filter(|p| p.default.is_none() && !matches!(p.ty, Type::Option(_)));
        let first = needed.clone().find(|param| param.ty == Type::Text).map(|param| param.name.clone());
        let missing = needed.map(|param| param.name.clone()).filter(|name| Some(name) != first.as_ref());
        let (stop, compact, missing) = (bare("Stop"), bare("Compact"), missing.collect());
        Voice { say, stop, compact, first, missing }
    }

    /// Guesses it for a run whose text is not at hand: by the messages that it waits for.
    pub(super) fn guessed(waiting: Option<&WaitingFor>) -> Voice {
        let name = match waiting {
            Some(WaitingFor::Message { types }) => types.iter().find(|name| *name != "closed").cloned(),
            Some(_) | None => None,
        };
        let say = Some((name.unwrap_or_else(|| "Say".to_owned()), "text".to_owned()));
        let stop = Some("Stop".to_owned());
        Voice { say, stop, compact: None, first: None, missing: Vec::new() }
    }

    /// Whether the flow takes text at all.
    pub(super) fn takes_text(&self) -> bool {
        self.say.is_some()
    }

    /// Returns the message that text becomes; none if the flow takes no text.
    pub(super) fn say(&self, text: &str, id: String) -> Option<Send> {
        let (name, field) = self.say.as_ref()?;
        Some(Send { name: name.clone(), value: json!({ field: text }), id: Some(id) })
    }

    /// Returns the message that shortens the conversation; none if the flow has none.
    pub(super) fn compact(&self, id: String) -> Option<Send> {
        Some(Send { name: self.compact.clone()?, value: json!({}), id: Some(id) })
    }

    /// Returns the message that stops what goes on; none if the flow has none.
    pub(super) fn stop(&self, id: String) -> Option<Send> {
        Some(Send { name: self.stop.clone()?, value: json!({}), id: Some(id) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_whose_flow_is_not_known_is_talked_to_by_what_it_waits_for() {
        let types = vec!["closed".to_owned(), "More".to_owned()];
        for (waiting, expected) in [(Some(WaitingFor::Message { types }), "More"), (None, "Say")] {
            let voice = Voice::guessed(waiting.as_ref());
            let said = voice.say("hello", "m-1".to_owned()).unwrap();
            assert_eq!((said.name.as_str(), said.value), (expected, json!({ "text": "hello" })));
            assert_eq!(voice.stop("m-2".to_owned()).unwrap().name, "Stop");
        }
    }
}
