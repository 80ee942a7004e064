//! The checker from outside: the example, the standard library.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use outlast_dsl::diag::{Colour, Sources, render};
use outlast_dsl::{Checked, SourceFile, check};

fn example() -> (SourceFile, BTreeMap<String, String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let text = fs::read_to_string(folder.join("agent.flow")).unwrap();
    let tools = fs::read_to_string(folder.join("dev.tools.json")).unwrap();
    let source = SourceFile { name: "agent.flow".to_owned(), text };
    (source, BTreeMap::from([("dev.tools.json".to_owned(), tools)]))
}

fn shown(files: &[SourceFile], checked: &Checked) -> String {
    let mut sources = Sources::default();
    for file in files {
        sources.add(&file.name, &file.text);
    }
    checked.diagnostics.iter().map(|one| render(one, &sources, Colour::Never)).collect()
}

#[test]
fn the_example_checks() {
    let (source, tools) = example();
    let files = [source];
    let checked = check(&files, &tools);
    assert!(checked.diagnostics.is_empty(), "{}", shown(&files, &checked));
    let names: Vec<&str> = checked.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["Agent", "OneTool"]);
    for flow in &checked.flows {
        assert_eq!(flow.machine.first_bad_index(), None);
    }
}

#[test]
fn the_machine_of_the_example_is_the_golden_one() {
    let (source, tools) = example();
    let checked = check(&[source], &tools);
    let agent = &checked.flows[0];
    let mut text = serde_json::to_string_pretty(&agent.machine).unwrap();
    text.push_str(&format!("\nhash {}\n", agent.machine.hash()));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/agent.machine.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "the machine has changed; look at the difference after `UPDATE_GOLDEN=1 cargo nextest run -p outlast-dsl`"
    );
}
