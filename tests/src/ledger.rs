//! The ledger, which counts effects outside the product, and the gates, which stop an attempt at an exact point.
//!
//! Leaves writing to the test worker. Invariant: a gate is closed before the attempt that it should stop is handed out.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::until;
use crate::world::World;

/// The ledger's name in a world's working directory.
pub const FILE: &str = "ledger.jsonl";

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What the flow called it.
    pub name: String,
    /// The run.
    pub run: String,
    /// The operation.
    pub op: String,
    /// Which attempt.
    pub attempt: u64,
    /// The idempotency key.
    pub key: String,
    /// The worker's process.
    pub pid: u64,
}

/// Where an attempt stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Before its line.
    Before,
    /// Behind its line, before its result.
    After,
}

/// Returns the file that closes a gate.
#[must_use]
pub fn gate(directory: &Path, name: &str, gate: Gate) -> PathBuf {
    directory.join(format!("{name}.{gate:?}.gate"))
}

/// Returns the file that says that an attempt stands at a gate.
#[must_use]
pub fn mark(directory: &Path, name: &str, at: Gate) -> PathBuf {
    gate(directory, name, at).with_extension("reached")
}

/// Reads the ledger of a directory.
///
/// # Panics
/// If a line is broken.
#[must_use]
pub fn read(directory: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(directory.join(FILE)).unwrap_or_default();
    text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("a broken line: {line}"))).collect()
}

fn parse(line: &str) -> Option<Line> {
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    Some(Line {
        name: text("name")?,
        run: text("run")?,
        op: text("op")?,
        attempt: value["attempt"].as_u64()?,
        key: text("key")?,
        pid: value["pid"].as_u64()?,
    })
}

impl World {
    /// Returns the ledger.
    #[must_use]
    pub fn ledger(&self) -> Vec<Line> {
        read(&self.work())
    }

    /// Returns the ledger's lines of one name.
    #[must_use]
    pub fn lines(&self, name: &str) -> Vec<Line> {
        self.ledger().into_iter().filter(|line| line.name == name).collect()
    }

    /// Closes a gate for what the flow calls `name`.
    pub fn close(&self, name: &str, at: Gate) {
        self.write(&format!("{name}.{at:?}.gate"), "");
    }

    /// Opens a gate.
    pub fn open(&self, name: &str, at: Gate) {
        let _unmarked = std::fs::remove_file(mark(&self.work(), name, at));
        let _opened = std::fs::remove_file(gate(&self.work(), name, at));
    }

    /// Waits until an attempt stands at a gate.
    pub fn reached(&self, name: &str, at: Gate) {
        until(&format!("{name} at the gate {at:?}"), || mark(&self.work(), name, at).exists());
    }
}
