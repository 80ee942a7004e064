//! What the runtime, its drivers and its workers say to each other, as JSON over HTTP.
//!
//! Leaves transport to the server and the clients. Invariant: names are snake_case, times RFC 3339 UTC, unknown fields in requests are
//! refused, in answers ignored. Start at [`run::RunView`] and [`worker`]; `openapi.json` beside this crate describes every route.

pub mod access;
pub mod audit;
pub mod directory;
pub mod error;
pub mod json;
pub mod profile;
pub mod rates;
pub mod requests;
pub mod run;
pub mod sandbox;
pub mod schedule;
pub mod worker;

pub use error::{ApiError, Code};
pub use outlast_kernel::{ToolEffect, rules};

/// The OpenAPI document of the HTTP surface, drivers' and workers' routes, as JSON text.
pub const OPENAPI: &str = include_str!("../openapi.json");
