//! Lists to pick from: runs to go on with, and what was said, to go back to.
//!
//! Invariant: a choice is a command, so whatever can be picked can be typed.

use std::collections::BTreeMap;
use std::time::SystemTime;

use outlast_protocol::run::{RunView, WaitingFor};
use outlast_runtime::client::Wanted;
use outlast_runtime::host::Session;
use serde_json::Value;

use super::age::age;
use super::known::Known;
use super::picker::{Choice, Picker};
use super::said::After;
use super::screen::Tone;
use super::talk::Talk;
use crate::failure::Failure;
use crate::limits::{CHOICES_MAX, PICK_PAGES_MAX, RUNS_PAGE};
use crate::show;

/// Which runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// Those that were started in this directory.
    Here,
    /// All.
    Anywhere,
}

/// Lets the person pick a run to go on with.
pub(super) async fn run(talk: &mut Talk, place: Where) -> Result<After, Failure> {
    let runs = unfinished(&talk.session, place).await?;
    if runs.is_empty() {
        let text = match place {
            Where::Here => "no unfinished runs here; /runs all shows those of other directories",
            Where::Anywhere => "no unfinished runs",
        };
        talk.face.print(Tone::Aside, text)?;
        return Ok(After::Stay);
    }
    let (mut choices, now) = (Vec::new(), SystemTime::now());
    for run in runs.iter().take(CHOICES_MAX) {
        let first = talk.session.call(async |client| client.events(&run.id, 0, 1).await).await;
        let words = first.ok().and_then(|page| page.items.first().map(first_words)).unwrap_or_default();
        choices.push(Choice {
            label: label(run, &words, now),
            command: format!("/resume {}", run.id),
            then: String::new(),
        });
    }
    Ok(After::Pick(Picker::new("go on with", choices)))
}

fn label(run: &RunView, words: &str, now: SystemTime) -> String {
    let status = match &run.waiting_for {
        Some(WaitingFor::Question { .. }) => "asks",
        Some(_) | None => run.status.as_str(),
    };
    format!("{:<24} {status:<8} {:<12} {:>4}  {words}", run.id, run.flow, age(&run.started_at, now))
}

fn first_words(event: &Value) -> String {
    let mut known = Known::default();
    known.take(event);
    known.remarks.first().map(|remark| one_line(&remark.text)).unwrap_or_default()
}

fn one_line(text: &str) -> String {
    show::short(&Value::String(text.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Lets the person pick something that they said, to go on from before it: the fork gets it into its line.
pub(super) fn remark(talk: &mut Talk) -> Result<After, Failure> {
    let remarks = &talk.known.remarks;
    if remarks.is_empty() {
        talk.face.print(Tone::Aside, "nothing was said yet")?;
        return Ok(After::Stay);
    }
    let choices = remarks.iter().rev().take(CHOICES_MAX).map(|remark| {
        // Before its first event there is no run: it is forked where it began.
        let (at, then) = if remark.n > 1 { (remark.n - 1, remark.text.clone()) } else { (1, String::new()) };
        Choice {
            label: format!("{:>5}  {}", remark.n, one_line(&remark.text)),
            command: format!("/fork {at}"),
            then,
        }
    });
    Ok(After::Pick(Picker::new("go back to before", choices.collect())))
}

/// Returns unfinished runs, newest first.
pub(super) async fn unfinished(session: &Session, place: Where) -> Result<Vec<RunView>, Failure> {
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    let (mut found, mut known) = (Vec::new(), BTreeMap::new());
    for status in ["running", "waiting", "blocked"] {
        let (mut cursor, before) = (None, found.len());
        for _ in 0..PICK_PAGES_MAX {
            let status = Some(status.to_owned());
            let wanted = Wanted { status, cursor, limit: Some(RUNS_PAGE), ..Wanted::default() };
            let page = session.call(async |client| client.runs(&wanted).await).await?;
            for run in page.items {
                if place == Where::Here && !known.contains_key(&run.profile) {
                    let profile = session.call(async |client| client.profile(&run.profile).await).await;
                    let is_here = profile.is_ok_and(|profile| profile.directory == here);
                    known.insert(run.profile.clone(), is_here);
                }
                if place == Where::Anywhere || known.get(&run.profile) == Some(&true) {
                    found.push(run);
                }
            }
            cursor = page.next;
            if cursor.is_none() || found.len() - before >= CHOICES_MAX {
                break;
            }
        }
    }
    found.sort_by(|a, b| b.started_at.cmp(&a.started_at));
    Ok(found)
}
