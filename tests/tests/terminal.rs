//! `chat` on a real pseudo-terminal: what a person sees, types and picks, across kills.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

use outlast_tests::model_server::{
    Ending, KEY, ModelServer, Part, Protocol, Reply, Stop, last_text, messages, speak,
};
use outlast_tests::process::{Process, until};
use outlast_tests::terminal::{ALT_ENTER, ALT_UP, ENTER, ESC, signal};
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

/// Case APR-13: a kill in the middle of a turn leaves its question to whoever comes next.
#[test]
fn a_conversation_on_a_terminal_survives_a_kill_and_ends_with_a_command_that_resumes_it() {
    let world = World::new();
    world.write("notes.txt", "first\nsecond\n");
    let mut chat = world.on_a_terminal("chat");
    chat.line("a prompt", |line| line.contains("say what is to be done"));
    chat.press("what is in here?\r");
    chat.line("the question", |line| line.contains("? Run shell?"));
    world.kill(Role::Runtime);
    let _killed = chat.finish();

    let mut chat = world.on_a_terminal("chat --continue");
    chat.line("the question again", |line| line.contains("? Run shell?"));
    chat.line("what it would do", |line| line.contains("command: find"));
    chat.press("n not now\r");
    chat.line("the decision", |line| line.contains("rejected by") && line.contains("not now"));
    chat.line("the answer", |line| line.contains("The command was refused"));
    chat.line("the prompt of an idle agent", |line| line.contains("turn 1 · listens"));
    chat.press("/quit\r");
    let farewell = chat.line("how to resume", |line| line.contains("outlast chat --resume"));
    let end = chat.finish();
    assert_eq!(end.code, Some(0), "{end:?}");
    let id = farewell.rsplit(' ').next().unwrap_or_default().trim();
    assert_eq!(world.json(&["show", id, "--json"])["status"], "waiting", "the run stays");
}

/// A world whose shell runs without a question, and a model that calls a tool that waits for the test, and then repeats what it hears.
fn waiting_tool() -> (World, ModelServer) {
    let model = ModelServer::start(|body| match messages(body).last() {
        Some(last) if last["content"] == "go" => Reply::Call(
            "shell",
            json!({"command": "echo > started; until test -e gate; do sleep 0.01; done"}),
        ),
        Some(last) if last["role"] == "user" => Reply::Text(format!("heard: {}", last_text(body, "user"))),
        Some(_) | None => Reply::Text("the tool is done".to_owned()),
    });
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    world.write("outlast.toml", "[permissions]\nallow = [\"shell\"]\n");
    (world, model)
}

/// Starts a conversation whose tool waits, and returns it with the run's id.
fn with_a_tool_at_work(world: &World) -> (Process, String) {
    let mut chat = world.on_a_terminal("chat");
    chat.line("a prompt", |line| line.contains("say what is to be done"));
    chat.press("go\r");
    let line = chat.line("the run", |line| line.contains("run agent-"));
    let id = line.split_whitespace().find(|word| word.starts_with("agent-")).unwrap().to_owned();
    until("the tool to begin", || world.work().join("started").exists());
    (chat, id)
}

/// The texts that were said to a run, in their order.
fn said(world: &World, id: &str) -> Vec<String> {
    let history = world.history(id);
    let messages = history.iter().filter(|event| event["kind"] == "message" && event["type"] == "Say");
    messages.map(|event| event["value"]["text"].as_str().unwrap().to_owned()).collect()
}

/// Case INT-01: what is typed while a tool runs is shown as queued, and delivered once, whether one waits, stops the tool, or everything
/// that hosts the run is killed.
#[test]
fn a_message_typed_while_a_tool_runs_waits_and_is_delivered_once() {
    for how in ["waits", "stops", "kills"] {
        let (world, model) = waiting_tool();
        let (mut chat, id) = with_a_tool_at_work(&world);
        chat.press("stop after this\r");
        chat.line("the queue", |line| line.contains("queued: stop after this"));
        let mut answered = false;
        match how {
            "stops" => {
                chat.press(ESC);
                // The next answer may come before the word for it.
                let mut told = false;
                chat.line("the answer and the word for it", |line| {
                    answered |= line.contains("heard: stop after this");
                    told |= line.contains("(stopped; ");
                    answered && told
                });
            }
            "kills" => {
                world.kill(Role::Runtime);
                let _killed = chat.finish();
                chat = world.on_a_terminal("chat --continue");
                chat.line("the queue", |line| line.contains("queued: stop after this"));
                world.write("gate", "go on");
            }
            _ => world.write("gate", "go on"),
        }
        if !answered {
            chat.line("the answer", |line| line.contains("heard: stop after this"));
        }
        chat.line("an idle agent", |line| line.contains("listens"));
        assert_eq!(said(&world, &id), ["stop after this"], "{how}");
        let heard = model
            .conversations()
            .iter()
            .filter(|all| all.last().unwrap()["content"] == "stop after this")
            .count();
        assert_eq!(heard, 1, "{how}");
    }
}

