//! The harness of the end-to-end tests: the repository's files, and the binary as a person or a scheduler would use it.
//!
//! Leaves unit tests to the crates. Invariant: nothing here sleeps; tests wait for conditions, with a deadline.

pub mod certificates;
pub mod collector;
pub mod held;
pub mod http;
pub mod ledger;
pub mod model_server;
pub mod process;
pub mod random;
pub mod repository;
pub mod scrape;
pub mod socket;
pub mod terminal;
pub mod world;
