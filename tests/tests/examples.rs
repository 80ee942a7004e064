//! The examples as their reader would try them: with the scripted model, and with a model behind HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

use outlast_tests::model_server::{KEY, ModelServer, Reply, count, last_text};
use outlast_tests::process::{Finished, Process};
use outlast_tests::world::World;
use serde_json::{Value, json};

const FILES: [&str; 3] = ["examples/agent.flow", "examples/deploy.flow", "examples/report.flow"];

fn succeeded(finished: &Finished) -> &Finished {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished
}

/// Reads stdout as the result of a flow.
fn result(finished: &Finished) -> Value {
    serde_json::from_str(&succeeded(finished).stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

#[test]
fn the_report_is_written_with_nothing_but_the_file() {
    let world = World::with_examples();
    let end = world.run(&["run", "examples/report.flow"]);
    assert_eq!(result(&end), json!({"type": "Written", "path": "report.md", "notes": 8, "missing": []}));
    assert!(end.stderr.contains("using the scripted model of examples/report.script.json"), "{end:?}");
    let report = world.file("report.md");
    assert!(report.starts_with("# What happened in examples/notes\n\n8 notes.\n"), "{report}");
    assert!(report.contains("- **2026-03-09-mail.md**: A mail service that answered late"), "{report}");
    assert_eq!(world.file("report.log").lines().count(), 8);
}

#[test]
fn a_report_of_an_empty_folder_says_so() {
    let world = World::with_examples();
    std::fs::create_dir(world.work().join("empty")).unwrap();
    let end = world.run(&["run", "examples/report.flow", "--input", r#"{"folder": "empty"}"#]);
    assert_eq!(result(&end), json!({"type": "NothingThere", "folder": "empty"}));
}

#[test]
fn a_report_of_a_missing_folder_fails_and_says_why() {
    let world = World::with_examples();
    let end = world.run(&["run", "examples/report.flow", "--input", r#"{"folder": "nowhere"}"#]);
    assert_eq!(end.code, Some(1), "{end:?}");
    assert!(end.stderr.contains("nowhere"), "{end:?}");
}

#[test]
fn a_deployment_asks_then_goes_live_and_the_next_one_goes_back_if_it_is_broken() {
    let world = World::with_examples();
    let end = deploy(&world, "1.1.0");
    assert!(end.stderr.contains("using the scripted model of examples/deploy.script.json"), "{end:?}");
    assert!(end.stderr.contains("The notes page is easier to read"), "the notes are not shown: {end:?}");
    assert_eq!(world.file("deploy/current/index.html"), "", "it switched before it was allowed to");
    follow_advice(&world, &end, "approve");
    let live = result(&world.run(&["run", "--id", "v1.1.0"]));
    assert_eq!((&live["type"], &live["version"]), (&json!("Live"), &json!("1.1.0")), "{live}");
    assert!(world.file("deploy/current/index.html").contains("<title>"));
    assert_eq!(world.file("deploy/released.log").lines().count(), 1);

    world.write("examples/site/index.html", "no title");
    let end = deploy(&world, "1.2.0");
    follow_advice(&world, &end, "approve");
    let back = result(&world.run(&["result", "v1.2.0", "--wait", "1m"]));
    assert_eq!((&back["type"], &back["to"]), (&json!("WentBack"), &json!("1.1.0")), "{back}");
    assert!(world.file("deploy/current/index.html").contains("<title>"));
    assert_eq!(world.file("deploy/released.log").lines().count(), 1, "the broken one was announced");
}

#[test]
fn a_deployment_that_is_rejected_changes_nothing_and_tells_the_note() {
    let world = World::with_examples();
    let _asked = deploy(&world, "1.1.0");
    succeeded(&world.run(&["answer", "v1.1.0", "reject", "--note", "not on a Friday"]));
    let end = result(&world.run(&["run", "--id", "v1.1.0"]));
    assert_eq!(end, json!({"type": "NotApproved", "note": "not on a Friday"}));
    assert_eq!(world.file("deploy/current/index.html"), "");
}

/// Starts a deployment, which stops at its question.
fn deploy(world: &World, version: &str) -> Finished {
    let input = json!({ "version": version }).to_string();
    let end = world.run(&["run", "examples/deploy.flow", "--input", &input, "--id", &format!("v{version}")]);
    assert_eq!(end.code, Some(3), "{end:?}");
    assert_eq!(end.stdout, "", "a result of what has none yet");
    end
}

/// Answers by the command that was shown.
fn follow_advice(world: &World, end: &Finished, choice: &str) {
    let advice = end.stderr.lines().find_map(|line| line.split_once("outlast answer "));
    let words = advice.unwrap_or_else(|| panic!("no advice how to answer: {end:?}")).1;
    let words: Vec<&str> = words.split(' ').filter(|word| !word.contains('|')).collect();
    let arguments: Vec<&str> = ["answer"].into_iter().chain(words).chain([choice]).collect();
    succeeded(&world.run(&arguments));
}

#[test]
fn the_agent_asks_before_a_command_and_goes_on_when_it_may() {
    let world = World::with_examples();
    let end = world.run(&["run", "--task", "count the lines", "--id", "count"]);
    assert_eq!(end.code, Some(3), "{end:?}");
    assert!(end.stderr.contains("using the scripted model of the built-in agent"), "{end:?}");
    assert!(end.stderr.contains("command: find ."), "what would be run is not shown: {end:?}");
    follow_advice(&world, &end, "approve");
    let end = world.run(&["run", "--id", "count"]);
    assert!(succeeded(&end).stdout.starts_with("You asked: count the lines"), "{end:?}");
    assert!(end.stdout.contains("ran a command"), "{end:?}");
    assert!(end.stderr.contains("  approved by "), "who answered is not told: {end:?}");
}

#[test]
fn the_agent_goes_on_without_what_is_denied() {
    let world = World::with_examples();
    let end = world.run(&["run", "--task", "count the lines", "--on-ask", "deny"]);
    assert!(succeeded(&end).stdout.contains("The command was refused"), "{end:?}");
    let place = |text: &str| end.stderr.find(text).unwrap_or_else(|| panic!("no {text:?} in {end:?}"));
    assert!(place("? Run shell?") < place("rejected by --on-ask deny"), "{end:?}");
}

#[test]
fn the_agent_runs_without_asking_what_a_rule_allows_and_nothing_else() {
    let world = World::with_examples();
    let run = |rule| world.run(&["run", "--task", "count", "--on-ask", "approve", "--allow", rule]);
    let end = run("shell(*)");
    assert!(succeeded(&end).stdout.contains("ran a command"), "{end:?}");
    // The command goes on after a pipe, which the rule does not speak of.
    assert_eq!(run("shell(find *)").code, Some(3));
}

#[test]
fn the_agent_fails_where_nobody_may_be_asked() {
    let world = World::with_examples();
    let end = world.run(&["run", "--task", "count", "--on-ask", "fail"]);
    assert_eq!(end.code, Some(1), "{end:?}");
    let end = world.run(&["run", "--task", "count", "--on-ask", "approve"]);
    assert_eq!(end.code, Some(2), "approving without rules: {end:?}");
}

#[test]
fn the_agent_as_a_file_is_the_built_in_agent() {
    let world = World::with_examples();
    let arguments = ["run", "examples/agent.flow", "--task", "count", "--on-ask", "deny"];
    let end = world.run(&arguments);
    assert!(succeeded(&end).stdout.starts_with("You asked: count"), "{end:?}");
    assert!(end.stderr.contains("using the scripted model of the built-in agent"), "{end:?}");
}

#[test]
fn the_examples_pass_the_checker() {
    let world = World::with_examples();
    let end = world.run(&["check", FILES[0], FILES[1], FILES[2]]);
    assert_eq!(succeeded(&end).stderr.trim(), "ok: Agent, OneTool, Deploy, Report, Digest");
    let checked = world.json(&["check", FILES[0], FILES[1], FILES[2], "--json"]);
    assert_eq!((&checked["ok"], &checked["diagnostics"]), (&json!(true), &json!([])));
}

#[test]
fn the_examples_are_drawn_in_every_format() {
    let world = World::with_examples();
    for (file, state) in [(FILES[0], "Think"), (FILES[1], "GoBack"), (FILES[2], "Work")] {
        let draw = |format| succeeded(&world.run(&["graph", file, "--format", format])).stdout.clone();
        let (mermaid, text, svg) = (draw("mermaid"), draw("ascii"), draw("svg"));
        assert!(mermaid.starts_with("stateDiagram-v2") && mermaid.contains(state), "{mermaid}");
        assert!(text.contains(state), "{text}");
        assert!(svg.contains(state), "{svg}");
        well_formed(&svg);
    }
}

/// Every tag is closed by its own name, in the order of nesting, and text has no bare `&`.
fn well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml.trim_end();
    let mut seen = 0;
    while let Some(at) = rest.find('<') {
        let (text, tag) = rest.split_at(at);
        let wrong = text.contains('>') || text.split('&').skip(1).any(|after| !after.contains(';'));
        assert!(!wrong, "the text {text:?}");
        let (tag, after) = tag[1..].split_once('>').unwrap_or_else(|| panic!("an open end: {tag}"));
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed");
        } else if !tag.ends_with('/') && !tag.starts_with(['?', '!']) {
            open.push(name);
        }
        assert!(tag.matches('"').count() % 2 == 0, "quotes of <{tag}>");
        (rest, seen) = (after, seen + 1);
    }
    assert!(open.is_empty() && rest.is_empty() && seen > 10, "left open: {open:?}, rest {rest:?}");
}

/// Returns the command in an environment that names this model.
fn with_model(world: &World, server: &ModelServer, arguments: &[&str]) -> Command {
    let mut command = world.command(arguments);
    command.env("OUTLAST_MODEL_URL", server.url()).env("OUTLAST_MODEL", "small").env("OPENAI_API_KEY", KEY);
    command
}

fn run_with(world: &World, server: &ModelServer, arguments: &[&str]) -> Finished {
    let end = Process::start(&mut with_model(world, server, arguments)).finish();
    assert_eq!(server.seen().faults, Vec::<String>::new(), "{end:?}");
    assert!(!end.stderr.contains("scripted"), "{end:?}");
    assert!(!end.stderr.contains(KEY) && !end.stdout.contains(KEY), "the key is shown: {end:?}");
    end
}

#[test]
fn a_real_endpoint_writes_the_report() {
    let world = World::with_examples();
    let server = ModelServer::start(|body| {
        let prompt = last_text(body, "user");
        Reply::Text(format!("In short: {}", prompt.lines().nth(2).unwrap_or_default()))
    });
    let end = run_with(&world, &server, &["run", "examples/report.flow"]);
    assert_eq!(result(&end)["notes"], 8);
    assert!(
        world.file("report.md").contains(": In short: # Receipts sent twice"),
        "{}",
        world.file("report.md")
    );
    assert_eq!(server.seen().bodies.len(), 8);
}

#[test]
fn a_real_endpoint_writes_the_notes_of_a_deployment() {
    let world = World::with_examples();
    let server = ModelServer::start(|_| Reply::Text("All new.".to_owned()));
    let arguments = ["run", "examples/deploy.flow", "--input", r#"{"version": "2"}"#, "--id", "two"];
    assert_eq!(run_with(&world, &server, &arguments).code, Some(3));
    succeeded(&world.run(&["answer", "two", "approve"]));
    let live = result(&run_with(&world, &server, &["run", "--id", "two"]));
    assert_eq!(live, json!({"type": "Live", "version": "2", "notes": "All new."}));
    assert_eq!(server.seen().bodies.len(), 1, "the notes were asked for again");
}

#[test]
fn a_real_endpoint_drives_the_agent_through_tools() {
    let world = World::with_examples();
    world.write("hello.txt", "good morning\n");
    let server = ModelServer::start(|body| match count(body, "tool") {
        0 => Reply::Call("read", json!({"path": "hello.txt"})),
        1 => Reply::Call("shell", json!({"command": "echo counted"})),
        2 => Reply::Call("no_such_tool", json!({"path": "hello.txt"})),
        _ => Reply::Text(format!("The end: {}", count(body, "assistant"))),
    });
    let arguments = ["run", "--task", "go", "--on-ask", "approve", "--allow", "shell(echo *)", "--id", "go"];
    let end = run_with(&world, &server, &arguments);
    let end = if end.code == Some(3) {
        // What the catalogue does not know is for a person to decide.
        succeeded(&world.run(&["answer", "go", "reject"]));
        run_with(&world, &server, &["run", "--id", "go"])
    } else {
        end
    };
    assert_eq!(succeeded(&end).stdout.trim(), "The end: 3");
    let seen = server.seen();
    let results: Vec<String> = seen.bodies.iter().map(|body| last_text(body, "tool")).collect();
    assert!(results[1].contains("good morning") && results[2].contains("counted"), "{results:?}");
    let tools = seen.bodies[0]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["function"]["name"] == "shell"), "{tools:?}");
}

/// Returns arguments as a tool's schema names them, all that there are.
fn arguments(tool: &Value) -> Value {
    let properties = tool["function"]["parameters"]["properties"].as_object().unwrap();
    let value = |name: &String, kind: &Value| match (name.as_str(), kind["type"].as_str()) {
        ("path", _) => json!("hello.txt"),
        ("command", _) => json!("echo hello"),
        ("timeout", _) => json!("5s"),
        ("old", _) => json!("good"),
        (_, Some("integer")) => json!(1),
        (_, Some("boolean")) => json!(false),
        _ => json!("hello"),
    };
    properties.iter().map(|(name, kind)| (name.clone(), value(name, kind))).collect()
}

#[test]
fn every_tool_takes_the_arguments_that_the_model_is_told_of() {
    let world = World::with_examples();
    world.write("hello.txt", "good morning\n");
    let server = ModelServer::start(|body| match body["tools"].get(count(body, "tool")) {
        Some(tool) => {
            Reply::Call(tool["function"]["name"].as_str().unwrap().to_owned().leak(), arguments(tool))
        }
        None => Reply::Text("done".to_owned()),
    });
    let mut command = vec!["run", "--task", "go", "--on-ask", "approve"];
    for rule in ["shell(*)", "write(*)", "edit(*)", "append(*)", "fetch(*)"] {
        command.extend(["--allow", rule]);
    }
    assert_eq!(succeeded(&run_with(&world, &server, &command)).stdout.trim(), "done");
    let seen = server.seen();
    let last = seen.bodies.last().unwrap();
    let results = last["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    let refused: Vec<&Value> = results.filter(|result| result.to_string().contains("do not fit")).collect();
    assert!(refused.is_empty() && count(last, "tool") >= 7, "{refused:?} in {last}");
}

#[test]
fn an_agent_whose_model_refuses_fails_and_says_why() {
    let world = World::with_examples();
    let server = ModelServer::start(|_| Reply::Error(401));
    let end = run_with(&world, &server, &["run", "--task", "go", "--id", "go"]);
    assert_eq!(end.code, Some(1), "{end:?}");
    assert!(end.stderr.contains("run go failed: Stuck: ") && end.stderr.contains("401"), "{end:?}");
}

#[test]
fn an_endpoint_in_trouble_is_tried_again() {
    let world = World::with_examples();
    std::fs::create_dir(world.work().join("one")).unwrap();
    world.write("one/a.md", "A note\n");
    let failures = std::sync::atomic::AtomicUsize::new(0);
    let server =
        ModelServer::start(move |_| match failures.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Reply::Error(429),
            _ => Reply::Text("Fine.".to_owned()),
        });
    let end = run_with(&world, &server, &["run", "examples/report.flow", "--input", r#"{"folder": "one"}"#]);
    assert_eq!(result(&end)["notes"], 1);
    assert_eq!(server.seen().bodies.len(), 2);
}
