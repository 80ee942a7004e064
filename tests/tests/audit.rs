//! `outlast audit`: who did what in all runs, in the order of time, and what was executed again after a kill.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::ledger::Gate;
use outlast_tests::process::until;
use outlast_tests::world::World;
use serde_json::{Value, json};

fn audit(world: &World, arguments: &[&str]) -> Vec<Value> {
    let finished = world.run(&[&["audit", "--json"], arguments].concat());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn facts(records: &[Value]) -> Vec<(&str, &str, &str)> {
    records
        .iter()
        .map(|record| {
            let of = |name: &str| record[name].as_str().unwrap_or_default();
            (of("run"), of("what"), of("by"))
        })
        .collect()
}

#[test]
fn what_people_did_is_told_by_name_and_in_order() {
    let world = World::with_flows();
    let (_server, api) = world.serve(&["--tokens", "--no-workers", "flows/desk.flow"]);
    let token = |name: &str, rights: &[&str]| {
        let made = world.json(&[&["token", "add", name, "--json"], rights].concat());
        api.with_token(made["token"].as_str().unwrap())
    };
    let ci = token("ci", &["--scope", "start,send,control"]);
    let ann = token("ann", &["--scope", "answer", "--role", "clerk"]);
    let begin =
        |id: &str| ci.post("/v1/runs", &json!({"flow": "Desk", "id": id, "input": {"topic": "tea"}})).status;
    assert_eq!((begin("a"), begin("b")), (201, 201));
    assert_eq!(
        ci.post("/v1/runs/a/messages", &json!({"type": "Say", "value": {"text": "hidden text"}})).status,
        202
    );
    assert_eq!(ci.post("/v1/runs/a/messages", &json!({"type": "closed"})).status, 202);
    assert_eq!(ann.post("/v1/runs/a/answers", &json!({"choice": "approve"})).status, 200);
    assert_eq!(world.run(&["fork", "a@2", "--id", "f"]).code, Some(0));
    assert_eq!(ci.post("/v1/runs/b/cancel", &json!({})).status, 202);
    assert_eq!(world.run(&["terminate", "f"]).code, Some(0));
    let all = audit(&world, &[]);
    assert_eq!(
        facts(&all),
        [
            ("a", "started", "token:ci"),
            ("b", "started", "token:ci"),
            ("a", "message", "token:ci"),
            ("a", "closed", ""),
            ("a", "answered", "token:ann"),
            ("f", "forked", "local"),
            ("b", "cancelled", "token:ci"),
            ("f", "terminated", "local"),
        ]
    );
    assert!(all.windows(2).all(|pair| pair[0]["time"].as_str() <= pair[1]["time"].as_str()));
    assert_eq!((&all[4]["role"], &all[4]["detail"]), (&json!("clerk"), &json!("approve")));
    assert!(!json!(all).to_string().contains("hidden text"), "values are not told");
    assert_eq!(facts(&audit(&world, &["--by", "ann"])), [("a", "answered", "token:ann")]);
    assert_eq!(facts(&audit(&world, &["b"])), [("b", "started", "token:ci"), ("b", "cancelled", "token:ci")]);
    let since = all[5]["time"].as_str().unwrap();
    assert!(audit(&world, &["--since", since]).len() <= all.len() - 4);
    assert_eq!(audit(&world, &["--since", "1h"]).len(), all.len());
    let text = world.run(&["audit", "a"]).stdout;
    assert!(text.lines().any(|line| line.contains(" a 1 started by=token:ci detail=Desk")), "{text}");
    for (arguments, code) in
        [(&["audit", "none"][..], 2), (&["audit", "--since", "yesterday"], 2), (&["audit", "../x"], 2)]
    {
        let refused = world.run(arguments);
        assert_eq!(refused.code, Some(code), "{refused:?}");
    }
}

#[test]
fn what_was_executed_again_is_told_with_its_class_and_why() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/repeatable.flow", "flows/approved_once.flow"]);
    let mut worker = world.worker("first", 4);
    world.close("i", Gate::After);
    world.close("o", Gate::Before);
    world.begin("Repeatable", "i", &json!({"name": "i"}));
    world.begin("ApprovedOnce", "o", &json!({"name": "o"}));
    let _asked = world.questions("o", 1);
    assert_eq!(world.run(&["answer", "o", "approve"]).code, Some(0));
    world.reached("i", Gate::After);
    world.reached("o", Gate::Before);
    worker.murder();
    let _asked = world.questions("o", 1);
    assert_eq!(world.run(&["answer", "o", "approve"]).code, Some(0));
    for (name, gate) in [("i", Gate::After), ("o", Gate::Before)] {
        world.open(name, gate);
    }
    let _worker = world.worker("second", 4);
    assert_eq!(
        (world.outcome("i")["kind"].clone(), world.outcome("o")["kind"].clone()),
        (json!("done"), json!("done"))
    );
    let of = |run: &str, what: &str| -> Vec<Value> {
        audit(&world, &[run]).into_iter().filter(|record| record["what"] == what).collect()
    };
    let (lost, done) = (of("i", "lost"), of("i", "done"));
    assert_eq!((lost.len(), done.len()), (1, 1), "{lost:?} {done:?}");
    assert_eq!((&lost[0]["effect"], &lost[0]["attempt"]), (&json!("idempotent"), &json!(1)));
    assert_eq!((&done[0]["effect"], &done[0]["attempt"]), (&json!("idempotent"), &json!(2)));
    assert!(done[0]["again"].as_str().unwrap().starts_with("lost: "), "{done:?}");
    assert_eq!((&done[0]["activity"], &done[0]["detail"]), (&json!("repeatable"), &Value::Null));
    // Each yes of a person is an operation of its own, so neither attempt is a second one.
    let begun = of("o", "begun");
    assert!(begun.len() == 2 && begun.iter().all(|record| record["effect"] == "once"), "{begun:?}");
    // The pages of a history say the same as the whole.
    let whole = world.get("/v1/runs/i/audit");
    let mut pages = Vec::new();
    let mut after = "0".to_owned();
    until("the last page", || {
        let page = world.get(&format!("/v1/runs/i/audit?after={after}&limit=1"));
        pages.extend(page["items"].as_array().unwrap().clone());
        page["next"].as_str().map(|next| next.clone_into(&mut after)).is_none()
    });
    let plain = |records: &Value| records.to_string().replace("lost: worker_gone", "lost");
    assert_eq!(plain(&json!(pages)), plain(&whole["items"]));
}
