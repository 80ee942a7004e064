//! `outlast graph`: a flow as a diagram on stdout.

use outlast_dsl::graph::{Format, render};

use crate::failure::{Exit, Failure};
use crate::flow_file::Named;
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

/// Draws a flow.
pub(crate) fn graph(arguments: &Arguments) -> Result<Exit, Failure> {
    let chosen = Named::new(arguments.flow.as_deref()).choose()?;
    let format = match arguments.format {
        As::Mermaid => Format::Mermaid,
        As::Ascii => Format::Ascii,
        As::Svg => Format::Svg,
        As::Dot => Format::Dot,
    };
    out::result(render(&chosen.flow.machine, format, None).trim_end_matches('\n'))?;
    Ok(Exit::Done)
}
