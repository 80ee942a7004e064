//! Lists of tools: pages, names, schemas, changes.

use outlast_workers::Json;
use outlast_workers::sdk::TaskContext;
use outlast_workers::tools::{self, Setting};
use serde_json::json;

use crate::bench::{Bench, bench_of, task_of};

fn names(tools: &[Json]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Case MCP-07: all pages are read, and no cursor makes the list endless.
#[tokio::test]
async fn all_pages_of_a_list_are_read_and_odd_cursors_end_it() {
    for (script, count) in [
        (json!({"only": [], "bulk": 101, "page": 50}), 101),
        (json!({"only": [], "bulk": 1_000, "page": 7}), 1_000),
        (json!({"only": [], "bulk": 100, "page": 50, "cursor": "empty"}), 100),
        (json!({"only": [], "bulk": 30, "page": 10, "cursor": "stuck"}), 20),
        (json!({"only": [], "bulk": 30, "page": 10, "cursor": "endless"}), 30),
    ] {
        let tools = bench_of(&script).tools("s").await.unwrap();
        assert_eq!(tools.len(), count, "{script}");
        let mut once = names(&tools);
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), count, "{script}");
    }
}

/// Case MCP-07: a list that changes while its pages are read has each tool once, the new one with them.
#[tokio::test]
async fn a_list_that_changes_while_it_is_read_is_whole() {
    let bench = bench_of(&json!({"only": ["echo"], "bulk": 100, "page": 50, "cursor": "changes"}));
    let tools = bench.tools("s").await.unwrap();
    let mut once = names(&tools);
    once.sort_unstable();
    once.dedup();
    assert_eq!((tools.len(), once.len()), (102, 102), "{once:?}");
    assert!(once.contains(&"s__fresh"));
    assert_eq!(bench.text("s__fresh", json!({})).await, "fresh");
    assert_eq!(bench.text("s__echo", json!({"text": "on"})).await, "on");
}

#[tokio::test]
async fn odd_tools_cost_themselves_only_and_equal_names_count_once() {
    let tools = json!([
        {"name": "good", "inputSchema": {"type": "object"}},
        {"name": "good", "description": "the same name again", "inputSchema": {"type": "object"}},
        {"description": "no name", "inputSchema": {"type": "object"}},
        {"name": "no_schema"},
        {"name": "true_schema", "inputSchema": true},
        {"name": "with.dots/and space", "inputSchema": {"type": "object"}},
        {"name": "future", "inputSchema": {"type": "object"}, "annotations": [], "execution": {"taskSupport": 7}},
    ]);
    let tools = bench_of(&json!({"only": [], "tools": tools})).tools("s").await.unwrap();
    let found = names(&tools);
    assert_eq!(found[..3], ["s__good", "s__no_schema", "s__true_schema"]);
    assert!(found[3].starts_with("s__with_dots_and_space_"), "{found:?}");
    assert_eq!((found[4], found.len()), ("s__future", 5));
    assert_eq!(tools[0]["description"], "");
    for tool in &tools {
        assert_eq!((&tool["input"]["type"], &tool["effect"]), (&json!("object"), &json!("once")), "{tool}");
    }
}

#[tokio::test]
async fn annotations_of_a_server_become_effect_classes() {
    let tools = bench_of(&json!({"only": ["echo", "put", "note"]})).tools("s").await.unwrap();
    let classes: Vec<(&str, &str, &str)> = tools
        .iter()
        .map(|tool| ["name", "effect", "permission"].map(|field| tool[field].as_str().unwrap()).into())
        .collect();
    let expected =
        [("s__echo", "pure", "allow"), ("s__note", "once", "ask"), ("s__put", "idempotent", "ask")];
    assert_eq!(classes, expected);
}

