//! One run, three modes: started in one, killed, continued in another; several processes on one store; a host that dies under those who wait.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Instant;

use outlast_tests::http::{Api, Frame, Frames};
use outlast_tests::process::{Finished, PATIENCE, Process};
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

fn succeeded(finished: &Finished) -> &Finished {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished
}

/// Asks until the answer fits; the server holds each answer back until the run has news or needs a person.
fn until(api: &Api, run: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let view = api.get(&format!("/v1/runs/{run}/result?wait=2s")).json();
        if fits(&view) {
            return view;
        }
        assert!(Instant::now() < end, "{what} does not come: {view}");
    }
}

fn asks(view: &Value) -> bool {
    view["waiting_for"]["kind"] == "question"
}

fn deploy(api: &Api, id: &str) {
    let started = api.post("/v1/runs", &json!({"flow": "Deploy", "input": {"version": "1"}, "id": id}));
    assert_eq!(started.status, 201, "{started:?}");
}

/// No operation of the run was done twice, whoever drove it.
fn once_each(world: &World, run: &str) {
    let events = world.json(&["events", run, "--json"]);
    let mut done: Vec<String> = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["kind"] == "done")
        .map(|event| event["op"].to_string())
        .collect();
    let all = done.len();
    done.sort();
    done.dedup();
    assert_eq!(done.len(), all, "done twice: {events}");
}

/// Kills a process and all that it left, as a power cut would, but for the disk.
fn cut(world: &World, process: &mut Process) {
    process.kill();
    for role in [Role::Runtime, Role::Model, Role::Tool] {
        world.kill(role);
    }
    let _end = process.finish();
}

#[test]
fn a_talk_that_is_killed_is_continued_as_a_batch_finished_over_http_and_forked_in_a_talk() {
    let world = World::with_examples();
    let mut chat = world.start(&["chat"]);
    chat.say("count the lines");
    let line = chat.line("the run", |line| line.contains("run agent-"));
    let id = line.split_whitespace().find(|word| word.starts_with("agent-")).unwrap().to_owned();
    chat.line("the question", |line| line.contains("Run shell?"));
    cut(&world, &mut chat);

    let end = world.run(&["run", "--id", &id]);
    assert_eq!(end.code, Some(3), "{end:?}");
    assert!(end.stderr.contains("Run shell?"), "the question is gone: {end:?}");

    let (_host, api) = world.serve(&[]);
    let view = api.get(&format!("/v1/runs/{id}")).json();
    let question = &view["questions"][0];
    let answer = json!({"question": question["id"], "choice": "approve", "shown": question["shown"]});
    assert_eq!(api.post(&format!("/v1/runs/{id}/answers"), &answer).status, 200);
    until(&api, &id, "the end of the turn", |view| view["waiting_for"]["kind"] == "message");
    let closed = api.post(&format!("/v1/runs/{id}/messages"), &json!({"type": "closed", "value": {}}));
    assert_eq!(closed.status, 202, "{closed:?}");
    let end = until(&api, &id, "the end", |view| view["status"] == "ended");
    assert_eq!(end["outcome"]["kind"], "done", "{end}");
    let text = end["outcome"]["value"]["text"].as_str().unwrap();
    assert!(text.starts_with("You asked: count the lines") && text.contains("ran a command"), "{text}");
    once_each(&world, &id);

    // Back to before the answer, while the server goes on: the fork asks anew, and is told something else.
    let events = world.json(&["events", &id, "--json"]);
    let answer =
        events["items"].as_array().unwrap().iter().find(|event| event["kind"] == "answered").unwrap();
    let point = format!("{id}@{}", answer["n"].as_u64().unwrap() - 1);
    let mut fork = world.start(&["chat", "--fork", &point]);
    fork.line("the question", |line| line.contains("Run shell?"));
    fork.say("no");
    fork.line("the refusal", |line| line.contains("The command was refused"));
    assert_eq!(world.json(&["events", &id, "--json"]), events, "the run itself stays as it is");
}

#[test]
fn a_talk_through_lines_takes_the_answer_and_ends_with_its_input() {
    let world = World::with_examples();
    let mut chat = world.start(&["chat"]);
    chat.say("count the lines");
    chat.line("the question", |line| line.contains("Run shell?"));
    chat.say("no");
    let end = chat.finish();
    assert!(succeeded(&end).stdout.contains("The command was refused"), "{end:?}");
}

