//! Where everything of a diagram stands.
//!
//! Lengths are tenths of a pixel in whole numbers, so a picture is the same on every computer. Leaves lines between boxes to
//! `route` and drawing to `svg`. Invariant: no two boxes or labels of a picture overlap.

use super::diagram::{Cluster, Diagram, Mark, Node, NodeKind};
use super::layers::{self, Item, Layered};
use super::route::{self, Line};
use super::text;
use crate::limits::GRAPH_ITEMS_CAREFUL_MAX;

/// One pixel.
pub(super) const PX: i64 = 10;
/// Width of one column of a node's title, of a node's lines, and of a label.
pub(super) const TITLE_COLUMN: i64 = 86;
/// See [`TITLE_COLUMN`].
pub(super) const LINE_COLUMN: i64 = 74;
/// See [`TITLE_COLUMN`].
pub(super) const LABEL_COLUMN: i64 = 68;
/// Height of a line in a node.
pub(super) const LINE_HEIGHT: i64 = 16 * PX;
/// Height of a line of a label.
pub(super) const LABEL_HEIGHT: i64 = 15 * PX;
/// From a box's edge to its text.
pub(super) const PADDING: i64 = 14 * PX;
/// How far a loop reaches out of its box.
pub(super) const LOOP_REACH: i64 = 26 * PX;

/// Between items of a row.
const ITEM_GAP: i64 = 22 * PX;
/// Between two bends of a row.
const BEND_GAP: i64 = 12 * PX;
/// Around what stands in a cluster.
const MARGIN: i64 = 22 * PX;
/// Height of a cluster's title.
pub(super) const TITLE_HEIGHT: i64 = 28 * PX;
/// Between clusters.
const CLUSTER_GAP: i64 = 24 * PX;
/// Width up to which clusters stand side by side.
const ROW_WIDTH: i64 = 1_400 * PX;
/// Around everything.
const EDGE: i64 = 8 * PX;
/// Passes that straighten arrows.
const PASSES: usize = 32;

/// A box on the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rect {
    /// Its left edge.
    pub x: i64,
    /// Its upper edge.
    pub y: i64,
    /// Its width.
    pub w: i64,
    /// Its height.
    pub h: i64,
}

impl Rect {
    /// Returns the right edge.
    pub(super) fn right(&self) -> i64 {
        self.x + self.w
    }

    /// Returns the lower edge.
    pub(super) fn bottom(&self) -> i64 {
        self.y + self.h
    }

    /// Returns the middle.
    pub(super) fn middle(&self) -> (i64, i64) {
        (self.x + self.w / 2, self.y + self.h / 2)
    }
}

/// A label on the picture.
#[derive(Clone, Debug)]
pub(super) struct Label {
    /// Where.
    pub rect: Rect,
    /// What it says.
    pub lines: Vec<String>,
    /// What a run did with its arrow.
    pub mark: Mark,
}

/// A cluster on the picture.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    /// The whole.
    pub rect: Rect,
    /// The box of each node, by index.
    pub boxes: Vec<Rect>,
    /// The labels.
    pub labels: Vec<Label>,
    /// The arrows.
    pub lines: Vec<Line>,
}

/// A whole picture.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Its width.
    pub width: i64,
    /// Its height.
    pub height: i64,
    /// By the diagram's index.
    pub clusters: Vec<Placed>,
}

/// Lays a diagram out: each cluster by itself, then side by side as far as they fit.
pub(super) fn layout(diagram: &Diagram) -> Layout {
    let mut clusters: Vec<Placed> = diagram.clusters.iter().map(place).collect();
    let (mut x, mut y, mut row_height, mut width) = (EDGE, EDGE, 0, 0);
    for cluster in &mut clusters {
        if x > EDGE && x + cluster.rect.w > ROW_WIDTH {
            (x, y, row_height) = (EDGE, y + row_height + CLUSTER_GAP, 0);
        }
        shift(cluster, x, y);
        row_height = row_height.max(cluster.rect.h);
        width = width.max(x + cluster.rect.w);
        x += cluster.rect.w + CLUSTER_GAP;
    }
    Layout { width: width + EDGE, height: y + row_height + EDGE, clusters }
}

