//! The diagram: what every renderer draws.
//!
//! Leaves positions to the layout and words of a format to its renderer. Invariant: edges point at nodes of their own
//! cluster; every text is already cleaned and cut; node 0 of a cluster is its start.

/// The diagram of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Diagram {
    /// One for each flow, the root first.
    pub clusters: Vec<Cluster>,
}

/// The diagram of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    /// The flow's name, as paths spell it.
    pub name: String,
    /// What stands above it.
    pub title: String,
    /// Start, the scope if it has arrows, states in text order, ends in the order of first use.
    pub nodes: Vec<Node>,
    /// In text order.
    pub edges: Vec<Edge>,
}

/// A place in a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its name.
    pub title: String,
    /// What it does, in lines.
    pub lines: Vec<Line>,
    /// The names of the states that it stands for: several if a chain was folded.
    pub states: Vec<String>,
    /// What a run did here.
    pub mark: Mark,
}

/// One line of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// What it says.
    pub text: String,
    /// The state that it belongs to.
    pub state: String,
    /// Whether that state is a folded one and is active.
    pub live: bool,
}

/// The kinds of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// Where the flow starts.
    Start,
    /// Stands for every state: the source of the flow's own arrows.
    Any,
    /// A state, or a folded chain of states.
    State,
    /// Where the flow ends with a result.
    End,
    /// Where the flow fails.
    Fail,
}

/// What a run did at a node, or with an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// Nothing.
    None,
    /// It was here.
    Visited,
    /// It is here.
    Live,
}

/// An arrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// The node that it leaves.
    pub from: usize,
    /// The node that it enters.
    pub to: usize,
    /// What makes it fit: outcomes, a time, a limit; empty for the start.
    pub on: String,
    /// Its condition, such as `if n > 3`; empty if it has none.
    pub guard: String,
    /// Its goal with arguments, as text would say it.
    pub goal: String,
    /// What it does to the state.
    pub kind: EdgeKind,
    /// What a run did with it: `Live` is the arrow that it took last.
    pub mark: Mark,
}

/// The kinds of arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EdgeKind {
    /// Enters its goal.
    Enter,
    /// Stays where it is.
    Stay,
    /// Leaves any state of the flow.
    Scope,
}

impl Edge {
    /// Returns what stands at the arrow.
    pub(super) fn label(&self) -> String {
        match (self.on.is_empty(), self.guard.is_empty()) {
            (false, false) => format!("{} {}", self.on, self.guard),
            (false, true) => self.on.clone(),
            (true, _) => self.guard.clone(),
        }
    }
}
