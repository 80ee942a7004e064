//! Runs whose model is slow, refuses, breaks off or talks nonsense, in each protocol, through the whole runtime.

use std::time::{Duration, Instant, SystemTime};

use outlast_tests::http::Frame;
use outlast_tests::model_server::speak::{TOKENS, heard, pieces};
use outlast_tests::model_server::{Ending, KEY, ModelServer, Part, Protocol, Reply, Stop};
use outlast_tests::process::{Process, until};
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

/// Gives a world this model, spoken to in this protocol.
fn with_model(world: World, model: &ModelServer, protocol: Protocol) -> World {
    world
        .with_variable("OUTLAST_MODEL_PROVIDER", protocol.provider())
        .with_variable("OUTLAST_MODEL_URL", &model.url())
        .with_variable("OUTLAST_MODEL_KEY_ENV", "MODEL_KEY")
        .with_variable("MODEL_KEY", KEY)
}

fn world_of(model: &ModelServer, protocol: Protocol) -> World {
    with_model(World::with_examples(), model, protocol)
}

/// Starts the built-in agent with a task.
fn agent(world: &World) -> Process {
    let server = world.host(&["examples/agent.flow"]);
    let input = json!({"task": "go", "max_turns": 5});
    let start = json!({"flow": "Agent", "id": "r", "input": input, "permissions": {"allow": ["shell(*)", "write(*)"]}});
    let answer = world.post("/v1/runs", &start);
    assert_eq!(answer.status, 201, "{}", answer.body);
    server
}

fn idle(world: &World) {
    until("the agent to be idle", || world.get("/v1/runs/r")["state"] == "Idle");
}

/// All that the run's history and its emits say.
fn told(world: &World) -> String {
    world.get("/v1/runs/r/events?limit=1000").to_string()
}

fn requests(model: &ModelServer) -> usize {
    model.seen().bodies.len()
}

fn no_faults(model: &ModelServer, what: &str) {
    assert_eq!(model.seen().faults, Vec::<String>::new(), "{what}");
}

/// Case RTY-01: a limit is waited for as long as the provider says, in whatever form, and a kill does not shorten it.
#[test]
fn a_rate_limit_is_waited_for_across_a_restart() {
    let in_three_seconds = SystemTime::now() + Duration::from_secs(3);
    let date = httpdate::fmt_http_date(in_three_seconds);
    let body = json!({"error": {"message": "Rate limit reached. Please try again in 2.0s."}}).to_string();
    for (what, headers, body) in [
        ("seconds", vec![("retry-after", "2".to_owned())], String::new()),
        ("a date", vec![("retry-after", date)], String::new()),
        ("a sentence", vec![], body),
    ] {
        let model =
            ModelServer::giving([Reply::Plain(429, headers, body), Reply::Text("here I am".to_owned())]);
        let world = world_of(&model, Protocol::Chat);
        let mut server = agent(&world);
        until("the refusal", || told(&world).contains("RateLimited"));
        server.murder();
        let _server = world.host(&[]);
        idle(&world);
        let times = model.seen().times.clone();
        assert_eq!(times.len(), 2, "{what}");
        // The date has whole seconds only, and began to run before the first request.
        let least = Duration::from_millis(if what == "a date" { 0 } else { 1_990 });
        assert!(times[1] - times[0] >= least, "{what}: {:?}", times[1] - times[0]);
        assert!(
            what != "a date" || SystemTime::now() + Duration::from_secs(1) >= in_three_seconds,
            "too early"
        );
        assert!(told(&world).contains("here I am"), "{what}");
    }
}

