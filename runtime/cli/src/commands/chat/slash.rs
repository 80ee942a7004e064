//! Commands within a conversation: one table, from which help, completion and dispatch come.
//!
//! Leaves questions to `approve` and lists to `choose`. Invariant: a command that cannot be done says what was expected, and
//! comes back to be mended; one that is none does not.

use std::fmt::Write as _;
use std::path::Path;

use outlast_protocol::requests::Fork;

use super::deeds::Taken;
use super::said::After;
use super::screen::Tone;
use super::talk::Talk;
use super::{about, approve, choose};
use crate::commands::{act, carry, fork};
use crate::failure::Failure;
use crate::{environment, files, show};

/// What a command is called with, as far as it can be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Run,
    Event,
    Question,
    File,
}

/// Which command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Help,
    Status,
    Runs,
    Resume,
    Fork,
    Tree,
    Model,
    Tools,
    Approve,
    Compact,
    Export,
    Stop,
    Close,
    Cancel,
    Quit,
}

/// A command.
#[derive(Debug)]
pub(super) struct Command {
    name: &'static str,
    arguments: &'static str,
    help: &'static str,
    pub(super) takes: Takes,
    what: What,
}

const fn row(
    name: &'static str,
    arguments: &'static str,
    takes: Takes,
    what: What,
    help: &'static str,
) -> Command {
    Command { name, arguments, help, takes, what }
}

/// All there are.
const COMMANDS: [Command; 15] = [
    row("/help", "", Takes::Nothing, What::Help, "this list, and the keys"),
    row("/status", "", Takes::Nothing, What::Status, "where the run stands"),
    row("/runs", "[all]", Takes::Nothing, What::Runs, "pick an unfinished run of this directory, or of all"),
    row("/resume", "[ID]", Takes::Run, What::Resume, "go on with another run; without an id, pick one"),
    row(
        "/fork",
        "[N]",
        Takes::Event,
        What::Fork,
        "go on in a fork, after event N or where nothing is in hand",
    ),
    row("/tree", "", Takes::Nothing, What::Tree, "the run, what it was forked from, and its forks"),
    row("/model", "", Takes::Nothing, What::Model, "which model answers, and how to choose another one"),
    row("/tools", "", Takes::Nothing, What::Tools, "the tools of the run, and which of them ask"),
    row(
        "/approve",
        "[no|always|edit|show] [ID] [NOTE]",
        Takes::Question,
        What::Approve,
        "open questions; with an id, answer one",
    ),
    row("/compact", "", Takes::Nothing, What::Compact, "shorten the conversation, if the flow can"),
    row("/export", "[FILE]", Takes::File, What::Export, "write the whole run, as `outlast export` does"),
    row("/stop", "", Takes::Nothing, What::Stop, "stop what goes on (also Esc)"),
    row("/close", "", Takes::Nothing, What::Close, "say that no more messages come: the flow can end"),
    row("/cancel", "", Takes::Nothing, What::Cancel, "end the run with its clean-up"),
    row("/quit", "", Takes::Nothing, What::Quit, "leave; the run stays (also Ctrl-D)"),
];

/// What else there is to do, below the commands.
const KEYS: &str = "\
Everything else is said to the run; a line that begins with a space always is.
@FILE           puts the text of a file behind what you say; \\@ is a plain @
!COMMAND        runs a command of yours here; the run does not see it
y NOTE, n NOTE  answer a question; of several: y ID, n ID NOTE
a, e            yes, and always in this run; change it first
Enter           sends; while the run works, what you say waits for its turn
Alt-Enter       sends, and never answers a question
Ctrl-J, or \\    at the end of a line: begins a new line
Tab             completes commands, ids, and files after @
Up, Down        within several rows; beyond them, earlier lines that begin alike
Alt-Up          takes the newest waiting message back
Esc             stops what goes on
Esc Esc         goes back to something you said, in a fork
Ctrl-C          clears the line, or ends your command, or stops what goes on
Ctrl-C Ctrl-C   leaves; the run stays
Ctrl-Z          to the background; fg comes back";

/// Returns the names of all commands.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|command| command.name)
}

/// Returns a command by its name.
pub(super) fn command_of(word: &str) -> Option<&'static Command> {
    let word = if word == "/exit" { "/quit" } else { word };
    COMMANDS.iter().find(|command| command.name == word)
}

fn help() -> String {
    let mut help = String::new();
    for Command { name, arguments, help: what, .. } in &COMMANDS {
        let called = format!("{name} {arguments}");
        let _infallible = match called.len() {
            ..=15 => writeln!(help, "{called:<16}{what}"),
            _ => writeln!(help, "{called}\n{:16}{what}", ""),
        };
    }
    help + KEYS
}

/// Does a command.
pub(super) async fn command(talk: &mut Talk, line: &str) -> Result<After, Failure> {
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let rest = rest.trim();
    let Some(command) = command_of(word) else {
        let why = format!(
            "there is no {word}; /help shows what there is, and a space before the line says it to the run"
        );
        talk.face.print(Tone::Loud, &why)?;
        return Ok(After::Refused);
    };
    if !rest.is_empty() && command.arguments.is_empty() {
        return back(talk, &format!("{word} takes nothing, and not {rest:?}"), line);
    }
    match command.what {
        What::Help => talk.face.print(Tone::Plain, &help())?,
        What::Status => {
            talk.catch_up().await?;
            let text = talk.run.as_ref().map_or_else(|| "no run yet".to_owned(), show::run);
            talk.face.print(Tone::Plain, &text)?;
        }
        What::Runs => return runs(talk, rest, line).await,
        What::Resume if rest.is_empty() => return choose::run(talk, choose::Where::Here).await,
        What::Resume => return resume(talk, rest, line).await,
        What::Fork => return fork_here(talk, rest, line).await,
        What::Tree => tree(talk).await?,
        What::Model => model(talk)?,
        What::Tools => {
            let machine =
                talk.known.machine.as_ref().or(talk.run.is_none().then_some(&talk.chosen.flow.machine));
            let text = match machine {
                Some(machine) => about::tools(machine, &talk.known.config),
                None => "the flow of this run cannot be read".to_owned(),
            };
            talk.face.print(Tone::Plain, &text)?;
        }
        What::Approve => return approve::approve(talk, rest, line).await,
        What::Compact => return compact(talk, line).await,
        What::Export => return export(talk, rest, line).await,
        What::Stop => {
            if !talk.stop().await? {
                talk.face.print(Tone::Aside, "there is nothing to stop")?;
            }
        }
        What::Close => talk.close().await?,
        What::Cancel => talk.cancel().await?,
        What::Quit => return Ok(After::Leave),
    }
    Ok(After::Stay)
}

