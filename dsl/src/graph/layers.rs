//! Which row each node of a cluster stands in, and in which order.
//!
//! Rows alternate: nodes in even ones, labels in odd ones, so a label is laid out like a node and nothing can lie over it. An
//! arrow that spans several rows has a bend in each. Leaves positions to `layout`. Invariant: every arrow in `chains` leads down;
//! those that lead up are in none. Ties go by index, so the order never depends on a library.

use petgraph::algo::toposort;
use petgraph::graph::{DiGraph, NodeIndex};

use super::diagram::{Cluster, EdgeKind, Mark, NodeKind};
use crate::limits::{GRAPH_ITEMS_CAREFUL_MAX, GRAPH_LABEL_LINES_MAX};

/// Passes that order the rows: more of them no longer change drawings of readable size.
const PASSES: usize = 12;

/// All arrows from one node to another.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// The node that they leave.
    pub from: usize,
    /// The node that they enter.
    pub to: usize,
    /// Their labels, one a line.
    pub labels: Vec<String>,
    /// Whether none of them is an ordinary arrow of a state.
    pub dashed: bool,
    /// The most that a run did with one of them.
    pub mark: Mark,
}

/// What stands in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A node.
    Node,
    /// The label of a route.
    Label(usize),
    /// A place where a route passes.
    Bend,
}

/// A cluster in rows.
#[derive(Clone, Debug)]
pub(super) struct Layered {
    /// All routes; one from a node to itself is a loop.
    pub routes: Vec<Route>,
    /// Nodes by their index in the cluster, then labels and bends.
    pub items: Vec<Item>,
    /// The row of each item.
    pub row_of: Vec<usize>,
    /// The items of each row, from left to right.
    pub rows: Vec<Vec<usize>>,
    /// The items of each route from its source to its target; empty for loops and for routes that lead up.
    pub chains: Vec<Vec<usize>>,
}

/// Orders a cluster.
pub(super) fn layered(cluster: &Cluster) -> Layered {
    let routes = routes(cluster);
    let forward = forward(&routes, cluster.nodes.len());
    let ranks = ranks(cluster, &routes, &forward);
    let mut layered = Layered {
        items: vec![Item::Node; cluster.nodes.len()],
        row_of: ranks.iter().map(|rank| rank * 2).collect(),
        rows: vec![Vec::new(); ranks.iter().max().map_or(0, |max| max * 2 + 1)],
        chains: vec![Vec::new(); routes.len()],
        routes,
    };
    for (route, _) in forward.iter().enumerate().filter(|(_, forward)| **forward) {
        let chain = chain(&mut layered, route);
        layered.chains[route] = chain;
    }
    for item in 0..layered.items.len() {
        layered.rows[layered.row_of[item]].push(item);
    }
    order(&mut layered);
    layered
}

fn routes(cluster: &Cluster) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for edge in &cluster.edges {
        let dashed = edge.kind != EdgeKind::Enter;
        let label = edge.label();
        let at = routes.iter().position(|route| route.from == edge.from && route.to == edge.to);
        let at = at.unwrap_or_else(|| {
            let (from, to) = (edge.from, edge.to);
            routes.push(Route { from, to, labels: Vec::new(), dashed, mark: Mark::None });
            routes.len() - 1
        });
        let route = &mut routes[at];
        route.dashed &= dashed;
        route.mark = route.mark.max(edge.mark);
        if !label.is_empty() && !route.labels.contains(&label) {
            route.labels.push(label);
        }
    }
    for route in &mut routes {
        let more = route.labels.len().saturating_sub(GRAPH_LABEL_LINES_MAX);
        if more > 0 {
            route.labels.truncate(GRAPH_LABEL_LINES_MAX - 1);
            route.labels.push(format!("… {} more", more + 1));
        }
    }
    routes
}

/// Tells of each route whether it leads down: it is no loop and closes no cycle on a walk from the start in text order.
fn forward(routes: &[Route], nodes: usize) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Walk {
        New,
        Open,
        Done,
    }
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (at, route) in routes.iter().enumerate() {
        out[route.from].push(at);
    }
    let mut forward = vec![true; routes.len()];
    let mut walk = vec![Walk::New; nodes];
    for root in 0..nodes {
        if walk[root] != Walk::New {
            continue;
        }
        walk[root] = Walk::Open;
        let mut stack = vec![(root, 0)];
        while let Some((node, next)) = stack.last_mut() {
            let Some(route) = out[*node].get(*next).copied() else {
                walk[*node] = Walk::Done;
                stack.pop();
                continue;
            };
            *next += 1;
            let to = routes[route].to;
            match walk[to] {
                Walk::New => {
                    walk[to] = Walk::Open;
                    stack.push((to, 0));
                }
                Walk::Open => forward[route] = false,
                Walk::Done => {}
            }
        }
    }
    forward
}

