//! `outlast chat`: a person talks with a run, on a terminal or through plain lines.
//!
//! Leaves the run alone when it leaves: it stays, and is found again.

mod editor;
mod face;
mod keys;
mod lines;
mod screen;
mod slash;
mod talk;
mod terminal;
mod transcript;
mod typed;
mod voice;
mod width;

use std::sync::Arc;

use outlast_protocol::run::{Frame, RunView};
use outlast_runtime::client::Wanted;
use outlast_runtime::host::Session;

use super::fork::Point;
use super::{Context, act, fork};
use crate::failure::{Exit, Failure};
use crate::flow_file::Named;
use crate::limits::{FOUND_RUNS_MAX, RUNS_PAGE};
use crate::open::{self, Workers};
use crate::signals::Signals;
use crate::tail::Tail;
use crate::{out, show};
use face::Face;
use screen::{Screen, Tone};
use talk::Talk;
use terminal::Terminal;
use voice::Voice;

/// Arguments of `chat`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The flow: FILE or FILE:Flow [default: the built-in agent]
    #[arg(value_name = "FILE[:Flow]")]
    flow: Option<String>,
    /// Go on with the newest unfinished run of this directory
    #[arg(long = "continue", conflicts_with_all = ["resume", "flow"])]
    newest: bool,
    /// Go on with this run
    #[arg(long, value_name = "ID", conflicts_with = "flow")]
    resume: Option<String>,
    /// Fork this run and go on with the fork: after event N, or the newest at which no `once` operation is open
    #[arg(long, value_name = "ID[@N]", conflicts_with_all = ["flow", "resume", "newest"])]
    fork: Option<Point>,
}

/// Talks until the person leaves or the run ends.
pub(crate) async fn chat(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let chosen = Named::new(arguments.flow.as_deref()).choose()?;
    let signals = Signals::new()?;
    let session = open::session(context.data, Workers::Started, None).await?;
    let on_terminal = Terminal::is_there();
    let face = if on_terminal { Face::Screen(Screen::new(out::colours())) } else { Face::Plain };
    let exit = async {
        let found = match (&arguments.resume, &arguments.fork) {
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
        match found {
            Some(run) => resume(&mut talk, run).await?,
            None => greet(&mut talk).await?,
        }
        let exit = match terminal {
            Some(terminal) => typed::talk(&mut talk, terminal, signals).await,
            None => lines::talk(&mut talk, signals).await,
        };
        farewell(talk, exit).await
    };
    let exit = exit.await;
    open::close(session).await;
    exit
}

/// Goes on with a run.
async fn resume(talk: &mut Talk, run: RunView) -> Result<(), Failure> {
    // Only the built-in agent's text is at hand; other flows are talked to by what they wait for.
    if run.flow != "Agent" {
        talk.voice = Voice::guessed(run.waiting_for.as_ref());
    }
    talk.follow(run).await
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
    let here = unfinished_here(&talk.session).await?;
    for run in here.iter().take(FOUND_RUNS_MAX) {
        let line = format!("unfinished here: {} of {}, {} in {}", run.id, run.flow, run.status, run.state);
        talk.face.print(Tone::Aside, &line)?;
    }
    if !here.is_empty() {
        let how = "go on with the newest: outlast chat --continue; with another: /resume ID";
        talk.face.print(Tone::Aside, how)?;
    }
    if talk.voice.first.is_none() {
        return talk.begin("").await;
    }
    talk.face.print(Tone::Aside, "say what is to be done; /help shows what else there is")
}

/// Returns the unfinished runs that were started in this directory, newest first.
async fn unfinished_here(session: &Session) -> Result<Vec<RunView>, Failure> {
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    let (mut found, mut known) = (Vec::new(), std::collections::BTreeMap::new());
    for status in ["running", "waiting", "blocked"] {
        let wanted = Wanted { status: Some(status.to_owned()), limit: Some(RUNS_PAGE), ..Wanted::default() };
        let page = session.call(async |client| client.runs(&wanted).await).await?;
        for run in page.items {
            if !known.contains_key(&run.profile) {
                let profile = session.call(async |client| client.profile(&run.profile).await).await;
                let is_here = profile.is_ok_and(|profile| profile.directory == here);
                known.insert(run.profile.clone(), is_here);
            }
            if known.get(&run.profile) == Some(&true) {
                found.push(run);
            }
        }
    }
    found.sort_by(|a, b| b.started_at.cmp(&a.started_at));
    Ok(found)
}

async fn newest(session: &Session) -> Result<RunView, Failure> {
    let newest = unfinished_here(session).await?.into_iter().next();
    newest.ok_or_else(|| {
        let failure = Failure::usage("there is no unfinished run of this directory");
        failure.hint("start one with `outlast chat`, or see all with `outlast runs`")
    })
}

/// Ends the conversation; a run that has not ended stays.
async fn farewell(mut talk: Talk, exit: Result<Exit, Failure>) -> Result<Exit, Failure> {
    talk.face.clear();
    if let Some(run) = talk.run.as_ref().filter(|run| run.outcome.is_none()) {
        let option = act::data_option(&talk.session);
        out::say(&format!("run {} stays; to go on: outlast{option} chat --resume {}", run.id, run.id));
    }
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

/// Returns runs in lines, for `/runs`.
async fn list(session: &Session) -> Result<Vec<String>, Failure> {
    Ok(unfinished_here(session).await?.iter().map(show::row).collect())
}
