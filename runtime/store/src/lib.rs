//! Histories on disk: one trait, its stores, one conformance suite for all.
//!
//! Leaves deciding what happened to the kernel and when to write to the engine. Invariant: a commit is atomic and durable before
//! it returns, or the store writes no more. Start at [`Store`].

mod batch;
mod error;
mod store;

pub use batch::{Batch, Head, Index, Put, RunWrite, Status, Summary, Table};
pub use error::StoreError;
pub use store::{Filter, Page, Store};
