//! What is wrong is said: what happened, to which run, and what to do next, with an exit code for scripts; and nothing is harmed by it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::File;
use std::path::Path;

use outlast_tests::http::{Answer, Api};
use outlast_tests::process::{Finished, Process};
use outlast_tests::world::World;
use serde_json::{Value, json};

/// Expects an exit code and words on stderr.
fn refused(finished: &Finished, code: i32, words: &[&str]) {
    assert_eq!(finished.code, Some(code), "{finished:?}");
    for word in words {
        assert!(finished.stderr.contains(word), "nothing about {word:?}: {finished:?}");
    }
    assert_eq!(finished.stdout, "", "a refusal has no result");
}

fn runs(world: &World) -> Vec<Value> {
    world.json(&["runs", "--json"])["items"].as_array().unwrap().clone()
}

#[test]
fn all_faults_of_a_flow_are_told_at_once_and_nothing_is_stored() {
    let world = World::new();
    let text = "edition 1
error Broken
flow Bad(n: int) -> Fine { n: int } raises Broken version 1 {
  start One
  state One {
    do nothing(n) as x
    on ok -> Nowhere(n)
  }
  state Two(t: text) { choose
    if t == \"a\" -> end Fine { n: \"a\" }
    else -> fail Brokn
  }
}
";
    world.write("bad.flow", text);
    let places = ["bad.flow:6:8", "bad.flow:7:14", "bad.flow:10:34", "bad.flow:11:18"];
    let told = ["no activity `nothing`", "no state `Nowhere`", "expected: `int`", "did you mean `Broken`"];
    for command in ["run", "check"] {
        let end = world.run(&[command, "bad.flow"]);
        refused(&end, 2, &places);
        refused(&end, 2, &told);
    }
    assert!(!world.data().exists(), "a data directory for a flow that does not exist");
    let end = world.run(&["check", "bad.flow", "--json"]);
    let checked: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!((end.code, &checked["ok"]), (Some(2), &json!(false)));
    let lines: Vec<u64> =
        checked["diagnostics"].as_array().unwrap().iter().filter_map(|d| d["line"].as_u64()).collect();
    assert_eq!(lines, [6, 7, 10, 11]);
}

#[test]
fn files_that_are_none_are_named() {
    let world = World::with_examples();
    refused(&world.run(&["run", "nowhere.flow"]), 2, &["cannot read nowhere.flow"]);
    refused(&world.run(&["run", "examples"]), 2, &["cannot read examples"]);
    refused(&world.run(&["run", "examples/report.flow:Nope"]), 2, &["no flow Nope", "Report", "Digest"]);
    std::fs::write(world.work().join("latin.flow"), [b'a', 0xE9, b'\n']).unwrap();
    refused(&world.run(&["run", "latin.flow"]), 2, &["latin.flow is not UTF-8"]);
}

/// What can only be mended on the command line ends with 2, as `README.md` says of exit codes.
#[test]
fn a_path_that_is_something_else_is_a_wrong_command_line() {
    let world = World::with_flows();
    world.write("file", "");
    world.write("in.jsonl", "{\"name\": \"a\"}\n");
    for data in ["file", "file/below"] {
        for command in [&["runs"][..], &["run", "flows/graded.flow"], &["serve"], &["doctor"]] {
            let ended = world.run(&[command, &["--data", data]].concat());
            refused(&ended, 2, &["--data", "file is no directory", "--data DIR"]);
        }
    }
    let started = world.run(&["run", "flows/graded.flow", "--id", "r", "--input", "{\"name\": \"a\"}"]);
    assert_eq!(started.code, Some(0), "{started:?}");
    std::fs::create_dir(world.work().join("folder")).unwrap();
    for (command, words) in [
        (&["batch", "flows/graded.flow", "--inputs", "in.jsonl", "--out", "folder"][..], "folder"),
        (&["export", "r", "--out", "folder"], "folder cannot be written"),
        (&["export", "r", "--out", "file/below"], "file/below cannot be written"),
        (&["export", "r", "--out", "nowhere/x"], "nowhere/x cannot be written"),
        (&["backup", "file"], "a file is in the way"),
        (&["test", "flows/graded.flow", "--junit", "folder"], "folder cannot be written"),
    ] {
        refused(&world.run(command), 2, &[words]);
    }
}

