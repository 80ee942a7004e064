//! Following a run: frames in order, without a gap.
//!
//! The past is folded from the history up to where the shard began to send; what comes after waits in the channel meanwhile. A watcher
//! that is too slow for its channel resumes from the history by itself. Invariant: every frame with an id is given once, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use outlast_kernel::ids::{RunId, Seq};
use outlast_protocol::run::{Frame, FrameKind};
use outlast_protocol::{ApiError, Code};
use tokio::sync::mpsc;

use super::core::Core;
use super::frames::Place;
use super::history::each_after;
use super::message::{Message, Subscription};
use super::watchers::Waiting;
use crate::limits;

/// A run that is followed.
pub struct Watch {
    core: Arc<Core>,
    run: RunId,
    /// The last frame with an id that was given.
    last: Place,
    /// Frames of the past, until they are all given.
    past: Option<mpsc::Receiver<Result<Frame, ApiError>>>,
    /// Where the run stands; comes before the past.
    first: Option<Frame>,
    /// Partial output so far; comes after the past.
    partials: VecDeque<Frame>,
    coming: mpsc::Receiver<Waiting>,
    ended: bool,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("run", &self.run).field("last", &self.last).finish_non_exhaustive()
    }
}

impl Watch {
    /// Begins to follow a run after a place; with none, where it stands comes first and then all frames.
    pub(crate) async fn begin(core: Arc<Core>, run: RunId, last: Option<&str>) -> Result<Watch, ApiError> {
        let place = match last {
            None => Place(Seq(0), 0),
            Some(id) => Place::parse(&run, id).ok_or_else(|| {
                let message = format!("{id:?} is no event id of run {run}; RUN/n.k is expected");
                ApiError::new(Code::InvalidCursor, message).of_run(&run)
            })?,
        };
        let subscription = core.ask(&run, |reply| Message::Subscribe(run.clone(), reply)).await?;
        if place.0 > subscription.after {
            let message = format!("run {run} is at event {}, not yet at {}", subscription.after, place.0);
            return Err(ApiError::new(Code::InvalidCursor, message).of_run(&run));
        }
        let current = last.is_none().then(|| subscription.current.clone());
        let mut watch = Watch::follow(core, run, place, subscription);
        watch.first = current;
        Ok(watch)
    }

    fn follow(core: Arc<Core>, run: RunId, last: Place, subscription: Subscription) -> Watch {
        let Subscription { after, partials, frames, .. } = subscription;
        let (sender, past) = mpsc::channel(limits::PAST_FRAMES);
        let (from, of) = (Arc::clone(&core), run.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = past_of(&from, &of, last, after, &sender) {
                // The watcher may be gone.
                let _ = sender.blocking_send(Err(error));
            }
        });
        Watch {
            core,
            run,
            last,
            past: Some(past),
            first: None,
            partials: partials.into(),
            coming: frames,
            ended: false,
        }
    }

    /// Returns the next frame; none after `ended`, or when the engine stops.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if self.ended {
                return None;
            }
            if let Some(frame) = self.first.take() {
                return Some(frame);
            }
            if let Some(past) = &mut self.past {
                match past.recv().await {
                    Some(Ok(frame)) => {
                        if let Some(frame) = self.give(frame) {
                            return Some(frame);
                        }
                    }
                    Some(Err(error)) => {
                        tracing::error!(run = %self.run, %error, "a run's past cannot be shown");
                        self.ended = true;
                    }
                    None => self.past = None,
                }
                continue;
            }
            if let Some(frame) = self.partials.pop_front() {
                return Some(frame);
            }
            match self.coming.recv().await {
                Some(Waiting { frame, .. }) => {
                    if let Some(frame) = self.give(frame) {
                        return Some(frame);
                    }
                }
                None => self.resume().await?,
            }
        }
    }

    /// Gives a frame unless it was given before.
    fn give(&mut self, frame: Frame) -> Option<Frame> {
        if let Some(id) = &frame.id {
            let place = Place::parse(&self.run, id)?;
            if place <= self.last {
                return None;
            }
            self.last = place;
        }
        self.ended = frame.event == FrameKind::Ended;
        Some(frame)
    }

    /// Goes on from the history: this watcher was too slow, or the run has ended. None if there is nothing to go on with.
    async fn resume(&mut self) -> Option<()> {
        let run = self.run.clone();
        let asked = self.core.ask(&run, |reply| Message::Subscribe(run.clone(), reply)).await;
        let subscription = asked.ok()?;
        if subscription.ended && self.last.0 >= subscription.after {
            self.ended = true;
            return None;
        }
        *self = Watch::follow(Arc::clone(&self.core), run, self.last, subscription);
        Some(())
    }
}

/// Sends the frames after a place, up to an event.
fn past_of(
    core: &Core,
    run: &RunId,
    last: Place,
    until: Seq,
    sender: &mpsc::Sender<Result<Frame, ApiError>>,
) -> Result<(), ApiError> {
    let ctx = &core.ctx;
    // The frames of the last event may have been given in part, so it is folded again.
    let before = Seq(last.0.0.saturating_sub(1));
    each_after(ctx, run, (before, until), &mut |told| {
        for frame in told.frames {
            let place = frame.id.as_deref().and_then(|id| Place::parse(run, id));
            let is_new = place.is_none_or(|place| place > last);
            if is_new && sender.blocking_send(Ok(frame)).is_err() {
                return false;
            }
        }
        true
    })
    .inspect_err(|_| tracing::debug!(epoch = ctx.epoch, "while folding the past"))
}