fn shift(cluster: &mut Placed, dx: i64, dy: i64) {
    let labels = cluster.labels.iter_mut().map(|label| &mut label.rect);
    for rect in labels.chain(&mut cluster.boxes).chain([&mut cluster.rect]) {
        rect.x += dx;
        rect.y += dy;
    }
    for line in &mut cluster.lines {
        line.shift(dx, dy);
    }
}

/// A cluster while it is laid out: what `route` needs to find its ways.
pub(super) struct Plan<'a> {
    /// The rows.
    pub layered: &'a Layered,
    /// The box of each node; its height is known, its place not before the rows are.
    pub boxes: Vec<Rect>,
    /// The middle of each item.
    pub x: Vec<i64>,
    /// Upper edge and height of each row.
    pub rows: Vec<(i64, i64)>,
    /// The right edge of everything that stands in rows.
    pub right: i64,
}

fn place(cluster: &Cluster) -> Placed {
    let layered = layers::layered(cluster);
    let boxes: Vec<Rect> = cluster.nodes.iter().map(size).collect();
    let reach = reach(&layered, &boxes);
    let mut x = columns(&layered, &reach);
    let left = (0..x.len()).map(|item| x[item] - reach[item].0).min().unwrap_or(0);
    for x in &mut x {
        *x += MARGIN - left;
    }
    let right = (0..x.len()).map(|item| x[item] + reach[item].1).max().unwrap_or(0);
    let mut plan = Plan { layered: &layered, boxes, x, rows: Vec::new(), right };
    let back = route::back(&plan);
    let bottom = rows(&mut plan, &back);
    let (mut labels, mut lines) = (Vec::new(), Vec::new());
    route::forward(&plan, &mut labels, &mut lines);
    let right = route::upward(&plan, &back, &mut labels, &mut lines);
    route::loops(&plan, &mut labels, &mut lines);
    let title = text_width(&cluster.title, TITLE_COLUMN) + 2 * PADDING;
    let w = (right + MARGIN).max(title + MARGIN);
    Placed { rect: Rect { x: 0, y: 0, w, h: bottom + MARGIN }, boxes: plan.boxes, labels, lines }
}

/// Returns the size of a node's box.
fn size(node: &Node) -> Rect {
    let title = text_width(&node.title, TITLE_COLUMN);
    let (w, h) = match node.kind {
        NodeKind::Start => (14 * PX, 14 * PX),
        NodeKind::Any | NodeKind::End | NodeKind::Fail => {
            (text_width(&node.title, LINE_COLUMN) + 2 * PADDING, 26 * PX)
        }
        NodeKind::State => {
            let lines = node.lines.iter().map(|line| text_width(&line.text, LINE_COLUMN)).max().unwrap_or(0);
            let count = i64::try_from(node.lines.len()).unwrap_or(i64::MAX / LINE_HEIGHT);
            (title.max(lines).max(56 * PX) + 2 * PADDING, 36 * PX + count * LINE_HEIGHT)
        }
    };
    Rect { x: 0, y: 0, w, h }
}

/// Returns the width of a text whose columns are `column` wide.
pub(super) fn text_width(text: &str, column: i64) -> i64 {
    i64::try_from(text::width(text)).unwrap_or(0) * column
}

/// Returns the size of a label.
pub(super) fn label_size(lines: &[String]) -> (i64, i64) {
    let width = lines.iter().map(|line| text_width(line, LABEL_COLUMN)).max().unwrap_or(0);
    (width + 12 * PX, i64::try_from(lines.len()).unwrap_or(0) * LABEL_HEIGHT + 4 * PX)
}

