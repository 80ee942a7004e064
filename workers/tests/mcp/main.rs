//! MCP servers as the tool worker meets them: real programs and real HTTP, right ones and wrong ones.
//!
//! The server is `outlast-test-mcp`, told by its script what to do wrong. Leaves whole runs to the end-to-end tests.

#![expect(clippy::unwrap_used, reason = "a broken test bench should stop the test")]

mod bench;
mod calls;
mod listing;
mod logins;
mod services;
mod starting;
mod tasks;
