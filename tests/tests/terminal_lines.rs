//! What a person types into `chat` on a pseudo-terminal: answers and what is none, lines that are refused or never sent, several rows.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

use outlast_tests::model_server::{KEY, ModelServer, Reply, last_text};
use outlast_tests::process::Process;
use outlast_tests::terminal::{CONTROL_C, ENTER, ESC, terminal_of};
use outlast_tests::world::World;
use serde_json::Value;

/// The upward arrow.
const UP: &str = "\u{1b}[A";

/// Starts a conversation, says something, and returns it with the run's id.
fn talking(world: &World, words: &str) -> (Process, String) {
    let mut chat = world.on_a_terminal("chat");
    chat.line("a prompt", |line| line.contains("say what is to be done"));
    chat.press(&format!("{words}{ENTER}"));
    let line = chat.line("the run", |line| line.contains("run agent-"));
    let id = line.split_whitespace().find(|word| word.starts_with("agent-")).unwrap().to_owned();
    (chat, id)
}

/// A model that repeats what it hears.
fn echo() -> (World, ModelServer) {
    let model = ModelServer::start(|body| Reply::Text(format!("heard: {}", last_text(body, "user"))));
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    (world, model)
}

/// The lines that are kept over conversations.
fn kept(world: &World) -> Vec<Value> {
    let file = world.work().parent().unwrap().join("home/.local/state/outlast/history");
    let kept = std::fs::read_to_string(file).unwrap();
    kept.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Case APR-02: what is typed at a question answers it, or is told to be no answer; nothing slips to the run as a message.
#[test]
fn at_a_question_nothing_is_sent_but_answers() {
    let world = World::new();
    let (mut chat, id) = talking(&world, "count the lines");
    chat.line("the question", |line| line.contains("? Run shell?"));
    chat.line("the status", |line| line.contains("turn 1 · asks"));
    // A refused answer of one key is gone from the line: the next one stands alone.
    chat.press(&format!("a{ENTER}"));
    chat.line("why not", |line| line.contains("no rule fits exactly what question"));
    chat.press(&format!("e{ENTER}"));
    chat.line("why not", |line| line.contains("cannot be changed: y or n"));
    chat.press(&format!("/nothing{ENTER}"));
    chat.line("why not", |line| line.contains("there is no /nothing"));
    chat.press(UP);
    chat.line("the refused line", |line| line.contains("[y/N]> /nothing"));
    chat.press(CONTROL_C);
    chat.press(&format!("sure why not{ENTER}"));
    chat.line("what would be an answer", |line| {
        line.contains("that is no answer (y [note], n [note]); Alt-Enter sends it as a message")
    });
    chat.line("the line again", |line| line.contains("[y/N]> sure why not"));
    chat.press(CONTROL_C);
    chat.press(&format!("y looks fine{ENTER}"));
    chat.line("the decision", |line| line.contains("approved by") && line.contains(": looks fine"));
    chat.line("the answer", |line| line.contains("ran a command"));
    chat.line("an idle agent", |line| line.contains("turn 1 · listens"));
    let history = world.history(&id);
    let of = |kind: &str| history.iter().filter(|event| event["kind"] == kind).collect::<Vec<_>>();
    assert!(of("message").is_empty(), "{history:?}");
    assert_eq!(of("answered")[0]["note"], "looks fine");
    assert_eq!(kept(&world), ["count the lines"]);
}

/// Case INT-04: a run that ends under its conversations says how, and how to go on; what was typed is not lost.
#[test]
fn a_run_that_ends_under_a_conversation_says_how_to_go_on_and_keeps_the_line() {
    let (world, _model) = echo();
    let (mut one, id) = talking(&world, "hello");
    one.line("an idle agent", |line| line.contains("listens"));
    let mut other = world.on_a_terminal("chat --continue");
    other.line("an idle agent", |line| line.contains("listens"));
    other.press("half a line");
    other.line("the line", |line| line.contains("> half a line"));
    let ended = world.run(&["run", "--id", &id]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for (chat, typed) in [(&mut one, false), (&mut other, true)] {
        chat.line("the end", |line| {
            line.contains("the run has ended: done, with this answer; it was told that no more messages come")
        });
        if typed {
            chat.line("the line", |line| line.contains("not sent; Up has it the next time: half a line"));
        }
        chat.line("the way back", |line| line.contains(&format!("chat --fork {id}")));
        assert_eq!(chat.finish().code, Some(0));
    }
    let again = world.run(&["chat", "--resume", &id]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(again.stdout.matches("heard: hello").count(), 1, "{again:?}");
    assert!(again.stdout.contains("the run has ended: done, with this answer"), "{again:?}");
    assert!(again.stderr.contains(&format!("chat --fork {id}")), "{again:?}");
    let mut fork = world.on_a_terminal(&format!("chat --fork {id}"));
    fork.line("the fork", |line| line.contains("run fork-"));
    fork.line("an idle agent", |line| line.contains("listens"));
    fork.press(UP);
    fork.line("what was not sent", |line| line.contains("> half a line"));
}

/// A message is shown, listed and given back as it was typed, and not as the files that went with it.
#[test]
fn what_was_said_is_given_back_as_it_was_typed() {
    let (world, model) = echo();
    world.write("style.css", &"p { color: red }\n".repeat(200));
    let (mut chat, _id) = talking(&world, "hello");
    chat.line("an idle agent", |line| line.contains("turn 1 · listens"));
    chat.press(&format!("look at @style.css please{ENTER}"));
    chat.line("its heading", |line| line.ends_with("> look at @style.css (4 KiB) please\u{1b}[0m"));
    chat.line("an idle agent", |line| line.contains("turn 2 · listens"));
    let heard = model.conversations().last().unwrap().last().unwrap()["content"].to_string();
    assert!(heard.contains("The file style.css:"), "{heard}");
    chat.press(&format!("{ESC}{ESC}"));
    chat.line("the choice", |line| line.contains("▸") && line.contains("  look at @style.css please"));
    chat.press(ENTER);
    chat.line("the fork", |line| line.contains("run fork-"));
    chat.line("what was typed", |line| {
        line.ends_with("> look at @style.css please") || { line.contains("> look at @style.css please\r") }
    });
}

/// Several lines are several rows, of which those around the cursor are shown; a tab is spaces.
#[test]
fn several_lines_are_shown_in_rows() {
    let (world, model) = echo();
    let (mut chat, _id) = talking(&world, "hello");
    chat.line("an idle agent", |line| line.contains("turn 1 · listens"));
    chat.press("\u{1b}[200~one\n\ttwo\nthree\u{1b}[201~");
    chat.line("the first row", |line| line.ends_with("> one"));
    chat.line("the second row, set in", |line| line == "      two");
    // From line to line, and back out at the top.
    chat.press(&format!("{UP}{UP}zero, "));
    chat.line("the first row", |line| line.contains("> one"));
    chat.press(CONTROL_C);
    let text: Vec<String> = (1..=60).map(|n| format!("row {n}")).collect();
    let text = text.join("\n");
    chat.press(&format!("\u{1b}[200~{text}\u{1b}[201~"));
    chat.line("how much it is", |line| line.contains("(rows 53 to 60 of the 60 that are typed)"));
    chat.line("the first row that is shown", |line| line.contains("> row 53"));
    chat.press(ENTER);
    chat.line("an idle agent", |line| line.contains("turn 2 · listens"));
    assert_eq!(model.conversations().last().unwrap().last().unwrap()["content"], text.as_str());
}

/// A terminal that becomes narrower shows a row in several; all of them are taken away before it is drawn again.
#[test]
fn a_terminal_that_becomes_narrower_keeps_no_stale_row() {
    let (world, _model) = echo();
    let (mut chat, _id) = talking(&world, "hello");
    let status = chat.line("an idle agent", |line| line.contains("turn 1 · listens"));
    let wide = status.rsplit('\u{1b}').nth(1).unwrap().chars().count();
    assert!((50..100).contains(&wide), "the status has about {wide} columns: {status:?}");
    let terminal = terminal_of(world.talker()).unwrap();
    let resized = Command::new("stty").arg("-F").arg(terminal).args(["cols", "50"]).status().unwrap();
    assert!(resized.success());
    chat.line("two rows erased", |line| line.contains("\u{1b}[2A\u{1b}[J"));
}
