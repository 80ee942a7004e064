//! Who follows the runs of a shard, and the partial output of what is in hand.
//!
//! Leaves replaying the past to `watch`. Invariant: a watcher gets every frame after its place, in order, or its channel is closed; a
//! slow one never holds up a run. Partial output is kept in memory only: a scratch file would be written here.

use std::collections::{BTreeMap, HashMap};

use outlast_kernel::ids::{Attempt, OpId, RunId, Seq};
use outlast_protocol::run::{Frame, FrameKind};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::message::Partial;
use crate::limits;

/// Who follows runs.
#[derive(Default)]
pub(crate) struct Watchers {
    runs: HashMap<RunId, Watched>,
}

#[derive(Default)]
struct Watched {
    frames: Vec<mpsc::Sender<Frame>>,
    changed: Option<watch::Sender<u64>>,
    partials: BTreeMap<OpId, Output>,
}

/// The output of an attempt so far.
#[derive(Default)]
struct Output {
    attempt: Option<Attempt>,
    text: String,
    chars: u64,
}

impl Watchers {
    /// Adds a watcher. Returns its channel and the partial output so far.
    pub(crate) fn subscribe(&mut self, run: &RunId) -> (mpsc::Receiver<Frame>, Vec<Frame>) {
        let watched = self.runs.entry(run.clone()).or_default();
        let (sender, receiver) = mpsc::channel(limits::WATCH_FRAMES);
        watched.frames.push(sender);
        let partials = watched.partials.iter().filter_map(|(op, output)| {
            Some(frame(run, *op, output.attempt?, json!({ "offset": 0, "text": output.text })))
        });
        (receiver, partials.collect())
    }

    /// Returns what changes with every durable step of a run.
    pub(crate) fn changed(&mut self, run: &RunId) -> watch::Receiver<u64> {
        let watched = self.runs.entry(run.clone()).or_default();
        watched.changed.get_or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Tells whoever waits that a step is durable.
    pub(crate) fn tell_changed(&mut self, run: &RunId, n: Seq) {
        let Some(watched) = self.runs.get_mut(run) else { return };
        if let Some(changed) = &watched.changed {
            changed.send_replace(n.0);
        }
        self.tidy(run);
    }

    /// Sends frames.
    pub(crate) fn send(&mut self, run: &RunId, frames: &[Frame]) {
        let Some(watched) = self.runs.get_mut(run) else { return };
        // A watcher that is gone, or too slow and has to resume, is dropped with its channel.
        watched.frames.retain(|sender| frames.iter().all(|frame| sender.try_send(frame.clone()).is_ok()));
        if frames.iter().any(|frame| frame.event == FrameKind::Ended) {
            watched.frames.clear();
        }
        self.tidy(run);
    }

    /// Adds partial output and sends it.
    pub(crate) fn partial(&mut self, run: &RunId, partial: &Partial) {
        let watched = self.runs.entry(run.clone()).or_default();
        let output = watched.partials.entry(partial.work.op).or_default();
        let mut frames = Vec::new();
        if output.attempt.is_some_and(|attempt| attempt > partial.attempt) {
            return; // A late word of an attempt that was given up.
        }
        if output.attempt != Some(partial.attempt) {
            if output.attempt.is_some() {
                frames.push(frame(run, partial.work.op, partial.attempt, json!({ "restart": true })));
            }
            *output = Output { attempt: Some(partial.attempt), ..Output::default() };
        }
        let new = output.add(partial.offset, &partial.text);
        if let Some((offset, text)) = new {
            frames.push(frame(
                run,
                partial.work.op,
                partial.attempt,
                json!({ "offset": offset, "text": text }),
            ));
        }
        self.send(run, &frames);
    }

    /// Forgets the output of an operation that closed.
    pub(crate) fn closed(&mut self, run: &RunId, op: OpId) {
        if let Some(watched) = self.runs.get_mut(run) {
            watched.partials.remove(&op);
            self.tidy(run);
        }
    }

    fn tidy(&mut self, run: &RunId) {
        let idle = self.runs.get_mut(run).is_some_and(|watched| {
            watched.changed.take_if(|changed| changed.receiver_count() == 0);
            watched.frames.retain(|sender| !sender.is_closed());
            watched.frames.is_empty() && watched.changed.is_none() && watched.partials.is_empty()
        });
        if idle {
            self.runs.remove(run);
        }
    }
}

impl Output {
    /// Adds text at an offset in characters; returns what of it is new and where it begins. Repeated text counts once; text beyond
    /// the limit is dropped, the result will bring it.
    fn add(&mut self, offset: Option<u64>, text: &str) -> Option<(u64, String)> {
        let known = self.chars.saturating_sub(offset.unwrap_or(self.chars));
        let new: String = text.chars().skip(usize::try_from(known).unwrap_or(usize::MAX)).collect();
        if new.is_empty() || self.text.len() + new.len() > limits::PARTIAL_BYTES_MAX {
            return None;
        }
        let at = self.chars;
        self.chars += new.chars().count() as u64;
        self.text.push_str(&new);
        Some((at, new))
    }
}

fn frame(run: &RunId, op: OpId, attempt: Attempt, mut data: serde_json::Value) -> Frame {
    data["run"] = json!(run);
    data["op"] = json!(op.to_string());
    data["attempt"] = json!(attempt);
    Frame { id: None, event: FrameKind::Partial, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_comes_twice_or_overlaps_counts_once() {
        let mut output = Output::default();
        assert_eq!(output.add(Some(0), "grü"), Some((0, "grü".into())));
        assert_eq!(output.add(Some(0), "grü"), None);
        assert_eq!(output.add(Some(2), "üß"), Some((3, "ß".into())));
        assert_eq!(output.add(None, " dich"), Some((4, " dich".into())));
        assert_eq!(output.text, "grüß dich");
        assert_eq!(output.add(None, &"x".repeat(limits::PARTIAL_BYTES_MAX)), None);
    }

    #[test]
    fn a_slow_watcher_is_dropped_and_others_go_on() {
        let run = RunId::new("r").unwrap();
        let mut watchers = Watchers::default();
        let (mut slow, _) = watchers.subscribe(&run);
        let shown = Frame { id: Some("r/1.0".into()), event: FrameKind::Emit, data: json!(1) };
        for _ in 0..=limits::WATCH_FRAMES {
            watchers.send(&run, std::slice::from_ref(&shown));
        }
        let mut got = 0;
        while slow.try_recv().is_ok() {
            got += 1;
        }
        assert_eq!(got, limits::WATCH_FRAMES);
        assert!(slow.is_closed() && watchers.runs.is_empty());
    }
}
