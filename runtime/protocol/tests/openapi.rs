//! The published document and the types say the same: each example is read by its type and fits its schema, and each request has the
//! fields of its schema, no more and no less.
//!
//! Leaves routes and answers of a running server to the end-to-end tests.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use outlast_protocol::error::ErrorBody;
use outlast_protocol::{OPENAPI, access, audit, requests, run, schedule, worker};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn document() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

/// Reads a schema's examples as its type, and checks that the type writes what the schema takes.
fn read<T: DeserializeOwned + Serialize>(document: &Value, name: &str) {
    let schema = &document["components"]["schemas"][name];
    let mut rooted = json!({"$ref": format!("#/components/schemas/{name}")});
    rooted["components"] = document["components"].clone();
    let validator = jsonschema::draft202012::new(&rooted).unwrap();
    let examples = schema["examples"].as_array().unwrap_or_else(|| panic!("{name} has no example"));
    for example in examples {
        validator.validate(example).unwrap_or_else(|error| panic!("{name}: {example}: {error}"));
        let value: T = serde_json::from_value(example.clone())
            .unwrap_or_else(|error| panic!("{name}: {example}: {error}"));
        let written = serde_json::to_value(&value).unwrap();
        validator
            .validate(&written)
            .unwrap_or_else(|error| panic!("{name} is written as {written}: {error}"));
        for (field, given) in example.as_object().unwrap() {
            assert!(holds(&written[field], given), "{name}.{field} is lost: {written}");
        }
    }
}

/// Tells whether a value has all of another one; what it has beyond that are defaults.
fn holds(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(all), Value::Object(some)) => {
            some.iter().all(|(name, field)| all.get(name).is_some_and(|it| holds(it, field)))
        }
        (Value::Array(all), Value::Array(some)) => {
            all.len() == some.len() && all.iter().zip(some).all(|(it, item)| holds(it, item))
        }
        (value, part) => value == part,
    }
}

/// Checks that a request knows the fields of its schema: a type that refuses unknown fields tells its own.
fn request<T: DeserializeOwned + Serialize>(document: &Value, name: &str) {
    read::<T>(document, name);
    let Err(refusal) = serde_json::from_value::<T>(json!({"no such field": 1})) else {
        panic!("{name} takes unknown fields");
    };
    let refusal = refusal.to_string();
    let (_, known) = refusal.split_once("expected ").unwrap_or_else(|| panic!("{name}: {refusal}"));
    let known: BTreeSet<&str> = known.split('`').skip(1).step_by(2).collect();
    let schema = &document["components"]["schemas"][name];
    let listed: BTreeSet<&str> =
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(known, listed, "{name}");
    assert_eq!(schema["additionalProperties"], false, "{name}");
}

#[test]
fn requests_have_the_fields_of_their_schemas() {
    let document = document();
    request::<requests::Deploy>(&document, "Deploy");
    request::<requests::Start>(&document, "Start");
    request::<requests::Cancel>(&document, "Cancel");
    request::<requests::Permissions>(&document, "Permissions");
    request::<requests::Send>(&document, "Send");
    request::<requests::Withdraw>(&document, "Withdraw");
    request::<requests::Answer>(&document, "Answer");
    request::<requests::Settle>(&document, "Settle");
    request::<requests::Release>(&document, "Release");
    request::<requests::Migrate>(&document, "Migrate");
    request::<requests::Compatibility>(&document, "Compatibility");
    request::<requests::Retention>(&document, "Retention");
    request::<requests::Fork>(&document, "Fork");
    request::<schedule::Schedule>(&document, "Schedule");
    request::<access::NewToken>(&document, "NewToken");
    request::<worker::Register>(&document, "Register");
    request::<worker::Offer>(&document, "Offer");
    request::<worker::Poll>(&document, "Poll");
    request::<worker::Report>(&document, "Report");
    request::<worker::Progress>(&document, "Progress");
    request::<worker::TaskProgress>(&document, "TaskProgress");
}

#[test]
fn answers_are_what_their_schemas_say() {
    let document = document();
    read::<ErrorBody>(&document, "Error");
    read::<requests::FlowView>(&document, "Flow");
    read::<requests::Accepted>(&document, "Accepted");
    read::<run::RunView>(&document, "Run");
    read::<run::OutcomeView>(&document, "Outcome");
    read::<run::WaitingFor>(&document, "WaitingFor");
    read::<run::QuestionView>(&document, "Question");
    read::<access::TokenView>(&document, "Token");
    read::<access::MadeToken>(&document, "MadeToken");
    read::<audit::AuditRecord>(&document, "AuditRecord");
    read::<worker::Registered>(&document, "Registered");
    read::<worker::Task>(&document, "Task");
    read::<worker::Outcome>(&document, "Ending");
    read::<worker::TaskError>(&document, "TaskError");
    read::<worker::Reported>(&document, "Reported");
    read::<worker::Control>(&document, "Control");
}

#[test]
fn every_code_is_listed_with_its_status() {
    let document = document();
    let codes =
        &document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"];
    let text = document["info"]["description"].as_str().unwrap();
    let mut listed = 0;
    for code in codes.as_array().unwrap() {
        let known: outlast_protocol::Code = serde_json::from_value(code.clone()).unwrap();
        let line = format!("| `{}` | {} |", code.as_str().unwrap(), known.status());
        assert!(text.contains(&line), "the table of codes lacks {line}");
        listed += 1;
    }
    let Err(refusal) = serde_json::from_value::<outlast_protocol::Code>(json!("no such code")) else {
        panic!("any text is a code");
    };
    assert_eq!(refusal.to_string().split('`').count() / 2 - 1, listed, "{refusal}");
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(value: &Value, document: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(to)) = fields.get("$ref") {
                    let found = to.strip_prefix('#').and_then(|to| document.pointer(to));
                    assert!(found.is_some(), "{to} leads nowhere");
                }
                fields.values().for_each(|field| walk(field, document));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, document)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = document();
    walk(&document, &document);
}
