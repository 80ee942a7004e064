//! Every way out of `chat` leaves the terminal as it was, to its shell: ends, signals, stops; and every way back works.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::model_server::{Ending, KEY, ModelServer, Part, Protocol, Reply, Stop, speak};
use outlast_tests::process::{Process, until};
use outlast_tests::terminal::{CONTROL_C, CONTROL_Z, ESC, signal, terminal_of};
use outlast_tests::world::{Role, World};

/// Starts a shell that has written down how its terminal is set, and a conversation in it that asks something.
fn talking(world: &World) -> (Process, u32) {
    let mut shell = world.shell();
    settings(world, &mut shell, "before");
    shell.press("outlast chat; echo left with $?\r");
    shell.line("a prompt", |line| line.contains("say what is to be done"));
    shell.press("count the lines\r");
    shell.line("the question", |line| line.contains("? Run shell?"));
    shell.line("the status", |line| line.contains("turn 1 · asks"));
    (shell, world.talker())
}

/// Lets the shell write down how its terminal is set, and returns it.
fn settings(world: &World, shell: &mut Process, name: &str) -> String {
    shell.press(&format!("stty -g > {name}; echo {name} written $((40 + 2))\r"));
    shell.line("the settings", |line| line.contains(&format!("{name} written 42")));
    world.file(name)
}

