//! The runtime: it runs flows durably and hands their activities to workers.
//!
//! Leaves deciding what follows from an event to the kernel and making it durable to the store. Invariant: decide, persist, apply,
//! act, in this order; nothing leaves the process before the event that explains it is durable. Start at [`engine::Engine`].

mod access;
mod api;
pub mod batch;
pub mod client;
pub mod duration;
pub mod engine;
pub mod fresh;
pub mod host;
pub mod http;
pub mod limits;
mod lines;
mod metrics;
pub mod moment;
pub mod rpc;
pub mod schedule;
pub mod socket;
pub mod supervisor;
pub mod telemetry;
