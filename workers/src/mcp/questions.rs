//! What servers ask people in the middle of calls, and what people have answered.
//!
//! Leaves asking a person to the flow or the model. Invariant: a question is answered only if all that it needs is there and fits its
//! schema; an answer that names neither a field nor its form is used for one question.

use std::collections::VecDeque;

use serde_json::{Map, json};

use super::pages;
use crate::Json;
use crate::limits::{ADDRESS_BYTES_MAX, FORM_BYTES_MAX, INPUT_ROUNDS_MAX, REMARK_CHARS_MAX};
use crate::sdk::Locked;
use crate::tools::quote;

/// What people have answered so far.
#[derive(Debug, Default)]
pub(super) struct Answers {
    fields: Map<String, Json>,
    /// Answers that name no field, oldest first: for questions with one field or none.
    bare: Locked<VecDeque<Json>>,
}

/// One question, as it goes to a person.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    pub(super) text: String,
    /// The JSON Schema of its answer.
    form: Json,
}

/// What a call needs from a person before it is made again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// All that the server asks, with its name.
    pub(crate) question: String,
    /// The JSON Schema of one answer to all of it.
    pub(crate) form: Json,
    /// What the call gave without an answer.
    pub(crate) said: String,
}

impl Answers {
    /// Takes answers: objects give fields, later ones before earlier ones; whatever else is one answer to one question. An answer
    /// that comes with its form, `{"form": …, "value": …}`, is that field of it which needs no name.
    pub(super) fn new(given: impl IntoIterator<Item = Json>) -> Answers {
        let (mut fields, mut bare) = (Map::new(), VecDeque::new());
        for answer in given {
            match named(answer) {
                Json::Object(more) => fields.extend(more),
                other => bare.push_back(other),
            }
        }
        Answers { fields, bare: Locked::new(bare) }
    }

    /// Whether they can answer a question.
    pub(super) fn can(&self, question: &Json) -> bool {
        self.fitting(question).is_some()
    }

    /// Returns what answers a question, and uses it up if it names no field.
    pub(super) fn take(&self, question: &Json) -> Option<Json> {
        let (content, uses_bare) = self.fitting(question)?;
        if uses_bare {
            self.bare.lock().pop_front();
        }
        Some(content)
    }

    /// The content, and whether it comes from an answer without a name.
    fn fitting(&self, question: &Json) -> Option<(Json, bool)> {
        let schema = question.get("requestedSchema")?;
        let empty = Map::new();
        let wanted = schema.get("properties").and_then(Json::as_object).unwrap_or(&empty);
        let mut content: Map<String, Json> = wanted
            .iter()
            .filter_map(|(name, schema)| Some((name.clone(), as_wanted(self.fields.get(name)?, schema)?)))
            .collect();
        let bare = self.bare.lock().front().cloned();
        let mut fields = wanted.iter();
        let uses_bare = match (fields.next(), fields.next(), bare) {
            // It wants no more than a yes, such as "y" or {}.
            (None, _, Some(_)) => true,
            (Some((name, schema)), None, Some(bare)) if content.is_empty() => {
                content.insert(name.clone(), as_wanted(&bare, schema)?);
                true
            }
            (_, _, _) => false,
        };
        let needed = schema.get("required").and_then(Json::as_array).into_iter().flatten();
        let whole = needed.filter_map(Json::as_str).all(|name| content.contains_key(name));
        (whole && (uses_bare || !content.is_empty())).then_some((Json::Object(content), uses_bare))
    }

    /// Whether somebody has tried to answer a question.
    fn tried(&self, question: &Json) -> bool {
        let fields = question.pointer("/requestedSchema/properties").and_then(Json::as_object);
        !self.bare.lock().is_empty()
            || fields.is_some_and(|fields| fields.keys().any(|name| self.fields.contains_key(name)))
    }
}

/// An answer with the name of its field, if it comes with a form that has only one.
fn named(answer: Json) -> Json {
    let parts = answer.as_object().filter(|parts| parts.len() == 2);
    let parts = parts.and_then(|parts| Some((parts.get("form")?, parts.get("value")?)));
    // A field of a form is never an object or null, so this is no answer to a form with these two fields.
    let Some((form, value)) = parts.filter(|(form, _)| form.is_object() || form.is_null()) else {
        return answer;
    };
    let mut fields = form.get("properties").and_then(Json::as_object).into_iter().flatten();
    match (fields.next(), fields.next()) {
        (Some((name, schema)), None) if !value.is_object() => {
            let value = as_wanted(value, schema).unwrap_or_else(|| value.clone());
            json!({name.as_str(): value})
        }
        (_, _) => value.clone(),
    }
}

