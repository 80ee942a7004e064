//! Schedules: runs that are started by the clock.

use outlast_kernel::Json;
use serde::{Deserialize, Serialize};

use crate::requests::Permissions;

/// `PUT /v1/schedules/{name}`: what is started, and when. The same definition again changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The flow's name; each run takes the newest deployed one.
    pub flow: String,
    /// The arguments by name.
    #[serde(default)]
    pub input: Json,
    /// Cron rules of five fields; it is due when any of them is.
    pub cron: Vec<String>,
    /// The time zone of the rules.
    #[serde(default = "utc")]
    pub time_zone: String,
    /// What happens when the run before has not ended.
    #[serde(default)]
    pub overlap: Overlap,
    /// What happens to what was due while nothing ran.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// The environment profile; the server's own if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Permission rules of the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// What happens when the run before has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The new one is skipped.
    #[default]
    Skip,
    /// One waits for the end of the run before; further ones are skipped.
    QueueOne,
    /// All wait, in their order.
    QueueAll,
    /// They run beside each other.
    Allow,
    /// The run before is cancelled, and the new one follows when that has ended.
    CancelPrevious,
}

/// What happens to what was due while nothing ran: `"none"`, `"last"`, or `{"all": n}` for the newest n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// It is skipped.
    None,
    /// The newest is made up for.
    #[default]
    Last,
    /// The newest ones are made up for, at most so many.
    All(u32),
}

/// A schedule as every surface shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleView {
    /// Its name: its runs are `NAME@TIME` by the time for which they are due.
    pub name: String,
    /// What it does.
    pub definition: Schedule,
    /// Whether it is paused.
    pub paused: bool,
    /// The last due time that was decided, RFC 3339.
    pub last: String,
    /// The next due times, RFC 3339.
    pub next: Vec<String>,
    /// Due times that wait for a run to end, RFC 3339.
    pub queue: Vec<String>,
    /// Runs that had not ended when it was looked at last.
    pub active: Vec<String>,
    /// What was skipped last, oldest first.
    pub skipped: Vec<Skipped>,
}

/// Due times that were skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The first, RFC 3339.
    pub from: String,
    /// The last, RFC 3339.
    pub to: String,
    /// How many.
    pub count: u64,
    /// Why: `missed`, `paused`, `overlap`, `replaced`, `queue_full` or `refused`, with more after a colon.
    pub reason: String,
}

/// What became of a `PUT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// It is new.
    Created,
    /// It had another definition.
    Changed,
    /// It had this definition.
    Unchanged,
}

/// The answer to a `PUT`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptSchedule {
    /// What became of it.
    pub kept: Kept,
    /// The schedule.
    #[serde(flatten)]
    pub schedule: ScheduleView,
}
