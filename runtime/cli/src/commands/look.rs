//! `outlast runs`, `show`, `events`: what is there.

use outlast_runtime::client::Wanted;
use serde_json::{Value, json};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::limits::{EVENTS_PAGE, RUNS_PAGE};
use crate::open::{self, Workers};
use crate::{out, show};

/// Arguments of `runs`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunsArguments {
    /// Only these: running, waiting, blocked or ended
    #[arg(long)]
    status: Option<String>,
    /// Only runs of this flow
    #[arg(long)]
    flow: Option<String>,
}

/// Lists runs.
pub(crate) async fn runs(context: Context<'_>, arguments: &RunsArguments) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let wanted = Wanted {
            status: arguments.status.clone(),
            flow: arguments.flow.clone(),
            profile: None,
            cursor,
            limit: Some(RUNS_PAGE),
        };
        let page = session.call(async |client| client.runs(&wanted).await).await?;
        if context.json {
            items.extend(page.items);
        } else {
            for run in &page.items {
                out::result(&show::row(run))?;
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    if context.json {
        out::json(&json!({ "items": items, "next": null }))?;
    }
    open::close(session).await;
    Ok(Exit::Done)
}

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArguments {
    /// The run
    id: String,
}

/// Shows a run.
pub(crate) async fn show(context: Context<'_>, arguments: &ShowArguments) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let run = session.call(async |client| client.run(&arguments.id).await).await;
    let run = run.map_err(|error| Failure::from(error).of_run(&arguments.id))?;
    if context.json {
        out::json(&run)?;
    } else {
        out::result(&show::run(&run))?;
    }
    open::close(session).await;
    Ok(Exit::Done)
}

/// Arguments of `events`.
#[derive(Debug, clap::Args)]
pub(crate) struct EventsArguments {
    /// The run
    id: String,
    /// Only events after this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
}

/// Shows a history.
pub(crate) async fn events(context: Context<'_>, arguments: &EventsArguments) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let (mut items, mut after) = (Vec::new(), arguments.after);
    loop {
        let page = session.call(async |client| client.events(&arguments.id, after, EVENTS_PAGE).await).await;
        let page = page.map_err(|error| Failure::from(error).of_run(&arguments.id))?;
        let last = page.items.iter().filter_map(|event| event.get("n").and_then(Value::as_u64)).max();
        if context.json {
            items.extend(page.items);
        } else {
            for event in &page.items {
                out::result(&show::event(event))?;
            }
        }
        // A page that moves nothing on would be asked for again for ever.
        match (page.next, last) {
            (Some(_), Some(last)) if last > after => after = last,
            (Some(_) | None, _) => break,
        }
    }
    if context.json {
        out::json(&json!({ "items": items, "next": null }))?;
    }
    open::close(session).await;
    Ok(Exit::Done)
}
