//! `outlast chat`: a person talks with a run, on a terminal or through plain lines.
//!
//! Leaves the run alone when it leaves: it stays, and is found again.

mod about;
mod age;
mod approve;
mod choose;
mod complete;
mod deeds;
mod diff;
mod edit;
mod editor;
mod ending;
mod face;
mod footer;
mod history;
mod keys;
mod known;
mod lines;
mod mailbox;
mod markdown;
mod mention;
mod person;
mod picker;
mod questions;
mod rows;
mod said;
mod screen;
mod shell;
mod slash;
mod speech;
mod talk;
mod terminal;
mod transcript;
mod typed;
mod voice;
mod width;

use std::sync::Arc;

use outlast_protocol::run::{Frame, RunView};
use outlast_runtime::host::Session;

use super::fork::Point;
use super::{Context, fork};
use crate::failure::{Exit, Failure};
use crate::flow_file::Named;
use crate::limits::FOUND_RUNS_MAX;
use crate::open::{self, Workers};
use crate::out;
use crate::servers;
use crate::signals::Signals;
use crate::tail::Tail;
use choose::Where;
use face::Face;
use said::After;
use screen::{Screen, Tone};
use talk::Talk;
use terminal::Terminal;

/// What `--help` says below the options.
const AFTER_HELP: &str = "\
In the conversation /help lists the commands and keys. Enter sends, and queues while the run works; @FILE puts a file behind a message; !COMMAND runs a \
command of yours; Esc stops what goes on; y, n and a answer a question, Alt-Enter says something beside it; Ctrl-D leaves, and the run stays.";

/// Arguments of `chat`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The flow: FILE or FILE:Flow [default: the built-in agent]
    #[arg(value_name = "FILE[:Flow]")]
    flow: Option<String>,
    #[command(flatten)]
    servers: servers::Given,
    /// Go on with the newest unfinished run of this directory
    #[arg(long = "continue", conflicts_with_all = ["resume", "flow"])]
    newest: bool,
    /// Go on with this run; without an id, pick one of this directory
    #[arg(long, value_name = "ID", conflicts_with = "flow", num_args = 0..=1, default_missing_value = "")]
    resume: Option<String>,
    /// Fork this run and go on with the fork: after event N, or the newest at which no `once` operation is open
    #[arg(long, value_name = "ID[@N]", conflicts_with_all = ["flow", "resume", "newest"])]
    fork: Option<Point>,
}

/// Talks until the person leaves or the run ends.
pub(crate) async fn chat(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let chosen = match arguments.servers.agent(context.data).await? {
        Some(agent) => agent,
        None => Named::new(arguments.flow.as_deref()).choose()?,
    };
    let signals = Signals::new()?;
    let session = open::session(context.data, Workers::Started, None).await?;
    let on_terminal = Terminal::is_there();
    let face = if on_terminal { Face::Screen(Screen::new(out::colours())) } else { Face::Plain };
    let exit = async {
        let found = match (&arguments.resume, &arguments.fork) {
            (Some(id), _) if id.is_empty() => None,
            (Some(id), _) => {
                let run = session.call(async |client| client.run(id).await).await;
                Some(run.map_err(|error| Failure::from(error).of_run(id))?)
            }
            (None, Some(point)) => Some(fork::begin(&session, point, None, None).await?),
            (None, None) if arguments.newest => Some(newest(&session).await?),
            (None, None) => None,
        };
        // Before anything is shown: what a person types at the first word they see must be keys already.
        let terminal = if on_terminal { Some(Terminal::open()?) } else { None };
        let mut talk = Talk::new(Arc::clone(&session), face, chosen);
        let first = match found {
            Some(run) => talk.follow(run).await.map(|()| After::Stay)?,
            None if arguments.resume.is_some() => choose::run(&mut talk, Where::Here).await?,
            None => greet(&mut talk).await.map(|()| After::Stay)?,
        };
        let exit = match terminal {
            Some(terminal) => typed::talk(&mut talk, terminal, signals, first).await,
            None => lines::talk(&mut talk, signals, first).await,
        };
        farewell(talk, exit).await
    };
    let exit = exit.await;
    open::close(session).await;
    exit
}

/// Names what is unfinished here, and begins if nothing has to be said first.
async fn greet(talk: &mut Talk) -> Result<(), Failure> {
    if !talk.voice.missing.is_empty() {
        let missing = talk.voice.missing.join(", ");
        let failure = Failure::usage(format!("this flow also needs {missing}, which cannot be typed here"));
        return Err(failure.hint(
            "start it with `outlast run FILE --input JSON`, and talk with `outlast chat --resume ID`",
        ));
    }
    let here = choose::unfinished(&talk.session, Where::Here).await?;
    for run in here.iter().take(FOUND_RUNS_MAX) {
        let line = format!("unfinished here: {} of {}, {} in {}", run.id, run.flow, run.status, run.state);
        talk.face.print(Tone::Aside, &line)?;
    }
    if !here.is_empty() {
        let how = "go on with the newest: outlast chat --continue; with another: /resume ID";
        talk.face.print(Tone::Aside, how)?;
    }
    let Some(first) = &talk.voice.first else { return talk.begin("").await };
    let becomes = match first.as_str() {
        "task" => String::new(),
        other => format!(" ({} gets it as its {other})", talk.chosen.flow.name),
    };
    let text = format!("say what is to be done{becomes}; /help shows what else there is");
    talk.face.print(Tone::Aside, &text)
}

async fn newest(session: &Session) -> Result<RunView, Failure> {
    let newest = choose::unfinished(session, Where::Here).await?.into_iter().next();
    newest.ok_or_else(|| {
        let failure = Failure::usage("there is no unfinished run of this directory");
        failure.hint("start one with `outlast chat`, or see all with `outlast runs`")
    })
}

/// Ends the conversation; a run that has not ended stays.
async fn farewell(mut talk: Talk, exit: Result<Exit, Failure>) -> Result<Exit, Failure> {
    talk.face.clear();
    // What was started for the person ends with the conversation.
    talk.command = None;
    talk.tell_way_back();
    if let Some(tail) = talk.tail.take() {
        tail.stop().await;
    }
    exit
}

/// Returns the next frame of the run, if one is followed.
async fn next_frame(tail: &mut Option<Tail>) -> Option<Result<Frame, Failure>> {
    match tail {
        Some(tail) => tail.next().await,
        None => std::future::pending().await,
    }
}
