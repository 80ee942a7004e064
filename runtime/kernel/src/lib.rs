//! The kernel: a machine and its events give a state and the operations that are open.
//!
//! Leaves clocks, disks, workers and people to the engine. Invariant: pure; the same events give the same state, byte for
//! byte; README.md lists what is promised and the test that holds each promise. Start at [`event::Event`] (what goes in) and
//! [`operation::Operation`] (what comes out).

mod check;
mod decide;
mod eval;
mod event_json;
mod fault;
mod functions;
mod migrate;
mod program;
mod state;

pub mod event;
pub mod ids;
pub mod input;
pub mod json;
pub mod limits;
pub mod operation;
pub mod rules;
pub mod text;
pub mod value;

pub use check::check_input;
pub use fault::Fault;
pub use functions::Functions;
pub use migrate::Compatibility;
pub use outlast_dsl::machine::ToolEffect;
pub use program::Ready;
pub use state::{ChildStart, Diverged, Snapshot, SnapshotError, State};

/// A JSON value as workers and people send it; typed when it is applied.
pub type Json = serde_json::Value;
