//! The stock workers, and the kit to write others.
//!
//! [`sdk`] connects activities to the runtime; [`tools`] holds the files-and-shell worker, [`mcp`] the servers of others that it calls,
//! [`model`] the language model worker.
//! Leaves deciding, retrying and remembering to the runtime. Invariant: nothing of an attempt outlives it, and a result that was
//! not acknowledged is kept. Start at [`sdk::Worker`] to write a worker, at [`WorkerOptions`] to run one of these.

mod limits;
pub mod mcp;
pub mod model;
mod options;
pub mod sdk;
pub mod tools;

pub use options::{WorkerOptions, fetch_profile, run_model_worker, run_tool_worker};

/// A JSON value.
pub type Json = serde_json::Value;
