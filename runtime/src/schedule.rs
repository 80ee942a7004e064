//! Schedules: runs that are started by the clock, each due time once, whatever happens to the process.
//!
//! Leaves starting runs and keeping records to the engine. Invariant: a due time leads to the run that is named by it, or to a
//! recorded reason; deciding it again after a crash leads to the same run. Start at [`Record::decide`].

pub mod cron;
mod decide;

pub use cron::{InvalidCron, Rules};
pub(crate) use decide::{Act, Record};
