//! Pictures of a machine: the state diagram of a flow and of every flow that it runs, as Mermaid, text, SVG or Graphviz.
//!
//! One [`diagram::Diagram`] is built from the machine; four renderers write it. Leaves where pictures go and what a run does to
//! its callers. Invariant: pure and total; the same machine and [`Live`] give the same bytes. Start at [`render`].

mod ascii;
mod build;
mod diagram;
mod dot;
mod effect;
mod fold;
mod layers;
mod layout;
mod live;
mod mermaid;
mod print;
mod route;
mod svg;
mod text;

use crate::machine::Machine;

/// How a diagram is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A `stateDiagram-v2` for Mermaid.
    Mermaid,
    /// Text for a terminal, at most 100 columns wide.
    Ascii,
    /// A digraph for Graphviz.
    Dot,
    /// A picture without scripts, styles or ids, so that it can stand in any page.
    Svg,
}

/// What a run has done so far, to be marked in its diagram.
///
/// Paths name a state from the root: `Act/OneTool.Approve`. Paths that name nothing are passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// The active state's path.
    pub state: Option<String>,
    /// The paths of the states that were entered, oldest first.
    pub visited: Vec<String>,
}

/// Writes the diagram of `machine`, its root flow first, then each flow that it can `run`.
#[must_use]
pub fn render(machine: &Machine, format: Format, live: Option<&Live>) -> String {
    let mut diagram = build::diagram(machine);
    if let Some(live) = live {
        live::mark(&mut diagram, live);
    }
    match format {
        Format::Mermaid => mermaid::write(&diagram),
        Format::Ascii => ascii::write(&diagram),
        Format::Svg => svg::write(&diagram),
        Format::Dot => dot::write(&diagram),
    }
}
