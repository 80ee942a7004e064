//! `chat` through plain lines: its commands, files in messages, commands of one's own, questions by name; and what is refused.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::model_server::{KEY, ModelServer, Reply, last_text, messages};
use outlast_tests::process::{Process, until};
use outlast_tests::world::World;
use serde_json::json;

fn id_of(chat: &mut Process) -> String {
    let line = chat.line("the run", |line| line.contains("run agent-"));
    line.split_whitespace().find(|word| word.starts_with("agent-")).unwrap().to_owned()
}

#[test]
fn commands_say_what_they_know_and_what_was_expected() {
    let world = World::new();
    let mut chat = world.start(&["chat"]);
    for (line, expected) in [
        ("/help", "Esc Esc"),
        ("/model", "the scripted model of the built-in agent answers"),
        ("/tools", "shell                once        asks"),
        ("/status", "no run yet"),
        ("/runs", "no unfinished runs here"),
        ("/approve", "no question is open"),
        ("/approve 5.0", "no question is open"),
        ("/export", "no run yet"),
        ("/compact", "no run yet"),
        ("/fork 3", "no run yet"),
        ("/help me", "/help takes nothing, and not \"me\""),
        ("/nothing", "there is no /nothing; /help shows what there is"),
        ("/resume nobody", "there is no run nobody"),
        ("!", "a command is expected after the !"),
        ("!echo from the shell; exit 3", "from the shell"),
        ("read @missing.txt", "@missing.txt: No such file"),
    ] {
        chat.say(line);
        chat.line(line, |found| found.contains(expected));
    }
    assert_eq!(world.json(&["runs", "--json"])["items"], json!([]), "nothing was started by any of it");

    chat.say("count the lines");
    let id = id_of(&mut chat);
    chat.line("the question", |line| line.contains("? Run shell?"));
    let question = world.questions(&id, 1)[0]["id"].as_str().unwrap().to_owned();
    for (line, expected) in [
        ("/approve", format!("{question}: y: yes · n: no, a note may follow")),
        ("/approve 99.9", format!("question 99.9 is not open; open: {question}")),
        ("e", format!("what question {question} shows cannot be changed")),
        ("/compact", "Agent takes no message Compact: it does so by itself".to_owned()),
        ("/runs", format!("{id:<24} asks     Agent")),
    ] {
        chat.say(line);
        chat.line(line, |found| found.contains(&expected));
    }
    chat.say(&format!("/approve no {question} not today"));
    chat.line("the decision", |line| line.contains("rejected by") && line.contains("not today"));
    chat.line("the answer", |line| line.contains("The command was refused"));
    until("the agent to be idle", || world.get(&format!("/v1/runs/{id}"))["state"] == "Idle");
    chat.say("/export mine.jsonl");
    chat.line("where it is", |line| line.contains("is in mine.jsonl"));
    assert_eq!(world.file("mine.jsonl"), world.run(&["export", &id]).stdout);
    chat.say("/export no/such/directory");
    chat.line("why not", |line| line.contains("no/such/directory cannot be written"));
    chat.say("/quit");
    assert_eq!(chat.finish().code, Some(0));
    let listed = world.run(&["chat", "--resume"]);
    assert!(listed.stdout.contains(&format!("{id:<24} waiting  Agent")), "{listed:?}");
}

#[test]
fn files_go_with_a_message_and_the_model_reads_them() {
    let model = ModelServer::start(|_| Reply::Text("read".to_owned()));
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    world.write("notes.txt", "first\nsecond\n");
    let mut chat = world.start(&["chat"]);
    chat.say("what is in @notes.txt?");
    chat.line("the answer", |line| line == "read");
    chat.say(" /etc is no command here");
    chat.line("the answer", |line| line == "read");
    let heard = model.conversations();
    let expected = "what is in @notes.txt?\n\nThe file notes.txt:\n```\nfirst\nsecond\n```";
    assert!(heard[0].iter().any(|message| message["content"] == expected), "{heard:?}");
    assert!(heard[1].iter().any(|message| message["content"] == " /etc is no command here"), "{heard:?}");
}