/// Cases RTY-02, RTY-03, RTY-08: what waiting or trying again cannot mend is shown at once, after one request, with what to do.
#[test]
fn hopeless_requests_are_made_once_and_shown() {
    let error = |text: &str| json!({"error": {"message": text}}).to_string();
    for (what, reply, shown) in [
        (
            "a limit of 12 hours",
            Reply::Plain(429, vec![("retry-after", "43200".to_owned())], String::new()),
            "it asks to wait 43200s",
        ),
        ("a wrong key", Reply::Error(401), "environment variable MODEL_KEY"),
        ("no permission", Reply::Error(403), "environment variable MODEL_KEY"),
        ("an old key", Reply::Plain(400, vec![], error("API key expired")), "environment variable MODEL_KEY"),
        ("no such model", Reply::Error(404), "the model asked for is"),
        ("a bad request", Reply::Plain(400, vec![], error("invalid request")), "invalid request"),
    ] {
        let model = ModelServer::start(move |_| reply.clone());
        let world = world_of(&model, Protocol::Anthropic);
        let _server = agent(&world);
        idle(&world);
        assert_eq!(requests(&model), 1, "{what}");
        let told = told(&world);
        assert!(told.contains("Failed: ") && told.contains(shown), "{what}: {told}");
        assert!(!told.contains(KEY), "{what}");
    }
}

/// Case RTY-02: while one provider wants to be left alone, for a minute or for half a day, runs of another one go on.
#[test]
fn another_provider_is_asked_while_one_is_limited() {
    for (hint, shown) in [("60", "RateLimited"), ("43200", "it asks to wait 43200s")] {
        let limited = ModelServer::start(move |_| {
            Reply::Plain(429, vec![("retry-after", hint.to_owned())], String::new())
        });
        let free = ModelServer::start(|_| Reply::Text("here I am".to_owned()));
        let world = world_of(&limited, Protocol::Anthropic);
        let _server = agent(&world);
        until("the limit", || told(&world).contains(shown));
        let before = world.get("/v1/runs/r");
        for round in 0..3 {
            let (id, task) = (format!("free-{round}"), "go");
            let mut command = world.command(&[
                "run",
                "examples/agent.flow",
                "--id",
                &id,
                "--task",
                task,
                "--output",
                "json",
            ]);
            command.env("OUTLAST_MODEL_URL", free.url());
            let ended = Process::start(&mut command).finish();
            assert!(ended.code == Some(0) && ended.stdout.contains("here I am"), "{hint}: {ended:?}");
        }
        assert_eq!((requests(&limited), requests(&free)), (1, 3), "{hint}");
        let after = world.get("/v1/runs/r");
        assert_eq!((&after["status"], &after["events"]), (&before["status"], &before["events"]), "{hint}");
        if hint == "43200" {
            assert_eq!(after["state"], "Idle", "it is told, and waits for a person");
        }
    }
}

/// Case RTY-03: once the key is right, the same run goes on.
#[test]
fn a_run_goes_on_when_its_key_is_mended() {
    let model = ModelServer::start(|_| Reply::Text("here I am".to_owned()));
    model.seen().key = Some("another".to_owned());
    let world = world_of(&model, Protocol::Responses);
    let _server = agent(&world);
    idle(&world);
    model.seen().key = None;
    let say = json!({"type": "Say", "value": {"text": "again"}, "id": "m"});
    assert_eq!(world.post("/v1/runs/r/messages", &say).status, 202);
    until("the answer", || told(&world).contains("here I am"));
    assert_eq!(requests(&model), 2);
}

/// What models read and wrote is kept with the results: it is the same after a kill, and in all that shows a run.
#[test]
fn tokens_are_counted_for_the_run_and_survive_a_kill() {
    let answers = [Reply::Error(500), Reply::Text("one".to_owned()), Reply::Text("two".to_owned())];
    let model = ModelServer::giving(answers);
    let world = world_of(&model, Protocol::Anthropic);
    let mut server = agent(&world);
    idle(&world);
    let (read, _, written) = TOKENS;
    assert_eq!(world.get("/v1/runs/r")["tokens"], json!({"input": read, "output": written}));
    server.murder();
    let _server = world.host(&[]);
    idle(&world);
    let say = json!({"type": "Say", "value": {"text": "again"}, "id": "m"});
    assert_eq!(world.post("/v1/runs/r/messages", &say).status, 202);
    until("the second answer", || told(&world).contains("two"));
    idle(&world);
    let sum = json!({"input": 2 * read, "output": 2 * written});
    assert_eq!(world.get("/v1/runs/r")["tokens"], sum);
    let shown = world.run(&["show", "r"]).stdout;
    assert!(shown.contains(&format!("tokens {} in, {} out", 2 * read, 2 * written)), "{shown}");
}

