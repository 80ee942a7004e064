//! Where walks over histories ended lately, so that the next page of one need not be folded from its beginning.
//!
//! A snapshot helps only what lies after it, and a page of events before it is shown with what they did, which only folding tells. Leaves
//! walking to `history`. Invariant: what is kept is the fold of durable events of a run that was there all the time.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_kernel::ids::{RunId, Seq};

use super::frames::Fold;
use crate::limits::{WALK_BYTES_MAX, WALKS_KEPT};

/// The ends of walks, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Walks(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    folds: VecDeque<Fold>,
    /// Counts deletions of runs: what was read before one may be of a run that is no more.
    deletions: u64,
}

/// Says since when a walk reads: to be taken before anything is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Since(u64);

impl Walks {
    /// Begins a walk.
    pub(crate) fn begin(&self) -> Since {
        Since(self.lock().deletions)
    }

    /// Returns the furthest end of a walk over a run that is not after an event.
    pub(crate) fn furthest(&self, run: &RunId, until: Seq) -> Option<Fold> {
        let kept = self.lock();
        let fit = kept.folds.iter().filter(|fold| fold.run() == run && fold.state.last() <= until);
        fit.max_by_key(|fold| fold.state.last()).cloned()
    }

    /// Keeps the end of a walk, in the place of the oldest one.
    pub(crate) fn keep(&self, since: Since, fold: &Fold) {
        let mut kept = self.lock();
        if since != Since(kept.deletions) || fold.state.weight() > WALK_BYTES_MAX {
            return;
        }
        kept.folds.retain(|other| other.run() != fold.run() || other.state.last() != fold.state.last());
        kept.folds.push_back(fold.clone());
        if kept.folds.len() > WALKS_KEPT {
            kept.folds.pop_front();
        }
    }

    /// Forgets a run that is deleted: another one may have its id.
    pub(crate) fn forget(&self, run: &RunId) {
        let mut kept = self.lock();
        kept.deletions += 1;
        kept.folds.retain(|fold| fold.run() != run);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