/// How a terminal is set now, as another process sees it.
fn set_now(pid: u32) -> String {
    let terminal = terminal_of(pid).unwrap();
    let output = std::process::Command::new("stty").arg("-g").arg("-F").arg(terminal).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until a process is stopped and the shell has said so: nobody types to it before.
fn stopped(shell: &mut Process, pid: u32) {
    shell.line("the shell's word", |line| line.contains("Stopped"));
    until("the process to be stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    });
}

/// Case INT-03: keys and signals that end a conversation give the terminal back as it was, and leave the run.
#[test]
fn every_end_gives_the_terminal_back() {
    for (how, code) in [("keys", 0), ("quit", 0), ("TERM", 143), ("HUP", 129), ("INT", 130)] {
        let world = World::new();
        let (mut shell, pid) = talking(&world);
        assert_ne!(set_now(pid), world.file("before"), "raw while it is talked");
        match how {
            "keys" => {
                shell.press(CONTROL_C);
                shell.line("how to leave", |line| line.contains("Ctrl-C again leaves"));
                shell.press(CONTROL_C);
            }
            "quit" => shell.press("/quit\r"),
            name => signal(pid, name),
        }
        shell.line("how to resume", |line| line.contains("chat --resume"));
        shell.line("the end", |line| line.contains(&format!("left with {code}")));
        assert_eq!(settings(&world, &mut shell, "after"), world.file("before"), "{how}");
        let runs = world.json(&["runs", "--json"]);
        assert_eq!(runs["items"][0]["status"], "waiting", "{how}: the run stays");
    }
}

/// Case INT-03: a terminal that is closed ends the conversation and not the run.
#[test]
fn a_closed_terminal_ends_the_conversation_and_not_the_run() {
    let world = World::new();
    let (mut shell, _pid) = talking(&world);
    shell.murder();
    until("the conversation to end", || world.pids(Role::Runtime).is_empty());
    let mut chat = world.on_a_terminal("chat --continue");
    chat.line("the question", |line| line.contains("? Run shell?"));
}

/// Case INT-03: a reader of the conversation that goes away ends it quietly.
#[test]
fn a_reader_that_goes_away_ends_the_conversation_quietly() {
    let world = World::new();
    let mut shell = world.shell();
    shell.press("yes /help | outlast chat | head -n 1; echo left with ${PIPESTATUS[1]}\r");
    shell.line("the end", |line| line.contains("left with 141"));
}

/// Case INT-02: Ctrl-Z and a stop from outside give the shell a terminal as it was; `fg` gives it back, and keys work.
#[test]
fn a_stopped_conversation_goes_on_where_it_was() {
    let world = World::new();
    let (mut shell, pid) = talking(&world);
    let raw = set_now(pid);
    for how in ["keys", "STOP", "TSTP"] {
        match how {
            "keys" => shell.press(CONTROL_Z),
            name => signal(pid, name),
        }
        stopped(&mut shell, pid);
        // Only the shell can do it after a stop that nobody may handle.
        until("the terminal to be as it was", || set_now(pid) == world.file("before"));
        shell.press(&format!("echo back from {how}\r"));
        shell.line("the shell", |line| line.ends_with(&format!("back from {how}")) && !line.contains("echo"));
        assert_eq!(settings(&world, &mut shell, "after"), world.file("before"), "{how}");
        shell.press("fg\r");
        until("the terminal to be raw", || set_now(pid) == raw);
        shell.press("/approve\r");
        shell.line("the question", |line| line.contains("? Run shell?"));
        shell.line("the ways to answer", |line| line.contains("y: yes"));
    }
}

/// Case INT-02: a conversation that is stopped while an answer streams, and one that is idle, go on as well.
#[test]
fn a_stop_in_the_middle_of_an_answer_and_of_nothing_does_no_harm() {
    let mut pieces = speak::pieces(Protocol::Chat, "m", &[Part::Text("a beginning\n".repeat(9))], Stop::End);
    pieces.truncate(pieces.len() / 2);
    let model =
        ModelServer::giving([Reply::Stream(pieces, Ending::Silence), Reply::Text("heard you".to_owned())]);
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    let mut shell = world.shell();
    shell.press("outlast chat\r");
    shell.line("a prompt", |line| line.contains("say what is to be done"));
    shell.press("go\r");
    shell.line("the beginning", |line| line.contains("a beginning"));
    let pid = world.talker();
    let raw = set_now(pid);
    for at in ["the answer", "nothing"] {
        shell.press(CONTROL_Z);
        stopped(&mut shell, pid);
        shell.press("fg\r");
        until("the terminal to be raw", || set_now(pid) == raw);
        if at == "the answer" {
            shell.press(ESC);
            shell.line("the mark", |line| line.contains("(interrupted)"));
            shell.line("an idle agent", |line| line.contains("listens"));
        }
    }
    shell.press("still there?\r");
    shell.line("the answer", |line| line.contains("heard you"));
}

/// Case INT-02: in the background it goes on without touching the terminal, and `fg` shows what came meanwhile.
#[test]
fn in_the_background_it_leaves_the_terminal_alone() {
    let world = World::new();
    let (mut shell, pid) = talking(&world);
    let raw = set_now(pid);
    shell.press(CONTROL_Z);
    stopped(&mut shell, pid);
    shell.press("bg\r");
    let run = world.json(&["runs", "--json"])["items"][0]["id"].as_str().unwrap().to_owned();
    let answered = world.run(&["answer", &run, "reject"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    until("the run to go on", || world.get(&format!("/v1/runs/{run}"))["waiting_for"]["kind"] == "message");
    assert_eq!(settings(&world, &mut shell, "after"), world.file("before"));
    shell.press("echo typed to the shell\r");
    shell.line("the shell", |line| line.ends_with("typed to the shell") && !line.contains("echo"));
    shell.press("fg; echo left with $?\r");
    until("the terminal to be raw", || set_now(pid) == raw);
    shell.line("what was said meanwhile", |line| line.contains("The command was refused"));
    shell.line("the status", |line| line.contains("listens"));
    shell.press("/quit\r");
    shell.line("the end", |line| line.contains("left with 0"));
}

/// A terminal that cannot move its cursor gets plain lines, and is left as it was.
#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let world = World::new();
    let mut shell = world.shell();
    let before = settings(&world, &mut shell, "before");
    shell.press("TERM=dumb outlast chat; echo left with $?\r");
    let line = shell.line("a prompt", |line| line.contains("say what is to be done"));
    assert!(!line.contains('\u{1b}'), "{line:?}");
    assert_eq!(set_now(world.talker()), before);
    shell.press("/quit\r");
    shell.line("the end", |line| line.contains("left with 0"));
}