#[test]
fn a_batch_that_is_killed_is_continued_by_talking() {
    let world = World::with_examples();
    let end = world.run(&["run", "--task", "count the lines", "--id", "count"]);
    assert_eq!(end.code, Some(3), "{end:?}");
    let mut chat = world.start(&["chat", "--continue"]);
    chat.line("the question", |line| line.contains("Run shell?"));
    chat.say("yes");
    chat.line("the answer", |line| line.contains("ran a command"));
    cut(&world, &mut chat);
    let end = world.run(&["run", "--id", "count"]);
    assert!(succeeded(&end).stdout.contains("ran a command"), "{end:?}");
    once_each(&world, "count");
}

#[test]
fn the_newest_run_of_a_directory_is_found_behind_many_others() {
    let world = World::with_flows();
    let end = world.run(&["run", "--task", "count the lines", "--id", "count"]);
    assert_eq!(end.code, Some(3), "{end:?}");
    let (_host, api) = world.serve(&["flows/desk.flow", "--no-workers"]);
    for i in 0..250 {
        let start = json!({"flow": "Desk", "input": {"topic": "t"}, "id": format!("other-{i}"), "profile": "elsewhere"});
        let started = api.post("/v1/runs", &start);
        assert_eq!(started.status, 201, "{started:?}");
    }
    let mut chat = world.start(&["chat", "--continue"]);
    chat.line("the question", |line| line.contains("Run shell?"));
}

#[test]
fn a_run_started_over_http_and_killed_is_finished_as_a_batch() {
    let world = World::with_examples();
    let (mut host, api) = world.serve(&["examples/report.flow"]);
    let started = api.post("/v1/runs", &json!({"flow": "Report", "input": {}, "id": "report"}));
    assert_eq!(started.status, 201, "{started:?}");
    let mut frames = api.stream("report", None);
    assert!(frames.any(|frame| frame.event == "emit"), "nothing happens");
    cut(&world, &mut host);
    assert_eq!(world.json(&["show", "report", "--json"])["flow"], "Report");
    let end = world.run(&["run", "--id", "report"]);
    let result: Value = serde_json::from_str(&succeeded(&end).stdout).unwrap();
    assert_eq!((&result["type"], &result["notes"]), (&json!("Written"), &json!(8)));
    assert_eq!(world.file("report.log").lines().count(), 8);
    once_each(&world, "report");
}

#[test]
fn a_server_that_is_killed_goes_on_by_itself_when_it_is_started_again() {
    let world = World::with_examples();
    let (mut host, api) = world.serve(&["examples/report.flow"]);
    assert_eq!(api.post("/v1/runs", &json!({"flow": "Report", "input": {}, "id": "report"})).status, 201);
    assert!(api.stream("report", None).any(|frame| frame.event == "emit"), "nothing happens");
    host.kill();
    let (_host, api) = world.serve(&[]);
    let end = until(&api, "report", "the end", |view| view["status"] == "ended");
    assert_eq!(end["outcome"]["kind"], "done", "{end}");
    let again = api.post("/v1/runs", &json!({"flow": "Report", "input": {}, "id": "report"}));
    assert_eq!((again.status, &again.json()["existing"]), (200, &json!(true)), "{again:?}");
    assert_eq!(world.file("report.log").lines().count(), 8);
}

#[test]
fn commands_beside_a_server_see_and_move_its_runs() {
    let world = World::with_examples();
    let (host, api) = world.serve(&["examples/deploy.flow"]);
    deploy(&api, "one");
    until(&api, "one", "the question", asks);
    let listed = world.json(&["runs", "--json"]);
    assert_eq!(listed["items"][0]["id"], "one", "{listed}");
    assert_eq!(
        world.json(&["show", "one", "--json"])["questions"],
        api.get("/v1/runs/one").json()["questions"]
    );
    let answered = world.run(&["answer", "one", "approve"]);
    assert!(!succeeded(&answered).stderr.contains("nobody runs it"), "{answered:?}");
    let end = world.run(&["result", "one", "--wait", "1m"]);
    assert!(succeeded(&end).stdout.contains("Live"), "{end:?}");

    // A batch of its own beside it: it attaches, and leaves the server as it is.
    let end = world.run(&["run", "examples/report.flow", "--id", "report"]);
    assert!(succeeded(&end).stdout.contains("\"notes\": 8"), "{end:?}");
    assert_eq!(api.get("/v1/runs/report").json()["outcome"]["kind"], "done");
    assert_eq!(world.pids(Role::Runtime), [host.pid()]);
}

