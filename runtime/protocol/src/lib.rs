//! What the runtime, its drivers and its workers say to each other, as JSON over HTTP.
//!
//! Leaves transport to the server and the clients. Invariant: names are snake_case, times RFC 3339 UTC, unknown fields in requests are
//! refused, in answers ignored. Start at [`run::RunView`] and [`worker`].

pub mod error;
pub mod requests;
pub mod run;
pub mod schedule;
pub mod worker;

pub use error::{ApiError, Code};