/// Queued messages come back, the newest first; one for after the turn is none the less queued, and never answers a question.
#[test]
fn queued_messages_are_taken_back_the_newest_first() {
    let (world, _model) = waiting_tool();
    let (mut chat, id) = with_a_tool_at_work(&world);
    for (text, how) in [("one", ENTER), ("two", ENTER), ("three", ALT_ENTER)] {
        chat.press(&format!("{text}{how}"));
        chat.line("the queue", |line| line.contains(&format!("queued: {text}")));
    }
    chat.press(ALT_UP);
    chat.line("the newest in the line", |line| line.contains("> three"));
    chat.press(&format!(" and more{ENTER}"));
    chat.line("the queue", |line| line.contains("queued: three and more"));
    world.write("gate", "go on");
    // Each is shown where the run takes it, and when the conversation is found again it stands there.
    for again in [false, true] {
        if again {
            world.kill(Role::Runtime);
            let _killed = chat.finish();
            chat = world.on_a_terminal("chat --continue");
        }
        chat.line("the end of the first turn", |line| line.contains("the tool is done"));
        for text in ["one", "two", "three and more"] {
            chat.line("its heading", |line| line.contains(&format!("> {text}")));
            chat.line("an answer", |line| line.contains(&format!("heard: {text}")));
        }
        chat.line("an idle agent", |line| line.contains("listens"));
    }
    let history = world.history(&id);
    assert_eq!(history.iter().filter(|event| event["kind"] == "withdrawn").count(), 1);
    assert_eq!(said(&world, &id), ["one", "two", "three", "three and more"]);
}

/// A talk in which a model's answer has begun to come.
fn with_an_answer_begun(model: &ModelServer) -> (World, Process) {
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    let mut chat = world.on_a_terminal("chat");
    chat.line("a prompt", |line| line.contains("say what is to be done"));
    chat.press("go\r");
    chat.line("the beginning", |line| line.contains("a beginning"));
    (world, chat)
}

/// Esc ends a turn at once: the model has not said its last word, and never does.
#[test]
fn esc_stops_a_model_in_the_middle_of_its_answer() {
    let model = ModelServer::start(|body| match messages(body).last() {
        Some(last) if last["content"] == "go" => Reply::Stream(beginning(), Ending::Silence),
        Some(_) | None => Reply::Text("heard you".to_owned()),
    });
    let (_world, mut chat) = with_an_answer_begun(&model);
    chat.press(ESC);
    chat.line("the mark", |line| line.contains("(interrupted)"));
    chat.line("the word for it", |line| line.contains("(stopped; "));
    chat.line("an idle agent", |line| line.contains("listens"));
    chat.press("are you there?\r");
    chat.line("the answer", |line| line.contains("heard you"));
}

/// An answer whose worker is killed in the middle of it is marked as interrupted, and the next attempt's follows.
#[test]
fn an_answer_that_is_cut_by_a_kill_is_marked_and_given_again() {
    let model = ModelServer::giving([
        Reply::Stream(beginning(), Ending::Silence),
        Reply::Text("a whole answer".to_owned()),
    ]);
    let (world, mut chat) = with_an_answer_begun(&model);
    world.kill(Role::Model);
    chat.line("the mark", |line| line.contains("(interrupted)"));
    chat.line("the answer", |line| line.contains("a whole answer"));
}

