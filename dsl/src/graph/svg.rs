//! A diagram as SVG.
//!
//! Boxes and labels have fills of their own, so the picture reads on light and dark pages alike; nothing in it is a style, a
//! script or an id, so it can stand in any page, and a page can restyle it by class. Leaves positions to `layout`. Invariant: valid
//! XML, whatever the names in the machine.

use std::fmt::Write as _;

use super::diagram::{Cluster, Diagram, Mark, Node, NodeKind};
use super::layout::{
    LABEL_COLUMN, LABEL_HEIGHT, LINE_COLUMN, LINE_HEIGHT, Label, PADDING, PX, Placed, Rect, TITLE_COLUMN,
    TITLE_HEIGHT, layout, text_width,
};
use super::route::{Line, Part, Point};
use super::text::clean;

/// The fonts: fixed width, because texts are measured in columns.
const FONT: &str = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace";
/// Dark text on light fills.
const INK: &str = "#1f2328";
/// Text that comes second.
const INK_SOFT: &str = "#57606a";
/// Lines: strong enough on white and on black.
const STROKE: &str = "#8590a0";
/// Lines that a run took.
const TAKEN: &str = "#2f9e5b";
const TAKEN_LAST: &str = "#c77700";
/// The border of active states.
const LIVE: &str = "#d97706";

/// Writes the diagram.
pub(super) fn write(diagram: &Diagram) -> String {
    let layout = layout(diagram);
    let (width, height) = (px(layout.width), px(layout.height));
    let mut out = String::new();
    put(
        &mut out,
        &format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" class=\"flow-graph\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"{FONT}\">"
        ),
    );
    let title = diagram.clusters.first().map_or("", |cluster| cluster.title.as_str());
    put(&mut out, &format!("<title>{}</title>", escape(title)));
    for (cluster, placed) in diagram.clusters.iter().zip(&layout.clusters) {
        self::cluster(&mut out, cluster, placed);
    }
    put(&mut out, "</svg>");
    out
}

