//! A diagram as text for a terminal.
//!
//! Leaves colours to whoever prints it. Invariant: no line is wider than [`GRAPH_TEXT_COLUMNS_MAX`] columns.

use super::diagram::{Cluster, Diagram, Edge, EdgeKind, Mark, Node, NodeKind};
use super::text;
use crate::limits::GRAPH_TEXT_COLUMNS_MAX;

/// Columns up to which arrows of one flow are aligned.
const LABEL_MAX: usize = 44;
/// Columns up to which effects of one flow are aligned.
const NAME_MAX: usize = 20;

/// Writes the diagram.
pub(super) fn write(diagram: &Diagram) -> String {
    let mut out = String::new();
    for (n, cluster) in diagram.clusters.iter().enumerate() {
        if n > 0 {
            out.push('\n');
        }
        self::cluster(&mut out, cluster);
    }
    let has = |mark| diagram.clusters.iter().flat_map(|c| &c.nodes).any(|node| node.mark == mark);
    if has(Mark::Live) || has(Mark::Visited) {
        out.push_str("\n> active, taken last   * visited\n");
    }
    out
}

fn cluster(out: &mut String, cluster: &Cluster) {
    line(out, &cluster.title);
    let labels = cluster.edges.iter().map(|edge| text::width(&edge.label())).filter(|w| *w <= LABEL_MAX);
    let label_width = labels.max().unwrap_or(0);
    let names = cluster.nodes.iter().filter(|node| !node.lines.is_empty());
    let names = names.map(|node| text::width(&node.title)).filter(|width| *width <= NAME_MAX);
    let name_width = names.max().unwrap_or(0);
    for (at, node) in cluster.nodes.iter().enumerate() {
        match node.kind {
            NodeKind::Start => {
                for edge in cluster.edges.iter().filter(|edge| edge.from == at) {
                    line(out, &format!("  start -> {}", edge.goal));
                }
            }
            NodeKind::Any | NodeKind::State => {
                out.push('\n');
                head(out, node, name_width);
                for edge in cluster.edges.iter().filter(|edge| edge.from == at) {
                    arrow(out, edge, label_width);
                }
            }
            // Named by the arrows that lead there.
            NodeKind::End | NodeKind::Fail => {}
        }
    }
}

fn sign(mark: Mark) -> char {
    match mark {
        Mark::None => ' ',
        Mark::Visited => '*',
        Mark::Live => '>',
    }
}

fn head(out: &mut String, node: &Node, width: usize) {
    let mark = sign(node.mark);
    let mut lines = node.lines.iter();
    let pad = |text: &str| " ".repeat(width.saturating_sub(text::width(text)));
    match lines.next() {
        Some(first) if text::width(&node.title) <= width => {
            let step = if first.live { "> " } else { "  " };
            line(out, &format!("{mark} {}{}{step}{}", node.title, pad(&node.title), first.text));
        }
        Some(first) => {
            line(out, &format!("{mark} {}", node.title));
            line(out, &format!("  {}{}{}", pad(""), if first.live { "> " } else { "  " }, first.text));
        }
        None => line(out, &format!("{mark} {}", node.title)),
    }
    for next in lines {
        line(out, &format!("  {}{}{}", pad(""), if next.live { "> " } else { "  " }, next.text));
    }
}

fn arrow(out: &mut String, edge: &Edge, width: usize) {
    let label = edge.label();
    let goal = if edge.kind == EdgeKind::Stay { "stay" } else { &edge.goal };
    let taken = sign(edge.mark);
    let used = text::width(&label);
    if used <= width {
        line(out, &format!("  {taken} {label}{} -> {goal}", " ".repeat(width - used)));
    } else {
        line(out, &format!("  {taken} {label}"));
        line(out, &format!("    {} -> {goal}", " ".repeat(width)));
    }
}

fn line(out: &mut String, text: &str) {
    let text = if text::width(text) > GRAPH_TEXT_COLUMNS_MAX {
        text::cut(text, GRAPH_TEXT_COLUMNS_MAX)
    } else {
        text.to_owned()
    };
    out.push_str(text.trim_end());
    out.push('\n');
}
