//! The rules of `outlast.toml`: what a model may do without a person, with one, and never.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::fs::symlink;

use outlast_tests::model_server::{KEY, ModelServer, Reply, messages};
use outlast_tests::world::World;
use serde_json::{Value, json};

/// A model that makes some calls in its first turn.
fn calls(calls: &'static [(&'static str, &'static str, &'static str)]) -> ModelServer {
    ModelServer::start(move |body| match messages(body).last() {
        Some(last) if last["role"] == "user" => {
            let args = |text: &str| serde_json::from_str(text).unwrap();
            Reply::Calls(calls.iter().map(|(id, name, text)| (*id, *name, args(text))).collect())
        }
        Some(_) | None => Reply::Text("done".to_owned()),
    })
}

/// Runs the built-in agent, and returns what its model was told of its calls.
fn told(model: &ModelServer, rules: &str, prepare: impl FnOnce(&World)) -> (World, Vec<String>) {
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    world.write("outlast.toml", rules);
    prepare(&world);
    let ran = world.run(&["run", "--task", "go", "--id", "r"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(model.seen().faults, Vec::<String>::new());
    let conversation: Vec<Value> = model.conversations().pop().unwrap();
    let results = conversation.iter().filter(|message| message["role"] == "tool");
    let results = results.map(|message| message["content"].as_str().unwrap().to_owned()).collect();
    (world, results)
}

#[test]
fn rules_allow_deny_and_look_where_a_path_leads() {
    let model = calls(&[
        ("1", "shell", r#"{"command": "touch one"}"#),
        ("2", "shell", r#"{"command": "rm one"}"#),
        ("3", "write", r#"{"path": "notes.txt", "text": "kept"}"#),
        ("4", "write", r#"{"path": "link/config", "text": "not kept"}"#),
    ]);
    let rules = "[permissions]\nallow = ['shell(touch *)', 'write(*)']\ndeny = ['shell(rm *)']\n";
    let (world, told) = told(&model, rules, |world| {
        std::fs::create_dir(world.work().join(".git")).unwrap();
        symlink(".git", world.work().join("link")).unwrap();
    });
    assert!(world.work().join("one").exists(), "made without a question, and not removed");
    assert!(told[1].contains("denied by the rule shell(rm *)"), "{told:?}");
    assert_eq!(world.file("notes.txt"), "kept");
    assert!(told[3].contains("a person must be asked (rule write(.git/*))"), "{told:?}");
    assert!(!world.work().join(".git/config").exists());
    let events = world.run(&["events", "r", "--json"]).stdout;
    assert!(events.contains(r#""by":"policy""#), "the history tells who said no: {events}");
}

#[test]
fn a_plan_changes_nothing_and_nobody_is_asked_where_nobody_is() {
    for (mode, told_why) in [("plan", "denied by the rule @"), ("deny-asks", "nobody is asked")] {
        let model = calls(&[
            ("1", "list", r#"{"path": "."}"#),
            ("2", "write", r#"{"path": "notes.txt", "text": "no"}"#),
            ("3", "shell", r#"{"command": "touch one"}"#),
        ]);
        let (world, told) = told(&model, &format!("[permissions]\nmode = '{mode}'\n"), |_| {});
        assert!(told[0].contains("outlast.toml"), "{told:?}");
        assert!(told[1].contains(told_why) && told[2].contains(told_why), "{told:?}");
        assert!(!world.work().join("notes.txt").exists() && !world.work().join("one").exists());
    }
}

#[test]
fn rules_that_cannot_be_read_stop_before_anything_runs() {
    let world = World::with_examples();
    world.write("outlast.toml", "[permissions]\nmode = 'yolo'\n");
    let ran = world.run(&["run", "--task", "go"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("outlast.toml:2: unknown variant `yolo`"), "{ran:?}");
    assert_eq!(world.run(&["runs"]).stdout.trim(), "");
    let start = json!({"flow": "Agent", "input": {"task": "go"}, "permissions": {"deny": ["shell(rm"]}});
    world.write("outlast.toml", "");
    let _server = world.host(&["examples/agent.flow"]);
    let refused = world.post("/v1/runs", &start);
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(refused.body.to_string().contains("its bracket is not closed"), "{}", refused.body);
}

/// Edits in the directory run without a question; what is protected and what is no edit does not.
#[test]
fn edits_are_accepted_but_for_what_is_protected_and_for_commands() {
    let model = calls(&[
        ("1", "write", r#"{"path": "notes.txt", "text": "one two"}"#),
        ("2", "edit", r#"{"path": "there.txt", "old": "old", "new": "new"}"#),
        ("3", "write", r#"{"path": ".env", "text": "TOKEN=x"}"#),
        ("4", "shell", r#"{"command": "touch one"}"#),
    ]);
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    world.write("outlast.toml", "[permissions]\nmode = 'accept-edits'\n");
    world.write("there.txt", "old");
    let arguments = ["run", "--task", "go", "--id", "r"];
    let waits = world.run(&arguments);
    assert_eq!(waits.code, Some(3), "a person has to decide: {waits:?}");
    assert_eq!((world.file("notes.txt"), world.file("there.txt")), ("one two".into(), "new".into()));
    assert_eq!((world.file(".env"), world.work().join("one").exists()), (String::new(), false));
    let shown = world.json(&["show", "r", "--json"]);
    let questions = shown["questions"].as_array().unwrap();
    let about = |name: &str| {
        let found = questions.iter().find(|question| question["show"]["name"] == name).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    assert_eq!(questions.len(), 2, "{shown}");
    for (name, choice) in [("write", "reject"), ("shell", "approve")] {
        let answered = world.run(&["answer", "r", &about(name), choice]);
        assert_eq!(answered.code, Some(0), "{answered:?}");
    }
    let ran = world.run(&arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((world.file(".env"), world.work().join("one").exists()), (String::new(), true));
}
