//! How a piece of work stands with the workers: what `waiting_for` may truly say.

use outlast_kernel::ids::{Attempt, Millis};

use super::{Dispatch, Lane, WorkId};

/// How a piece of work stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A worker has this attempt in hand.
    InHand(Attempt),
    /// A worker that has room will take it now.
    Coming,
    /// Workers of the last epoch may have it; they are waited for.
    Kept,
    /// Its queue gives out nothing before this moment.
    Held(Millis),
    /// All workers that could take it are busy.
    Busy,
    /// Workers poll its queue for its profile, but none offers the activity with the promise that it needs.
    NotOffered,
    /// Workers poll its queue, but for other profiles.
    OtherProfiles,
    /// Nobody polls its queue.
    NoWorker,
}

impl Dispatch {
    /// Returns how a piece of work stands.
    pub(crate) fn standing(&self, work: &WorkId, lane: &Lane, now: Millis) -> Standing {
        let inner = self.lock();
        if let Some(task) = inner.hand.get(work) {
            return Standing::InHand(task.attempt);
        }
        if inner.coming.contains_key(work) {
            return Standing::Coming;
        }
        if inner.adoption.keeps(work) {
            return Standing::Kept;
        }
        let mut standing = Standing::NoWorker;
        for session in inner.sessions.values().filter(|session| !session.leaving) {
            let record = &session.record;
            if record.serves(lane) {
                if let Some(until) = inner.rates.held_until(&lane.queue, now) {
                    return Standing::Held(until);
                }
                if session.room() > 0 {
                    return Standing::Coming;
                }
                standing = Standing::Busy;
            } else if record.polls(&lane.queue, &lane.profile) {
                if standing != Standing::Busy {
                    standing = Standing::NotOffered;
                }
            } else if record.queues.contains(&lane.queue) && standing == Standing::NoWorker {
                standing = Standing::OtherProfiles;
            }
        }
        standing
    }
}
