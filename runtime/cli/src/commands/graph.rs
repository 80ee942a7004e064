//! `outlast graph`: a flow as a diagram on stdout.

use clap::ValueEnum as _;
use outlast_dsl::graph::{Format, Live, render};
use outlast_protocol::run::RunView;
use serde_json::json;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::flow_file::Named;
use crate::open::{self, Workers};
use crate::out;

/// Arguments of `graph`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The flow: FILE or FILE:Flow [default: the built-in agent]
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
    let (chosen, live) = match &arguments.run {
        None => (named.choose()?, None),
        Some(run) => {
            let (view, live) = live(context, run).await?;
            let chosen = named.or_flow(&view.flow).choose()?;
            if chosen.flow.name != view.flow {
                let message = format!("run {run} is of flow {}, not of {}", view.flow, chosen.flow.name);
                let hint =
                    format!("name the file that has it: `outlast graph FILE:{} --run {run}`", view.flow);
                return Err(Failure::usage(message).hint(hint));
            }
            if chosen.flow.machine.hash().0 != view.machine {
                out::say(&format!(
                    "run {run} is of another version of {}: only what both have is marked",
                    view.flow
                ));
            }
            (chosen, Some(live))
        }
    };
    let format = match arguments.format {
        As::Mermaid => Format::Mermaid,
        As::Ascii => Format::Ascii,
        As::Svg => Format::Svg,
        As::Dot => Format::Dot,
    };
    let diagram = render(&chosen.flow.machine, format, live.as_ref());
    if context.json {
        out::json(&json!({
            "flow": chosen.flow.name,
            "version": chosen.flow.version,
            "file": chosen.file.name,
            "run": arguments.run,
            "format": arguments.format.to_possible_value().map(|value| value.get_name().to_owned()),
            "diagram": diagram,
        }))?;
    } else {
        out::result(diagram.trim_end_matches('\n'))?;
    }
    Ok(Exit::Done)
}

/// Asks where a run is and how it came there.
async fn live(context: Context<'_>, run: &str) -> Result<(RunView, Live), Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let view = session.call(async |client| client.run(run).await).await;
    let view = view.map_err(|error| Failure::from(error).of_run(run))?;
    let way = session.call(async |client| client.way(run).await).await;
    let way = way.map_err(|error| Failure::from(error).of_run(run))?;
    open::close(session).await;
    let state = view.outcome.is_none().then(|| view.state.clone());
    Ok((view, Live { state, visited: way.items }))
}
