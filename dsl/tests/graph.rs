//! What the pictures of a machine look like, and that no machine breaks them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "graph/agent.rs"]
mod agent;

use outlast_dsl::graph::{Format, Live, render};

#[test]
fn dump() {
    let live = Live { state: Some("Act/OneTool.Approve".into()), visited: ["Think", "Idle", "Think", "Act", "Act/OneTool.Gate", "Act/OneTool.Approve"].map(String::from).to_vec() };
    for (f, n) in [(Format::Ascii, "txt"), (Format::Mermaid, "mmd"), (Format::Svg, "svg")] {
        std::fs::write(format!("/tmp/mm/agent.{n}"), render(&agent::agent(), f, None)).unwrap();
        std::fs::write(format!("/tmp/mm/live.{n}"), render(&agent::agent(), f, Some(&live))).unwrap();
    }
}