/// Says why a line was not taken, and gives it back.
pub(super) fn back(talk: &mut Talk, why: &str, line: &str) -> Result<After, Failure> {
    talk.face.print(Tone::Loud, why)?;
    Ok(After::Back(line.to_owned()))
}

/// Says that there is no run, and gives the line back.
fn no_run(talk: &mut Talk, line: &str) -> Result<After, Failure> {
    back(talk, "no run yet: say what is to be done first", line)
}

async fn runs(talk: &mut Talk, rest: &str, line: &str) -> Result<After, Failure> {
    match rest {
        "" => choose::run(talk, choose::Where::Here).await,
        "all" => choose::run(talk, choose::Where::Anywhere).await,
        other => back(talk, &format!("nothing or `all` is expected, not {other:?}"), line),
    }
}

async fn resume(talk: &mut Talk, id: &str, line: &str) -> Result<After, Failure> {
    match talk.session.call(async |client| client.run(id).await).await {
        Ok(run) => talk.follow(run).await.map(|()| After::Stay),
        Err(error) => back(talk, &error.to_string(), line),
    }
}

/// Forks the run that is talked with, and goes on with the fork.
async fn fork_here(talk: &mut Talk, at: &str, line: &str) -> Result<After, Failure> {
    let Some(run) = talk.run_id() else { return no_run(talk, line) };
    let at = match at {
        "" => None,
        text => match text.parse() {
            Ok(at) => Some(at),
            Err(_) => {
                let why =
                    format!("the number of an event is expected, not {text:?}; see outlast events {run}");
                return back(talk, &why, line);
            }
        },
    };
    let request = Fork { at, id: Some(act::fresh_id("fork")?), children: None };
    match talk.session.call(async |client| client.fork(&run, &request).await).await {
        Ok(forked) => {
            talk.face.print(Tone::Aside, &format!("run {run} stays; to go back: /resume {run}"))?;
            talk.follow(forked.run).await.map(|()| After::Stay)
        }
        Err(error) => back(talk, &error.to_string(), line),
    }
}

async fn tree(talk: &mut Talk) -> Result<(), Failure> {
    let Some(run) = talk.run_id() else { return talk.face.print(Tone::Aside, "no run yet") };
    match talk.session.call(async |client| client.tree(&run).await).await {
        Ok(tree) => talk.face.print(Tone::Plain, &fork::lines(&tree.items, &run).join("\n")),
        Err(error) => talk.face.print(Tone::Loud, &error.to_string()),
    }
}

fn model(talk: &mut Talk) -> Result<(), Failure> {
    let text = match (&talk.run, &talk.known.profile) {
        (_, Some(profile)) => about::model(profile),
        (Some(run), None) => format!("the environment {} of this run is not kept", run.profile),
        (None, None) => match environment::profile(&talk.chosen.file.script()) {
            Ok(profile) => about::model(&profile),
            Err(failure) => failure.error().map_or_else(String::new, |error| error.message.clone()),
        },
    };
    talk.face.print(Tone::Plain, &text)
}

async fn compact(talk: &mut Talk, line: &str) -> Result<After, Failure> {
    if talk.run.is_none() {
        return no_run(talk, line);
    }
    let text = match (talk.compact().await?, &talk.known.machine) {
        (Some(Taken::Yes), _) => "(the flow was asked to shorten the conversation)".to_owned(),
        (Some(Taken::No), _) => return Ok(After::Back(line.to_owned())),
        (None, Some(machine)) => about::compacts(machine.root()),
        (None, None) => "the flow of this run cannot be read".to_owned(),
    };
    talk.face.print(Tone::Plain, &text)?;
    Ok(After::Stay)
}

async fn export(talk: &mut Talk, file: &str, line: &str) -> Result<After, Failure> {
    let Some(run) = talk.run_id() else { return no_run(talk, line) };
    let file = if file.is_empty() { format!("{run}.jsonl") } else { file.to_owned() };
    let text = carry::records(&talk.session, &run).await?;
    match files::replace(Path::new(&file), &text) {
        Ok(()) => talk.face.print(Tone::Aside, &format!("run {run} is in {file}")).map(|()| After::Stay),
        Err(error) => back(talk, &format!("{file} cannot be written: {error}"), line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_every_command_and_every_command_is_found() {
        let help = help();
        for word in words() {
            assert!(help.lines().any(|line| line.split(' ').next() == Some(word)), "{word}");
            assert_eq!(command_of(word).map(|command| command.name), Some(word));
        }
        assert_eq!(command_of("/exit").map(|command| command.what), Some(What::Quit));
        assert!(command_of("/hel").is_none());
        assert!(help.lines().all(|line| line.chars().count() <= 84), "{help}");
    }
}
