//! What an approval covers: one row for each thing that can change between the answer and the call, and for each answer that is not
//! the one that was asked for. See the table in the page about the tool worker.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use outlast_tests::model_server::{KEY, ModelServer, Reply, messages};
use outlast_tests::process::{Process, until};
use outlast_tests::socket::Answer;
use outlast_tests::world::{Role, World, binary};
use serde_json::{Value, json};

const FLOW: &str = "flows/looked.flow";

/// What becomes of an approved call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Became {
    /// It is refused, and this is named as what has changed; `{}` is the folder of the row.
    Stale(&'static str),
    /// It runs.
    Ran,
    /// It is made and fails by itself, with these words.
    Failed(&'static str),
}
use Became::{Failed, Ran, Stale};

/// A call, and what happens to the folder that it is about until it is made.
struct Row {
    name: &'static str,
    tool: &'static str,
    /// `{}` stands for the folder of the row.
    args: Value,
    changes: fn(&Path),
    became: Became,
}

fn row(name: &'static str, tool: &'static str, args: Value, changes: fn(&Path), became: Became) -> Row {
    Row { name, tool, args, changes, became }
}

fn command(name: &'static str, line: &str, changes: fn(&Path), became: Became) -> Row {
    row(name, "shell", json!({ "command": line }), changes, became)
}

fn write(name: &'static str, path: &str, changes: fn(&Path), became: Became) -> Row {
    row(name, "write", json!({"path": path, "text": "written\n"}), changes, became)
}

fn edit(name: &'static str, changes: fn(&Path), became: Became) -> Row {
    row(name, "edit", json!({"path": "{}/file", "old": "one", "new": "two"}), changes, became)
}

fn executable(path: &Path, yes: bool) {
    fs::set_permissions(path, PermissionsExt::from_mode(if yes { 0o755 } else { 0o644 })).unwrap();
}

/// Makes a script that leaves `word` in the log beside it.
fn script(path: &Path, word: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let log = path.parent().unwrap().parent().unwrap().join("log");
    fs::write(path, format!("#!/bin/sh\necho {word} >> {}\n", log.display())).unwrap();
    executable(path, true);
}

/// What is in the folder of each row.
fn furnish(folder: &Path) {
    script(&folder.join("d/good.sh"), "good");
    script(&folder.join("e/good.sh"), "evil");
    script(&folder.join("bin/tool"), "good");
    symlink("d/good.sh", folder.join("link")).unwrap();
    fs::write(folder.join("file"), "one\n").unwrap();
    fs::write(folder.join("same"), "one\n").unwrap();
}

/// Puts a new file of the same content in the place of one.
fn replaced_by_itself(path: &Path) {
    let copy = path.with_extension("copy");
    fs::copy(path, &copy).unwrap();
    fs::rename(&copy, path).unwrap();
}

fn linked(folder: &Path, name: &str, to: &str) {
    let path = folder.join(name);
    if path.is_dir() && !path.is_symlink() {
        fs::rename(&path, folder.join("moved")).unwrap();
    } else {
        let _absent = fs::remove_file(&path);
    }
    symlink(to, path).unwrap();
}

fn commands() -> Vec<Row> {
    vec![
        command("unchanged", "{}/d/good.sh", |_| {}, Ran),
        command("bytes", "{}/d/good.sh", |at| script(&at.join("d/good.sh"), "evil"), Stale("{}/d/good.sh")),
        command("other-inode", "{}/d/good.sh", |at| replaced_by_itself(&at.join("d/good.sh")), Ran),
        command(
            "not-run",
            "sh {}/d/good.sh",
            |at| executable(&at.join("d/good.sh"), false),
            Stale("good.sh"),
        ),
        command(
            "deleted",
            "{}/d/good.sh",
            |at| fs::remove_file(at.join("d/good.sh")).unwrap(),
            Stale("good.sh"),
        ),
        command("created", "sh {}/new/x.sh", |at| script(&at.join("new/x.sh"), "evil"), Stale("{}/new/x.sh")),
        command("retargeted", "{}/link", |at| linked(at, "link", "e/good.sh"), Stale("{}/e/good.sh")),
        command("folder-link", "cd {}/d && ./good.sh", |at| linked(at, "d", "e"), Stale("{}/e/good.sh")),
        command(
            "by-path",
            "PATH={}/bin:$PATH; tool",
            |at| script(&at.join("bin/tool"), "evil"),
            Stale("{}/bin/tool"),
        ),
        // No word of the line is the name of what it runs: that is the limit.
        command("unnamed", "D=d; {}/$D/good.sh", |at| script(&at.join("d/good.sh"), "unnamed"), Ran),
    ]
}

fn files() -> Vec<Row> {
    let remove = |at: &Path| fs::remove_file(at.join("file")).unwrap();
    let folder = |at: &Path| {
        fs::remove_file(at.join("file")).unwrap();
        fs::create_dir(at.join("file")).unwrap();
    };
    let to_same = |at: &Path| linked(at, "file", "same");
    let path = "where the path leads";
    vec![
        write("write", "{}/file", |at| replaced_by_itself(&at.join("file")), Ran),
        write("write-changed", "{}/file", |at| fs::write(at.join("file"), "new").unwrap(), Stale("{}/file")),
        write("write-deleted", "{}/file", remove, Stale("{}/file")),
        write("write-folder", "{}/file", folder, Stale("{}/file")),
        write("write-link", "{}/file", to_same, Stale(path)),
        write("write-link-out", "{}/file", |at| linked(at, "file", "/nowhere/else"), Stale(path)),
        write("write-created", "{}/new", |at| fs::write(at.join("new"), "new").unwrap(), Stale("{}/new")),
        write(
            "write-new-folder",
            "{}/new",
            |at| fs::create_dir(at.join("new")).unwrap(),
            Failed("is no file"),
        ),
        write("write-parent", "{}/d/new", |at| linked(at, "d", "e"), Stale(path)),
        edit("edit", |at| replaced_by_itself(&at.join("file")), Ran),
        edit("edit-near", |at| fs::write(at.join("file"), "one\nmore\n").unwrap(), Stale("the lines around")),
        edit("edit-twice", |at| fs::write(at.join("file"), "one\none\n").unwrap(), Stale("the lines around")),
        edit("edit-deleted", remove, Stale("the lines around")),
        edit("edit-folder", folder, Stale("the lines around")),
        edit("edit-link", to_same, Stale(path)),
        row(
            "append",
            "append",
            json!({"path": "{}/file", "line": "x"}),
            |at| {
                fs::write(at.join("file"), "new\n").unwrap();
            },
            Ran,
        ),
        row("append-link", "append", json!({"path": "{}/file", "line": "x"}), to_same, Stale(path)),
        row(
            "read-link",
            "read",
            json!({"path": "{}/file"}),
            |at| linked(at, "file", "d/good.sh"),
            Stale(path),
        ),
    ]
}

fn ask(world: &World, run: &str, tool: &str, args: &Value) -> Value {
    world.begin("Looked", run, &json!({"name": tool, "args": args}));
    world.questions(run, 1)[0].clone()
}

fn answer(world: &World, run: &str, question: &Value, more: &Value) -> Answer {
    let mut body = json!({"question": question["id"], "choice": "approve", "shown": question["shown"]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.post(&format!("/v1/runs/{run}/answers"), &body)
}

/// Approves what a question shows; what became of the call.
fn approve(world: &World, run: &str, question: &Value) -> Value {
    let answer = answer(world, run, question, &json!({}));
    assert_eq!(answer.status, 200, "{run}: {}", answer.body);
    world.outcome(run)["value"].clone()
}

fn assert_became(became: &Value, expected: Became, row: &str) {
    let text = became["text"].as_str().unwrap_or_default();
    match expected {
        Ran => assert_eq!(became["ok"], true, "{row}: {became}"),
        Failed(why) => assert!(became["ok"] == false && text.contains(why), "{row}: {became}"),
        Stale(what) => {
            let what = what.replace("{}", row);
            assert!(became["kind"] == "ApprovalStale" && text.contains(&what), "{row}: {became}");
        }
    }
}

/// All rows at once; everything is killed between the change and the answer.
#[test]
fn what_was_changed_is_not_run_and_what_was_not_is() {
    let world = World::with_flows();
    let work = world.work();
    let mut server = world.host(&[FLOW]);
    let mut rows = Vec::new();
    for row in commands().into_iter().chain(files()) {
        let folder = work.join(row.name);
        fs::create_dir(&folder).unwrap();
        furnish(&folder);
        let args = serde_json::from_str(&row.args.to_string().replace("{}", row.name)).unwrap();
        let question = ask(&world, row.name, row.tool, &args);
        (row.changes)(&folder);
        rows.push((row, question));
    }
    server.murder();
    world.kill(Role::Tool);
    server = world.host(&[]);
    for (row, question) in rows {
        let became = approve(&world, row.name, &question);
        assert_became(&became, row.became, row.name);
        let log = world.file(&format!("{}/log", row.name));
        assert!(!log.contains("evil") && (row.became == Ran || log.is_empty()), "{}: {log}", row.name);
        let same = world.file(&format!("{}/same", row.name));
        assert_eq!(same, "one\n", "{}: nothing was changed through a link", row.name);
    }
    drop(server);
}

/// Programs by name are those that `PATH` leads to, and what a command goes by are the values of its variables.
#[test]
fn another_program_and_another_environment_are_refused() {
    let world = World::with_flows();
    let work = world.work();
    for tool in ["kept", "changed", "hidden", "locked"] {
        script(&work.join("last").join(tool), tool);
    }
    script(&work.join("last/gone"), "gone");
    fs::create_dir(work.join("first")).unwrap();
    let path = |more: &str| {
        let usual = std::env::var("PATH").unwrap();
        format!("{}/first:{}/last:{usual}{more}", work.display(), work.display())
    };
    world.write("outlast.toml", "[environment]\nvariables = [\"STAGE\", \"KEY\"]\nsecrets = [\"KEY\"]\n");
    let begin = |stage: &str, key: &str, more: &str| -> Process {
        let mut command = world.command(&["serve", "--json", FLOW]);
        command.env("PATH", path(more)).env("STAGE", stage).env("KEY", key).env("TERM", key);
        let mut server = Process::start(&mut command);
        let _ready = server.line("the address", |line| line.contains("\"socket\""));
        server
    };
    let mut server = begin("test", "key-number-1", "");
    let asked = |run: &'static str, line: &str| (run, ask(&world, run, "shell", &json!({ "command": line })));
    let programs = [
        asked("kept", "kept"),
        asked("changed", "true && changed now"),
        asked("hidden", "hidden"),
        asked("locked", "locked"),
        asked("gone", "sh -c 'gone'"),
        asked("came", "came || true"),
    ];
    let (other_stage, other_path) = (asked("stage", "echo $STAGE"), asked("path", "true"));
    let same = asked("same", "echo $KEY");
    script(&work.join("last/changed"), "evil");
    script(&work.join("first/hidden"), "evil");
    script(&work.join("first/came"), "evil");
    executable(&work.join("last/locked"), false);
    fs::remove_file(work.join("last/gone")).unwrap();
    for (run, question) in programs {
        let expected = if run == "kept" { Ran } else { Stale("the program {}") };
        assert_became(&approve(&world, run, &question), expected, run);
    }
    assert_eq!(world.file("log"), "kept\n");
    let again = |server: &mut Process, stage: &str, key: &str, more: &str| {
        server.murder();
        world.kill(Role::Tool);
        *server = begin(stage, key, more);
    };
    // A key that was renewed, or another terminal, is no other environment.
    again(&mut server, "test", "key-number-2", "");
    assert_became(&approve(&world, "same", &same.1), Ran, "same");
    again(&mut server, "live", "key-number-2", "");
    assert_became(&approve(&world, "stage", &other_stage.1), Stale("what commands know"), "stage");
    again(&mut server, "test", "key-number-2", ":/somewhere/else");
    assert_became(&approve(&world, "path", &other_path.1), Stale("what commands know"), "path");
    let shown = [&same.1, &other_stage.1, &other_path.1].map(Value::to_string).concat();
    assert!(!shown.contains("key-number"), "{shown}");
}

/// The directory itself leads elsewhere while the worker goes on.
#[test]
fn a_directory_that_was_exchanged_is_refused() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", FLOW]);
    let (here, there) = (world.work().join("here"), world.work().join("there"));
    fs::create_dir(&here).unwrap();
    fs::create_dir(&there).unwrap();
    let _worker = Process::start(world.command(&["worker", "tool"]).current_dir(&here));
    let question = ask(&world, "r", "shell", &json!({"command": "echo x >> log"}));
    fs::rename(&here, world.work().join("moved")).unwrap();
    symlink(&there, &here).unwrap();
    assert_became(&approve(&world, "r", &question), Stale("the working directory"), "r");
    assert!(!there.join("log").exists());
}

/// A server's tool: what it is, where it comes from, whether it is there.
#[test]
fn a_servers_tool_is_called_as_it_was_approved_or_not_at_all() {
    let entry = |script: &Value| json!({"command": binary("outlast-test-mcp"), "args": [script.to_string()]});
    let described = json!({"name": "note", "description": "Other words.", "inputSchema": {"type": "object"}});
    let schema =
        json!({"name": "note", "description": "", "inputSchema": {"type": "object", "required": ["x"]}});
    let plain = entry(&json!({}));
    let with = |key: &str, value: Value| {
        let mut entry = plain.clone();
        entry[key] = value;
        json!({ "s": entry })
    };
    let server = "the server's entry";
    for (what, flow, servers, expected) in [
        ("nothing", "Looked", json!({"s": plain, "other": {"command": "true"}}), "Said"),
        ("a variable", "Looked", with("env", json!({"A": "b"})), server),
        ("the command", "Looked", with("command", json!("/nowhere/server")), server),
        ("no server", "Looked", json!({}), server),
        ("nothing", "ServerCall", json!({"s": plain, "other": {"command": "true"}}), "Said"),
        (
            "the description",
            "ServerCall",
            json!({"s": entry(&json!({"tools": [described], "only": []}))}),
            "Stale",
        ),
        ("the input", "ServerCall", json!({"s": entry(&json!({"tools": [schema], "only": []}))}), "Stale"),
        ("no tool", "ServerCall", json!({"s": entry(&json!({"only": ["echo"]}))}), "Stale"),
    ] {
        let world = World::with_flows();
        let configure =
            |servers: &Value| world.write(".mcp.json", &json!({"mcpServers": servers}).to_string());
        configure(&json!({ "s": plain }));
        let pulled = world.run(&["tools", "pull", "--out", "flows/server.tools.json"]);
        assert_eq!(pulled.code, Some(0), "{pulled:?}");
        let _server = world.host(&[FLOW, "flows/server_call.flow"]);
        let args = json!({"name": "n"});
        let input = match flow {
            "Looked" => json!({"name": "s__note", "args": args}),
            _ => json!({"tool_name": "s__note", "args": args}),
        };
        world.begin(flow, "r", &input);
        let question = world.questions("r", 1)[0].clone();
        configure(&servers);
        let became = approve(&world, "r", &question);
        assert!(became.to_string().contains(expected), "{flow}, {what}: {became}");
        assert_eq!(world.lines("n").len(), usize::from(expected == "Said"), "{flow}, {what}");
    }
}

/// Rules and a sandbox that are written down later are for later runs; this one goes on under its own.
#[test]
fn later_rules_are_for_later_runs() {
    let world = World::with_flows();
    let mut server = world.host(&[FLOW]);
    let echo = json!({"command": "echo x >> log"});
    let question = ask(&world, "before", "shell", &echo);
    world.write("outlast.toml", "[permissions]\ndeny = ['shell(echo *)']\n[sandbox]\nnetwork = 'all'\n");
    server.murder();
    world.kill(Role::Tool);
    server = world.host(&[FLOW]);
    assert_became(&approve(&world, "before", &question), Ran, "before");
    world.begin("Looked", "after", &json!({"name": "shell", "args": echo}));
    assert_eq!(world.outcome("after")["value"]["type"], "Refused");
    assert_eq!(world.file("log"), "x\n");
    drop(server);
}

/// Answers that are not the one to what was asked.
#[test]
fn an_approval_of_something_else_is_none() {
    let world = World::with_flows();
    world.write("outlast.toml", "[permissions]\ndeny = ['shell(touch *)']\n");
    world.write("x.sh", "echo script >> log\n");
    let _server = world.host(&[FLOW]);
    let echo = |word: &str| json!({"command": format!("echo {word} >> log")});
    let (one, two) = (ask(&world, "one", "shell", &echo("one")), ask(&world, "two", "shell", &echo("two")));
    let decided = ask(&world, "decided", "shell", &echo("decided"));
    assert_became(&approve(&world, "decided", &decided), Ran, "decided");
    let edited = |command: &str| {
        let mut call = one["show"].clone();
        call["args"]["command"] = json!(command);
        json!({ "value": call })
    };
    let mut renamed = one["show"].clone();
    (renamed["name"], renamed["args"]) = (json!("write"), json!({"path": 5}));
    for (what, run, question, more, code) in [
        ("what another question shows", "one", &one, json!({"shown": two["shown"]}), "conflict"),
        ("no hash", "one", &one, json!({"shown": "0".repeat(64)}), "conflict"),
        ("another question", "one", &one, json!({"question": "99.9"}), "not_found"),
        ("a denied call", "one", &one, edited("echo a; touch log"), "invalid"),
        ("no call", "one", &one, json!({"value": {"id": "1"}}), "invalid"),
        ("a question that is decided", "decided", &decided, json!({}), "already_decided"),
    ] {
        let answer = answer(&world, run, question, &more);
        assert!((400..500).contains(&answer.status), "{what}: {}", answer.body);
        assert_eq!(answer.body["error"]["code"], code, "{what}: {}", answer.body);
    }
    assert_eq!(
        (world.file("log"), world.questions("one", 1).remove(0)),
        ("decided\n".to_owned(), one.clone())
    );
    // A fork asks anew, and neither answer counts for the other.
    assert_eq!(world.post("/v1/runs/two/fork", &json!({"id": "fork"})).status, 201);
    let forked = world.questions("fork", 1).remove(0);
    assert_eq!(answer(&world, "fork", &two, &json!({})).body["error"]["code"], "not_found");
    assert_eq!(answer(&world, "two", &forked, &json!({})).body["error"]["code"], "not_found");
    assert_became(&approve(&world, "two", &two), Ran, "two");
    assert_eq!(
        (world.questions("fork", 1).remove(0), world.file("log")),
        (forked.clone(), "decided\ntwo\n".to_owned())
    );
    // Who edits a call approves what was looked at with it, and not what nobody has looked at.
    let more = edited("sh x.sh");
    assert_eq!(answer(&world, "one", &one, &more).status, 200);
    assert_became(&world.outcome("one")["value"], Stale("x.sh"), "one");
    let mut call = forked["show"].clone();
    call["args"]["command"] = json!("echo fork >> log");
    assert_eq!(answer(&world, "fork", &forked, &json!({ "value": call })).status, 200);
    assert_became(&world.outcome("fork")["value"], Ran, "fork");
    assert_eq!(world.file("log"), "decided\ntwo\nfork\n");
}

/// Two approved calls of one turn: the second is compared with what the first one has made, also when both are approved at once.
#[test]
fn what_an_earlier_call_of_the_turn_has_changed_is_not_what_was_shown() {
    let write = |text: &str| ("write", json!({"path": "file", "text": text}));
    let script = ("shell", json!({"command": "sh file >> log"}));
    for (first, second, at_once) in [
        (write("echo a\n"), write("echo b\n"), false),
        (write("echo a\n"), script, false),
        (write("echo a\n"), write("echo b\n"), true),
    ] {
        let calls = vec![("a", first.0, first.1), ("b", second.0, second.1)];
        let model = ModelServer::start(move |body| match messages(body).last() {
            Some(last) if last["role"] == "user" => Reply::Calls(calls.clone()),
            Some(_) | None => Reply::Text("done".to_owned()),
        });
        let world = World::with_examples()
            .with_variable("OUTLAST_MODEL_URL", &model.url())
            .with_variable("OPENAI_API_KEY", KEY);
        world.write("file", "echo old\n");
        let _server = world.host(&["examples/agent.flow"]);
        world.begin("Agent", "r", &json!({"task": "go"}));
        let mut questions = world.questions("r", 2);
        questions.sort_by_key(|question| question["show"]["id"].to_string());
        for question in &questions {
            assert_eq!(answer(&world, "r", question, &json!({})).status, 200);
            until("the first call", || at_once || world.file("file") == "echo a\n");
        }
        until("the model to be told", || model.conversations().len() == 2);
        let told = model.conversations().pop().unwrap();
        let told: Vec<String> = told
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| message["content"].to_string())
            .collect();
        let stale = |text: &String| text.contains("not run: ") && text.contains("changed: file");
        assert_eq!(told.iter().filter(|text| stale(text)).count(), 1, "{told:?}");
        assert!(at_once || stale(&told[1]), "{told:?}");
        assert_eq!(world.file("log"), "");
    }
}