/// Returns how far each item reaches to the left and to the right of its middle; loops stand at the left.
fn reach(layered: &Layered, boxes: &[Rect]) -> Vec<(i64, i64)> {
    let mut reach: Vec<(i64, i64)> = Vec::with_capacity(layered.items.len());
    for (at, item) in layered.items.iter().enumerate() {
        let half = match item {
            Item::Node => boxes[at].w / 2,
            Item::Label(route) => label_size(&layered.routes[*route].labels).0 / 2,
            Item::Bend => 2 * PX,
        };
        reach.push((half, half));
    }
    for route in layered.routes.iter().filter(|route| route.from == route.to) {
        reach[route.from].0 += LOOP_REACH + label_size(&route.labels).0;
    }
    reach
}

/// Returns the middle of each item, so that arrows are as straight as the order of the rows allows.
fn columns(layered: &Layered, reach: &[(i64, i64)]) -> Vec<i64> {
    let (up, down) = layers::neighbours(layered);
    let mut x = vec![0; layered.items.len()];
    let gap = |a: usize, b: usize| distance(layered, reach, a, b);
    for row in &layered.rows {
        let mut at = 0;
        for (n, item) in row.iter().enumerate() {
            at += if n == 0 { 0 } else { gap(row[n - 1], *item) };
            x[*item] = at;
        }
        let middle = at / 2;
        for item in row {
            x[*item] -= middle;
        }
    }
    // Arrows between bends should be straight above all.
    let pull = |a: usize, b: usize| match (layered.items[a], layered.items[b]) {
        (Item::Node, _) | (_, Item::Node) => 2,
        (Item::Label(_) | Item::Bend, Item::Label(_) | Item::Bend) => 8,
    };
    let passes = if layered.items.len() > GRAPH_ITEMS_CAREFUL_MAX { PASSES / 8 } else { PASSES };
    for pass in 0..passes {
        let both = pass + PASSES / 4 >= passes;
        let downwards = pass % 2 == 0;
        let height = layered.rows.len();
        for step in 0..height {
            let row = &layered.rows[if downwards { step } else { height - 1 - step }];
            let mut wanted = Vec::with_capacity(row.len());
            for item in row {
                let above = up[*item].iter().filter(|_| both || downwards);
                let below = down[*item].iter().filter(|_| both || !downwards);
                let (mut sum, mut weight) = (0, 0);
                for near in above.chain(below) {
                    sum += x[*near] * pull(*item, *near);
                    weight += pull(*item, *near);
                }
                wanted.push(if weight == 0 { (x[*item], 1) } else { (sum / weight, weight) });
            }
            let gaps: Vec<i64> = row.windows(2).map(|pair| gap(pair[0], pair[1])).collect();
            for (item, at) in row.iter().zip(spread(&wanted, &gaps)) {
                x[*item] = at;
            }
        }
    }
    straighten(layered, reach, &mut x);
    straighten(layered, reach, &mut x);
    x
}

/// Returns how far the middles of two neighbours of a row must be from each other.
fn distance(layered: &Layered, reach: &[(i64, i64)], left: usize, right: usize) -> i64 {
    let both_bend = layered.items[left] == Item::Bend && layered.items[right] == Item::Bend;
    reach[left].1 + reach[right].0 + if both_bend { BEND_GAP } else { ITEM_GAP }
}

