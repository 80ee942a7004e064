//! `chat` on a real pseudo-terminal (of util-linux's `script`): a question, a kill, the same question again, an answer, a way out.

use outlast_tests::process::Process;
use outlast_tests::world::{Role, World};

#[test]
fn a_conversation_on_a_terminal_survives_a_kill_and_ends_with_a_command_that_resumes_it() {
    let world = World::new();
    world.write("notes.txt", "first\nsecond\n");
    let mut chat = on_a_terminal(&world, "chat");
    chat.line("a prompt", |line| line.contains("say what is to be done"));
    chat.press("what is in here?\r");
    chat.line("the question", |line| line.contains("? Run shell?"));
    world.kill(Role::Runtime);
    let _killed = chat.finish();

    let mut chat = on_a_terminal(&world, "chat --continue");
    chat.line("the question again", |line| line.contains("? Run shell?"));
    chat.line("what it would do", |line| line.contains("command: find"));
    chat.press("n not now\r");
    chat.line("the decision", |line| line.contains("rejected by") && line.contains("not now"));
    chat.line("the answer", |line| line.contains("The command was refused"));
    chat.line("the prompt of an idle agent", |line| line.contains("listens"));
    chat.press("/quit\r");
    let farewell = chat.line("how to resume", |line| line.contains("outlast chat --resume"));
    let end = chat.finish();
    assert_eq!(end.code, Some(0), "{end:?}");
    let id = farewell.rsplit(' ').next().unwrap_or_default().trim();
    assert_eq!(world.json(&["show", id, "--json"])["status"], "waiting", "the run stays");
}

/// Starts the binary with a terminal of its own.
fn on_a_terminal(world: &World, arguments: &str) -> Process {
    let plain = world.command(&[]);
    let line = format!("stty cols 120 rows 40 && exec {} {arguments}", plain.get_program().display());
    let mut script = std::process::Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    script.current_dir(world.work()).env_clear();
    script.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.env("TERM", "xterm");
    Process::start(&mut script)
}