/// What a provider allows is kept by all workers together, and a run that waits for it says so.
#[test]
fn the_rate_of_a_provider_is_kept_by_two_workers_as_by_one() {
    let model = ModelServer::start(|_| Reply::Text("here I am".to_owned()));
    let world = with_model(World::with_flows(), &model, Protocol::Chat);
    world.write("outlast.toml", "[queues.model]\nrequests_per_minute = 40\n");
    let before = Instant::now();
    let _server = world.host(&["flows/asked.flow"]);
    let begin = |id: &str| world.begin("Asked", id, &json!({"prompt": "Where are you?"}));
    begin("r0");
    let profile = world.get("/v1/runs/r0")["profile"].clone();
    let _second = world.start(&["worker", "model", "--profile", profile.as_str().unwrap()]);
    until("two workers", || {
        let sessions = world.get("/v1/status")["engine"]["sessions"].clone();
        let of_models = |session: &&Value| session["queues"].to_string().contains("\"model\"");
        sessions.as_array().unwrap().iter().filter(of_models).count() == 2
    });
    // What was saved up since the host began goes at once.
    let mut runs = vec!["r0".to_owned()];
    loop {
        let id = format!("r{}", runs.len());
        begin(&id);
        runs.push(id.clone());
        let run = world.get(&format!("/v1/runs/{id}"));
        if run["waiting_for"]["kind"] == "rate" {
            assert_eq!((&run["status"], &run["waiting_for"]["queue"]), (&json!("waiting"), &json!("model")));
            break;
        }
        assert!(runs.len() < 60, "no run waits: {run}");
    }
    let doctor = world.run(&["doctor"]).stdout;
    assert!(doctor.contains("rate         queue model: 40 requests a minute"), "{doctor}");
    for run in &runs {
        assert_eq!(world.outcome(run)["value"], "here I am");
    }
    let times = model.seen().times.clone();
    assert_eq!(times.len(), runs.len());
    for (count, time) in (1..).zip(&times) {
        let least = Duration::from_millis(1_500) * count;
        assert!(*time - before >= least, "request {count} came after {:?}", *time - before);
    }
}

/// Where a model has no answer for now, the one that is set as its fallback is asked, in the same attempt; what is wrong with a request
/// is not passed on, and what neither answers is waited for as the flow says.
#[test]
fn a_fallback_is_asked_where_a_model_has_no_answer_for_now() {
    let far = Reply::Plain(429, vec![("retry-after", "43200".to_owned())], String::new());
    for (first, second, told_words, asked_second) in [
        (far.clone(), Reply::Text("here I am".to_owned()), "here I am", 1),
        (Reply::Error(503), Reply::Text("here I am".to_owned()), "here I am", 1),
        (Reply::Error(401), Reply::Text("here I am".to_owned()), "MODEL_KEY", 0),
        (far, Reply::Error(401), "then m-2: ", 1),
    ] {
        let (model, next) =
            (ModelServer::start(move |_| first.clone()), ModelServer::start(move |_| second.clone()));
        let world = World::with_examples().with_variable("MODEL_KEY", KEY);
        let (one, two) = (model.url(), next.url());
        world.write(
            "outlast.toml",
            &format!(
                "[model]\nprovider = 'anthropic'\nurl = '{one}'\nname = 'm-1'\nkey_env = 'MODEL_KEY'\n\
                 [model.fallback]\nprovider = 'openai'\nurl = '{two}'\nname = 'm-2'\nkey_env = 'MODEL_KEY'\n"
            ),
        );
        let _server = agent(&world);
        idle(&world);
        assert!(told(&world).contains(told_words), "{told_words}: {}", told(&world));
        assert_eq!((requests(&model), requests(&next)), (1, asked_second), "{told_words}");
        no_faults(&next, told_words);
    }
}

