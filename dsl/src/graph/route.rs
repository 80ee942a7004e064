//! The ways of arrows between the boxes of a cluster.
//!
//! Arrows that lead down pass through the bends of their rows. Those that lead up leave by the side (or below, if another box
//! stands beside), go up in a lane at the right of everything, and enter by the side (or from above). Leaves places of boxes to
//! `layout`. Invariant: no line passes through a box.

use super::diagram::Mark;
use super::layers::{Item, Layered, Route};
use super::layout::{LOOP_REACH, Label, PX, Plan, Rect, label_size, spread};

/// From a box to the first line beside it, and between such lines.
const TRACK: i64 = 9 * PX;
/// Between a lane's labels and the next lane.
const LANE_GAP: i64 = 12 * PX;
/// The least height between two rows.
const ROW_GAP: i64 = 15 * PX;
/// The most height that slanting arrows add between two rows.
const SLANT_MAX: i64 = 34 * PX;
/// The straight part before a head.
const HEAD: i64 = 11 * PX;
/// Between arrows that meet the same edge of a box.
const PORT_GAP: i64 = 20 * PX;
/// From a box's corner to the first arrow.
const CORNER: i64 = 14 * PX;
/// The radius of a corner.
const RADIUS: i64 = 8 * PX;

/// A point.
pub(super) type Point = (i64, i64);

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Straight to a point.
    To(Point),
    /// A curve by two control points to a point.
    Curve(Point, Point, Point),
}

/// An arrow on the picture; its head is at its last point.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Where it begins.
    pub start: Point,
    /// How it goes on.
    pub parts: Vec<Part>,
    /// The direction of its head: one step along x or y.
    pub heading: Point,
    /// Whether it is dashed.
    pub dashed: bool,
    /// What a run did with it.
    pub mark: Mark,
}

impl Line {
    /// Moves the line.
    pub(super) fn shift(&mut self, dx: i64, dy: i64) {
        let by = |point: &mut Point| *point = (point.0 + dx, point.1 + dy);
        by(&mut self.start);
        for part in &mut self.parts {
            match part {
                Part::To(to) => by(to),
                Part::Curve(a, b, to) => [a, b, to].into_iter().for_each(by),
            }
        }
    }

    /// Returns the last point.
    pub(super) fn end(&self) -> Point {
        match self.parts.last() {
            Some(Part::To(to) | Part::Curve(_, _, to)) => *to,
            None => self.start,
        }
    }
}

/// The plan of a route that leads up.
#[derive(Clone, Debug)]
pub(super) struct Back {
    route: usize,
    lane: usize,
    /// Rows of its source and of its target.
    rows: (usize, usize),
    /// How it leaves its source.
    exit: Port,
    /// How it enters its target.
    entry: Port,
}

/// Where a route that leads up meets a box.
#[derive(Clone, Copy, Debug)]
enum Port {
    /// At the right side: its place from the top, and how many meet there.
    Side(usize, usize),
    /// Below or above: its track, counted from the box.
    Track(usize),
}

/// Plans the routes that lead up: a lane for each, short ones inside, and how they leave and enter.
pub(super) fn back(plan: &Plan<'_>) -> Vec<Back> {
    let layered = plan.layered;
    let mut found: Vec<Back> = Vec::new();
    for (at, route) in layered.routes.iter().enumerate() {
        if route.from != route.to && layered.chains[at].is_empty() {
            let rows = (layered.row_of[route.from], layered.row_of[route.to]);
            found.push(Back { route: at, lane: 0, rows, exit: Port::Track(0), entry: Port::Track(0) });
        }
    }
    // Of two from the same row, the one from further right goes inside: its line would meet the other's lane.
    let place = |back: &Back| {
        let row = &layered.rows[back.rows.0];
        row.len() - row.iter().position(|item| *item == layered.routes[back.route].from).unwrap_or(0)
    };
    found.sort_by_key(|back| (back.rows.0 - back.rows.1, place(back), back.route));
    for n in 0..found.len() {
        let taken: Vec<usize> = found[..n]
            .iter()
            .filter(|other| other.rows.1 <= found[n].rows.0 && found[n].rows.1 <= other.rows.0)
            .map(|other| other.lane + 1)
            .collect();
        // Beyond every lane that it meets: a shorter way stays inside a longer one.
        found[n].lane = taken.into_iter().max().unwrap_or(0);
    }
    for n in 0..found.len() {
        let (exit, entry) = ports(layered, &found, &found[n]);
        (found[n].exit, found[n].entry) = (exit, entry);
    }
    found
}

