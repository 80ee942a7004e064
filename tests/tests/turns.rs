//! Conversations over many turns: results that come together, turns with nothing in them, summaries, forks, long streams, many runs at once.
//!
//! Leaves what single answers look like to the tests of the workers, and what refusals do to one run to `models.rs`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use outlast_tests::model_server::speak::{heard, pieces};
use outlast_tests::model_server::{Ending, KEY, ModelServer, Part, Protocol, Reply, Stop};
use outlast_tests::process::{Process, until};
use outlast_tests::random::{Random, is_whole, repeats};
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

fn world_of(model: &ModelServer, protocol: Protocol) -> World {
    World::with_examples()
        .with_variable("OUTLAST_MODEL_PROVIDER", protocol.provider())
        .with_variable("OUTLAST_MODEL_URL", &model.url())
        .with_variable("OUTLAST_MODEL_KEY_ENV", "MODEL_KEY")
        .with_variable("MODEL_KEY", KEY)
}

fn begin(world: &World, run: &str) {
    let input = json!({"task": "go", "max_turns": 5});
    let start = json!({"flow": "Agent", "id": run, "input": input, "permissions": {"allow": ["shell(*)"]}});
    let answer = world.post("/v1/runs", &start);
    assert_eq!(answer.status, 201, "{}", answer.body);
}

fn agent(world: &World) -> Process {
    let server = world.host(&["examples/agent.flow"]);
    begin(world, "r");
    server
}

fn idle(world: &World, run: &str) {
    until("the agent to be idle", || {
        let run = world.get(&format!("/v1/runs/{run}"));
        run["state"] == "Idle" && run["unread"] == json!([])
    });
}

fn say(world: &World, run: &str, id: &str, text: &str) {
    let say = json!({"type": "Say", "value": {"text": text}, "id": id});
    let answer = world.post(&format!("/v1/runs/{run}/messages"), &say);
    assert_eq!(answer.status, 202, "{}", answer.body);
}

fn told(world: &World, run: &str) -> String {
    world.get(&format!("/v1/runs/{run}/events?limit=1000")).to_string()
}

fn no_faults(model: &ModelServer, what: &str) {
    assert_eq!(model.seen().faults, Vec::<String>::new(), "{what}");
}

fn shell(id: &str, command: &str) -> Part {
    Part::Call(id.to_owned(), "shell".to_owned(), json!({"command": command, "timeout": "20s"}).to_string())
}

/// A conversation that is too long, as a provider says it.
fn overflow() -> Reply {
    let body = json!({"error": {"code": "context_length_exceeded", "message": "too long"}});
    Reply::Plain(400, vec![], body.to_string())
}

/// Case MOD-05: three tools end at once, one of them badly, while somebody speaks and processes are killed. Each call has one result, in one
/// message behind its turn, which the server demands of every request; and nothing that was said is lost. As a whole: 200 rounds.
#[test]
fn three_results_stand_behind_their_turn_whoever_speaks_and_whatever_is_killed() {
    let mut random = Random::from_environment(5);
    let model = ModelServer::start(|body| {
        let said = heard(body);
        match said.last() {
            Some((role, text)) if role == "user" && text.contains("go") => {
                let id = |part: &str| format!("{part}{}", said.len());
                let calls = [("a", "echo a"), ("b", "exit 3"), ("c", "echo c")];
                Reply::Says(calls.map(|(part, command)| shell(&id(part), command)).into(), Stop::End)
            }
            Some(_) | None => Reply::Text("well".to_owned()),
        }
    });
    let rounds = repeats(if is_whole() { 200 } else { 6 });
    let protocols = Protocol::ALL;
    let world = world_of(&model, protocols[usize::try_from(random.below(3)).unwrap()]);
    let mut server = agent(&world);
    idle(&world, "r");
    for round in 0..rounds {
        say(&world, "r", &format!("go-{round}"), &format!("go {round}."));
        server.work_for(Duration::from_micros(random.below(60_000)));
        say(&world, "r", &format!("and-{round}"), &format!("and {round}."));
        server.work_for(Duration::from_micros(random.below(20_000)));
        server.murder();
        if random.below(3) == 0 {
            world.kill(Role::Tool);
        }
        if random.below(3) == 0 {
            world.kill(Role::Model);
        }
        server = world.host(&[]);
        idle(&world, "r");
        no_faults(&model, &format!("round {round}"));
    }
    say(&world, "r", "last", "and now?");
    until("the last turn", || {
        heard(model.seen().bodies.last().unwrap()).iter().any(|(_, text)| text.contains("and now?"))
    });
    idle(&world, "r");
    no_faults(&model, "at the end");
    let said = heard(model.seen().bodies.last().unwrap());
    let words: String =
        said.iter().filter(|(role, _)| role == "user").map(|(_, text)| text.clone() + "\n").collect();
    for round in 0..rounds {
        for word in [format!("go {round}."), format!("and {round}.")] {
            assert_eq!(words.matches(&word).count(), 1, "{word} in {words}");
        }
    }
    let results = said.iter().filter(|(role, _)| role == "tool").count();
    assert!(results >= 3 && results % 3 == 0, "{results} results: {said:?}");
}

