//! Who follows the runs of a shard, and the partial output of what is in hand.
//!
//! Leaves replaying the past to `watch`. Invariant: a watcher gets every frame after its place, in order, or its channel is closed; a
//! slow one never holds up a run, and what waits for one is bounded in frames and in bytes. Partial output is kept in memory only: a scratch file would be written here.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use outlast_kernel::ids::{Attempt, OpId, RunId};
use outlast_protocol::run::{Frame, FrameKind};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::message::Partial;
use super::waiting::Motion;
use crate::limits;

/// Who follows runs.
#[derive(Default)]
pub(crate) struct Watchers {
    runs: HashMap<RunId, Watched>,
}

#[derive(Default)]
struct Watched {
    frames: Vec<Watcher>,
    changed: Option<watch::Sender<Motion>>,
    partials: BTreeMap<OpId, Output>,
}

/// A frame on its way to a watcher.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The frame.
    pub(crate) frame: Frame,
    /// What it takes of the room that the watcher has, until it is given.
    _room: OwnedSemaphorePermit,
}

/// Who follows a run.
struct Watcher {
    sender: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
}

impl Watcher {
    /// Sends a frame of so many bytes; tells whether there was room. What is larger than all room goes alone.
    fn send(&self, frame: &Frame, bytes: usize) -> bool {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(limits::WATCH_BYTES_MAX);
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(bytes) else { return false };
        self.sender.try_send(Waiting { frame: frame.clone(), _room: room }).is_ok()
    }
}

/// The output of an attempt so far; of a worker that outlived the runtime, what it says since.
#[derive(Default)]
struct Output {
    attempt: Option<Attempt>,
    text: String,
    /// Where the text ends.
    chars: u64,
    /// How far the attempt said last that it is.
    percent: Option<f64>,
}

impl Watchers {
    /// Adds a watcher. Returns its channel and the partial output so far.
    pub(crate) fn subscribe(&mut self, run: &RunId) -> (mpsc::Receiver<Waiting>, Vec<Frame>) {
        let watched = self.runs.entry(run.clone()).or_default();
        let (sender, receiver) = mpsc::channel(limits::WATCH_FRAMES);
        let room = Arc::new(Semaphore::new(limits::WATCH_BYTES_MAX as usize));
        watched.frames.push(Watcher { sender, room });
        let partials = watched.partials.iter().filter_map(|(op, output)| {
            let mut data = match output.text.is_empty() {
                true => json!({}),
                false => json!({ "offset": output.begins(), "text": output.text }),
            };
            if let Some(percent) = output.percent {
                data["percent"] = json!(percent);
            }
            Some(frame(run, *op, output.attempt?, data))
        });
        (receiver, partials.collect())
    }

    /// Forgets a run that is no more.
    pub(crate) fn forget(&mut self, run: &RunId) {
        self.runs.remove(run);
    }

    /// Returns what changes with every durable step of a run.
    pub(crate) fn changed(&mut self, run: &RunId) -> watch::Receiver<Motion> {
        let watched = self.runs.entry(run.clone()).or_default();
        watched.changed.get_or_insert_with(|| watch::Sender::new(Motion::Moves)).subscribe()
    }

    /// Tells whoever waits that a step is durable.
    pub(crate) fn tell_changed(&mut self, run: &RunId, motion: Motion) {
        let Some(watched) = self.runs.get_mut(run) else { return };
        if let Some(changed) = &watched.changed {
            changed.send_replace(motion);
        }
        self.tidy(run);
    }

    /// Sends frames.
    pub(crate) fn send(&mut self, run: &RunId, frames: &[Frame]) {
        let Some(watched) = self.runs.get_mut(run) else { return };
        if !watched.frames.is_empty() {
            let sizes: Vec<usize> = frames.iter().map(|frame| frame.data.to_string().len()).collect();
            // A watcher that is gone, or too slow and has to resume, is dropped with its channel.
            watched
                .frames
                .retain(|watcher| frames.iter().zip(&sizes).all(|(f, bytes)| watcher.send(f, *bytes)));
        }
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
        if let Some(percent) = partial.percent {
            output.percent = partial.percent;
            frames.push(frame(run, partial.work.op, partial.attempt, json!({ "percent": percent })));
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
            watched.frames.retain(|watcher| !watcher.sender.is_closed());
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
        let offset = offset.unwrap_or(self.chars);
        let known = self.chars.saturating_sub(offset);
        let new: String = text.chars().skip(usize::try_from(known).unwrap_or(usize::MAX)).collect();
        if new.is_empty() || self.text.len() + new.len() > limits::PARTIAL_BYTES_MAX {
            return None;
        }
        // What comes from further on goes on where another runtime heard it: who watches may have that, too.
        let at = self.chars.max(offset);
        if at > self.chars {
            self.text.clear();
        }
        self.chars = at + new.chars().count() as u64;
        self.text.push_str(&new);
        Some((at, new))
    }

    /// Where the text begins, in characters.
    fn begins(&self) -> u64 {
        self.chars - self.text.chars().count() as u64
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
    use crate::engine::dispatch::WorkId;

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
    fn output_of_a_worker_that_outlived_the_runtime_stands_where_it_says() {
        let mut output = Output::default();
        assert_eq!(output.add(Some(40), "and on"), Some((40, "and on".into())));
        assert_eq!(output.add(Some(44), "on and"), Some((46, " and".into())));
        assert_eq!((output.begins(), output.text.as_str()), (40, "and on and"));
    }

    #[test]
    fn how_far_an_attempt_is_is_shown_and_told_to_who_comes_later() {
        let run = RunId::new("r").unwrap();
        let mut watchers = Watchers::default();
        let (mut early, _) = watchers.subscribe(&run);
        let op: OpId = "3.0".parse().unwrap();
        let work = WorkId { run: run.clone(), op };
        for (text, percent) in [("half", Some(50.0)), ("", Some(75.0))] {
            let attempt = Attempt::FIRST;
            let said = Partial { work: work.clone(), attempt, offset: None, text: text.to_owned(), percent };
            watchers.partial(&run, &said);
        }
        let mut seen = || early.try_recv().map(|waiting| waiting.frame.data);
        assert_eq!(seen().unwrap()["text"], "half");
        assert_eq!(
            (seen().unwrap()["percent"].clone(), seen().unwrap()["percent"].clone()),
            (json!(50.0), json!(75.0))
        );
        assert!(seen().is_err(), "no text, no frame of text");
        let (_late, told) = watchers.subscribe(&run);
        assert_eq!((&told[0].data["text"], &told[0].data["percent"]), (&json!("half"), &json!(75.0)));
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

    #[test]
    fn what_waits_for_a_watcher_is_bounded_in_bytes() {
        let run = RunId::new("r").unwrap();
        let mut watchers = Watchers::default();
        let (mut slow, _) = watchers.subscribe(&run);
        let (mut quick, _) = watchers.subscribe(&run);
        let half = "x".repeat(limits::WATCH_BYTES_MAX as usize / 2);
        let shown = Frame { id: Some("r/1.0".into()), event: FrameKind::Emit, data: json!(half) };
        for _ in 0..3 {
            watchers.send(&run, std::slice::from_ref(&shown));
            quick.try_recv().unwrap();
        }
        assert!(slow.try_recv().is_ok() && slow.try_recv().is_err(), "a half and its quotes fit once");
        assert!(slow.is_closed() && !quick.is_closed());
        let large = Frame { data: json!(half.repeat(3)), ..shown };
        watchers.send(&run, std::slice::from_ref(&large));
        assert_eq!(quick.try_recv().unwrap().frame, large, "what is larger than all room goes alone");
    }
}