/// Case MOD-11: a conversation that cannot be made small enough ends in an error that says what is large.
#[test]
fn an_overflow_that_stays_is_shown_and_not_tried_for_ever() {
    let overflow = json!({"error": {"code": "context_length_exceeded", "message": "too long"}}).to_string();
    let model = ModelServer::start(move |_| Reply::Plain(400, vec![], overflow.clone()));
    let world = world_of(&model, Protocol::Chat);
    let mut server = agent(&world);
    until("the second request", || requests(&model) >= 2);
    server.murder();
    let _server = world.host(&[]);
    idle(&world);
    // A request that was in hand is made again; those before it count.
    assert!(requests(&model) <= 5, "{} requests", requests(&model));
    assert!(told(&world).contains("bytes sent: system"), "{}", told(&world));
}

/// Case MOD-13: a tool that does not exist is answered, and no other takes its place.
#[test]
fn unknown_tools_are_answered_and_nothing_is_run() {
    let command = json!({"command": "touch ran"});
    for protocol in Protocol::ALL {
        let calls = vec![
            ("a", "nope", command.clone()),
            ("b", "SHELL", command.clone()),
            ("c", "shell ", command.clone()),
            ("d", "ghost__echo", command.clone()),
            ("e", "", command.clone()),
        ];
        let model = ModelServer::giving([Reply::Calls(calls), Reply::Text("I see".to_owned())]);
        let world = world_of(&model, protocol);
        let server = agent(&world);
        // What is not in the catalogue is asked about, four at a time; a refusal is an answer too.
        until("the agent to be idle", || {
            let run = world.get("/v1/runs/r");
            for question in run["questions"].as_array().into_iter().flatten() {
                let answer =
                    json!({"question": question["id"], "choice": "approve", "shown": question["shown"]});
                let _decided = world.post("/v1/runs/r/answers", &answer);
            }
            run["state"] == "Idle"
        });
        no_faults(&model, protocol.provider());
        let last = model.seen().bodies.last().cloned().unwrap();
        let answers: Vec<String> =
            heard(&last).into_iter().filter(|(role, _)| role == "tool").map(|(_, text)| text).collect();
        assert_eq!(answers.len(), 5, "{answers:?}");
        assert!(answers.iter().all(|text| text.starts_with("error: ")), "{answers:?}");
        assert!(!world.work().join("ran").exists());
        drop(server);
    }
}

/// Case MOD-08: no call of a turn that was cut is run, and a model that is always cut is not asked for ever.
#[test]
fn cut_turns_run_nothing_and_end() {
    for protocol in Protocol::ALL {
        let args = json!({"path": "x.txt", "content": "half of it"}).to_string();
        let model = ModelServer::start(move |body| {
            let turn = heard(body).len();
            let call = |part: &str| Part::Call(format!("{part}{turn}"), "write".to_owned(), args.clone());
            Reply::Says(
                vec![call("a"), Part::Call(format!("b{turn}"), "write".to_owned(), args[..9].to_owned())],
                Stop::Length,
            )
        });
        let world = world_of(&model, protocol);
        let _server = agent(&world);
        until("the end", || world.get("/v1/runs/r")["status"] == "ended");
        no_faults(&model, protocol.provider());
        let outcome = world.get("/v1/runs/r")["outcome"]["value"].clone();
        assert_eq!(outcome, json!({"type": "GaveUp", "turns": 5}));
        assert_eq!(requests(&model), 5, "as many turns as were allowed");
        assert!(!world.work().join("x.txt").exists());
        let last = model.seen().bodies.last().cloned().unwrap();
        assert!(
            heard(&last).iter().any(|(role, text)| role == "tool" && text.contains("cut at the token limit"))
        );
    }
}

