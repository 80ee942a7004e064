//! `outlast fork`, `tree`: another run from an event of one, and what came from what.

use std::collections::BTreeMap;
use std::str::FromStr;

use outlast_protocol::requests::Fork;
use outlast_protocol::run::RunView;
use outlast_runtime::host::Session;
use serde_json::Value;

use super::{Context, act};
use crate::failure::{Exit, Failure};
use crate::open::{self, Workers};
use crate::{out, show};

/// A run, and the event at which it is forked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) run: String,
    /// None: the newest at which no `once` operation is open.
    pub(crate) at: Option<u64>,
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Point, String> {
        match text.split_once('@') {
            None => Ok(Point { run: text.to_owned(), at: None }),
            Some((run, at)) => {
                let at = at.parse().map_err(|_| format!("the number of an event is expected, not {at:?}"))?;
                Ok(Point { run: run.to_owned(), at: Some(at) })
            }
        }
    }
}

/// Arguments of `fork`.
#[derive(Debug, clap::Args)]
pub(crate) struct ForkArguments {
    /// The run, and the last event that both share [default: the newest at which no `once` operation is open]
    #[arg(value_name = "ID[@N]")]
    point: Point,
    /// The id of the new run
    #[arg(long, value_name = "NEW")]
    id: Option<String>,
    /// What becomes of the runs that it spawned: unknown (they stay the parent's alone), share (the fork learns of their end, too)
    /// or again (the fork spawns its own) [default: unknown]
    #[arg(long, value_name = "WHAT", value_parser = ["unknown", "share", "again"])]
    children: Option<String>,
}

/// Forks a run.
pub(crate) async fn fork(context: Context<'_>, arguments: &ForkArguments) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let fork = begin(&session, &arguments.point, arguments.id.clone(), arguments.children.clone()).await?;
    if context.json {
        out::json(&fork)?;
    } else {
        out::result(&format!("run {} {}", fork.id, came_from(&fork)))?;
        let option = act::data_option(&session);
        let batch = act::again(&fork.id, &session, false);
        out::say(&format!("to go on with it: outlast{option} chat --resume {}, or {batch}", fork.id));
    }
    open::close(session).await;
    Ok(Exit::Done)
}

/// Forks a run at a point.
pub(crate) async fn begin(
    session: &Session,
    point: &Point,
    id: Option<String>,
    children: Option<String>,
) -> Result<RunView, Failure> {
    // With an id of its own the request may be repeated when the host is lost on the way.
    let id = id.map_or_else(|| act::fresh_id("fork"), Ok)?;
    let request = Fork { at: point.at, id: Some(id), children };
    let forked = session.call(async |client| client.fork(&point.run, &request).await).await;
    forked.map(|started| started.run).map_err(|error| Failure::from(error).of_run(&point.run))
}

/// Arguments of `tree`.
#[derive(Debug, clap::Args)]
pub(crate) struct TreeArguments {
    /// A run of the tree
    id: String,
}

/// Shows the runs that share a history with a run.
pub(crate) async fn tree(context: Context<'_>, arguments: &TreeArguments) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let tree = session.call(async |client| client.tree(&arguments.id).await).await;
    let tree = tree.map_err(|error| Failure::from(error).of_run(&arguments.id))?;
    if context.json {
        out::json(&tree)?;
    } else {
        for line in lines(&tree.items, &arguments.id) {
            out::result(&line)?;
        }
        if let Some(left_out) = &tree.next {
            out::say(&format!("there are more: outlast tree {left_out}"));
        }
    }
    open::close(session).await;
    Ok(Exit::Done)
}

/// Says where a run came from; empty if from nowhere.
fn came_from(run: &RunView) -> String {
    let parent = run.parent.as_ref().unwrap_or(&Value::Null);
    match (parent["run"].as_str(), parent["at"].as_u64()) {
        (Some(of), Some(at)) => format!("is a fork of {of}, from event {at} on"),
        (Some(of), None) => format!("came from {of}"),
        (None, _) => String::new(),
    }
}

/// Draws a tree of forks; the run that was asked for is marked.
pub(crate) fn lines(items: &[RunView], asked: &str) -> Vec<String> {
    let parent =
        |run: &RunView| run.parent.as_ref().and_then(|parent| parent["run"].as_str().map(str::to_owned));
    let mut forks = BTreeMap::<Option<String>, Vec<&RunView>>::new();
    for run in items {
        let parent = parent(run).filter(|of| items.iter().any(|other| other.id == *of));
        forks.entry(parent).or_default().push(run);
    }
    let mut lines = Vec::new();
    // What stands before a line, and before the lines of its forks.
    let mut open: Vec<(&RunView, String, String)> = Vec::new();
    let roots = forks.get(&None).into_iter().flatten().rev();
    open.extend(roots.map(|run| (*run, String::new(), String::new())));
    while let Some((run, before, below)) = open.pop() {
        let at = match (before.is_empty(), run.parent.as_ref().and_then(|parent| parent["at"].as_u64())) {
            (false, Some(at)) => format!("@{at} "),
            (true, _) | (_, None) => String::new(),
        };
        let mark = if run.id == asked { "  <" } else { "" };
        lines.push(format!("{before}{at}{}{mark}", show::row(run)));
        let children = forks.get(&Some(run.id.clone())).map(Vec::as_slice).unwrap_or_default();
        for (i, child) in children.iter().enumerate().rev() {
            let (turn, rest) =
                if i + 1 == children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            open.push((child, format!("{below}{turn}"), format!("{below}{rest}")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_point_is_a_run_with_or_without_an_event() {
        assert_eq!("a.b~c".parse(), Ok(Point { run: "a.b~c".to_owned(), at: None }));
        assert_eq!("a@17".parse(), Ok(Point { run: "a".to_owned(), at: Some(17) }));
        for text in ["a@", "a@-1", "a@1.0", "a@b@1"] {
            assert!(Point::from_str(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_tree_is_drawn_from_its_parents() {
        let run = |id: &str, parent: Option<(&str, u64)>| -> RunView {
            let mut run = json!({
                "id": id, "flow": "F", "machine": "m", "status": "waiting", "state": "S", "questions": [],
                "unread": [], "cost": "0", "events": 3, "started_at": "t", "updated_at": "t", "profile": "",
            });
            if let Some((of, at)) = parent {
                run["parent"] = json!({ "run": of, "at": at });
            }
            serde_json::from_value(run).unwrap()
        };
        let tree =
            [run("a", None), run("b", Some(("a", 2))), run("c", Some(("b", 9))), run("d", Some(("a", 4)))];
        let drawn: Vec<String> = lines(&tree, "c")
            .iter()
            .map(|line| {
                line.split_whitespace()
                    .filter(|word| !["F", "waiting", "3", "t", "S"].contains(word))
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        assert_eq!(drawn, ["a", "├─ @2 b", "│ └─ @9 c <", "└─ @4 d"]);
        // An imported fork stands alone.
        assert_eq!(lines(&[run("x", Some(("gone", 2)))], "y").len(), 1);
    }
}