/// So is one whose host dies with the worker: nobody knows then that it was begun, and the next attempt counts as the first.
#[test]
fn an_answer_that_is_cut_with_its_host_is_marked_and_given_again() {
    let again = [Part::Text(format!("quite another one\n{}", "and on ".repeat(20)))];
    let again = speak::pieces(Protocol::Chat, "m", &again, Stop::End);
    let model = ModelServer::giving([
        Reply::Stream(beginning(), Ending::Silence),
        Reply::Stream(again[..again.len() / 2].to_vec(), Ending::Silence),
    ]);
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    let mut server = world.host(&[]);
    let mut chat = world.on_a_terminal("chat");
    chat.line("a prompt", |line| line.contains("say what is to be done"));
    chat.press("go\r");
    chat.line("the beginning", |line| line.contains("a beginning"));
    chat.line("that it is being worked on", |line| line.contains("works; Esc stops"));
    // Whoever takes over starts workers of its own: those are not meant.
    let workers = world.pids(Role::Model);
    server.murder();
    workers.into_iter().for_each(|pid| signal(pid, "KILL"));
    chat.line("the mark", |line| line.contains("(interrupted)"));
    chat.line("the next answer", |line| line.contains("quite another one"));
}

/// The first half of an answer.
fn beginning() -> Vec<String> {
    let text = format!("a beginning\n{}", "and on ".repeat(20));
    let mut pieces = speak::pieces(Protocol::Chat, "m", &[Part::Text(text)], Stop::End);
    pieces.truncate(pieces.len() / 2);
    pieces
}

/// A model that repeats what it hears, in Markdown.
fn echo() -> (World, ModelServer) {
    let model = ModelServer::start(|body| {
        Reply::Text(format!("# Heard\n\nThe **words** `{}`", last_text(body, "user")))
    });
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    (world, model)
}

/// Whether a line is the finished one of the echo of words that begin like this: code in its style.
fn echoed(line: &str, words: &str) -> bool {
    line.contains(&format!("\u{1b}[36m{words}"))
}

/// Says something and waits until it was answered.
fn exchange(chat: &mut Process, text: &str) {
    chat.press(&format!("{text}\r"));
    chat.line("the answer", |line| echoed(line, text));
    chat.line("an idle agent", |line| line.contains("listens"));
}

/// Case INT-04: two terminals on one run show one history, in one order, without a second branch.
#[test]
fn two_terminals_on_one_run_share_one_history() {
    let (world, model) = echo();
    let mut one = world.on_a_terminal("chat");
    one.line("a prompt", |line| line.contains("say what is to be done"));
    exchange(&mut one, "hello");
    let mut other = world.on_a_terminal("chat --continue");
    other.line("an idle agent", |line| line.contains("listens"));
    one.press("from the first\r");
    other.press("from the second\r");
    let mut orders = Vec::new();
    for chat in [&mut one, &mut other] {
        let mut order = Vec::new();
        for _ in 0..2 {
            let line = chat.line("an answer", |line| echoed(line, "from the "));
            order.push(line.contains("second"));
        }
        orders.push(order);
    }
    assert_eq!(orders[0], orders[1]);
    let mut heard = model.conversations().last().unwrap().clone();
    heard.retain(|message| message["role"] == "user");
    assert_eq!(heard.len(), 3, "{heard:?}");
    let runs = world.json(&["runs", "--json"]);
    assert_eq!(runs["items"].as_array().unwrap().len(), 1, "{runs}");
}

/// Runs are picked by typing and arrows; what was said is gone back to by Esc Esc; what was typed is there the next time.
#[test]
fn runs_and_earlier_messages_are_picked_and_lines_are_remembered() {
    let (world, _model) = echo();
    for words in ["the first of all", "another one"] {
        let mut chat = world.on_a_terminal("chat");
        chat.line("a prompt", |line| line.contains("say what is to be done"));
        exchange(&mut chat, words);
        chat.press("/quit\r");
        assert_eq!(chat.finish().code, Some(0));
    }
    let mut chat = world.on_a_terminal("chat --resume");
    chat.line("the list", |line| line.contains("go on with (2;"));
    chat.line("the newer one", |line| line.contains("▸ agent-") && line.contains("another one"));
    chat.press("first");
    chat.line("the older one alone", |line| line.contains("▸ agent-") && line.contains("the first of all"));
    chat.press(ENTER);
    chat.line("its beginning", |line| line.contains("> the first of all"));
    chat.line("an idle agent", |line| line.contains("listens"));
    exchange(&mut chat, "said later");
    chat.press(&format!("{ESC}{ESC}"));
    chat.line("the list", |line| line.contains("go back to before (2;"));
    chat.press(ENTER);
    chat.line("the fork", |line| line.contains("run fork-"));
    chat.line("what was said, to be said otherwise", |line| line.contains("> said later"));
    // The kept lines, the newest that begins alike first.
    chat.press("\u{3}ano\u{1b}[A");
    chat.line("an earlier line", |line| line.contains("> another one"));
    let file = world.work().parent().unwrap().join("home/.local/state/outlast/history");
    let kept = std::fs::read_to_string(file).unwrap();
    let expected = ["the first of all", "/quit", "another one", "/quit", "said later"];
    let kept: Vec<Value> = kept
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(kept, expected);
}