#[test]
fn a_run_that_does_not_exist_is_named_by_every_command() {
    let world = World::new();
    for arguments in [
        &["show", "r-9"][..],
        &["events", "r-9"],
        &["result", "r-9"],
        &["result", "r-9", "--wait", "1m"],
        &["run", "--id", "r-9"],
        &["answer", "r-9", "approve"],
        &["send", "r-9", "Say"],
        &["cancel", "r-9"],
        &["terminate", "r-9"],
        &["release", "r-9", "1.0"],
        &["settle", "r-9", "1.0", "fail"],
        &["doctor", "r-9"],
        &["chat", "--resume", "r-9"],
    ] {
        refused(&world.run(arguments), 2, &["there is no run r-9"]);
    }
    assert_eq!(runs(&world), Vec::<Value>::new());
    let end = world.run(&["show", "r-9", "--json"]);
    let error: Value = serde_json::from_str(&end.stderr).unwrap();
    assert_eq!((&error["error"]["code"], &error["error"]["run"]), (&json!("not_found"), &json!("r-9")));
}

/// Case SEC-02: an id is no path, and nothing is made of one that could be.
#[test]
fn text_that_cannot_be_an_id_is_refused_and_no_file_is_made_of_it() {
    let world = World::with_examples();
    let long = "x".repeat(5_000);
    for id in ["../../x", "a/b", &long, "", "..", "a b", "ä", "a\nb"] {
        let rule = "is not a run id: 1 to 128 letters";
        for arguments in
            [&["show", id][..], &["answer", id, "approve"], &["run", "examples/report.flow", "--id", id]]
        {
            let end = world.run(arguments);
            refused(&end, 2, &[rule]);
            assert!(end.stderr.len() < 1_000, "{} bytes about an id", end.stderr.len());
        }
    }
    assert_eq!(runs(&world), Vec::<Value>::new());
    assert_eq!(world.file("report.md"), "");
}

