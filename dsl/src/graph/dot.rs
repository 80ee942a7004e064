//! A diagram as a Graphviz digraph.
//!
//! Leaves layout to Graphviz. Invariant: text from the machine stands only inside quotes, with quotes and backslashes escaped, so
//! no text can become syntax.

use super::diagram::{Cluster, Diagram, Edge, EdgeKind, Mark, Node, NodeKind};

/// Writes the diagram.
pub(super) fn write(diagram: &Diagram) -> String {
    let mut out = String::from("digraph flow {\n");
    line(&mut out, 1, "graph [fontname=\"Helvetica\", labeljust=l, nodesep=0.4, ranksep=0.5];");
    line(
        &mut out,
        1,
        "node [fontname=\"Helvetica\", fontsize=11, shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\"];",
    );
    line(&mut out, 1, "edge [fontname=\"Helvetica\", fontsize=10, color=\"#57606a\"];");
    for (f, flow) in diagram.clusters.iter().enumerate() {
        cluster(&mut out, f, flow);
    }
    out.push_str("}\n");
    out
}

fn cluster(out: &mut String, f: usize, cluster: &Cluster) {
    line(out, 1, &format!("subgraph cluster_{f} {{"));
    line(out, 2, &format!("label={};", quoted(&[&cluster.title])));
    for (n, node) in cluster.nodes.iter().enumerate() {
        line(out, 2, &format!("f{f}n{n} [{}];", look(node)));
    }
    for edge in &cluster.edges {
        line(out, 2, &format!("f{f}n{} -> f{f}n{}{};", edge.from, edge.to, arrow(edge)));
    }
    line(out, 1, "}");
}

fn look(node: &Node) -> String {
    let mut texts = vec![node.title.as_str()];
    texts.extend(node.lines.iter().map(|line| line.text.trim()));
    let shape = match node.kind {
        NodeKind::Start => return "shape=circle, label=\"\", width=0.15, fillcolor=\"#57606a\"".to_owned(),
        NodeKind::Any => ", style=\"rounded,dashed\"",
        NodeKind::State => "",
        NodeKind::End => ", shape=oval, fillcolor=\"#eef0f3\", style=filled",
        NodeKind::Fail => ", shape=oval, fillcolor=\"#f6d5d2\", style=filled",
    };
    let mark = match node.mark {
        Mark::None => "",
        Mark::Visited => ", fillcolor=\"#dcefe0\", color=\"#3f8f57\"",
        Mark::Live => ", fillcolor=\"#ffe3a3\", color=\"#c77700\", penwidth=2.5",
    };
    format!("label={}{shape}{mark}", quoted(&texts))
}

fn arrow(edge: &Edge) -> String {
    let mut looks = Vec::new();
    let label = edge.label();
    if edge.kind == EdgeKind::Stay {
        looks.push(format!("label={}, style=dotted", quoted(&[&label, "(stay)"])));
    } else if !label.is_empty() {
        looks.push(format!("label={}", quoted(&[&label])));
    }
    if edge.kind == EdgeKind::Scope {
        looks.push("style=dashed".to_owned());
    }
    match edge.mark {
        Mark::None => {}
        Mark::Visited => looks.push("color=\"#2f9e5b\", penwidth=2".to_owned()),
        Mark::Live => looks.push("color=\"#c77700\", penwidth=3".to_owned()),
    }
    if looks.is_empty() { String::new() } else { format!(" [{}]", looks.join(", ")) }
}

/// Texts as the lines of one label.
fn quoted(lines: &[&str]) -> String {
    let lines = lines.iter().map(|line| line.replace('\\', "\\\\").replace('"', "\\\""));
    format!("\"{}\"", lines.collect::<Vec<_>>().join("\\n"))
}

fn line(out: &mut String, depth: usize, text: &str) {
    for _ in 0..depth {
        out.push_str("  ");
    }
    out.push_str(text);
    out.push('\n');
}
