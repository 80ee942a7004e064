//! What a model does not see of a long answer is kept whole: it reads on by its name, also after kills, and people fetch it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::model_server::{KEY, ModelServer, Reply, count, last_text, messages};
use outlast_tests::process::until;
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};

/// Five megabytes of numbers, with a secret among them.
const COMMAND: &str = "seq 1 400000; echo \"key=$DEPLOY_KEY\"; seq 400001 750000";

/// The value of the secret.
const CANARY: &str = "canary-55-of-deploy";

/// The name that stands in a text.
fn name_in(text: &str) -> Option<String> {
    let at = text.find("blob:")?;
    text.get(at..at + "blob:".len() + 64).map(str::to_owned)
}

/// What the model was told of its calls so far.
fn told(body: &Value) -> Vec<&str> {
    let results = messages(body).iter().filter(|message| message["role"] == "tool");
    results.filter_map(|message| message["content"].as_str()).collect()
}

/// A model that makes a call in its first turn, reads on in its second one, and repeats what it was told.
fn reads_on(tool: &'static str, args: Value, offset: u64) -> ModelServer {
    ModelServer::start(move |body| match messages(body).last() {
        Some(last) if last["role"] == "user" && count(body, "tool") == 0 => Reply::Call(tool, args.clone()),
        Some(last) if last["role"] == "user" => {
            let name = told(body).into_iter().find_map(name_in).unwrap_or_default();
            Reply::Call("read", json!({"path": name, "offset": offset, "limit": 3}))
        }
        Some(_) | None => Reply::Text(format!("told: {}", last_text(body, "tool"))),
    })
}

/// Starts the agent in a world whose rules allow all that it will do; returns when its first turn is over.
fn first_turn(model: &ModelServer) -> (World, outlast_tests::process::Process) {
    let world = World::with_examples()
        .with_variable("OUTLAST_MODEL_URL", &model.url())
        .with_variable("OPENAI_API_KEY", KEY)
        .with_variable("DEPLOY_KEY", CANARY);
    let rules = "[permissions]\nallow = ['shell']\n[environment]\nvariables = ['DEPLOY_KEY']\nsecrets = ['DEPLOY_KEY']\n";
    world.write("outlast.toml", rules);
    let server = world.host(&["examples/agent.flow"]);
    world.begin("Agent", "r", &json!({"task": "go"}));
    until("the first turn to end", || world.get("/v1/runs/r")["state"] == "Idle");
    (world, server)
}

/// Has the agent read on, and returns what its model was told.
fn second_turn(world: &World, model: &ModelServer) -> String {
    let before = model.conversations().len();
    assert_eq!(
        world.post("/v1/runs/r/messages", &json!({"type": "Say", "value": {"text": "read on"}})).status,
        202
    );
    until("the second turn to end", || {
        model.conversations().len() == before + 2 && world.get("/v1/runs/r")["state"] == "Idle"
    });
    let bodies = model.seen();
    let told = told(bodies.bodies.last().unwrap()).last().map(|text| (*text).to_owned());
    told.unwrap()
}

/// Case LIM-04: the run goes on after everything was killed, and what was left out is there.
#[test]
fn five_megabytes_of_a_command_are_read_on_after_a_kill_and_hold_no_secret() {
    let model = reads_on("shell", json!({ "command": COMMAND }), 400_000);
    let (world, mut server) = first_turn(&model);
    let cut = told(model.seen().bodies.last().unwrap())[0].to_owned();
    assert!(cut.len() < 60_000 && cut.starts_with("1\n2\n") && cut.contains("\n750000\n["), "{}", cut.len());
    let name = name_in(&cut).unwrap();
    assert!(
        cut.contains("bytes left out …]") && cut.contains(&format!("the whole is {name}: read it with")),
        "{cut}"
    );
    server.murder();
    for role in [Role::Tool, Role::Model] {
        world.kill(role);
    }
    let _server = world.host(&[]);
    assert_eq!(second_turn(&world, &model), "400000\nkey=[secret DEPLOY_KEY]\n400001\n");
    let fetched = world.run(&["blob", &name, "--out", "whole.txt"]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    let whole = world.file("whole.txt");
    assert_eq!(whole.lines().count(), 750_001);
    assert!(whole.ends_with("\n749999\n750000\n") && !whole.contains(CANARY));
}

/// Files, searches and lines without end are cut and kept by the same rule.
#[test]
fn what_is_left_out_of_a_file_or_a_search_can_be_read_too() {
    for (tool, args, offset, expected) in [
        ("read", json!({"path": "long.txt"}), 29_999, "line 29999\nline 30000\n".to_owned()),
        (
            "grep",
            json!({"pattern": "line", "path": "long.txt"}),
            9_999,
            "long.txt:9999: line 9999\nlong.txt:10000: line 10000\nlong.txt:10001: line 10001\n".to_owned(),
        ),
        // A line of 100,000 bytes is read in pieces of 4 KiB.
        ("read", json!({"path": "one-line.txt"}), 25, "x".repeat(100_000 - 24 * 4_095)),
    ] {
        let model = reads_on(tool, args.clone(), offset);
        let (world, server) = {
            // The files must be there before the agent begins.
            let world = World::with_examples()
                .with_variable("OUTLAST_MODEL_URL", &model.url())
                .with_variable("OPENAI_API_KEY", KEY);
            world.write("long.txt", &(1..=30_000).map(|n| format!("line {n}\n")).collect::<String>());
            world.write("one-line.txt", &"x".repeat(100_000));
            let server = world.host(&["examples/agent.flow"]);
            world.begin("Agent", "r", &json!({"task": "go"}));
            until("the first turn to end", || world.get("/v1/runs/r")["state"] == "Idle");
            (world, server)
        };
        assert_eq!(second_turn(&world, &model), expected, "{tool} {args}");
        drop(server);
    }
}

/// Serves this text to whoever asks, and returns where.
fn page(text: String) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut asked = [0; 4096];
            let _request = client.read(&mut asked);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                text.len()
            );
            let _gone = client.write_all(head.as_bytes()).and_then(|()| client.write_all(text.as_bytes()));
        }
    });
    format!("http://{place}")
}

/// Case LIM-04: a page is cut for the model and kept whole, as the output of a command is.
#[test]
fn a_long_page_is_read_on_after_a_kill() {
    let place = page((1..=500_000).map(|n| format!("row {n}\n")).collect());
    let model = reads_on("fetch", json!({"url": format!("{place}/rows")}), 300_000);
    let world = World::with_examples()
        .with_variable("OUTLAST_MODEL_URL", &model.url())
        .with_variable("OPENAI_API_KEY", KEY);
    world.write("outlast.toml", &format!("[permissions]\nallow = ['fetch({place}/*)']\n"));
    let mut server = world.host(&["examples/agent.flow"]);
    world.begin("Agent", "r", &json!({"task": "go"}));
    until("the first turn to end", || world.get("/v1/runs/r")["state"] == "Idle");
    let cut = told(model.seen().bodies.last().unwrap())[0].to_owned();
    assert!(cut.len() < 60_000 && cut.contains("row 1\n") && cut.contains("bytes left out"), "{}", cut.len());
    let name = name_in(&cut).unwrap();
    server.murder();
    world.kill(Role::Tool);
    world.kill(Role::Model);
    let _server = world.host(&[]);
    assert_eq!(second_turn(&world, &model), "row 300000\nrow 300001\nrow 300002\n");
    let fetched = world.run(&["blob", &name, "--out", "whole.txt"]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert_eq!(world.file("whole.txt").lines().count(), 500_000);
}