/// Returns how a route leaves and enters, so that lines of the same box do not cross: those that leave stand above those that
/// enter; outer lanes below inner ones where they leave, above them where they enter.
fn ports(layered: &Layered, all: &[Back], back: &Back) -> (Port, Port) {
    let ends = |back: &Back| (layered.routes[back.route].from, layered.routes[back.route].to);
    let inner = |other: &&Back| (other.lane, other.route) < (back.lane, back.route);
    let outer = |other: &&Back| (other.lane, other.route) > (back.lane, back.route);
    let (from, to) = ends(back);
    let leaving = |node: usize| all.iter().filter(move |other| ends(other).0 == node);
    let entering = |node: usize| all.iter().filter(move |other| ends(other).1 == node);
    let exit = if is_rightmost(layered, from) {
        Port::Side(leaving(from).filter(inner).count(), leaving(from).count() + entering(from).count())
    } else {
        let below = |other: &&Back| other.rows.0 == back.rows.0 && !is_rightmost(layered, ends(other).0);
        Port::Track(all.iter().filter(below).filter(inner).count())
    };
    let entry = if is_rightmost(layered, to) {
        let above = leaving(to).count();
        Port::Side(above + entering(to).filter(outer).count(), above + entering(to).count())
    } else {
        let above = |other: &&Back| other.rows.1 == back.rows.1 && !is_rightmost(layered, ends(other).1);
        Port::Track(all.iter().filter(above).filter(inner).count())
    };
    (exit, entry)
}

fn is_rightmost(layered: &Layered, node: usize) -> bool {
    let row = &layered.rows[layered.row_of[node]];
    row.iter().rev().find(|item| layered.items[**item] == Item::Node) == Some(&node)
}

/// Returns the height that labels of lanes need in a row.
pub(super) fn label_height(layered: &Layered, back: &[Back], row: usize) -> i64 {
    let here = back.iter().filter(|back| back.rows.0 == row + 1);
    here.map(|back| label_size(&layered.routes[back.route].labels).1).max().unwrap_or(0)
}

/// Returns how far arrows slant to the side on their way into each row.
pub(super) fn slants(plan: &Plan<'_>) -> Vec<i64> {
    let mut slants = vec![0; plan.layered.rows.len()];
    for pair in plan.layered.chains.iter().flat_map(|chain| chain.windows(2)) {
        let slant = &mut slants[plan.layered.row_of[pair[1]]];
        *slant = (plan.x[pair[0]] - plan.x[pair[1]]).abs().max(*slant);
    }
    slants
}

/// Returns the height between the row before `row` and `row`, into which arrows slant by `slant`.
pub(super) fn gap(slant: i64, back: &[Back], row: usize) -> i64 {
    let entering = tracks(back.iter().filter(|back| back.rows.1 == row).map(|back| back.entry));
    let head = if row.is_multiple_of(2) { HEAD } else { 0 };
    ROW_GAP + head + (slant / 9).min(SLANT_MAX) + entering + gap_below(back, row)
}

/// Returns the height that lines below the row before `row` need.
pub(super) fn gap_below(back: &[Back], row: usize) -> i64 {
    tracks(back.iter().filter(|back| back.rows.0 + 1 == row).map(|back| back.exit))
}

fn tracks(ports: impl Iterator<Item = Port>) -> i64 {
    let track = |port| match port {
        Port::Side(..) => 0,
        Port::Track(at) => length(at + 2),
    };
    ports.map(track).max().unwrap_or(0) * TRACK
}

fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX / (1_000 * PX))
}