/// Case MOD-06: a turn of calls beside empty text, one beside a line break, one with nothing in it, an empty result; then a restart. The
/// conversation goes on, and the empty turn was asked for once more.
#[test]
fn turns_and_results_with_nothing_in_them_poison_no_conversation() {
    for protocol in Protocol::ALL {
        let text = |text: &str| Part::Text(text.to_owned());
        let model = ModelServer::giving([
            Reply::Says(vec![text(""), shell("a", "true")], Stop::End),
            Reply::Says(vec![text("\n"), shell("b", "true")], Stop::End),
            Reply::Says(vec![], Stop::End),
            Reply::Text("done".to_owned()),
            Reply::Text("and again".to_owned()),
        ]);
        let world = world_of(&model, protocol);
        let mut server = agent(&world);
        until("the answer", || told(&world, "r").contains("\"done\""));
        server.murder();
        world.kill(Role::Model);
        let _server = world.host(&[]);
        say(&world, "r", "m", "once more");
        until("the next answer", || told(&world, "r").contains("and again"));
        no_faults(&model, protocol.provider());
        assert_eq!(model.seen().bodies.len(), 5, "{protocol:?}: the empty turn was asked for again");
    }
}

/// Case MOD-11: summaries succeed and do not help. After three of them the error is shown, with what is large; a restart in between does not
/// begin to count anew, and no tool runs meanwhile.
#[test]
fn a_conversation_that_no_summary_helps_is_given_up_and_says_what_is_large() {
    let model = ModelServer::start(|body| match body["tools"].as_array() {
        Some(tools) if !tools.is_empty() => overflow(),
        Some(_) | None => Reply::Text("a summary".to_owned()),
    });
    let is_summary = |body: &Value| body["tools"].as_array().is_none_or(Vec::is_empty);
    let world = world_of(&model, Protocol::Chat);
    let mut server = agent(&world);
    until("the second summary", || model.seen().bodies.iter().filter(|body| is_summary(body)).count() >= 2);
    server.murder();
    world.kill(Role::Model);
    let _server = world.host(&[]);
    idle(&world, "r");
    let summaries = model.seen().bodies.iter().filter(|body| is_summary(body)).count();
    // One that was in hand is made again.
    assert!((3..=4).contains(&summaries), "{summaries} summaries");
    let shown = told(&world, "r");
    assert!(shown.contains("Failed: ") && shown.contains("bytes sent: system"), "{shown}");
    assert!(!shown.contains("\"activity\":\"tool\""), "{shown}");
    no_faults(&model, "summaries");
    // It is the person's turn: what they say next counts anew.
    say(&world, "r", "m", "shorter, please");
    idle(&world, "r");
}

/// Cases MOD-01 and MOD-10: a turn with thoughts whose tool ran out of time goes into a fork byte by byte, and can be summarised.
#[test]
fn a_turn_with_thoughts_and_a_tool_out_of_time_goes_into_forks_and_summaries() {
    for protocol in Protocol::ALL {
        let slow = json!({"command": "sleep 100", "timeout": "100ms"}).to_string();
        let turn = vec![
            Part::Thought("two things, \"quoted\"\u{2028}".to_owned()),
            shell("a", "echo a"),
            Part::Call("b".to_owned(), "shell".to_owned(), slow),
        ];
        let model = ModelServer::giving([
            Reply::Says(turn, Stop::End),
            Reply::Text("both".to_owned()),
            Reply::Text("in the fork".to_owned()),
            overflow(),
            Reply::Text("a summary".to_owned()),
            Reply::Text("after the summary".to_owned()),
        ]);
        let world = world_of(&model, protocol);
        let _server = agent(&world);
        until("the first answer", || told(&world, "r").contains("\"both\""));
        assert!(told(&world, "r").contains("timed out after"), "{protocol:?}");
        idle(&world, "r");
        let forked = world.post("/v1/runs/r/fork", &json!({"id": "f"}));
        assert_eq!(forked.status, 201, "{}", forked.body);
        say(&world, "f", "m", "go on");
        until("the answer in the fork", || told(&world, "f").contains("in the fork"));
        let body = model.seen().bodies.last().unwrap().clone();
        assert_eq!(heard(&body).iter().filter(|(role, _)| role == "tool").count(), 2, "{protocol:?}: {body}");
        idle(&world, "r");
        say(&world, "r", "m", "and now?");
        until("the answer after the summary", || told(&world, "r").contains("after the summary"));
        no_faults(&model, protocol.provider());
        assert_eq!(model.seen().bodies.len(), 6, "{protocol:?}");
    }
}

