//! What commands of tools are held to, as a profile says it.
//!
//! Leaves enforcing it to the tool worker. Invariant: what is left out means the strictest that most work can live with: no network, changes
//! only in the working directory and the temporary ones, no keys of the user's read, not all of the machine's memory.

use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sandbox {
    /// What happens where the machine cannot enforce all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Whether commands have a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Where they may write besides the working directory; `~` is the user's home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
    /// What they cannot read; `~` is the user's home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Vec<String>>,
    /// How much memory a command and all that it starts may use, such as `2GB`; three quarters of the machine's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
}

/// What happens where the machine cannot enforce all that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// What it can is enforced, and what it cannot is said.
    #[default]
    Auto,
    /// No command runs.
    Required,
    /// Nothing is enforced anywhere.
    Off,
}

/// Whether commands have a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// One of their own, with nobody else in it.
    #[default]
    None,
    /// The machine's.
    All,
}

impl Sandbox {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Sandbox::default()
    }

    /// Returns the bytes of memory that are asked for.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn memory_bytes(&self) -> Result<Option<u64>, String> {
        let Some(text) = &self.memory else { return Ok(None) };
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit = match text[unit_at..].trim() {
            "KB" => Some(1 << 10),
            "MB" => Some(1 << 20),
            "GB" => Some(1 << 30),
            _ => None,
        };
        let bytes = unit.zip(text[..unit_at].parse::<u64>().ok()).and_then(|(unit, n)| n.checked_mul(unit));
        let bytes = bytes.filter(|bytes| *bytes >= MEMORY_BYTES_MIN);
        bytes.map(Some).ok_or_else(|| {
            format!("memory is {text:?}, not an amount such as \"512MB\" or \"4GB\", 16MB at least")
        })
    }
}

/// Bytes that a shell and a small program need.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_an_amount_with_a_unit() {
        let of = |text: &str| Sandbox { memory: Some(text.to_owned()), ..Sandbox::default() }.memory_bytes();
        assert_eq!(Sandbox::default().memory_bytes(), Ok(None));
        assert_eq!(of("512MB"), Ok(Some(512 << 20)));
        assert_eq!(of("4 GB"), Ok(Some(4 << 30)));
        for wrong in ["", "4", "GB", "4TB", "1KB", "-1GB", "1.5GB", "99999999999999999999GB", "17179869184GB"]
        {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
