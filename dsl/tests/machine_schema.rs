//! The published JSON Schema of machines: it takes every machine that the checker makes, and nothing with a field more or less.
//!
//! Leaves the golden machine to `checking.rs`. Invariant: the schema and the machine's types say the same.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod markdown;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use outlast_dsl::{SourceFile, check};
use serde_json::Value;

use markdown::blocks;

const SCHEMA: &str = include_str!("../machine.schema.json");

fn validator() -> Validator {
    jsonschema::draft202012::new(&serde_json::from_str(SCHEMA).unwrap()).unwrap()
}

fn files(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    for path in all {
        if path.is_dir() {
            files(&path, end, found);
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
}

/// The machines of every flow of the examples and of the language cases that checks by itself.
fn machines() -> Vec<(String, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    let mut paths = Vec::new();
    files(&root.join("../examples"), ".flow", &mut paths);
    files(&root.join("tests/cases"), ".md", &mut paths);
    files(root, ".md", &mut paths);
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".flow") {
            texts.push((name, text));
        } else {
            let programs = blocks(&text).into_iter().filter(|(_, kind, _)| kind.starts_with("flow"));
            texts.extend(programs.map(|(.., program)| (name.clone(), program)));
        }
    }
    let tools = fs::read_to_string(root.join("../examples/dev.tools.json")).unwrap();
    let attachments = BTreeMap::from([("dev.tools.json".to_owned(), tools)]);
    let flows = texts.into_iter().flat_map(|(name, text)| {
        check(&[SourceFile { name: name.clone(), text }], &attachments).flows.into_iter().map(move |flow| {
            (format!("{} of {name}", flow.name), serde_json::to_value(flow.machine).unwrap())
        })
    });
    flows.collect()
}

#[test]
fn every_machine_fits() {
    let (schema, machines) = (validator(), machines());
    assert!(machines.len() > 50, "only {} machines", machines.len());
    for (name, machine) in machines {
        let wrong: Vec<String> =
            schema.iter_errors(&machine).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    }
}

#[test]
fn a_field_more_or_less_does_not_fit() {
    let schema = validator();
    let golden = include_str!("golden/agent.machine.txt").rsplit_once("\nhash ").unwrap().0;
    let machine: Value = serde_json::from_str(golden).unwrap();
    assert!(schema.is_valid(&machine));
    for object in ["", "/flows/0", "/flows/0/states/0", "/activities/0"] {
        let mut more = machine.clone();
        more.pointer_mut(object).unwrap().as_object_mut().unwrap().insert("more".to_owned(), Value::Null);
        assert!(!schema.is_valid(&more), "{object:?} with a field more");
        let mut less = machine.clone();
        less.pointer_mut(object).unwrap().as_object_mut().unwrap().remove(if object.is_empty() {
            "flows"
        } else {
            "name"
        });
        assert!(!schema.is_valid(&less), "{object:?} with a field less");
    }
}
