//! The kit for workers: activities in, a connection to the runtime that survives its restarts out.
//!
//! An [`Activity`] says what it is and runs attempts, and [`activity`] makes one of an async function; a [`Worker`] registers them, polls, runs up to `concurrency` attempts at once,
//! sends signs of life and partial output, obeys cancels, and delivers results until the runtime has acknowledged them.
//! Leaves retrying to the flow. Invariant: a token that this process was given stays in `holding` until its end is acknowledged,
//! so the runtime never mistakes a begun attempt for one that did not arrive.
//!
//! ```no_run
//! use outlast_workers::sdk::{Failure, TaskContext, Worker, activity};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet { name: String }
//!
//! async fn greet(input: Greet, _task: TaskContext) -> Result<String, Failure> {
//!     Ok(format!("hello {}", input.name))
//! }
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! Worker::builder("greeter").activity(activity("greet", greet)).build()?.serve().await?;
//! # Ok(()) }
//! ```

mod activity;
mod address;
mod attempt;
mod blobs;
mod client;
mod context;
mod desk;
mod fence;
mod link;
mod loops;
mod mask;
mod profile;
mod progress;
mod secrets;
mod typed;
mod worker;

pub use activity::{Activity, Done, Failure, duration_text};
pub use blobs::BlobError;
pub use mask::Mask;
pub use secrets::{MaskedLog, Secrets};

pub use context::{Hold, NoLongerWanted, TaskContext};
pub use outlast_protocol::worker::{Offer, StoppedWhy, Task};
pub use typed::{Typed, activity};
pub use worker::{Worker, WorkerBuilder, WorkerError};

pub(crate) use blobs::is_name;
pub use client::Credentials;
pub(crate) use client::{error_chain, no_roots, with_ring};
pub(crate) use context::parking::Locked;
pub(crate) use mask::MaskedStream;
pub(crate) use profile::fetch_profile;