/// Case STR-06: what was streamed before a kill is no turn; the model is asked once more.
#[test]
fn a_kill_in_the_middle_of_a_stream_asks_once_more() {
    let parts = [
        Part::Text("I will write it".to_owned()),
        Part::Call(
            "a".to_owned(),
            "write".to_owned(),
            "{\"path\": \"x.txt\", \"content\": \"half\"}".to_owned(),
        ),
    ];
    for (at, protocol) in Protocol::ALL.into_iter().enumerate() {
        for victim in [Role::Runtime, Role::Model] {
            let all = pieces(protocol, "m", &parts, Stop::End);
            // In the middle of the text, of the arguments, or before the end of all.
            let begun = all[..all.len() * (at + 2) / 5].to_vec();
            let model = ModelServer::giving([
                Reply::Stream(begun, Ending::Silence),
                Reply::Text("second try".to_owned()),
            ]);
            let world = world_of(&model, protocol);
            let mut server = agent(&world);
            until("the request", || requests(&model) == 1);
            if victim == Role::Runtime {
                server.murder();
                world.kill(Role::Model);
                server = world.host(&[]);
            } else {
                world.kill(Role::Model);
            }
            idle(&world);
            assert_eq!(requests(&model), 2, "{protocol:?}, {victim:?}");
            no_faults(&model, protocol.provider());
            let told = told(&world);
            assert!(told.contains("second try") && !told.contains("I will write"), "{protocol:?}: {told}");
            // What a lost attempt has used nobody can tell: it counts as all that it may cost.
            let cost: f64 = world.get("/v1/runs/r")["cost"].as_str().unwrap().parse().unwrap();
            assert_eq!(cost > 0.40, victim == Role::Model, "{protocol:?}, {victim:?}: {cost}");
            assert!(!world.work().join("x.txt").exists());
            drop(server);
        }
    }
}

/// Case STR-06: clients that follow a run are told that a turn begins anew. Where its worker alone was killed, the lost attempt is counted; where
/// the runtime went with it, it is the same attempt still, which costs what its answer costs.
#[test]
fn clients_are_told_of_a_kill_in_the_middle_of_a_stream() {
    let said = |text: &str| {
        let all = pieces(Protocol::Anthropic, "m", &[Part::Text(text.to_owned())], Stop::End);
        let (begun, rest) = all.split_at(all.len() * 3 / 5);
        (begun.to_vec(), rest.to_vec())
    };
    let serve = |model: ModelServer| {
        let world = world_of(&model, Protocol::Anthropic);
        let (server, api) = world.serve(&["examples/agent.flow"]);
        let start = json!({"flow": "Agent", "id": "r", "input": {"task": "go", "max_turns": 5}});
        assert_eq!(api.post("/v1/runs", &start).status, 201);
        (model, world, server, api)
    };
    let (_model, alone, _server, _) = serve(ModelServer::giving([Reply::Text("second try".to_owned())]));
    idle(&alone);
    let usual = alone.get("/v1/runs/r");
    for victim in [Role::Runtime, Role::Model] {
        // The second answer does not end before its beginning was seen.
        let directory = tempfile::tempdir().unwrap();
        let gate = directory.path().join("gate");
        std::fs::write(&gate, "").unwrap();
        let (again, rest) = said("second try");
        let (model, world, mut server, api) = serve(ModelServer::giving([
            Reply::Stream(said("I will write it").0, Ending::Silence),
            Reply::Stream(again, Ending::Held(gate.clone(), rest)),
        ]));
        let mut frames = api.stream("r", None);
        let (mut last, mut said) = (None, String::new());
        while !said.contains("I will") {
            let frame = frames.next().unwrap();
            last = frame.id.clone().or(last);
            if frame.event == "partial" {
                said.push_str(partial(&frame)["text"].as_str().unwrap_or_default());
            }
        }
        if victim == Role::Runtime {
            server.murder();
            world.kill(Role::Model);
            assert!(frames.all(|frame| frame.id.is_none()), "nothing happens any more, and the stream ends");
            let (again, api) = world.serve(&[]);
            server = again;
            frames = api.stream("r", last.as_deref());
        } else {
            world.kill(Role::Model);
        }
        while !is_anew(&frames.next().expect("the stream goes on")) {}
        std::fs::remove_file(&gate).unwrap();
        let emitted = frames.by_ref().find(|frame| frame.event == "emit").expect("the stream goes on").data;
        assert!(emitted.contains("second try") && !emitted.contains("I will"), "{victim:?}: {emitted}");
        idle(&world);
        assert_eq!(requests(&model), 2, "{victim:?}");
        let run = world.get("/v1/runs/r");
        assert_eq!(run["tokens"], usual["tokens"], "{victim:?}: of a lost attempt nobody was told");
        let lost = told(&world).matches("\"kind\":\"lost\"").count();
        assert_eq!(
            (lost == 1, run["cost"] == usual["cost"]),
            (victim == Role::Model, victim == Role::Runtime)
        );
        drop(server);
    }
}

