//! Commands of an agent are confined as `outlast.toml` says, and whoever starts a run is told what this machine cannot enforce.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::model_server::{KEY, ModelServer, Reply, messages};
use outlast_tests::process::Finished;
use outlast_tests::world::World;
use serde_json::json;

/// Runs an agent whose model wants to read the runtime's files and to leave the directory; returns what it was told.
fn agent(sandbox: &str) -> (World, Finished, String) {
    let model = ModelServer::start(|body| match messages(body).last() {
        Some(last) if last["role"] == "user" => {
            let command = "echo begun; cat ../data/FORMAT; echo x > ../home/left; echo x > kept; false";
            Reply::Calls(vec![("1", "shell", json!({"command": command}))])
        }
        Some(_) | None => Reply::Text("done".to_owned()),
    });
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    world.write("outlast.toml", &format!("[permissions]\nallow = ['shell']\n[sandbox]\n{sandbox}\n"));
    let ran = world.run(&["run", "--task", "go", "--id", "r"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = model.conversations().pop().unwrap();
    let told = told.iter().find(|message| message["role"] == "tool").unwrap()["content"].to_string();
    (world, ran, told)
}

#[test]
fn an_agents_command_keeps_to_its_directory_or_everybody_is_told() {
    let (world, ran, told) = agent("write = []");
    assert!(told.contains("begun"), "{told}");
    assert_eq!(world.file("kept"), "x\n");
    let left = world.file("../home/left");
    if ran.stderr.contains("commands are not held to files") {
        assert_eq!(left, "x\n");
    } else {
        assert_eq!(left, "", "{told}");
        assert_eq!(told.matches("ermission denied").count(), 2, "{told}");
        assert!(told.contains("see [sandbox] in outlast.toml"), "{told}");
    }
}

#[test]
fn a_sandbox_that_is_off_is_announced() {
    let (world, ran, told) = agent("mode = 'off'");
    assert!(ran.stderr.contains("commands are not confined: [sandbox] mode is off"), "{ran:?}");
    assert_eq!(world.file("../home/left"), "x\n", "{told}");
}

#[test]
fn where_the_sandbox_is_required_a_command_runs_in_it_or_not_at_all() {
    let (world, ran, told) = agent("mode = 'required'");
    if ran.stderr.contains("no command runs") {
        assert!(told.contains("not run: this machine cannot confine it"), "{told}");
        assert_eq!(world.file("kept"), "");
    } else {
        assert!(told.contains("begun"), "{told}");
        assert_eq!(world.file("kept"), "x\n");
    }
}
