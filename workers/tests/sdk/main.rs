//! The kit against a runtime that goes away, comes back, cancels, drops and repeats.

#![expect(clippy::unwrap_used, reason = "a broken test bench should stop the test")]

mod attempts;
mod blobs;
mod ends;
mod fake;
mod outages;
mod support;