/// Whether a frame says that output begins anew.
fn is_anew(frame: &Frame) -> bool {
    assert_ne!(frame.event, "emit", "the answer came first: {}", frame.data);
    frame.event == "partial" && (partial(frame)["restart"] == true || partial(frame)["offset"] == 0)
}

fn partial(frame: &Frame) -> Value {
    serde_json::from_str(&frame.data).expect("a frame has JSON")
}

/// Cases MOD-01, MOD-05, MOD-10: thoughts, calls and results of a turn that was interrupted come back whole, in each protocol.
#[test]
fn a_turn_with_thoughts_and_tools_survives_kills() {
    for protocol in Protocol::ALL {
        let command = |id: &str, script: &str| {
            Part::Call(id.to_owned(), "shell".to_owned(), json!({ "command": script }).to_string())
        };
        let turn = vec![
            Part::Thought("three things, \"quoted\"".to_owned()),
            command("a", "echo done-a"),
            command("b", "touch begun; while test -e gate; do sleep 0.01; done; echo done-b"),
            command("c", "exit 3"),
        ];
        let model = ModelServer::giving([
            Reply::Says(turn, Stop::End),
            Reply::Says(vec![Part::Thought("now".to_owned()), Part::Text("all three".to_owned())], Stop::End),
            Reply::Text("and again".to_owned()),
        ]);
        let world = world_of(&model, protocol);
        world.write("gate", "");
        let mut server = agent(&world);
        until("b to run", || world.work().join("begun").exists());
        server.murder();
        world.kill(Role::Tool);
        let _server = world.host(&[]);
        idle(&world);
        let say = json!({"type": "Say", "value": {"text": "and now?"}, "id": "m"});
        assert_eq!(world.post("/v1/runs/r/messages", &say).status, 202);
        until("the next turn", || told(&world).contains("and again"));
        no_faults(&model, protocol.provider());
        let last = model.seen().bodies.last().cloned().unwrap();
        let results = heard(&last).into_iter().filter(|(role, _)| role == "tool").count();
        assert_eq!((results, requests(&model)), (3, 3), "{protocol:?}: {last}");
    }
}

/// A flow gets a value of its own type, and what does not fit is an error that it can handle.
#[test]
fn a_flow_gets_values_of_its_own_types() {
    for protocol in Protocol::ALL {
        // The schema is a record, which stands for itself.
        let value: Value = json!({"from": "Ann", "total": 12, "state": {"type": "Paid", "on": "Monday"}});
        let model =
            ModelServer::giving([Reply::Text(value.to_string()), Reply::Text("It is from Ann.".to_owned())]);
        let world = with_model(World::with_flows(), &model, protocol);
        let run = |id: &str| {
            world.json(&[
                "run",
                "flows/extracted.flow",
                "--input",
                "{\"letter\": \"Dear\"}",
                "--id",
                id,
                "--output",
                "json",
            ])
        };
        assert_eq!(run("a")["outcome"]["value"], "Ann: 12", "{protocol:?}");
        let second = run("b")["outcome"]["value"].to_string();
        assert!(second.contains("failed: the answer is not what was asked for"), "{protocol:?}: {second}");
        no_faults(&model, protocol.provider());
    }
}

/// A key that is nowhere is named where somebody sees it: the run itself only waits.
#[test]
fn a_key_that_is_not_set_is_named_at_the_start() {
    let world = World::with_examples()
        .with_variable("OUTLAST_MODEL_URL", "http://127.0.0.1:1/v1")
        .with_variable("OUTLAST_MODEL", "m")
        .with_variable("OUTLAST_MODEL_KEY_ENV", "NO_SUCH_KEY");
    let end = world.run(&["run", "--task", "go", "--timeout", "100ms"]);
    assert_eq!(end.code, Some(124), "{end:?}");
    assert!(end.stderr.contains("NO_SUCH_KEY, which holds the model's key, is not set here"), "{end:?}");
}