/// Case MCP-10: tools that come later can be called from then on.
#[tokio::test]
async fn a_changed_list_is_asked_for_again() {
    let bench = bench_of(&json!({}));
    let (text, ok) = bench.call("s__fresh", json!({})).await;
    assert!(!ok && text.contains("no tool s__fresh"), "{text}");
    bench.text("s__change", json!({})).await;
    assert_eq!(bench.text("s__fresh", json!({})).await, "fresh");
}

/// What was recorded, and approved, is what runs: a tool that has changed since is not called.
#[tokio::test]
async fn a_tool_that_changed_since_it_was_recorded_is_not_called() {
    let bench = bench_of(&json!({}));
    let listed = bench.tools("s").await.unwrap();
    let note = listed.iter().find(|tool| tool["name"] == "s__note").unwrap();
    let recorded = outlast_protocol::worker::definition(
        "s__note",
        note["description"].as_str().unwrap(),
        &note["input"],
    );
    for (definition, stale) in [(recorded, false), ("0".repeat(64), true)] {
        let mut task = task_of("s__note", &json!({"name": "n"}), "once");
        task.definition = Some(definition);
        let ended = bench.run(TaskContext::alone(task)).await;
        assert_eq!(
            ended.as_ref().err().map(|failure| failure.kind.as_str()),
            stale.then_some("ApprovalStale"),
            "{ended:?}"
        );
    }
    let mut gone = task_of("s__gone", &json!({}), "once");
    gone.definition = Some("0".repeat(64));
    assert_eq!(bench.run(TaskContext::alone(gone)).await.unwrap_err().kind, "ApprovalStale");
    assert_eq!(bench.lines("ledger.jsonl").len(), 1);
}

/// A change that could not be looked at is not forgotten: what was approved is not what would run.
#[tokio::test]
async fn a_change_is_not_forgotten_when_the_list_cannot_be_had() {
    let bench = bench_of(&json!({"unlisted_while": "closed"}));
    let listed = bench.tools("s").await.unwrap();
    let note = listed.iter().find(|tool| tool["name"] == "s__note").unwrap();
    let mut task = task_of("s__note", &json!({"name": "n"}), "once");
    let described = note["description"].as_str().unwrap();
    task.definition = Some(outlast_protocol::worker::definition("s__note", described, &note["input"]));
    assert!(bench.run(TaskContext::alone(task.clone())).await.is_ok());
    bench.text("s__change", json!({})).await;
    bench.write("closed", "");
    let refused = bench.run(TaskContext::alone(task.clone())).await.unwrap_err();
    assert_eq!(refused.kind, "ServerUnavailable");
    bench.remove("closed");
    assert_eq!(bench.run(TaskContext::alone(task)).await.unwrap_err().kind, "ApprovalStale");
    assert_eq!(bench.lines("ledger.jsonl").len(), 1);
}

/// The rules bind calls of servers' tools in the worker too, whoever has approved them.
#[tokio::test]
async fn a_denied_tool_of_a_server_is_not_called() {
    let bench = bench_of(&json!({}));
    let rules = outlast_protocol::requests::Permissions {
        deny: vec!["s__note".to_owned(), "@idempotent".to_owned()],
        ..Default::default()
    };
    let directory = bench.path().to_path_buf();
    let setting = Setting { directory, rules, ..Setting::default() };
    let bench = Bench { activities: tools::activities(setting).unwrap(), ..bench };
    for (tool, effect, rule) in [
        ("s__note", "once", Some("s__note")),
        ("s__put", "idempotent", Some("@idempotent")),
        ("s__echo", "pure", None),
    ] {
        let task = task_of(tool, &json!({"name": "n", "text": "t"}), effect);
        let (text, ok) = bench.run(TaskContext::alone(task)).await.unwrap();
        assert_eq!(ok, rule.is_none(), "{text}");
        assert!(rule.is_none_or(|rule| text.contains(&format!("denied by the rule {rule}"))), "{text}");
    }
    assert!(bench.lines("ledger.jsonl").is_empty());
}