/// Makes each long arrow straight over as many rows as the items beside it allow.
fn straighten(layered: &Layered, reach: &[(i64, i64)], x: &mut [i64]) {
    let mut place = vec![0; x.len()];
    for row in &layered.rows {
        for (at, item) in row.iter().enumerate() {
            place[*item] = at;
        }
    }
    let room = |item: usize, x: &[i64]| {
        let row = &layered.rows[layered.row_of[item]];
        let left = place[item].checked_sub(1).map(|at| row[at]);
        let right = row.get(place[item] + 1).copied();
        let low = left.map_or(i64::MIN, |left| x[left] + distance(layered, reach, left, item));
        (low, right.map_or(i64::MAX, |right| x[right] - distance(layered, reach, item, right)))
    };
    for chain in &layered.chains {
        let Some(mut rest) = chain.get(1..chain.len().saturating_sub(1)) else { continue };
        while !rest.is_empty() {
            let (mut low, mut high, mut count) = (i64::MIN, i64::MAX, 0);
            for item in rest {
                let (a, b) = room(*item, x);
                if low.max(a) > high.min(b) {
                    break;
                }
                (low, high, count) = (low.max(a), high.min(b), count + 1);
            }
            // Every item fits its own room, so each run has at least one.
            let (run, after) = rest.split_at(count.max(1));
            let sum: i64 = run.iter().map(|item| x[*item]).sum();
            let middle = sum / i64::try_from(run.len()).unwrap_or(1);
            for item in run {
                x[*item] = middle.clamp(low.min(high), high);
            }
            rest = after;
        }
    }
}