/// Draws the routes that lead down.
pub(super) fn forward(plan: &Plan<'_>, labels: &mut Vec<Label>, lines: &mut Vec<Line>) {
    let layered = plan.layered;
    for (at, chain) in layered.chains.iter().enumerate() {
        let [from, inner @ .., to] = chain.as_slice() else { continue };
        let route = &layered.routes[at];
        let beside = |end: usize, near: usize| port(plan, at, end, near);
        let start = (beside(*from, chain[1]), plan.boxes[*from].bottom());
        let goal = (beside(*to, chain[chain.len() - 2]), plan.boxes[*to].y);
        let mut parts = Vec::new();
        // Boxes are centred in their rows, but slants stay between the rows.
        let (row_y, row_height) = plan.rows[layered.row_of[*from]];
        let mut pen = (start.0, row_y + row_height);
        straight(&mut parts, start, pen);
        for item in inner {
            let (y, height) = plan.rows[layered.row_of[*item]];
            slant(&mut parts, &mut pen, (plan.x[*item], y));
            pen.1 = y + height;
            straight(&mut parts, start, pen);
        }
        slant(&mut parts, &mut pen, (goal.0, plan.rows[layered.row_of[*to]].0 - HEAD));
        straight(&mut parts, start, goal);
        lines.push(Line { parts, ..line(route, start, (0, 1)) });
        for item in inner.iter().filter(|item| layered.items[**item] == Item::Label(at)) {
            let (y, height) = plan.rows[layered.row_of[*item]];
            labels.push(label(&route.labels, (plan.x[*item], y + height / 2), route.mark));
        }
    }
}

fn line(route: &Route, start: Point, heading: Point) -> Line {
    Line { start, parts: Vec::new(), heading, dashed: route.dashed, mark: route.mark }
}

fn slant(parts: &mut Vec<Part>, pen: &mut Point, to: Point) {
    if pen.0 == to.0 {
        straight(parts, *pen, to);
    } else {
        let middle = i64::midpoint(pen.1, to.1);
        parts.push(Part::Curve((pen.0, middle), (to.0, middle), to));
    }
    *pen = to;
}

/// Goes straight down to a point; parts that do so one after the other are one.
fn straight(parts: &mut Vec<Part>, start: Point, to: Point) {
    match parts.last_mut() {
        Some(Part::To(last)) => *last = to,
        Some(Part::Curve(_, _, last)) if *last == to => {}
        None if start == to => {}
        Some(Part::Curve(..)) | None => parts.push(Part::To(to)),
    }
}

fn label(lines: &[String], middle: Point, mark: Mark) -> Label {
    let (w, h) = label_size(lines);
    Label { rect: Rect { x: middle.0 - w / 2, y: middle.1 - h / 2, w, h }, lines: lines.to_vec(), mark }
}

/// Returns where a route meets the upper or lower edge of a box.
fn port(plan: &Plan<'_>, route: usize, node: usize, near: usize) -> i64 {
    let layered = plan.layered;
    let below = layered.row_of[near] > layered.row_of[node];
    let mut beside: Vec<(i64, usize)> = Vec::new();
    for (at, chain) in layered.chains.iter().enumerate() {
        match chain.as_slice() {
            [first, next, ..] if below && *first == node => beside.push((plan.x[*next], at)),
            [.., next, last] if !below && *last == node => beside.push((plan.x[*next], at)),
            [] | [_] | [_, _, ..] => {}
        }
    }
    beside.sort_unstable();
    let rect = plan.boxes[node];
    let (left, right) = (rect.x + CORNER, rect.right() - CORNER);
    if right <= left {
        return plan.x[node];
    }
    // Straight if it can be; else in order, as far apart as the edge allows.
    let gap = PORT_GAP.min((right - left) / length(beside.len()));
    let wanted: Vec<(i64, i64)> = beside.iter().map(|(x, _)| ((*x).clamp(left, right), 1)).collect();
    let places = spread(&wanted, &vec![gap; wanted.len() - 1]);
    let first = places.first().copied().unwrap_or(left);
    let last = places.last().copied().unwrap_or(right);
    let inside = (left - first).max(0) - (last - right).max(0);
    let place = beside.iter().position(|(_, at)| *at == route).unwrap_or(0);
    places[place] + inside
}

