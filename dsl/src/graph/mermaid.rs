//! A diagram as Mermaid's `stateDiagram-v2`.
//!
//! Leaves layout to Mermaid. Invariant: text from the machine appears only as letters, digits, harmless marks and character
//! codes, so no text can become syntax or markup.

use std::fmt::Write as _;

use super::diagram::{Diagram, EdgeKind, Mark, Node, NodeKind};

/// Writes the diagram.
pub(super) fn write(diagram: &Diagram) -> String {
    let mut out = String::from("stateDiagram-v2\n");
    let mut marked = [(Mark::Visited, Vec::new()), (Mark::Live, Vec::new())];
    for (f, cluster) in diagram.clusters.iter().enumerate() {
        line(&mut out, 1, &format!("state \"{}\" as f{f} {{", escape(&cluster.title)));
        line(&mut out, 2, "direction TB");
        for (n, node) in cluster.nodes.iter().enumerate().filter(|(_, node)| node.kind != NodeKind::Start) {
            let id = id(f, n);
            line(&mut out, 2, &format!("state \"{}\" as {id}", escape(&node.title)));
            for text in &node.lines {
                line(&mut out, 2, &format!("{id} : {}", escape(text.text.trim_start())));
            }
            for (mark, ids) in &mut marked {
                if node.mark == *mark {
                    ids.push(id.clone());
                }
            }
        }
        for edge in &cluster.edges {
            let from = end(&cluster.nodes[edge.from], f, edge.from);
            let to = end(&cluster.nodes[edge.to], f, edge.to);
            let label = escape(&edge.label());
            let stay = if edge.kind == EdgeKind::Stay { " #40;stay#41;" } else { "" };
            let label = if label.is_empty() { label } else { format!(" : {label}{stay}") };
            line(&mut out, 2, &format!("{from} --> {to}{label}"));
        }
        for (n, node) in cluster.nodes.iter().enumerate() {
            if matches!(node.kind, NodeKind::End | NodeKind::Fail) {
                line(&mut out, 2, &format!("{} --> [*]", id(f, n)));
            }
        }
        line(&mut out, 1, "}");
    }
    classes(&mut out, &marked);
    out
}

fn classes(out: &mut String, marked: &[(Mark, Vec<String>)]) {
    for (mark, ids) in marked {
        let (name, style) = match mark {
            Mark::None => continue,
            Mark::Visited => ("visited", "fill:#dcefe0,stroke:#3f8f57,color:#1f2328"),
            Mark::Live => ("live", "fill:#ffe3a3,stroke:#c77700,stroke-width:3px,color:#1f2328"),
        };
        if !ids.is_empty() {
            line(out, 1, &format!("classDef {name} {style}"));
            line(out, 1, &format!("class {} {name}", ids.join(",")));
        }
    }
}

fn id(flow: usize, node: usize) -> String {
    format!("f{flow}n{node}")
}

fn end(node: &Node, flow: usize, at: usize) -> String {
    if node.kind == NodeKind::Start { "[*]".to_owned() } else { id(flow, at) }
}

fn line(out: &mut String, depth: usize, text: &str) {
    for _ in 0..depth {
        out.push_str("  ");
    }
    out.push_str(text);
    out.push('\n');
}

/// Writes everything that could be syntax or markup as a character code.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | '_' | ',' | '.' | '(' | ')' | '+' | '?' | '=' | '…') {
            out.push(c);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}
