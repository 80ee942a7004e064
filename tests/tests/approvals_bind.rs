//! An approval counts for what a person was shown: the call, the files that it names or changes, and where it runs. What has changed
//! until the call is made is refused as `ApprovalStale`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use outlast_tests::model_server::{KEY, ModelServer, Reply, last_text, messages};
use outlast_tests::process::Process;
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

/// Makes a script that leaves a word in `log`.
fn script(path: &Path, word: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\necho {word} >> log\n")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Asks for a call, and returns the question.
fn ask(world: &World, run: &str, tool: &str, args: &Value) -> Value {
    world.begin("Looked", run, &json!({"name": tool, "args": args}));
    world.questions(run, 1)[0].clone()
}

/// Approves what a question shows, and returns what became of the call.
fn approve(world: &World, run: &str, question: &Value) -> Value {
    let body = json!({"question": question["id"], "choice": "approve", "shown": question["shown"]});
    let answer = world.post(&format!("/v1/runs/{run}/answers"), &body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    world.outcome(run)["value"].clone()
}

fn assert_stale(became: &Value, what: &str) {
    assert_eq!(became["kind"], "ApprovalStale", "{became}");
    let text = became["text"].as_str().unwrap();
    assert!(text.contains("not run: ") && text.contains(what), "{what}: {text}");
}

/// Case APR-08: the script that an approved command runs is another one than when the person was asked, over a kill of everything too.
#[test]
fn a_script_that_was_changed_after_the_question_is_not_run() {
    let world = World::with_flows();
    let work = world.work();
    let mut server = world.host(&["flows/looked.flow"]);
    for (run, command, changed) in [
        ("direct", "./direct.sh", "direct.sh"),
        ("by-shell", "sh by-shell.sh now", "by-shell.sh"),
        ("deep", "cd deep && ./deep.sh", "deep/deep.sh"),
        ("quoted", "sh -c './quoted.sh && true' > out", "quoted.sh"),
    ] {
        script(&work.join(changed), "good");
        let question = ask(&world, run, "shell", &json!({ "command": command }));
        assert!(question["show"]["seen"]["files"][changed]["hash"].is_string(), "it is shown: {question}");
        script(&work.join(changed), "evil");
        server.murder();
        world.kill(Role::Tool);
        server = world.host(&[]);
        assert_eq!(world.questions(run, 1)[0], question, "the question is the same after a kill");
        assert_stale(&approve(&world, run, &question), changed);
    }
    assert_eq!((world.file("log"), world.file("deep/log")), (String::new(), String::new()));
    let question = ask(&world, "again", "shell", &json!({"command": "sh direct.sh"}));
    std::fs::write(work.join("other.sh"), "echo other").unwrap();
    assert_eq!(approve(&world, "again", &question)["ok"], true, "asked anew, it runs as it is now");
    assert_eq!(world.file("log"), "evil\n");
    drop(server);
}

#[test]
fn a_file_that_was_changed_after_its_difference_was_shown_is_not_overwritten() {
    let world = World::with_flows();
    let _server = world.host(&["flows/looked.flow"]);
    let lines = |second: &str| format!("1\n{second}\n3\n4\n5\n6\n7\nX\n");
    world.write("edited", &lines("2"));
    world.write("there", "one\n");
    let edit = json!({"path": "edited", "old": "X", "new": "Y"});
    let write = |path: &str| json!({"path": path, "text": "new\n"});
    let near = ask(&world, "near", "edit", &edit);
    let there = ask(&world, "there", "write", &write("there"));
    let absent = ask(&world, "absent", "write", &write("absent"));
    world.write("edited", &lines("2").replace('6', "other"));
    world.write("there", "two\n");
    world.write("absent", "somebody's\n");
    assert_stale(&approve(&world, "near", &near), "the lines around the text to replace");
    assert_stale(&approve(&world, "there", &there), "there");
    assert_stale(&approve(&world, "absent", &absent), "absent");
    assert_eq!((world.file("there"), world.file("absent")), ("two\n".into(), "somebody's\n".into()));
    let far = ask(&world, "far", "edit", &edit);
    world.write("edited", &lines("another line, which the difference does not show").replace('6', "other"));
    assert_eq!(approve(&world, "far", &far)["ok"], true);
    assert!(world.file("edited").contains("another line") && world.file("edited").ends_with("Y\n"));
    let unchanged = ask(&world, "unchanged", "write", &write("there"));
    assert_eq!(approve(&world, "unchanged", &unchanged)["ok"], true);
    assert_eq!(world.file("there"), "new\n");
}

#[test]
fn a_path_that_leads_elsewhere_after_the_question_is_not_followed() {
    let world = World::with_flows();
    let work = world.work();
    let _server = world.host(&["flows/looked.flow"]);
    for folder in ["one", "two"] {
        std::fs::create_dir(work.join(folder)).unwrap();
    }
    symlink("one", work.join("link")).unwrap();
    let question = ask(&world, "r", "append", &json!({"path": "link/log", "line": "x"}));
    assert_eq!(question["show"]["seen"]["path"], "one/log");
    std::fs::remove_file(work.join("link")).unwrap();
    symlink("two", work.join("link")).unwrap();
    assert_stale(&approve(&world, "r", &question), "where the path leads");
    assert_eq!(world.file("two/log"), "");
}

/// Starts a tool worker by hand in a folder of the working directory.
fn worker_in(world: &World, folder: &str) -> Process {
    let directory = world.work().join(folder);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("x.sh"), "echo here >> log\n").unwrap();
    Process::start(world.command(&["worker", "tool"]).current_dir(directory))
}

/// The question was asked where one worker works, and another one elsewhere takes the task.
#[test]
fn a_command_is_not_run_in_another_environment_than_was_shown() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/looked.flow"]);
    let mut here = worker_in(&world, "here");
    let command = json!({"command": "sh x.sh"});
    let (stale, fine) = (ask(&world, "stale", "shell", &command), ask(&world, "fine", "shell", &command));
    assert_eq!(approve(&world, "fine", &fine)["ok"], true);
    here.murder();
    let _there = worker_in(&world, "there");
    assert_stale(&approve(&world, "stale", &stale), "the working directory");
    assert_eq!((world.file("here/log"), world.file("there/log")), ("here\n".into(), String::new()));
}

