//! The conformance suite: what every store must do, run by the tests of each.
//!
//! Leaves damage, locks and power cuts to the tests of the store that has them. Invariant: asks only through [`Store`], so that a
//! new store is held to the same promises. Start at [`conformance`].

pub mod samples;

mod blobs;
mod deletions;
mod forks;
mod model;
mod views;
mod writes;

use crate::{Store, StoreError};

/// A place where data outlives a store.
pub trait Place {
    /// Opens the next life of the data; the store of the life before must be gone.
    fn open(&self) -> Box<dyn Store>;
}

/// One promise: its name and its check.
type Promise = (&'static str, fn(&dyn Place) -> Result<(), StoreError>);

/// Every promise that concerns a store.
const PROMISES: [Promise; 31] = [
    ("reads back every kind of event", writes::every_kind),
    ("reads from any number, any count", writes::any_range),
    ("chains several steps of a run in one commit", writes::several_steps),
    ("refuses a wrong head and changes nothing", writes::wrong_head),
    ("refuses a batch in which one of many heads is wrong", writes::one_wrong_head),
    ("refuses what breaks a rule and stays usable", writes::broken_rules),
    ("numbers commits without a gap, over restarts", writes::commit_numbers),
    ("takes an empty batch as nothing", writes::empty_batch),
    ("keeps records beside histories", writes::records),
    ("keeps the newest snapshot", views::snapshots),
    ("lists ready runs from a cursor", views::ready),
    ("lists due runs by time from a cursor", views::due),
    ("moves a run in the views", views::moves),
    ("pages summaries, newest first", views::pages),
    ("filters summaries with bounded work", views::filters),
    ("keeps runs apart whose ids are prefixes", views::prefixes),
    ("lets a fork share its parent's history", forks::shared),
    ("leaves the parent of a fork as it was", forks::parent_unchanged),
    ("refuses a fork of what is not there", forks::refused),
    ("keeps forks that were brought with all their events", forks::copies),
    ("counts the bytes of a run alone", forks::usage),
    ("keeps forks of forks as a simple model does", forks::random_trees),
    ("forgets a deleted run at once and gives its id free when nothing is left", deletions::gone_at_once),
    ("takes away what a long run left in portions", deletions::in_portions),
    ("lets forks read on when their parent is deleted", deletions::forks_read_on),
    ("remembers what a deleted run had begun", deletions::remembers_begun),
    ("keeps forks of deleted runs as a simple model does", deletions::random_trees),
    ("keeps a large value once for all who hold it", blobs::once),
    ("keeps bytes on request until somebody names them", blobs::kept_on_request),
    ("has exactly the blobs that are needed, whatever happened", blobs::random_lives),
    ("behaves as a simple model over restarts", model::random_lives),
];

/// Holds a store to every promise, each in a fresh place.
///
/// # Panics
/// If a promise is broken, with its name.
pub fn conformance(make: &dyn Fn() -> Box<dyn Place>) {
    for (name, check) in PROMISES {
        let place = make();
        if let Err(e) = check(&*place) {
            panic!("a store that {name}: {e}");
        }
        let report = place.open().check().unwrap_or_else(|e| panic!("a store that {name}: check: {e}"));
        assert!(report.findings.is_empty(), "a store that {name}: {:?}", report.findings);
    }
}