/// Draws the routes that lead up; returns the right edge of everything.
pub(super) fn upward(plan: &Plan<'_>, back: &[Back], labels: &mut Vec<Label>, lines: &mut Vec<Line>) -> i64 {
    let lanes = lanes(plan, back);
    for back in back {
        let route = &plan.layered.routes[back.route];
        let x = lanes[back.lane].0;
        let (from, to) = (plan.boxes[route.from], plan.boxes[route.to]);
        let mut corners = Vec::new();
        let start = match back.exit {
            Port::Side(at, of) => {
                let y = side(&from, at, of);
                corners.push((x, y));
                (from.right(), y)
            }
            Port::Track(at) => {
                let (row_y, row_height) = plan.rows[back.rows.0];
                let (down, y) = (track_port(&from, at), row_y + row_height + length(at + 1) * TRACK);
                corners.extend([(down, y), (x, y)]);
                (down, from.bottom())
            }
        };
        let (goal, heading) = match back.entry {
            Port::Side(at, of) => {
                let y = side(&to, at, of);
                corners.push((x, y));
                ((to.right(), y), (-1, 0))
            }
            Port::Track(at) => {
                let (down, y) = (track_port(&to, at), plan.rows[back.rows.1].0 - length(at + 2) * TRACK);
                corners.extend([(x, y), (down, y)]);
                ((down, to.y), (0, 1))
            }
        };
        let mut line = line(route, start, heading);
        line.parts = rounded(start, &corners, goal);
        lines.push(line);
        if !route.labels.is_empty() {
            // In the row of labels just above its source, where no line crosses a lane.
            let (y, height) = plan.rows[back.rows.0 - 1];
            labels.push(label(&route.labels, (x, y + height / 2), route.mark));
        }
    }
    lanes.last().map_or(plan.right, |(_, right)| *right)
}

/// Returns middle and right edge of each lane, wide enough for its labels.
fn lanes(plan: &Plan<'_>, back: &[Back]) -> Vec<(i64, i64)> {
    let mut lanes = Vec::new();
    let mut right = plan.right;
    for lane in 0..back.iter().map(|back| back.lane + 1).max().unwrap_or(0) {
        let widths = back.iter().filter(|back| back.lane == lane).map(|back| {
            let labels = &plan.layered.routes[back.route].labels;
            if labels.is_empty() { 0 } else { label_size(labels).0 }
        });
        let half = widths.max().unwrap_or(0) / 2;
        let middle = right + LANE_GAP + half;
        right = middle + half;
        lanes.push((middle, right));
    }
    lanes
}

fn side(rect: &Rect, at: usize, of: usize) -> i64 {
    rect.y + rect.h * length(at + 1) / length(of + 1)
}

fn track_port(rect: &Rect, at: usize) -> i64 {
    (rect.right() - TRACK - length(at) * TRACK).max(rect.x + rect.w / 2)
}

/// Returns a line of upright and level parts with round corners.
fn rounded(start: Point, corners: &[Point], goal: Point) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut before = start;
    for (n, corner) in corners.iter().enumerate() {
        let after = corners.get(n + 1).copied().unwrap_or(goal);
        let toward = |point: Point| {
            let (dx, dy) = (point.0 - corner.0, point.1 - corner.1);
            let reach = RADIUS.min((dx.abs() + dy.abs()) / 2);
            (corner.0 + dx.signum() * reach, corner.1 + dy.signum() * reach)
        };
        parts.push(Part::To(toward(before)));
        parts.push(Part::Curve(*corner, *corner, toward(after)));
        before = *corner;
    }
    parts.push(Part::To(goal));
    parts
}

/// Draws the loops, at the left of their boxes.
pub(super) fn loops(plan: &Plan<'_>, labels: &mut Vec<Label>, lines: &mut Vec<Line>) {
    for route in plan.layered.routes.iter().filter(|route| route.from == route.to) {
        let rect = plan.boxes[route.from];
        let (x, middle) = (rect.x, rect.y + rect.h / 2);
        let open = rect.h / 4;
        let (start, end) = ((x, middle - open), (x, middle + open));
        let mut line = line(route, start, (1, 0));
        line.parts.push(Part::Curve((x - LOOP_REACH, start.1 - open), (x - LOOP_REACH, end.1 + open), end));
        lines.push(line);
        if !route.labels.is_empty() {
            let half = label_size(&route.labels).0 / 2;
            labels.push(label(&route.labels, (x - LOOP_REACH - half, middle), route.mark));
        }
    }
}