/// The built-in agent: its model is told what has changed, and what it asks for then is asked about as it is now.
#[test]
fn the_agent_asks_anew_about_what_has_changed() {
    let model = ModelServer::start(|body| match messages(body).last() {
        Some(last) if last["role"] == "user" => Reply::Call("shell", json!({"command": "./deploy.sh"})),
        Some(_) if last_text(body, "tool").contains("deploy.sh") => {
            Reply::Call("shell", json!({"command": "./deploy.sh"}))
        }
        Some(_) | None => Reply::Text("deployed".to_owned()),
    });
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    script(&world.work().join("deploy.sh"), "good");
    let mut chat = world.start(&["chat"]);
    chat.say("deploy");
    let shown = chat.line("what it rests on", |line| line.contains("as it is now: deploy.sh, "));
    script(&world.work().join("deploy.sh"), "checked");
    chat.say("y");
    let anew = chat.line("the next question", |line| line.contains("as it is now: deploy.sh, "));
    assert_ne!(shown, anew, "another hash");
    let told = model.conversations().last().unwrap().last().unwrap()["content"].to_string();
    assert!(
        told.contains("this has changed: deploy.sh") && told.contains("asked about as it is now"),
        "{told}"
    );
    assert_eq!(world.file("log"), "");
    chat.say("y");
    chat.line("the end", |line| line.contains("deployed"));
    assert_eq!(world.file("log"), "checked\n");
}