fn put(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn cluster(out: &mut String, cluster: &Cluster, placed: &Placed) {
    put(out, &format!("<g class=\"flow\" data-flow=\"{}\">", escape(&clean(&cluster.name))));
    let frame = attributes(&placed.rect, 10);
    put(
        out,
        &format!(
            "<rect {frame} fill=\"{STROKE}\" fill-opacity=\"0.10\" stroke=\"{STROKE}\" stroke-width=\"1\"/>"
        ),
    );
    let tab =
        Rect { h: TITLE_HEIGHT, w: text_width(&cluster.title, TITLE_COLUMN) + 2 * PADDING, ..placed.rect };
    // Round where the frame is round, and at the corner that faces the drawing.
    let h = px(tab.h - 10 * PX);
    let at = pair((tab.x, tab.bottom()));
    put(
        out,
        &format!(
            "<path d=\"M{at} v-{h} a10 10 0 0 1 10 -10 h{} v{h} a10 10 0 0 1 -10 10 Z\" fill=\"{INK_SOFT}\"/>",
            px(tab.w - 10 * PX)
        ),
    );
    let at = (tab.x + PADDING, tab.y + 19 * PX);
    put(out, &text(at, 14, "#ffffff", " font-weight=\"bold\"", &cluster.title));
    // What a run took comes last, so that it lies over the rest.
    for mark in [Mark::None, Mark::Visited, Mark::Live] {
        for line in placed.lines.iter().filter(|line| line.mark == mark) {
            self::line(out, line);
        }
    }
    for label in &placed.labels {
        self::label(out, label);
    }
    for (node, rect) in cluster.nodes.iter().zip(&placed.boxes) {
        self::node(out, node, rect);
    }
    put(out, "</g>");
}

fn node(out: &mut String, node: &Node, rect: &Rect) {
    match node.kind {
        NodeKind::Start => {
            let (x, y) = rect.middle();
            let (x, y, r) = (px(x), px(y), px(rect.w / 2));
            put(
                out,
                &format!("<circle class=\"start\" cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{INK_SOFT}\"/>"),
            );
        }
        NodeKind::Any => {
            let look = format!("fill=\"#eef0f3\" stroke=\"{STROKE}\" stroke-dasharray=\"4 3\"");
            pill(out, node, rect, "any", (&look, INK));
        }
        NodeKind::End => pill(out, node, rect, "end", (&format!("fill=\"{INK_SOFT}\""), "#ffffff")),
        NodeKind::Fail => pill(out, node, rect, "fail", ("fill=\"#b3423a\"", "#ffffff")),
        NodeKind::State => state(out, node, rect),
    }
}

fn pill(out: &mut String, node: &Node, rect: &Rect, class: &str, (look, ink): (&str, &str)) {
    put(out, &format!("<rect class=\"{class}\" {} {look}/>", attributes(rect, rect.h / 2 / PX)));
    let at = (rect.x + PADDING, rect.y + 17 * PX);
    put(out, &text(at, 12, ink, "", &node.title));
}

fn state(out: &mut String, node: &Node, rect: &Rect) {
    let (class, fill, stroke, width) = match node.mark {
        Mark::None => ("state", "#f8f9fb", STROKE, "1.2"),
        Mark::Visited => ("state visited", "#dff2e5", TAKEN, "1.8"),
        Mark::Live => ("state live", "#ffe2a0", LIVE, "3"),
    };
    let name = escape(&clean(&node.states.join(" ")));
    put(out, &format!("<g class=\"{class}\" data-state=\"{name}\">"));
    put(
        out,
        &format!(
            "<rect {} fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>",
            attributes(rect, 7)
        ),
    );
    let mut at = (rect.x + PADDING, rect.y + 22 * PX);
    put(out, &text(at, 14, INK, " font-weight=\"bold\"", &node.title));
    at.1 += 2 * PX;
    for line in &node.lines {
        at.1 += LINE_HEIGHT;
        // Leading spaces are dropped by XML readers; they become a place.
        let shown = line.text.trim_start();
        let indent = text_width(&line.text, LINE_COLUMN) - text_width(shown, LINE_COLUMN);
        let (ink, weight) = if line.live { (INK, " font-weight=\"bold\"") } else { (INK_SOFT, "") };
        put(out, &text((at.0 + indent, at.1), 12, ink, weight, shown));
    }
    put(out, "</g>");
}

fn label(out: &mut String, label: &Label) {
    let look = match label.mark {
        Mark::None => "fill=\"#eef0f3\"",
        Mark::Visited => "fill=\"#dff2e5\"",
        Mark::Live => "fill=\"#ffe3a3\"",
    };
    put(out, &format!("<rect class=\"label\" {} {look}/>", attributes(&label.rect, 5)));
    let mut y = label.rect.y + PX;
    for line in &label.lines {
        y += LABEL_HEIGHT;
        let x = label.rect.x + (label.rect.w - text_width(line, LABEL_COLUMN)) / 2;
        put(out, &text((x, y - 3 * PX), 11, INK, "", line));
    }
}

fn line(out: &mut String, line: &Line) {
    let (stroke, width) = match line.mark {
        Mark::None => (STROKE, "1.4"),
        Mark::Visited => (TAKEN, "2.2"),
        Mark::Live => (TAKEN_LAST, "3"),
    };
    let dash = if line.dashed { " stroke-dasharray=\"5 4\"" } else { "" };
    let mut path = format!("M{}", pair(line.start));
    for part in &line.parts {
        let step = match part {
            Part::To(to) => format!(" L{}", pair(*to)),
            Part::Curve(a, b, to) => format!(" C{} {} {}", pair(*a), pair(*b), pair(*to)),
        };
        path.push_str(&step);
    }
    put(
        out,
        &format!("<path d=\"{path}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\"{dash}/>"),
    );
    let (x, y) = line.end();
    let (dx, dy) = line.heading;
    let back = (x - dx * 9 * PX, y - dy * 9 * PX);
    let wing = (dy * 45, dx * 45);
    let (a, b) = ((back.0 + wing.0, back.1 + wing.1), (back.0 - wing.0, back.1 - wing.1));
    put(out, &format!("<path d=\"M{} L{} L{} Z\" fill=\"{stroke}\"/>", pair((x, y)), pair(a), pair(b)));
}

fn text((x, y): Point, size: u32, ink: &str, more: &str, text: &str) -> String {
    format!(
        "<text x=\"{}\" y=\"{}\" font-size=\"{size}\" fill=\"{ink}\"{more}>{}</text>",
        px(x),
        px(y),
        escape(text)
    )
}

fn attributes(rect: &Rect, radius: i64) -> String {
    let (x, y, w, h) = (px(rect.x), px(rect.y), px(rect.w), px(rect.h));
    format!("x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"{radius}\"")
}

fn pair((x, y): Point) -> String {
    format!("{} {}", px(x), px(y))
}

/// Writes tenths of a pixel.
fn px(length: i64) -> String {
    let sign = if length < 0 { "-" } else { "" };
    let length = length.abs();
    if length % PX == 0 {
        format!("{sign}{}", length / PX)
    } else {
        format!("{sign}{}.{}", length / PX, length % PX)
    }
}

/// Escapes text for elements and quoted attributes; what XML cannot hold at all becomes a replacement character.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{{{:X}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
