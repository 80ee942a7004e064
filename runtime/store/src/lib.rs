//! Histories on disk: one trait, its stores, one conformance suite for all.
//!
//! Leaves deciding what happened to the kernel and when to write to the engine. Invariant: a commit is atomic and durable before
//! it returns, or the store writes no more. Start at [`Store`].

mod batch;
mod blobs;
pub mod breakage;
mod check;
mod codec;
#[doc(hidden)]
pub mod conformance;
mod disk;
mod error;
mod keys;
pub mod limits;
mod lineage;
mod memory;
mod plan;
mod remains;
mod store;
mod view;

pub use batch::{Batch, Delete, Head, Index, Origin, Put, RunWrite, Segment, Status, Summary, Table};
pub use blobs::{BlobId, BlobPut, named};
pub use check::Report;
pub use disk::{FjallStore, Mark, OpenOptions, Opened, group_commits};
pub use error::StoreError;
pub use memory::{FailedSync, MemoryStore, Side, SyncPoint};
pub use remains::{Purge, Remains};
pub use store::{Filter, Page, Record, Stats, Store, Usage};
