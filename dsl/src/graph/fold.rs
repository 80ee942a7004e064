//! Folds chains made from sugar: the states `S.a`, `S.b` become one node `S`.
//!
//! Leaves everything else as it was built. Invariant: a fold loses no way out of the chain; equal ways out are drawn once.

use super::diagram::{Cluster, Edge, Line, Node, NodeKind};
use super::text;
use crate::limits::GRAPH_LABEL_COLUMNS_MAX;

/// Folds the states whose names agree before the dot.
pub(super) fn chains(cluster: Cluster) -> Cluster {
    let Cluster { name, title, nodes, edges } = cluster;
    let mut folded: Vec<Node> = Vec::new();
    let mut new_at = Vec::with_capacity(nodes.len());
    for node in nodes {
        let stem = stem(&node).map(str::to_owned);
        // A machine may have the later states of a chain after all others.
        let begun = |one: &Node| stem.is_some() && one.kind == NodeKind::State && stem == stem_of_fold(one);
        let at = folded.iter().position(begun).unwrap_or(folded.len());
        match folded.get_mut(at) {
            Some(chain) => {
                chain.states.extend(node.states);
                chain.lines.extend(named(node.lines));
            }
            None => folded.push(match stem {
                Some(stem) => Node { title: stem, lines: named(node.lines), ..node },
                None => node,
            }),
        }
        new_at.push(at);
    }
    let mut kept: Vec<Edge> = Vec::new();
    for edge in edges {
        let (from, to) = (new_at[edge.from], new_at[edge.to]);
        // Inside a chain the order of the lines says it.
        let inside = from == to && edge.to > edge.from;
        let edge = Edge { from, to, ..edge };
        if !inside && !kept.contains(&edge) {
            kept.push(edge);
        }
    }
    Cluster { name, title, nodes: folded, edges: kept }
}

/// Returns `S` of a single state `S.a`.
fn stem(node: &Node) -> Option<&str> {
    match node.states.as_slice() {
        [state] => state.split_once('.').map(|(stem, _)| stem),
        _ => None,
    }
}

fn stem_of_fold(node: &Node) -> Option<String> {
    node.states.first()?.split_once('.').map(|(stem, _)| stem.to_owned())
}

/// Puts each step's name before its first line.
fn named(lines: Vec<Line>) -> Vec<Line> {
    let mut lines = lines;
    if let Some(first) = lines.first_mut() {
        let step = first.state.split_once('.').map_or("", |(_, step)| step);
        first.text = text::cut(&format!("{step} = {}", first.text), GRAPH_LABEL_COLUMNS_MAX);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::diagram::{EdgeKind, Mark};
    use super::*;

    #[test]
    fn a_chain_becomes_one_node_and_equal_ways_out_become_one() {
        let state = |name: &str| Node {
            kind: NodeKind::State,
            title: name.to_owned(),
            lines: vec![Line { text: format!("do {name}"), state: name.to_owned(), live: false }],
            states: vec![name.to_owned()],
            mark: Mark::None,
        };
        let edge = |from, to, on: &str| Edge {
            from,
            to,
            on: on.to_owned(),
            guard: String::new(),
            goal: String::new(),
            kind: EdgeKind::Enter,
            mark: Mark::None,
        };
        let cluster = chains(Cluster {
            name: "F".to_owned(),
            title: "F".to_owned(),
            nodes: vec![state("S.a"), state("T"), state("S.b")],
            edges: vec![edge(0, 2, "ok"), edge(0, 1, "failed"), edge(2, 1, "failed"), edge(2, 0, "timeout")],
        });
        let titles: Vec<&str> = cluster.nodes.iter().map(|node| node.title.as_str()).collect();
        assert_eq!(titles, ["S", "T"]);
        assert_eq!(cluster.nodes[0].lines[1].text, "b = do S.b");
        let edges: Vec<_> = cluster.edges.iter().map(|e| (e.from, e.to, e.on.as_str())).collect();
        assert_eq!(edges, [(0, 1, "failed"), (0, 0, "timeout")]);
    }
}