/// A value as a field wants it, where people and drivers write text; none if it does not fit.
fn as_wanted(value: &Json, schema: &Json) -> Option<Json> {
    let text = || value.as_str().map(str::trim);
    let choices = schema.get("enum").and_then(Json::as_array);
    if let Some(choices) = choices.filter(|choices| !choices.is_empty()) {
        return choices.contains(value).then(|| value.clone());
    }
    let read = || text().and_then(|text| serde_json::from_str::<Json>(text).ok());
    match schema.get("type").and_then(Json::as_str) {
        Some("string") => match value {
            Json::String(_) => Some(value.clone()),
            Json::Number(_) | Json::Bool(_) => Some(value.to_string().into()),
            Json::Null | Json::Array(_) | Json::Object(_) => None,
        },
        Some("boolean") => match text() {
            Some("y" | "yes" | "done" | "opened") => Some(true.into()),
            Some("n" | "no") => Some(false.into()),
            Some(_) => read().filter(Json::is_boolean),
            None => value.is_boolean().then(|| value.clone()),
        },
        Some("integer") => Some(read().unwrap_or_else(|| value.clone())).filter(|n| n.is_i64() || n.is_u64()),
        Some("number") => Some(read().unwrap_or_else(|| value.clone())).filter(Json::is_number),
        Some("array") => value.is_array().then(|| value.clone()),
        Some(_) | None => Some(value.clone()),
    }
}

impl Question {
    /// Reads what a server asks; says so if it was answered in vain.
    pub(super) fn read(asked: &Json, answers: &Answers) -> Question {
        let text = asked.get("message").and_then(Json::as_str).unwrap_or("it does not say what");
        let mut text = quote(text, REMARK_CHARS_MAX);
        // What is certain stands first, so that no message of a server can pretend to be it.
        if let Some((address, host)) = pages::page_of(asked) {
            text = format!(
                "open a page at {host} yourself: <{address}> (then answer \"done\"; \"no\" if you do not want to). It says: {text}"
            );
        }
        if answers.tried(asked) {
            text.push_str(match pages::page_of(asked) {
                Some(_) => " (it asks again after an answer)",
                None => " (what was answered does not fit)",
            });
        }
        let form = asked.get("requestedSchema").filter(|form| form.to_string().len() <= FORM_BYTES_MAX);
        Question { text, form: form.cloned().unwrap_or_default() }
    }

    /// The question and its fields, as a model reads them.
    pub(super) fn in_words(&self) -> String {
        let fields = self.form.get("properties").and_then(Json::as_object);
        let fields = fields.into_iter().flatten().map(|(name, schema)| {
            let kind = schema.get("enum").or_else(|| schema.get("type")).cloned().unwrap_or_default();
            format!("{name}: {kind}")
        });
        let fields = fields.collect::<Vec<_>>().join(", ");
        format!("{} ({})", self.text, quote(&fields, REMARK_CHARS_MAX + 3 * ADDRESS_BYTES_MAX))
    }
}

impl Wanted {
    /// Makes one question of all that a call was asked.
    pub(super) fn new(server: &str, asked: &[Question], said: String) -> Wanted {
        let texts: Vec<&str> = asked.iter().map(|question| question.text.as_str()).collect();
        let form = match asked {
            [one] => one.form.clone(),
            all => {
                let mut fields = Map::new();
                for question in all {
                    let properties = question.form.get("properties").and_then(Json::as_object);
                    fields.extend(properties.cloned().unwrap_or_default());
                }
                json!({"type": "object", "properties": fields})
            }
        };
        Wanted { question: format!("{server} asks: {}", texts.join("; ")), form, said }
    }
}

