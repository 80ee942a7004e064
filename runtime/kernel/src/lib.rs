//! The kernel: a machine and its events give a state and the operations that are open.
//!
//! Leaves clocks, disks, workers and people to the engine. Invariant: pure; the same events give the same state, byte for
//! byte. Start at [`event::Event`] (what goes in) and [`operation::Operation`] (what comes out).

pub mod event;
pub mod ids;
pub mod input;
pub mod operation;

/// A JSON value as workers and people send it; typed when it is applied.
pub type Json = serde_json::Value;
