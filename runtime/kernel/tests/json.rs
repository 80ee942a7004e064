//! JSON in and out, type by type: what is read, what is refused and where, and that nothing is lost on the way to a snapshot.

mod common;

use common::build::{field, list};
use common::machines::agent;
use outlast_dsl::machine::{FieldDef, Literal, Machine, Type, TypeDef, TypeIx, TypeKind};
use outlast_kernel::json::{Unknown, canonical_text, json_to_value, schema, value_to_json};
use outlast_kernel::value::Value;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// The agent's machine with a recursive type, an error, and a record with a default.
fn machine() -> Machine {
    let mut machine = agent();
    let tree = list(Type::Named(TypeIx(2)));
    machine.types.push(TypeDef {
        name: "Tree".to_owned(),
        kind: TypeKind::Record(vec![field("name", Type::Text), field("children", tree)]),
    });
    let fields = vec![field("retry_after", Type::Duration)];
    machine.types.push(TypeDef { name: "RateLimited".to_owned(), kind: TypeKind::Error(fields) });
    let default = FieldDef {
        default: Some(outlast_dsl::machine::Expr::Lit(Literal::Int(40))),
        ..field("max", Type::Int)
    };
    let fields = vec![default, field("note", Type::Option(Box::new(Type::Text)))];
    machine.types.push(TypeDef { name: "Filled".to_owned(), kind: TypeKind::Record(fields) });
    machine
}

fn option(ty: Type) -> Type {
    Type::Option(Box::new(ty))
}

#[test]
fn values_of_each_type_read_and_write_back() {
    let machine = machine();
    for (ty, json) in [
        (Type::Nothing, json!(null)),
        (Type::Text, json!("zoë \u{1F600}")),
        (Type::Int, json!(-5)),
        (Type::Float, json!(0.1)),
        (Type::Decimal, json!("0.4")),
        (Type::Bool, json!(true)),
        (Type::Time, json!("2027-03-14T02:30:00.000Z")),
        (Type::Duration, json!("1h30m")),
        (Type::Bytes, json!("Zm9v")),
        (Type::Json, json!({"a": [1, null, {"b": 1.5}]})),
        (Type::Secret, json!({"$secret": "TOKEN"})),
        (list(Type::Int), json!([1, 2])),
        (Type::Map(Box::new(Type::Int)), json!({"a": 1})),
        (option(Type::Int), json!(null)),
        (option(Type::Int), json!(1)),
        (Type::Named(TypeIx(1)), json!({"type": "Text", "text": "x"})),
        (Type::Named(TypeIx(2)), json!({"name": "a", "children": [{"name": "b", "children": []}]})),
        (Type::Named(TypeIx(3)), json!({"type": "RateLimited", "retry_after": "5s"})),
        (Type::Slot(Box::new(Type::Int)), json!({"type": "Done", "value": 1})),
        (Type::Verdict(Box::new(Type::Int)), json!({"type": "CannotTell"})),
        (
            Type::Problem,
            json!({"text": "a", "kind": "b", "activity": null, "retry_after": "5s", "attempts": 1}),
        ),
    ] {
        let value = json_to_value(&machine, &ty, &json, Unknown::Refuse).unwrap();
        assert_eq!(value_to_json(&value), json);
        let stored = serde_json::to_string(&value).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&stored).unwrap(), value, "{stored}");
    }
}

#[test]
fn defaults_and_lenient_forms_become_canonical() {
    let machine = machine();
    for (ty, from, to) in [
        (Type::Named(TypeIx(4)), json!({}), json!({"max": 40, "note": null})),
        (Type::Int, json!(3.0), json!(3)),
        (Type::Decimal, json!(0.40), json!("0.4")),
        (Type::Decimal, json!("1e2"), json!("100")),
        (Type::Float, json!(-0.0), json!(0.0)),
        (Type::Time, json!("2027-03-14T04:30:00+02:00"), json!("2027-03-14T02:30:00.000Z")),
        (Type::Duration, json!("90s"), json!("1m30s")),
        (
            Type::Named(TypeIx(3)),
            json!({"retry_after": "5s"}),
            json!({"type": "RateLimited", "retry_after": "5s"}),
        ),
    ] {
        let value = json_to_value(&machine, &ty, &from, Unknown::Refuse).unwrap();
        assert_eq!(value_to_json(&value), to);
    }
    let more = json!({"type": "Text", "text": "x", "usage": 1});
    let value = json_to_value(&machine, &Type::Named(TypeIx(1)), &more, Unknown::Drop).unwrap();
    assert_eq!(value_to_json(&value), json!({"type": "Text", "text": "x"}));
}