/// Case FRK-01: ten turns, then a fork at the fourth: its history and what its model is sent hold the turns up to there and nothing of the later
/// ones; so does one from the very first message. The first run goes on as it was (case FRK-02).
#[test]
fn a_fork_in_the_middle_of_a_conversation_knows_nothing_of_what_came_after() {
    let model = ModelServer::start(|body| {
        let last = heard(body).into_iter().rfind(|(role, _)| role == "user");
        Reply::Text(format!("answer to {}", last.map(|(_, text)| text).unwrap_or_default()))
    });
    let world = world_of(&model, Protocol::Anthropic);
    let mut server = agent(&world);
    idle(&world, "r");
    for turn in 1..=10 {
        say(&world, "r", &format!("m{turn}"), &format!("turn {turn}."));
        until("the answer", || told(&world, "r").contains(&format!("answer to turn {turn}.")));
        idle(&world, "r");
    }
    let before = world.history("r");
    let at =
        before.iter().find(|event| event["kind"] == "emit" && event["value"] == "answer to turn 4.").unwrap();
    let at = at["n"].as_u64().unwrap();
    for (fork, at, known) in [("f", at, 4), ("g", 1, 0)] {
        let forked = world.post("/v1/runs/r/fork", &json!({"id": fork, "at": at}));
        assert_eq!(forked.status, 201, "{}", forked.body);
        server.murder();
        server = world.host(&[]);
        idle(&world, fork);
        say(&world, fork, "m", "another way.");
        until("the answer", || told(&world, fork).contains("answer to another way."));
        let sent = model.seen().bodies.last().unwrap().to_string();
        let stored = told(&world, fork);
        for turn in 1..=10 {
            let word = format!("turn {turn}.");
            let expected = turn <= known;
            assert_eq!(
                (sent.contains(&word), stored.contains(&word)),
                (expected, expected),
                "{fork}: {word}"
            );
        }
        assert_eq!(world.history("r"), before, "the first run is as it was");
    }
    say(&world, "r", "on", "turn 11.");
    until("the answer", || told(&world, "r").contains("answer to turn 11."));
    let sent = model.seen().bodies.last().unwrap().to_string();
    assert!(sent.contains("turn 10.") && !sent.contains("another way."), "{sent}");
    no_faults(&model, "forks");
    let tree = world.get("/v1/runs/f/tree")["items"].as_array().unwrap().len();
    assert_eq!(tree, 3);
}

/// The most memory that a process has had, in MiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

/// Case STR-05: a hundred thousand pieces are one event, and no process holds more than a part of what goes through it.
#[test]
fn a_hundred_thousand_pieces_of_a_stream_are_one_event() {
    let words = "a ".repeat(100_000);
    let all = pieces(Protocol::Chat, "m", &[Part::Text(words.clone())], Stop::End);
    assert!(all.len() > 90_000, "{}", all.len());
    let chunks: Vec<String> = all.chunks(1_000).map(<[String]>::concat).collect();
    let model = ModelServer::giving([Reply::Stream(chunks, Ending::Close)]);
    let world = world_of(&model, Protocol::Chat);
    let server = agent(&world);
    idle(&world, "r");
    let events = world.history("r");
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["started", "done", "emit"]);
    assert!(told(&world, "r").contains(words.trim_end()));
    for pid in world.pids(Role::Model).into_iter().chain([server.pid()]) {
        assert!(peak(pid) < 256, "{} MiB", peak(pid));
    }
}

/// Case RTY-03: twenty runs are refused at once. Each asks once or twice and shows the setting; with the key mended the same runs go on.
#[test]
fn twenty_runs_that_are_refused_ask_at_most_twice_and_go_on_when_the_key_is_mended() {
    const RUNS: usize = 20;
    let model = ModelServer::start(|_| Reply::Text("here I am".to_owned()));
    model.seen().key = Some("another".to_owned());
    let world = world_of(&model, Protocol::Anthropic);
    let _server = world.host(&["examples/agent.flow"]);
    let runs: Vec<String> = (0..RUNS).map(|number| format!("r{number}")).collect();
    for run in &runs {
        begin(&world, run);
    }
    for run in &runs {
        idle(&world, run);
        assert!(told(&world, run).contains("environment variable MODEL_KEY"), "{run}");
    }
    let asked = model.seen().bodies.len();
    assert!((RUNS..=2 * RUNS).contains(&asked), "{asked} requests");
    model.seen().key = None;
    for run in &runs {
        say(&world, run, "m", "again");
    }
    for run in &runs {
        until("the answer", || told(&world, run).contains("here I am"));
    }
    assert_eq!(model.seen().bodies.len(), asked + RUNS, "nothing was tried in the background");
}