/// Ranks nodes by their longest way from a source; a source that is not the start stands just above what it leads to.
fn ranks(cluster: &Cluster, routes: &[Route], forward: &[bool]) -> Vec<usize> {
    let nodes = cluster.nodes.len();
    let mut graph: DiGraph<(), ()> = DiGraph::new();
    let at: Vec<NodeIndex> = (0..nodes).map(|_| graph.add_node(())).collect();
    let mut into = vec![0; nodes];
    let down: Vec<&Route> =
        routes.iter().zip(forward).filter(|(_, forward)| **forward).map(|(r, _)| r).collect();
    for route in &down {
        graph.add_edge(at[route.from], at[route.to], ());
        into[route.to] += 1;
    }
    let Ok(order) = toposort(&graph, None) else {
        unreachable!("no cycle is left without its closing arrows")
    };
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for route in &down {
        out[route.from].push(route.to);
    }
    let mut ranks = vec![0; nodes];
    let relax = |ranks: &mut Vec<usize>| {
        for node in &order {
            for to in &out[node.index()] {
                ranks[*to] = ranks[*to].max(ranks[node.index()] + 1);
            }
        }
    };
    relax(&mut ranks);
    for node in 0..nodes {
        if into[node] == 0 && cluster.nodes[node].kind != NodeKind::Start {
            let shared = out[node].iter().filter(|to| into[**to] > 1);
            ranks[node] = shared.map(|to| ranks[*to].saturating_sub(1)).min().unwrap_or(0);
        }
    }
    relax(&mut ranks);
    ranks
}

/// Adds the items of a route: its label in the first row below its source, then bends.
fn chain(layered: &mut Layered, route: usize) -> Vec<usize> {
    let Route { from, to, ref labels, .. } = layered.routes[route];
    let mut label = if labels.is_empty() { Item::Bend } else { Item::Label(route) };
    let mut chain = vec![from];
    for row in layered.row_of[from] + 1..layered.row_of[to] {
        layered.items.push(std::mem::replace(&mut label, Item::Bend));
        layered.row_of.push(row);
        chain.push(layered.items.len() - 1);
    }
    chain.push(to);
    chain
}

/// Orders the rows so that few arrows cross: by the mean place of an item's neighbours, down and up in turn.
fn order(layered: &mut Layered) {
    let (up, down) = neighbours(layered);
    let passes = if layered.items.len() > GRAPH_ITEMS_CAREFUL_MAX { 2 } else { PASSES };
    let mut place = vec![0; layered.items.len()];
    for row in &layered.rows {
        number(row, &mut place);
    }
    let mut best = (crossings(&layered.rows, &place, &down), layered.rows.clone());
    for pass in 0..passes {
        let height = layered.rows.len();
        for step in 1..height {
            let (row, near) = if pass % 2 == 0 { (step, &up) } else { (height - 1 - step, &down) };
            let key = |(at, item): (usize, &usize)| {
                let near = &near[*item];
                let sum: usize = near.iter().map(|item| place[*item]).sum();
                (if near.is_empty() { at * 1_000 } else { sum * 1_000 / near.len() }, at, *item)
            };
            let mut keyed: Vec<_> = layered.rows[row].iter().enumerate().map(key).collect();
            keyed.sort_unstable();
            layered.rows[row] = keyed.into_iter().map(|(_, _, item)| item).collect();
            number(&layered.rows[row], &mut place);
        }
        let now = crossings(&layered.rows, &place, &down);
        if now < best.0 {
            best = (now, layered.rows.clone());
        }
    }
    layered.rows = best.1;
}

fn number(row: &[usize], place: &mut [usize]) {
    for (at, item) in row.iter().enumerate() {
        place[*item] = at;
    }
}

/// Returns the items that each item is joined to in the row above and in the row below.
pub(super) fn neighbours(layered: &Layered) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut up = vec![Vec::new(); layered.items.len()];
    let mut down = up.clone();
    for chain in &layered.chains {
        for pair in chain.windows(2) {
            down[pair[0]].push(pair[1]);
            up[pair[1]].push(pair[0]);
        }
    }
    (up, down)
}

/// Counts crossings: pairs of arrows between two rows whose ends are in different order.
fn crossings(rows: &[Vec<usize>], place: &[usize], down: &[Vec<usize>]) -> usize {
    let mut count = 0;
    for pair in rows.windows(2) {
        // A tree of counts over the places of the lower row, so that long rows stay cheap.
        let mut tree = vec![0_usize; pair[1].len() + 1];
        let mut seen = 0;
        for item in &pair[0] {
            for to in &down[*item] {
                let mut at = place[*to] + 1;
                let mut not_right = 0;
                while at > 0 {
                    not_right += tree[at];
                    at &= at - 1;
                }
                count += seen - not_right;
            }
            for to in &down[*item] {
                let mut at = place[*to] + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
                seen += 1;
            }
        }
    }
    count
}
