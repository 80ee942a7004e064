//! Marks what a run did in its diagram: states and arrows, those that it took last among them.
//!
//! Leaves to renderers how a mark looks. Invariant: a path that names nothing marks nothing.

use std::collections::BTreeMap;

use super::Live;
use super::diagram::{Cluster, Diagram, EdgeKind, Mark, Node, NodeKind};

/// Marks the states that were entered, the arrows between them, and the active states.
pub(super) fn mark(diagram: &mut Diagram, live: &Live) {
    // The last node of each flow instance.
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    for (at, path) in live.visited.iter().enumerate() {
        let Some((cluster, node, instance)) = places(diagram, path).pop() else { continue };
        let cluster = &mut diagram.clusters[cluster];
        let before = last.get(&instance).copied().unwrap_or(0);
        let mark = if at + 1 == live.visited.len() { Mark::Live } else { Mark::Visited };
        step(cluster, (before, node), mark);
        // What ran inside this state before belongs to another visit.
        let inside = format!("{path}/");
        last.retain(|instance, _| !instance.starts_with(&inside));
        last.insert(instance, node);
    }
    let Some(path) = &live.state else { return };
    let states: Vec<&str> = path.split('/').map(bare).collect();
    for (n, (cluster, node, _)) in places(diagram, path).into_iter().enumerate() {
        let name = states.get(n).copied().unwrap_or_default();
        let name = if n == 0 { name } else { name.split_once('.').map_or(name, |(_, state)| state) };
        let node = &mut diagram.clusters[cluster].nodes[node];
        node.mark = Mark::Live;
        if node.states.len() > 1 {
            for line in node.lines.iter_mut().filter(|line| line.state == name) {
                line.live = true;
            }
        }
    }
}

/// Marks the node that was entered and the arrow that led there: its own if there is one, else one of the flow.
fn step(cluster: &mut Cluster, (before, node): (usize, usize), taken: Mark) {
    let any = cluster.nodes.iter().position(|node| node.kind == NodeKind::Any);
    let own = |from: usize, to: usize| from == before && to == node;
    let direct = cluster.edges.iter().any(|edge| own(edge.from, edge.to) && edge.kind != EdgeKind::Stay);
    for edge in cluster.edges.iter_mut().filter(|edge| edge.to == node && edge.kind != EdgeKind::Stay) {
        if if direct { edge.from == before } else { Some(edge.from) == any } {
            edge.mark = edge.mark.max(taken);
        }
    }
    let mark = &mut cluster.nodes[node].mark;
    *mark = (*mark).max(Mark::Visited);
}

/// Returns cluster, node and flow instance of each state on a path, as far as it is known.
fn places(diagram: &Diagram, path: &str) -> Vec<(usize, usize, String)> {
    let segments: Vec<&str> = path.split('/').collect();
    let mut found = Vec::new();
    for (n, segment) in segments.iter().enumerate() {
        let (flow, state) = match bare(segment).split_once('.') {
            Some(both) if n > 0 => both,
            Some(_) | None => ("", bare(segment)),
        };
        let named = |cluster: &Cluster| cluster.name == flow;
        let cluster = if n == 0 { Some(0) } else { diagram.clusters.iter().position(named) };
        let nodes = cluster.and_then(|at| diagram.clusters.get(at)).map(|cluster| &cluster.nodes);
        let stands_for = |node: &Node| node.states.iter().any(|name| name == state);
        let node = nodes.and_then(|nodes| nodes.iter().position(stands_for));
        let (Some(cluster), Some(node)) = (cluster, node) else { break };
        found.push((cluster, node, format!("{}/{flow}", segments[..n].join("/"))));
    }
    found
}

/// Returns a segment without the member that it may name: `OneTool.Run[2]`.
fn bare(segment: &str) -> &str {
    segment.split('[').next().unwrap_or(segment).trim()
}
