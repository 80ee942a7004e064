//! Tasks that run on at their server: followed, found again, in doubt, cancelled.

use std::process::Command;

use outlast_workers::sdk::{Failure, StoppedWhy, TaskContext};
use serde_json::json;

use crate::bench::{Bench, PATIENCE, bench, bench_of, scripted, task_of};

/// The context of an attempt at `s__task`, class `once`, with the handle of the one before it.
fn resumed() -> TaskContext {
    let mut task = task_of("s__task", &json!({"name": "t"}), "once");
    task.handle = Some(json!({"mcp_task": "t"}));
    TaskContext::alone(task)
}

/// Runs a call that must be broken off, since what it began may go on.
async fn is_broken_off(bench: &Bench, task: TaskContext, what: &str) {
    let ended = tokio::select! {
        ended = bench.run(task.clone()) => Err(ended),
        why = tokio::time::timeout(PATIENCE, task.cancelled()) => Ok(why.unwrap()),
    };
    assert_eq!(ended.map_err(|ended: Result<_, Failure>| ended), Ok(StoppedWhy::BrokenOff), "{what}");
}

#[tokio::test]
async fn a_task_of_the_server_is_followed_and_found_again() {
    let bench = bench_of(&json!({}));
    bench.write("t.Task.gate", "");
    let task = TaskContext::alone(task_of("s__task", &json!({"name": "t"}), "once"));
    let running = tokio::spawn({
        let (tool, task) = (bench.tool(), task.clone());
        async move { tool.run(task).await }
    });
    bench.appears("t.Task.reached").await;
    bench.remove("t.Task.gate");
    let done = tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
    assert_eq!(done.value["text"], "task t is done");
    // Another attempt, which was given the handle of the first, starts nothing.
    let mut again = task_of("s__task", &json!({"name": "t"}), "once");
    again.handle = Some(json!({"mcp_task": "t"}));
    assert_eq!(bench.run(TaskContext::alone(again)).await.unwrap().0, "task t is done");
    assert_eq!(bench.lines("ledger.jsonl").len(), 1);
}

/// Case MCP-01: what a server works on as a task was sent, also if the look at it finds nobody.
#[tokio::test]
async fn a_task_whose_server_dies_is_in_doubt() {
    let bench = bench_of(&json!({}));
    bench.write("t.Task.gate", "");
    let task = TaskContext::alone(task_of("s__task", &json!({"name": "t"}), "once"));
    let seen = task.clone();
    let killed = async {
        // Once it was looked at, the next look is a while away.
        bench.until("a look", || seen.unsent().contains("at it")).await;
        let pid = bench.lines("ledger.jsonl")[0]["pid"].to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    };
    tokio::join!(is_broken_off(&bench, task, "killed between two looks"), killed);
}

#[tokio::test]
async fn a_task_whose_server_cannot_be_had_is_in_doubt() {
    let broken = scripted(&json!({"exit": 1}));
    for (what, servers) in [
        ("it does not start", vec![("s", broken)]),
        ("it is not configured", vec![]),
        ("its entry is wrong", vec![("s", json!({"command": "${NO_SUCH_VARIABLE}"}))]),
        ("it lists nothing", vec![("s", scripted(&json!({"unlisted_while": ".mcp.json", "deaf": true})))]),
    ] {
        let bench = bench(&servers);
        bench.write("t.Task.gate", "");
        let listed = what == "it lists nothing";
        if listed {
            // Nothing is looked up to follow a task.
            bench.remove("t.Task.gate");
            assert_eq!(bench.run(resumed()).await.unwrap().0, "task t is done");
        } else {
            is_broken_off(&bench, resumed(), what).await;
        }
    }
}

/// A tool that has changed since is not called, and what it has begun is not forgotten.
#[tokio::test]
async fn a_task_of_a_tool_that_has_changed_is_followed() {
    let bench = bench_of(&json!({}));
    let mut task = resumed().task().clone();
    task.definition = Some("0".repeat(64));
    assert_eq!(bench.run(TaskContext::alone(task)).await.unwrap().0, "task t is done");
}

#[tokio::test]
async fn a_task_that_asks_is_answered() {
    let bench = bench_of(&json!({}));
    bench.write("t.Asks.gate", "");
    let arguments = json!({"name": "t", "_answers": {"account": "savings"}});
    let call = bench.text("s__task", arguments);
    let open = async {
        bench.until("the answer", || !bench.lines("updates.jsonl").is_empty()).await;
        bench.remove("t.Asks.gate");
    };
    assert_eq!(tokio::join!(call, open).0, "task t is done");
    assert_eq!(bench.lines("updates.jsonl")[0]["inputResponses"]["q"]["content"]["account"], "savings");
}

/// Case MCP-08: a server that hears neither answers nor the word to stop holds up nobody.
#[tokio::test]
async fn a_task_of_a_deaf_server_is_given_up() {
    for gate in ["t.Asks.gate", "t.Task.gate"] {
        let mut entry = scripted(&json!({"deaf": true}));
        entry["timeout"] = json!("50ms");
        let bench = bench(&[("s", entry)]);
        bench.write(gate, "");
        let (text, ok) = bench.call("s__task", json!({"name": "t"})).await;
        assert!(!ok && text.contains("longer than 50ms"), "{gate}: {text}");
        bench.until("the notice", || !bench.lines("cancelled.jsonl").is_empty()).await;
    }
}

/// What no worker could find again is in doubt, and its server is told.
#[tokio::test]
async fn a_task_with_an_overlong_id_is_in_doubt() {
    let bench = bench_of(&json!({}));
    let long = TaskContext::alone(task_of("s__task", &json!({"name": "t".repeat(2_000)}), "once"));
    is_broken_off(&bench, long, "an overlong id").await;
    assert_eq!(bench.lines("cancelled.jsonl").len(), 1);
}

/// What a task says of itself is shown when it is new, not at each look.
#[tokio::test]
async fn a_task_is_not_told_twice_how_it_stands() {
    let bench = bench_of(&json!({}));
    bench.write("t.Asks.gate", "");
    let task = TaskContext::alone(task_of("s__task", &json!({"name": "t"}), "once"));
    let looks = async {
        bench.until("the third look", || bench.lines("updates.jsonl").len() > 2).await;
        bench.remove("t.Asks.gate");
    };
    let (done, ()) = tokio::join!(bench.run(task.clone()), looks);
    let (text, ok) = done.unwrap();
    assert_eq!((task.unsent().as_str(), ok), ("at it\n", true));
    assert_eq!(text.matches("Which account?").count(), 1, "{text}");
}
