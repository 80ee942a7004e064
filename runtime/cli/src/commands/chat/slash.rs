//! Commands within a conversation.

use outlast_protocol::requests::Fork;

use super::screen::Tone;
use super::talk::Talk;
use super::{list, resume};
use crate::commands::{act, fork};
use crate::failure::Failure;
use crate::show;

/// What a command leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The conversation goes on.
    Stay,
    /// The person leaves.
    Leave,
}

const HELP: &str = "\
/status      where the run stands
/runs        unfinished runs of this directory
/resume ID   go on with another run
/fork [N]    go on with a fork of the run, after event N or where nothing is in hand
/tree        the run, what it was forked from, and its forks
/stop        stop what goes on (also Esc or Ctrl-C)
/close       say that no more messages come: the flow can end
/cancel      end the run with its clean-up
/quit        leave; the run stays (also Ctrl-D, or Ctrl-C twice)
Everything else is said to the run. What is typed while it works waits for its turn; Alt-Up takes it back.
Alt-Enter begins a new line.";

/// Does a command.
pub(super) async fn command(talk: &mut Talk, line: &str) -> Result<After, Failure> {
    let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    match word {
        "/help" => talk.face.print(Tone::Aside, HELP)?,
        "/quit" | "/exit" => return Ok(After::Leave),
        "/status" => {
            talk.catch_up().await?;
            let text = talk.run.as_ref().map_or_else(|| "no run yet".to_owned(), show::run);
            talk.face.print(Tone::Aside, &text)?;
        }
        "/runs" => {
            let runs = list(&talk.session).await?;
            let text = if runs.is_empty() { "no unfinished runs here".to_owned() } else { runs.join("\n") };
            talk.face.print(Tone::Aside, &text)?;
        }
        "/resume" => {
            let id = rest.trim();
            match talk.session.call(async |client| client.run(id).await).await {
                Ok(run) => resume(talk, run).await?,
                Err(error) => talk.face.print(Tone::Loud, &error.to_string())?,
            }
        }
        "/fork" => fork_here(talk, rest.trim()).await?,
        "/tree" => {
            let Some(run) = talk.run.as_ref().map(|run| run.id.clone()) else {
                talk.face.print(Tone::Aside, "no run yet")?;
                return Ok(After::Stay);
            };
            match talk.session.call(async |client| client.tree(&run).await).await {
                Ok(tree) => talk.face.print(Tone::Aside, &fork::lines(&tree.items, &run).join("\n"))?,
                Err(error) => talk.face.print(Tone::Loud, &error.to_string())?,
            }
        }
        "/stop" => {
            if !talk.stop().await? {
                talk.face.print(Tone::Aside, "there is nothing to stop")?;
            }
        }
        "/close" => talk.close().await?,
        "/cancel" => {
            if let Some(run) = talk.run.as_ref().map(|run| run.id.clone()) {
                let cancelled = talk.session.call(async |client| client.cancel(&run).await).await;
                if let Err(error) = cancelled {
                    talk.face.print(Tone::Loud, &error.to_string())?;
                }
                talk.catch_up().await?;
            }
        }
        other => talk.face.print(Tone::Loud, &format!("there is no {other}; /help shows what there is"))?,
    }
    Ok(After::Stay)
}

/// Forks the run that is talked with, and goes on with the fork.
async fn fork_here(talk: &mut Talk, at: &str) -> Result<(), Failure> {
    let Some(run) = talk.run.as_ref().map(|run| run.id.clone()) else {
        return talk.face.print(Tone::Aside, "no run yet");
    };
    let at = match at {
        "" => None,
        text => match text.parse() {
            Ok(at) => Some(at),
            Err(_) => {
                let line =
                    format!("the number of an event is expected, not {text:?}; see outlast events {run}");
                return talk.face.print(Tone::Loud, &line);
            }
        },
    };
    let request = Fork { at, id: Some(act::fresh_id("fork")?), children: None };
    match talk.session.call(async |client| client.fork(&run, &request).await).await {
        Ok(forked) => {
            talk.face.print(Tone::Aside, &format!("run {run} stays; to go back: /resume {run}"))?;
            resume(talk, forked.run).await
        }
        Err(error) => talk.face.print(Tone::Loud, &error.to_string()),
    }
}