/// Returns the places nearest to those wanted (place, weight) that keep their order and their gaps.
///
/// Items that would be too near are merged into blocks that move as one: the least-squares answer.
pub(super) fn spread(wanted: &[(i64, i64)], gaps: &[i64]) -> Vec<i64> {
    let mut offsets = vec![0; wanted.len()];
    for n in 1..wanted.len() {
        offsets[n] = offsets[n - 1] + gaps[n - 1];
    }
    let mut blocks: Vec<(i64, i64, usize)> = Vec::new();
    for (n, (place, weight)) in wanted.iter().enumerate() {
        let mut block = ((place - offsets[n]) * weight, *weight, 1);
        while let Some(last) = blocks.last() {
            if last.0.div_euclid(last.1) < block.0.div_euclid(block.1) {
                break;
            }
            block = (block.0 + last.0, block.1 + last.1, block.2 + last.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    let mut places = Vec::with_capacity(wanted.len());
    for (sum, weight, count) in blocks {
        for _ in 0..count {
            places.push(sum.div_euclid(weight) + offsets[places.len()]);
        }
    }
    places
}

/// Gives every row its height and place, and every box its place; returns the lower edge.
fn rows(plan: &mut Plan<'_>, back: &[route::Back]) -> i64 {
    let mut y = TITLE_HEIGHT + MARGIN;
    let slants = route::slants(plan);
    for (at, row) in plan.layered.rows.iter().enumerate() {
        let height = |item: &usize| match plan.layered.items[*item] {
            Item::Node => plan.boxes[*item].h,
            Item::Label(route) => label_size(&plan.layered.routes[route].labels).1,
            Item::Bend => 0,
        };
        let of_items = row.iter().map(height).max().unwrap_or(0);
        let of_loops =
            plan.layered.routes.iter().filter(|r| r.from == r.to && plan.layered.row_of[r.from] == at);
        let of_loops = of_loops.map(|route| label_size(&route.labels).1).max().unwrap_or(0);
        let height = of_items.max(of_loops).max(route::label_height(plan.layered, back, at));
        if at > 0 {
            y += route::gap(slants[at], back, at);
        }
        plan.rows.push((y, height));
        y += height;
        for item in row.iter().filter(|item| plan.layered.items[**item] == Item::Node) {
            let rect = &mut plan.boxes[*item];
            rect.x = plan.x[*item] - rect.w / 2;
            rect.y = y - height + (height - rect.h) / 2;
        }
    }
    y + route::gap_below(back, plan.layered.rows.len())
}

#[cfg(test)]
mod tests {
    use super::super::diagram::{Edge, EdgeKind, Line as Text};
    use super::super::route::Part;
    use super::*;

    /// A small generator of its own, so that the cases never change.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % n
        }
    }

    fn random_diagram(seed: u64) -> Diagram {
        let mut random = Random(seed);
        let clusters = 1 + random.below(3);
        let cluster = |random: &mut Random| {
            let nodes = 2 + random.below(14);
            let kinds = [NodeKind::State, NodeKind::State, NodeKind::End, NodeKind::Any];
            let node = |at: usize, random: &mut Random| Node {
                kind: if at == 0 { NodeKind::Start } else { kinds[random.below(4)] },
                title: "T".repeat(1 + random.below(20)),
                lines: (0..random.below(4))
                    .map(|_| Text { text: "x".repeat(random.below(40)), state: String::new(), live: false })
                    .collect(),
                states: Vec::new(),
                mark: Mark::None,
            };
            let edge = |random: &mut Random| Edge {
                from: random.below(nodes),
                to: random.below(nodes),
                on: "o".repeat(random.below(30)),
                guard: String::new(),
                goal: String::new(),
                kind: EdgeKind::Enter,
                mark: Mark::None,
            };
            Cluster {
                name: String::new(),
                title: "t".repeat(random.below(60)),
                nodes: (0..nodes).map(|at| node(at, random)).collect(),
                edges: (0..random.below(3 * nodes)).map(|_| edge(random)).collect(),
            }
        };
        Diagram { clusters: (0..clusters).map(|_| cluster(&mut random)).collect() }
    }

    fn overlap(a: &Rect, b: &Rect) -> bool {
        a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom()
    }

    fn inside(outer: &Rect, inner: &Rect) -> bool {
        outer.x <= inner.x
            && outer.y <= inner.y
            && inner.right() <= outer.right()
            && inner.bottom() <= outer.bottom()
    }

    /// Points along a line, close enough to meet every box that it passes through.
    fn points(line: &Line) -> Vec<(i64, i64)> {
        let mut pen = line.start;
        let mut found = Vec::new();
        for part in &line.parts {
            let (a, b, to) = match *part {
                Part::To(to) => (pen, to, to),
                Part::Curve(a, b, to) => (a, b, to),
            };
            let at = |t: i64, p: [i64; 4]| {
                let s = 100 - t;
                (p[0] * s * s * s + 3 * p[1] * s * s * t + 3 * p[2] * s * t * t + p[3] * t * t * t)
                    / 1_000_000
            };
            let curve = |t| (at(t, [pen.0, a.0, b.0, to.0]), at(t, [pen.1, a.1, b.1, to.1]));
            found.extend((0..=100).map(curve));
            pen = to;
        }
        found
    }

    #[test]
    fn boxes_and_labels_never_overlap_and_lines_pass_beside_boxes() {
        for seed in 0..300 {
            let layout = layout(&random_diagram(seed));
            let frames: Vec<&Rect> = layout.clusters.iter().map(|cluster| &cluster.rect).collect();
            for (n, cluster) in layout.clusters.iter().enumerate() {
                assert!(frames[..n].iter().all(|other| !overlap(other, frames[n])), "seed {seed}: clusters");
                let labels = cluster.labels.iter().map(|label| &label.rect);
                let rects: Vec<&Rect> = cluster.boxes.iter().chain(labels).collect();
                for (n, rect) in rects.iter().enumerate() {
                    assert!(inside(&cluster.rect, rect), "seed {seed}: {rect:?} leaves {:?}", cluster.rect);
                    for other in &rects[..n] {
                        assert!(!overlap(rect, other), "seed {seed}: {rect:?} over {other:?}");
                    }
                }
                for line in &cluster.lines {
                    for (x, y) in points(line) {
                        let within =
                            |r: &&Rect| r.x + 2 < x && x + 2 < r.right() && r.y + 2 < y && y + 2 < r.bottom();
                        let met = cluster.boxes.iter().find(within);
                        assert!(met.is_none(), "seed {seed}: a line at {x},{y} in {met:?}");
                    }
                }
            }
        }
    }
}