#[test]
fn who_waits_takes_over_when_the_host_is_killed() {
    let world = World::with_examples();
    let (mut host, api) = world.serve(&["examples/report.flow"]);
    assert_eq!(api.post("/v1/runs", &json!({"flow": "Report", "input": {}, "id": "report"})).status, 201);
    let mut waiting = [
        world.start(&["result", "report", "--wait", "1m"]),
        world.start(&["run", "examples/report.flow", "--id", "report"]),
    ];
    assert!(api.stream("report", None).any(|frame| frame.event == "emit"), "nothing happens");
    host.kill();
    for process in &mut waiting {
        let end = process.finish();
        assert!(succeeded(&end).stdout.contains("\"notes\": 8"), "{end:?}");
    }
    assert_eq!(world.file("report.log").lines().count(), 8);
    once_each(&world, "report");
}

/// Takes frames up to the first that fits, and with it.
fn take(frames: &mut Frames, fits: impl Fn(&Frame) -> bool) -> Vec<Frame> {
    let mut taken = Vec::new();
    for frame in frames.by_ref() {
        let last = fits(&frame);
        taken.push(frame);
        if last {
            break;
        }
    }
    taken
}

/// Keeps what belongs to the history.
fn kept(frames: Vec<Frame>) -> Vec<Frame> {
    frames.into_iter().filter(|frame| frame.id.is_some()).collect()
}

#[test]
fn a_stream_resumed_over_cuts_and_a_kill_has_no_gap_and_no_duplicate() {
    let world = World::with_examples();
    let (mut host, api) = world.serve(&["examples/report.flow"]);
    assert_eq!(api.post("/v1/runs", &json!({"flow": "Report", "input": {}, "id": "report"})).status, 201);
    let emitted = |frame: &Frame| frame.event == "emit";
    let mut seen = kept(take(&mut api.stream("report", None), emitted));
    for _ in 0..2 {
        let last = seen.last().and_then(|frame| frame.id.clone());
        seen.extend(kept(take(&mut api.stream("report", last.as_deref()), emitted)));
    }
    host.kill();
    let (_host, api) = world.serve(&[]);
    let last = seen.last().and_then(|frame| frame.id.clone());
    seen.extend(kept(api.stream("report", last.as_deref()).collect()));
    assert_eq!(seen.last().map(|frame| frame.event.as_str()), Some("ended"), "{seen:?}");
    let whole = kept(api.stream("report", None).collect());
    assert_eq!(seen, whole);
    assert_eq!(seen.iter().filter(|frame| emitted(frame)).count(), 10);
}

#[test]
fn a_server_that_is_asked_to_end_ends_and_its_runs_stay() {
    let world = World::with_examples();
    let (mut host, api) = world.serve(&["examples/deploy.flow"]);
    deploy(&api, "one");
    until(&api, "one", "the question", asks);
    let pid = host.pid().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let end = host.finish();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_eq!(world.json(&["show", "one", "--json"])["waiting_for"]["kind"], "question");
}

#[test]
fn a_batch_that_is_asked_to_end_leaves_the_run_and_says_how_to_go_on() {
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let world = World::with_examples();
        let mut batch = world.start(&["run", "examples/report.flow", "--id", "report", "--output", "jsonl"]);
        batch.line("something that happens", |line| line.contains("\"emit\""));
        let pid = batch.pid().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap();
        assert!(sent.success());
        let end = batch.finish();
        assert_eq!(end.code, Some(code), "{end:?}");
        assert!(end.stderr.contains("to go on: outlast run --id report"), "{end:?}");
        succeeded(&world.run(&["run", "--id", "report"]));
        assert_eq!(world.file("report.log").lines().count(), 8);
        once_each(&world, "report");
    }
}