#[test]
fn arguments_that_do_not_fit_the_flow_name_the_field_and_what_it_takes() {
    let world = World::with_examples();
    let run = |input: &str| world.run(&["run", "examples/report.flow", "--input", input]);
    refused(&run(r#"{"folder": 3}"#), 2, &["folder: text is expected, found 3"]);
    refused(&run(r#"{"folde": "x"}"#), 2, &["folde", "folder, out, log"]);
    refused(&run("[1]"), 2, &["--input: an object"]);
    refused(&run("{folder"), 2, &["--input is not JSON", "@FILE"]);
    refused(&world.run(&["run", "examples/deploy.flow"]), 2, &["version: text is expected"]);
    refused(&run("@nowhere.json"), 2, &["cannot read nowhere.json"]);
    assert_eq!(runs(&world), Vec::<Value>::new());
}

#[test]
fn a_second_start_of_an_id_with_other_input_is_a_conflict_and_with_the_same_it_is_the_same_run() {
    let world = World::with_examples();
    let start = |version: &str| {
        let input = json!({ "version": version }).to_string();
        world.run(&["run", "examples/deploy.flow", "--input", &input, "--id", "dep"])
    };
    assert_eq!(start("1").code, Some(3));
    refused(&start("2"), 2, &["run dep was started with another input", "do: ", "id"]);
    let other = world.run(&["run", "examples/report.flow", "--id", "dep"]);
    refused(&other, 2, &["run dep is of flow Deploy, not Report", "do: "]);
    assert_eq!(start("1").code, Some(3));
    assert_eq!(runs(&world).len(), 1);
}

#[test]
fn an_answer_to_a_decided_question_is_told_who_decided_what() {
    let world = World::with_examples();
    let input = r#"{"version": "1"}"#;
    let asked = world.run(&["run", "examples/deploy.flow", "--input", input, "--id", "dep"]);
    assert_eq!(asked.code, Some(3));
    refused(&world.run(&["answer", "dep", "maybe"]), 2, &["approve, reject or answer is expected", "maybe"]);
    refused(&world.run(&["answer", "dep", "77.0", "approve"]), 2, &["run dep", "question 77.0 is not open"]);
    let question = world.json(&["show", "dep", "--json"])["questions"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.run(&["answer", "dep", &question, "approve"]).code, Some(0));
    let decided = format!("question {question} is decided: approved");
    refused(&world.run(&["answer", "dep", &question, "reject"]), 1, &["run dep", &decided]);
    refused(&world.run(&["answer", "dep", "reject"]), 1, &["run dep", &decided]);
    assert_eq!(world.run(&["run", "--id", "dep"]).code, Some(0));
    refused(&world.run(&["answer", "dep", &question, "reject"]), 1, &["run dep", &decided]);
    for arguments in [&["cancel", "dep"][..], &["terminate", "dep"], &["send", "dep", "Say"]] {
        refused(&world.run(arguments), 1, &["run dep", "has ended: done"]);
    }
}

#[test]
fn a_store_of_a_newer_release_is_left_as_it_is() {
    let world = World::with_examples();
    assert_eq!(world.run(&["run", "examples/report.flow"]).code, Some(0));
    let format = world.data().join("FORMAT");
    let text = std::fs::read_to_string(&format).unwrap();
    std::fs::write(&format, text.replace('3', "999")).unwrap();
    let before = bytes_of(&world.data());
    for arguments in [&["runs"][..], &["run", "examples/report.flow"], &["serve"], &["doctor"]] {
        refused(&world.run(arguments), 75, &["999", "newer release"]);
    }
    assert!(bytes_of(&world.data()) == before, "a byte was changed");
}

/// Returns every file below a folder with its bytes.
fn bytes_of(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(bytes_of(&entry.path()));
        } else if kind.is_file() {
            found.push((entry.path(), std::fs::read(entry.path()).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_store_whose_owner_does_not_answer_is_busy_and_the_owner_is_named() {
    let world = World::new();
    std::fs::create_dir_all(world.data()).unwrap();
    let path = world.data().join("lock");
    let owner = std::process::id();
    std::fs::write(&path, format!("{owner}\n")).unwrap();
    let lock = File::open(&path).unwrap();
    lock.lock().unwrap();
    let mut waiting = [&["runs"][..], &["run", "--task", "x"], &["serve"]].map(|words| world.start(words));
    for process in &mut waiting {
        let end = process.finish();
        refused(&end, 75, &[&format!("in use by process {owner}"), "--data"]);
    }
    drop(lock);
    assert_eq!(world.run(&["runs"]).code, Some(0));
}

const UNSERVED: &str = r#"edition 1
error Broken { detail: text }
activity train(n: int) -> int within 30s queue "gpu" effect pure
activity fold_paper(n: int) -> int within 30s queue "tool" effect pure
flow Train(n: int = 1) -> Fine { n: int } raises Broken version 1 {
  on problem as p   -> fail Broken { detail: p.text }
  start One
  state One {
    do train(n) as x
    on ok           -> end Fine { n: x }
  }
}
flow Fold(n: int = 1) -> Fine { n: int } raises Broken version 1 {
  on problem as p   -> fail Broken { detail: p.text }
  start One
  state One {
    do fold_paper(n) as x
    on ok           -> end Fine { n: x }
  }
}
"#;

#[test]
fn work_that_no_worker_takes_waits_and_says_for_which_queue_and_activity() {
    let world = World::new();
    world.write("unserved.flow", UNSERVED);
    let (_host, api) = world.serve(&["unserved.flow"]);
    let start = |flow: &str| api.post("/v1/runs", &json!({"flow": flow, "input": {}, "id": flow})).status;
    assert_eq!((start("Train"), start("Fold")), (201, 201));
    let expected = json!({"kind": "worker", "queue": "gpu", "activity": "train"});
    waits_for(&api, "Train", |waiting| *waiting == expected);
    let expected = json!({"kind": "activity", "queue": "tool", "activity": "fold_paper"});
    waits_for(&api, "Fold", |waiting| *waiting == expected);
    let end = world.run(&["run", "unserved.flow:Train", "--id", "Train", "--timeout", "100ms"]);
    refused(&end, 124, &["run Train", "queue gpu", "train", "to go on: outlast run --id Train"]);
    let end = world.run(&["run", "--id", "Fold", "--timeout", "100ms"]);
    refused(&end, 124, &["no worker of queue tool offers fold_paper", "start one"]);
}

/// Asks until a run waits for the right thing; each answer comes as soon as the run has stopped moving.
fn waits_for(api: &Api, run: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let end = std::time::Instant::now() + outlast_tests::process::PATIENCE;
    loop {
        let view = api.get(&format!("/v1/runs/{run}/result?wait=200ms")).json();
        if fits(&view["waiting_for"]) {
            return view;
        }
        assert!(std::time::Instant::now() < end, "run {run} waits for something else: {view}");
    }
}

const PATIENT: &str = r#"edition 1
error Overloaded
error Broken { detail: text }
retry Twice { on Overloaded up to 2 attempts wait 200ms doubling to 300ms }
retry Often { on Overloaded up to 50 attempts wait 1m doubling to 2m }
activity generate(prompt: text) -> text
  raises Overloaded within 1m retry Twice queue "model" effect idempotent
flow Ask(prompt: text = "hello") -> Said { text: text } raises Broken version 1 {
  on problem as p   -> fail Broken { detail: p.text }
  start One
  state One {
    do generate(prompt) as said
    on ok           -> end Said { text: said }
  }
}
"#;

#[test]
fn a_dead_endpoint_is_tried_again_by_policy_and_then_the_run_fails_with_the_reason() {
    let world = World::new();
    world.write("twice.flow", PATIENT);
    world.write("often.flow", &PATIENT.replace("retry Twice queue", "in all 3h retry Often queue"));
    // Bound and closed again: nobody listens there.
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{dead}/v1");
    let run =
        |arguments: &[&str]| Process::start(world.command(arguments).env("OUTLAST_MODEL_URL", &url)).finish();
    refused(&run(&["run", "twice.flow", "--id", "twice"]), 1, &["run twice failed", "Connection refused"]);
    let attempts = world.json(&["events", "twice", "--json"])["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["kind"] == "failed")
        .count();
    assert_eq!(attempts, 2);
    let end = run(&["run", "often.flow", "--id", "often", "--timeout", "4s"]);
    refused(&end, 124, &["tries generate again at 20", "Connection refused"]);
    let view = world.json(&["show", "often", "--json"]);
    assert_eq!(
        (&view["waiting_for"]["kind"], &view["waiting_for"]["activity"]),
        (&json!("retry"), &json!("generate"))
    );
    assert!(view["waiting_for"]["error"].as_str().unwrap().contains("Connection refused"), "{view}");
    assert!(view["waiting_for"]["until"].as_str().unwrap().ends_with('Z'), "{view}");
}

#[test]
fn a_run_whose_directory_is_gone_waits_for_it_and_goes_on_when_it_is_back() {
    let world = World::with_examples();
    let here = world.work().join("examples");
    let away = world.work().join("moved");
    let mut start = world.command(&[
        "run",
        "deploy.flow",
        "--id",
        "dep",
        "--input",
        r#"{"version": "1", "site": "site"}"#,
    ]);
    let end = Process::start(start.current_dir(&here)).finish();
    assert_eq!(end.code, Some(3), "{end:?}");
    assert_eq!(world.run(&["answer", "dep", "approve"]).code, Some(0));
    std::fs::rename(&here, &away).unwrap();
    let end = world.run(&["run", "--id", "dep"]);
    refused(&end, 3, &["run dep works in ", "/work/examples, which is missing: restore it"]);
    std::fs::rename(&away, &here).unwrap();
    let end = world.run(&["run", "--id", "dep"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(world.file("examples/deploy/current/index.html").contains("<title>"));
}

/// Expects a refusal of the contract's form.
fn fault(answer: &Answer, status: u16, code: &str, words: &[&str]) {
    assert_eq!(answer.status, status, "{answer:?}");
    let error = &answer.json()["error"];
    assert_eq!(error["code"], code, "{answer:?}");
    for word in words {
        assert!(error["message"].as_str().unwrap().contains(word), "nothing about {word:?}: {answer:?}");
    }
}

#[test]
fn http_requests_that_do_not_fit_are_refused_with_the_reason() {
    let world = World::with_examples();
    let (_host, api) = world.serve(&["examples/report.flow", "--no-workers"]);
    let json = [("content-type", "application/json")];
    let start = |body: &str| api.send("POST", "/v1/runs", &json, body);
    fault(
        &api.send("POST", "/v1/runs", &[("content-type", "text/plain")], "{}"),
        422,
        "invalid",
        &["application/json"],
    );
    fault(&api.send("POST", "/v1/runs", &[], r#"{"flow": "Report"}"#), 422, "invalid", &["application/json"]);
    fault(&start(r#"{"flow": "#), 422, "invalid", &["line 1 column"]);
    fault(
        &start(r#"{"flow": "Report", "inputs": {}}"#),
        422,
        "invalid",
        &["unknown field `inputs`", "`input`"],
    );
    fault(&start(r#"{"flow": "Nope", "input": {}}"#), 404, "not_found", &["no flow \"Nope\" is deployed"]);
    fault(
        &start(r#"{"flow": "Report", "input": {"folder": 3}}"#),
        422,
        "invalid",
        &["folder: text is expected"],
    );
    fault(
        &start(r#"{"flow": "Report", "input": {}, "id": "a/b"}"#),
        422,
        "invalid",
        &["\"a/b\" is not a run id"],
    );
    let big = format!(r#"{{"flow": "Report", "input": {{"folder": "{}"}}}}"#, "x".repeat(1_100_000));
    fault(&start(&big), 413, "too_large", &["over 1048576 bytes"]);
    assert_eq!(api.get("/v1/runs").json()["items"], json!([]));

    fault(&api.get("/v1/runs/nope"), 404, "not_found", &["there is no run nope"]);
    fault(&api.get("/v1/runs/..%2f..%2fx"), 422, "invalid", &["is not a run id"]);
    fault(&api.get(&format!("/v1/runs/{}", "x".repeat(5_000))), 422, "invalid", &["is not a run id"]);
    fault(&api.get("/v1/runs?status=odd"), 422, "invalid", &["`running`", "odd"]);
    fault(&api.get("/v1/runs?stat=ended"), 422, "invalid", &["unknown field `stat`"]);
    fault(&api.get("/v1/runs?cursor=odd"), 400, "invalid_cursor", &["odd"]);
    fault(&api.get("/v1/runs/nope/result?wait=soon"), 422, "invalid", &["soon", "30s"]);
    fault(&api.get("/v2"), 404, "not_found", &["/v2"]);
    fault(&api.send("PUT", "/v1/runs/nope", &[], ""), 405, "method_not_allowed", &["PUT"]);
    let deploy = json!({"files": [{"name": "bad.flow", "text": "edition 1\nflow {"}]});
    let answer = api.post("/v1/flows", &deploy);
    fault(&answer, 422, "invalid", &["diagnostics"]);
    assert_eq!(answer.json()["diagnostics"][0]["line"], 2, "{answer:?}");
}

#[test]
fn requests_to_a_run_that_do_not_fit_it_change_nothing() {
    let world = World::with_examples();
    let (_host, api) = world.serve(&["examples/deploy.flow"]);
    let start = |version: &str| {
        api.post("/v1/runs", &json!({"flow": "Deploy", "input": {"version": version}, "id": "dep"}))
    };
    assert_eq!(start("1").status, 201);
    waits_for(&api, "dep", |waiting| waiting["kind"] == "question");
    let again = start("1");
    assert_eq!((again.status, &again.json()["existing"]), (200, &json!(true)));
    fault(&start("2"), 409, "conflict", &["another input"]);
    let before = api.get("/v1/runs/dep").json();
    let post = |path: &str, body: Value| api.post(&format!("/v1/runs/dep/{path}"), &body);
    fault(&post("answers", json!({"choice": "maybe"})), 422, "invalid", &["maybe", "`approve`"]);
    fault(&post("answers", json!({"choice": "approve", "question": "9.0"})), 404, "not_found", &["9.0"]);
    fault(&post("answers", json!({"choice": "approve", "shown": "x"})), 409, "conflict", &["look again"]);
    fault(&post("answers", json!({"choice": "approve", "comment": "x"})), 422, "invalid", &["comment"]);
    fault(&post("messages", json!({"type": "Say", "value": {}})), 422, "invalid", &["Say"]);
    fault(&post("cancel", json!({"reason": "x"})), 422, "invalid", &["reason"]);
    fault(&post("cancel", json!({"why": "So what?"})), 422, "invalid", &["why", "small letters"]);
    let resumed = |last: &str| api.send("GET", "/v1/runs/dep/stream", &[("last-event-id", last)], "");
    fault(&resumed("other/1.0"), 400, "invalid_cursor", &["other/1.0"]);
    fault(&resumed("rubbish"), 400, "invalid_cursor", &["rubbish"]);
    assert_eq!(api.get("/v1/runs/dep").json(), before);
}

#[test]
fn requests_that_a_web_page_could_send_are_refused() {
    let world = World::new();
    let (_host, api) = world.serve(&["--no-workers"]);
    fault(
        &api.send("GET", "/v1/runs", &[("origin", "http://evil.example")], ""),
        403,
        "forbidden",
        &["other sites"],
    );
    let listen = world.run(&["serve", "--listen", "0.0.0.0:0"]);
    refused(&listen, 2, &["--token-env"]);
    let taken = api.url("").trim_start_matches("http://").to_owned();
    refused(&world.run(&["serve", "--listen", &taken]), 2, &["cannot listen on", &taken]);
}