/// Tab completes commands and files; text is styled as its lines are finished; a command of one's own is interrupted.
#[test]
fn tab_completes_text_is_styled_and_commands_of_ones_own_are_interrupted() {
    let (world, _model) = echo();
    world.write("a file of mine.txt", "x");
    world.write("notes.txt", "words of the file\n");
    let mut chat = world.on_a_terminal("chat");
    chat.line("a prompt", |line| line.contains("say what is to be done"));
    chat.press("/mod\t\r");
    chat.line("the model", |line| line.contains("openai, with the key in OPENAI_API_KEY"));
    chat.press("!echo on; read line; while :; do :; done\r");
    chat.line("its output", |line| line.ends_with("on"));
    chat.press("\u{3}");
    chat.line("its end", |line| line.contains("(the command ended by signal 2)"));
    chat.press("@not\t@missing\r");
    chat.line("why it is not sent", |line| line.contains("@missing: No such file"));
    // The line is there again; without its last word it goes.
    chat.press("\u{17}see\r");
    chat.line("what is sent", |line| line.contains("> @notes.txt (18 bytes) see"));
    chat.line("a heading", |line| line.contains("\u{1b}[1mHeard\u{1b}[0m"));
    chat.line("the text", |line| line.contains("The \u{1b}[1mwords\u{1b}[0m"));
    chat.line("the file", |line| line.contains("words of the file"));
    assert_eq!(world.json(&["runs", "--json"])["items"].as_array().unwrap().len(), 1);
}

/// A command of one's own ends with the conversation, however that ends.
#[test]
fn nothing_of_ones_own_commands_outlives_a_killed_conversation() {
    let world = World::new();
    let mut chat = world.on_a_terminal("chat");
    chat.line("a prompt", |line| line.contains("say what is to be done"));
    chat.press("!trap '' HUP; sleep 600 & echo $! > pids; echo $$ >> pids; echo on; wait\r");
    chat.line("its output", |line| line.ends_with("on"));
    let pids = world.file("pids");
    assert_eq!(pids.lines().count(), 2, "{pids}");
    // The conversation alone: what watches over the command is another process of the same program.
    let line = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let talk = world.pids(Role::Runtime).into_iter().find(|pid| line(pid).ends_with("\0chat\0"));
    let killed = Command::new("kill").args(["-9", &talk.unwrap().to_string()]).status();
    assert!(killed.unwrap().success());
    until("the end of both processes", || {
        pids.lines().all(|pid| !std::path::Path::new("/proc").join(pid).exists())
    });
}

/// What may be changed before it is approved is changed in the person's editor, or in the line.
#[test]
fn what_a_question_shows_is_edited_before_it_is_approved() {
    for editor in ["sed -i s/hello/changed/", ""] {
        let world = World::with_flows().with_variable("VISUAL", editor);
        let mut chat = world.on_a_terminal("chat flows/edited.flow");
        chat.line("a prompt", |line| line.contains("say what is to be done"));
        chat.press("hello\r");
        chat.line("the ways to answer", |line| line.contains("e: change it first"));
        chat.press("e\r");
        if editor.is_empty() {
            chat.line("the text in the line", |line| {
                line.contains("/approve edit") && line.contains("hello")
            });
            chat.press("\u{17}changed\r");
        }
        chat.line("the result", |line| line.contains("the run has ended: changed"));
        assert_eq!(chat.finish().code, Some(0));
    }
}
