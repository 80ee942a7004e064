//! The kit for workers: activities in, a connection to the runtime that survives its restarts out.
//!
//! An [`Activity`] says what it is and runs attempts; a [`Worker`] registers them, polls, runs up to `concurrency` attempts at once,
//! sends signs of life and partial output, obeys cancels, and delivers results until the runtime has acknowledged them.
//! Leaves retrying to the flow. Invariant: a token that this process was given stays in `holding` until its end is acknowledged,
//! so the runtime never mistakes a begun attempt for one that did not arrive.
//!
//! ```no_run
//! use outlast_workers::sdk::{Activity, Done, Failure, Offer, TaskContext, Worker};
//!
//! struct Greet;
//!
//! #[async_trait::async_trait]
//! impl Activity for Greet {
//!     fn offer(&self) -> Offer {
//!         Offer { name: "greet".into(), effect: "pure".into(), ..Offer::default() }
//!     }
//!
//!     async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
//!         Ok(Done::new(format!("hello {}", task.text("name")?)))
//!     }
//! }
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! Worker::builder("greeter").activity(Greet).connect("http://127.0.0.1:4711").build()?.serve().await?;
//! # Ok(()) }
//! ```

mod activity;
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
mod worker;

pub use activity::{Activity, Done, Failure, duration_text};
pub use blobs::BlobError;
pub use mask::Mask;
pub use secrets::{MaskedLog, Secrets};

pub use context::{Hold, NoLongerWanted, TaskContext};
pub use outlast_protocol::worker::{Offer, StoppedWhy, Task};
pub use worker::{Worker, WorkerBuilder, WorkerError};

pub use client::Credentials;
pub(crate) use blobs::is_name;
pub(crate) use client::{error_chain, no_roots, with_ring};
pub(crate) use context::parking::Locked;
pub(crate) use mask::MaskedStream;
pub(crate) use profile::fetch_profile;