/// Cases APR-02, APR-03 in a conversation: of two questions each is shown as the change that it would make, and answered by its name.
#[test]
fn two_questions_are_shown_as_changes_and_answered_by_name() {
    let model = ModelServer::start(|body| match messages(body).last() {
        Some(last) if last["role"] == "user" => Reply::Calls(vec![
            ("a", "write", json!({"path": "notes.txt", "text": "first\n2nd\n"})),
            ("b", "edit", json!({"path": "other.txt", "old": "yes", "new": "no"})),
        ]),
        Some(_) | None => Reply::Text(format!("done: {}", last_text(body, "tool"))),
    });
    let world =
        World::new().with_variable("OUTLAST_MODEL_URL", &model.url()).with_variable("OPENAI_API_KEY", KEY);
    world.write("notes.txt", "first\nsecond\n");
    world.write("other.txt", "yes\n");
    let mut chat = world.start(&["chat"]);
    chat.say("change them");
    let id = id_of(&mut chat);
    let mut seen = Vec::new();
    while seen.iter().filter(|line: &&String| line.contains("y: yes")).count() < 2 {
        seen.push(chat.line("a line", |_| true));
    }
    for expected in [
        "    write notes.txt, the whole file",
        "    -second",
        "    +2nd",
        "    edit other.txt",
        "    -yes",
        "    +no",
    ] {
        assert!(seen.iter().any(|line| line == expected), "{expected} in {seen:?}");
    }
    let questions = world.questions(&id, 2);
    let of = |tool: &str| {
        let found = questions.iter().find(|question| question["show"]["name"] == tool).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    for unclear in ["y", "", "n because"] {
        chat.say(unclear);
        chat.line("which one", |line| line.contains("2 questions are open"));
    }
    assert_eq!(world.questions(&id, 2), questions, "nothing was answered");
    chat.say(&format!("y {}", of("edit")));
    chat.line("the decision", |line| line.contains("approved by"));
    chat.say(&format!("n {} not this one", of("write")));
    chat.line("the decision", |line| line.contains("rejected by") && line.contains("not this one"));
    chat.line("the answer", |line| line.contains("done:"));
    assert_eq!(
        (world.file("notes.txt").as_str(), world.file("other.txt").as_str()),
        ("first\nsecond\n", "no\n")
    );
}

/// Through plain lines a message beside a question is told to be one; a note goes with a yes; at the end is said what people have to do.
#[test]
fn plain_lines_say_what_becomes_of_them() {
    let world = World::new();
    let mut chat = world.start(&["chat"]);
    chat.say("count the lines");
    let id = id_of(&mut chat);
    chat.line("the question", |line| line.contains("? Run shell?"));
    let question = world.questions(&id, 1)[0]["id"].as_str().unwrap().to_owned();
    chat.say("maybe later");
    chat.line("what it is", |line| line.contains("that is no answer (y [note], n [note]): it is a message"));
    chat.line("where it is", |line| line == "queued: maybe later");
    chat.hang_up();
    let end = chat.finish();
    assert_eq!(end.code, Some(3), "{end:?}");
    let advice = format!("run {id} waits for an answer: outlast answer {id} {question} approve|reject");
    assert!(end.stderr.contains(&advice), "{end:?}");
    let mut chat = world.start(&["chat", "--resume", &id]);
    chat.line("what waits", |line| line == "queued: maybe later");
    chat.say("y looks fine");
    chat.line("the decision", |line| line.contains("approved by") && line.contains(": looks fine"));
    chat.line("the answer", |line| line.contains("ran a command"));
    chat.line("what was taken then", |line| line == "> maybe later");
}

/// The first line is shown as said whatever parameter of the flow it becomes, and the person learns which.
#[test]
fn the_first_line_is_shown_whatever_it_becomes() {
    let world = World::with_flows();
    let mut chat = world.start(&["chat", "flows/edited.flow"]);
    chat.line("what becomes of it", |line| {
        line.contains("say what is to be done (Edited gets it as its draft)")
    });
    chat.say("hello");
    chat.line("what was said", |line| line == "> hello");
}

/// Case INT-06: a run whose directory is gone says so, is read, and runs nothing elsewhere.
#[test]
fn a_run_whose_directory_is_gone_says_so() {
    let world = World::new();
    let gone = world.work().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let mut chat = Process::start(world.command(&["chat"]).current_dir(&gone));
    chat.say("count the lines");
    let id = id_of(&mut chat);
    chat.line("the question", |line| line.contains("? Run shell?"));
    chat.say("/quit");
    assert_eq!(chat.finish().code, Some(0));
    std::fs::remove_dir(&gone).unwrap();
    let mut chat = world.start(&["chat", "--resume", &id]);
    chat.line("what is missing", |line| line.contains("gone") && line.contains("is not there any more"));
    chat.line("what was said", |line| line.contains("> count the lines"));
    chat.line("the question", |line| line.contains("? Run shell?"));
    chat.say("y");
    chat.line("the decision", |line| line.contains("approved by"));
    chat.say("/status");
    chat.line("why it waits", |line| {
        line.contains("waits for a free worker") || line.contains("no worker serves")
    });
    std::fs::create_dir(&gone).unwrap();
    chat.line("the answer", |line| line.contains("ran a command"));
}