/// Keeps one more of what a call was asked, unless it is there already or there are too many.
pub(super) fn keep<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if all.len() < INPUT_ROUNDS_MAX as usize && !all.contains(&one) {
        all.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(properties: Json, required: Json) -> Json {
        json!({"message": "Which account?",
            "requestedSchema": {"type": "object", "required": required, "properties": properties}})
    }

    fn taken(answers: Json, question: &Json) -> Option<Json> {
        Answers::new(answers.as_array().unwrap().clone()).take(question)
    }

    #[test]
    fn a_question_is_answered_only_if_all_that_it_needs_is_there() {
        let question =
            asked(json!({"account": {"type": "string"}, "limit": {"type": "integer"}}), json!(["account"]));
        for (answers, content) in [
            (json!([]), None),
            (json!(["a"]), None),
            (json!([{"limit": 3}]), None),
            (json!([{"account": ["a"]}]), None),
            (json!([{"account": "a", "other": 1}]), Some(json!({"account": "a"}))),
            (json!([{"limit": "3"}, {"account": 7}]), Some(json!({"account": "7", "limit": 3}))),
            (json!([{"account": "a"}, {"account": "b"}]), Some(json!({"account": "b"}))),
        ] {
            assert_eq!(taken(answers.clone(), &question), content, "{answers}");
        }
        let question = Question::read(&question, &Answers::default());
        assert_eq!(question.in_words(), r#"Which account? (account: "string", limit: "integer")"#);
    }

    #[test]
    fn a_page_is_named_with_its_host_and_answered_for_this_address_alone() {
        let page =
            |url: &str| pages::with_form(&json!({"mode": "url", "message": "Log in", "url": url})).unwrap();
        let (one, other) = (page("https://a.example/1"), page("https://a.example/2"));
        let question = Question::read(&one, &Answers::default());
        assert!(
            question.text.starts_with("open a page at a.example yourself: <https://a.example/1> (")
                && question.text.ends_with("It says: Log in"),
            "{}",
            question.text
        );
        for (said, opened) in [
            (json!("done"), Some(true)),
            (json!("opened"), Some(true)),
            (json!("y"), Some(true)),
            (json!(true), Some(true)),
            (json!("no"), Some(false)),
            (json!(false), Some(false)),
            (json!("savings"), None),
        ] {
            let answers = Answers::new([json!({"form": question.form, "value": said})]);
            let taken = answers.take(&one);
            assert_eq!(taken, opened.map(|opened| json!({"https://a.example/1": opened})), "{said}");
            assert_eq!(answers.take(&other), None, "{said}");
        }
    }

    #[test]
    fn an_answer_with_its_form_answers_no_other_question() {
        let asked = |field: &str| asked(json!({field: {"type": "string"}}), json!([field]));
        let answers = Answers::new([json!({"form": asked("a")["requestedSchema"], "value": "done"})]);
        assert_eq!(answers.take(&asked("b")), None);
        assert_eq!(answers.take(&asked("a")), Some(json!({"a": "done"})));
        // Several fields are named by the answer itself, and a form without fields wants no more than a yes.
        let answers = Answers::new([
            json!({"form": {"properties": {"a": {}, "b": {}}}, "value": {"b": "x"}}),
            json!({"form": {"properties": {}}, "value": true}),
        ]);
        assert_eq!(answers.take(&asked("b")), Some(json!({"b": "x"})));
        assert_eq!(answers.take(&json!({"requestedSchema": {}})), Some(json!({})));
    }

    #[test]
    fn the_only_field_needs_no_name_and_takes_what_people_write() {
        for (schema, answer, value) in [
            (json!({"type": "string"}), json!("savings"), Some(json!("savings"))),
            (json!({"type": "string"}), json!(42), Some(json!("42"))),
            (json!({"type": "boolean"}), json!("y"), Some(json!(true))),
            (json!({"type": "boolean"}), json!("perhaps"), None),
            (json!({"type": "integer"}), json!("12"), Some(json!(12))),
            (json!({"type": "integer"}), json!(1.5), None),
            (json!({"type": "string", "enum": ["a", "b"]}), json!("b"), Some(json!("b"))),
            (json!({"type": "string", "enum": ["a", "b"]}), json!("c"), None),
        ] {
            let question = asked(json!({"f": schema}), json!(["f"]));
            let expected = value.map(|value| json!({"f": value}));
            assert_eq!(taken(json!([answer]), &question), expected, "{answer} for {schema}");
        }
    }

    #[test]
    fn an_answer_without_a_name_is_used_once() {
        let (sure, again) =
            (asked(json!({}), json!([])), asked(json!({"n": {"type": "integer"}}), json!(["n"])));
        let answers = Answers::new([json!(true), json!(7)]);
        assert_eq!(answers.take(&sure), Some(json!({})));
        assert_eq!(answers.take(&again), Some(json!({"n": 7})));
        assert_eq!(answers.take(&sure), None, "each yes is for one question");
        let wrong = Answers::new([json!("x")]);
        assert!(Question::read(&again, &wrong).text.ends_with("(what was answered does not fit)"));
    }

    #[test]
    fn several_questions_make_one_form() {
        let read = |field: &str| {
            Question::read(&asked(json!({field: {"type": "string"}}), json!([])), &Answers::default())
        };
        let wanted = Wanted::new("bank", &[read("a"), read("b")], "said".to_owned());
        assert_eq!(wanted.question, "bank asks: Which account?; Which account?");
        let names: Vec<&String> = wanted.form["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["a", "b"]);
    }
}