#[test]
fn a_mismatch_says_where_and_what() {
    let machine = machine();
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    for (ty, json, words) in [
        (
            Type::Int,
            json!(9_223_372_036_854_775_808_u64),
            "a whole number of at most 64 bits is expected, found 9223372036854775808",
        ),
        (Type::Int, json!(1.5), "a whole number of at most 64 bits is expected, found 1.5"),
        (Type::Duration, json!("5 minutes"), "a duration such as \"5m\" is expected, found \"5 minutes\""),
        (list(Type::Int), json!([1, "2"]), "[1]: a whole number of at most 64 bits is expected, found \"2\""),
        (
            Type::Named(TypeIx(1)),
            json!({"type": "Tools", "calls": [{"id": "1", "name": 2, "args": null}]}),
            "calls[0].name: text is expected, found 2",
        ),
        (
            Type::Named(TypeIx(1)),
            json!({"type": "Talk"}),
            "type: an object whose \"type\" is \"Tools\" or \"Text\" is expected, found \"Talk\"",
        ),
        (Type::Named(TypeIx(2)), json!({"name": "a"}), "children: a list is expected, found nothing"),
        (
            Type::Named(TypeIx(4)),
            json!({"min": 1}),
            "no field but max, note is expected, found the field \"min\"",
        ),
        (
            Type::Approved(Box::new(Type::Int)),
            json!({"value": 1, "by": ["me"]}),
            "a value that a person or a policy approved in this run is expected, found an object with by, value",
        ),
        (Type::Json, deep, "a value of at most 64 levels is expected, found more"),
    ] {
        let mismatch = json_to_value(&machine, &ty, &json, Unknown::Refuse).unwrap_err();
        assert_eq!(mismatch.to_string(), words);
    }
}

#[test]
fn schemas_say_what_is_read() {
    let machine = machine();
    assert_eq!(
        schema(&machine, &option(Type::Int)),
        json!({"anyOf": [{"type": "integer"}, {"type": "null"}]})
    );
    assert_eq!(
        schema(&machine, &Type::Named(TypeIx(2))),
        json!({"$ref": "#/$defs/Tree", "$defs": {"Tree": {
            "type": "object", "additionalProperties": false, "required": ["name", "children"],
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
        }}})
    );
}

#[test]
fn canonical_text_has_sorted_keys_and_no_spaces() {
    let json = json!({"b": [1, "x\n"], "a": {"d": null, "c": 1.0}});
    assert_eq!(canonical_text(&json), r#"{"a":{"c":1.0,"d":null},"b":[1,"x\n"]}"#);
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map(".{0,4}", inner, 0..5)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_survives_a_snapshot_to_the_bit(json in any_json()) {
        let machine = machine();
        let value = json_to_value(&machine, &Type::Json, &json, Unknown::Drop).unwrap();
        prop_assert_eq!(value_to_json(&value), json);
        let stored = serde_json::to_string(&value).unwrap();
        let read: Value = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(&read, &value);
        prop_assert_eq!((read.size(), read.depth()), (value.size(), value.depth()));
    }

    #[test]
    fn reading_never_panics_and_what_is_read_reads_again(json in any_json(), which in 0..5_usize) {
        let machine = machine();
        let types = [Type::Named(TypeIx(1)), Type::Named(TypeIx(2)), Type::Problem, list(Type::Time), Type::Map(Box::new(Type::Decimal))];
        if let Ok(value) = json_to_value(&machine, &types[which], &json, Unknown::Drop) {
            let again = json_to_value(&machine, &types[which], &value_to_json(&value), Unknown::Refuse).unwrap();
            prop_assert_eq!(again, value);
        }
    }
}
