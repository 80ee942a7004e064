//! `outlast graph`: a flow as a diagram on stdout.

use clap::ValueEnum as _;
use outlast_dsl::graph::{Format, Live, render};
use outlast_dsl::machine::Machine;
use outlast_protocol::run::RunView;
use serde_json::json;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::flow_file::{Chosen, Named};
use crate::open::{self, Workers};
use crate::out;

/// Arguments of `graph`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The flow: FILE or FILE:Flow [default: that of --run, else the built-in agent]
    #[arg(value_name = "FILE[:Flow]")]
    flow: Option<String>,
    /// How it is drawn
    #[arg(long, value_enum, default_value_t = As::Ascii)]
    format: As,
    /// A run of the flow: where it is and how it came there is marked
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum As {
    /// For Markdown pages
    Mermaid,
    /// For a terminal
    Ascii,
    /// A picture
    Svg,
    /// For Graphviz
    Dot,
}

/// Draws a flow, and what a run has done so far.
pub(crate) async fn graph(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let named = Named::new(arguments.flow.as_deref());
    let (machine, file, live) = match (&arguments.run, &arguments.flow) {
        (None, _) => {
            let chosen = named.choose()?;
            (chosen.flow.machine, Some(chosen.file.name), None)
        }
        (Some(run), None) => {
            let (_, machine, live) = live(context, run).await?;
            (machine, None, Some(live))
        }
        (Some(run), Some(_)) => {
            let (view, pinned, live) = live(context, run).await?;
            let chosen = of_run(named, &view)?;
            if chosen.flow.machine.hash() != pinned.hash() {
                out::say(&format!(
                    "run {run} is of another version of {}: only what both have is marked; without a file its own is drawn",
                    view.flow
                ));
            }
            (chosen.flow.machine, Some(chosen.file.name), Some(live))
        }
    };
    let format = match arguments.format {
        As::Mermaid => Format::Mermaid,
        As::Ascii => Format::Ascii,
        As::Svg => Format::Svg,
        As::Dot => Format::Dot,
    };
    let diagram = render(&machine, format, live.as_ref());
    if context.json {
        out::json(&json!({
            "flow": machine.root().name,
            "version": machine.root().version,
            "file": file,
            "run": arguments.run,
            "format": arguments.format.to_possible_value().map(|value| value.get_name().to_owned()),
            "diagram": diagram,
        }))?;
    } else {
        out::result(diagram.trim_end_matches('\n'))?;
    }
    Ok(Exit::Done)
}

/// Chooses the flow of a run in a file.
fn of_run(named: Named, view: &RunView) -> Result<Chosen, Failure> {
    let chosen = named.or_flow(&view.flow).choose()?;
    if chosen.flow.name == view.flow {
        return Ok(chosen);
    }
    let message = format!("run {} is of flow {}, not of {}", view.id, view.flow, chosen.flow.name);
    Err(Failure::usage(message).hint(format!("to draw its own: `outlast graph --run {}`", view.id)))
}

/// Asks what a run is of, where it is, and how it came there.
async fn live(context: Context<'_>, run: &str) -> Result<(RunView, Machine, Live), Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let view = session.call(async |client| client.run(run).await).await;
    let view = view.map_err(|error| Failure::from(error).of_run(run))?;
    let way = session.call(async |client| client.way(run).await).await;
    let way = way.map_err(|error| Failure::from(error).of_run(run))?;
    let machine = session.call(async |client| client.machine(&view.machine).await).await;
    let machine = machine.map_err(|error| Failure::from(error).of_run(run))?;
    open::close(session).await;
    let state = view.outcome.is_none().then(|| view.state.clone());
    Ok((view, machine, Live { state, visited: way.items }))
}
