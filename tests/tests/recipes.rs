//! The recipes of the documentation: what the pages show with curl is what happens.
//!
//! A page's first `flow` block is the file that its `outlast serve FILE` serves; the commands of its `console` blocks run in one shell,
//! and what they print must fit the lines below them, where `…` stands for anything. Needs `bash` and `curl`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

use outlast_tests::repository;
use outlast_tests::world::{World, binary};

/// A command of a page, and what it prints.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    prints: String,
}

/// Parts the answers of the commands.
const MARK: &str = "\u{1}";

#[test]
fn a_worker_can_be_driven_with_curl() {
    follow("workers/PROTOCOL.md");
}

#[test]
fn a_run_can_be_driven_with_curl() {
    follow("runtime/HTTP.md");
}

#[test]
fn tokens_can_be_handled_with_curl() {
    follow("runtime/ACCESS.md");
}

fn follow(page: &str) {
    let text = std::fs::read_to_string(repository::root().join(page)).unwrap();
    let mut steps: Vec<Step> = blocks(&text, "console").iter().flat_map(|block| read(block)).collect();
    let serve = steps.remove(0).command;
    let serve = serve.strip_prefix("outlast serve ").unwrap();
    let serve: Vec<&str> =
        serve.split(' ').filter(|word| !["--listen", "127.0.0.1:7878"].contains(word)).collect();
    let world = World::new();
    world.write(serve[0], &blocks(&text, "flow")[0]);
    let (_server, api) = world.serve(&serve);
    let mut script = String::new();
    for step in &steps {
        script += &format!("{}\nprintf '{MARK}'\n", step.command);
    }
    let address = api.url("").trim_start_matches("http://").to_owned();
    let program = binary("outlast");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-c", &script.replace("localhost:7878", &address)])
        .current_dir(world.work())
        .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
        .env("OUTLAST_DATA", world.data())
        .output()
        .unwrap_or_else(|error| panic!("bash cannot be started ({error}): the recipes need bash and curl"));
    let printed = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    let answers: Vec<&str> = printed.split(MARK).collect();
    assert_eq!(answers.len(), steps.len() + 1, "{page}: {complaints}");
    for (step, answer) in steps.iter().zip(answers) {
        assert!(
            fits(answer.trim(), step.prints.trim()),
            "{page}: $ {}\nprints\n{answer}\nand not\n{}{complaints}",
            step.command,
            step.prints
        );
    }
}

/// Returns the page's blocks of a kind.
fn blocks(text: &str, kind: &str) -> Vec<String> {
    let fence = format!("```{kind}\n");
    let after = |part: &str| part.split_once("```").map(|(block, _)| block.to_owned());
    text.split(&fence).skip(1).filter_map(after).collect()
}

fn read(block: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step { command: command.to_owned(), prints: String::new() }),
            (None, Some(step)) => step.prints += &format!("{line}\n"),
            (None, None) => panic!("a block begins with what nobody asked for: {line}"),
        }
    }
    steps
}

/// Tells whether a text fits a pattern in which `…` stands for anything.
fn fits(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[test]
fn a_pattern_takes_what_it_shows_and_nothing_else() {
    for (text, pattern, expected) in [
        ("abc", "abc", true),
        ("abc", "a…c", true),
        ("ac", "a…c", true),
        ("abc", "ab", false),
        ("abc", "…c", true),
        ("abc", "a…b", false),
        ("a1b2c", "a…b…c", true),
        ("a1c", "a…b…c", false),
    ] {
        assert_eq!(fits(text, pattern), expected, "{text} {pattern}");
    }
    let block = "$ echo a\na\n$ true\n";
    let steps = [("echo a", "a\n"), ("true", "")]
        .map(|(command, prints)| Step { command: command.into(), prints: prints.into() });
    assert_eq!(read(block), steps);
}
