//! The canonical bytes of a machine and their hash.
//!
//! The bytes are JSON without spaces: fields in declared order, tables in the machine's order, no maps. The same machine gives
//! the same bytes for ever; the hash of the bytes is the version that a run pins.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FORMAT, Machine};

/// The BLAKE3 hash of a machine's canonical bytes, as 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MachineHash(pub String);

impl fmt::Display for MachineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why stored bytes are not a machine that this release can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineError {
    /// A newer release wrote it.
    Newer {
        /// The format found.
        found: u32,
    },
    /// The bytes are damaged.
    Damaged {
        /// What the decoder said.
        detail: String,
    },
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineError::Newer { found } => {
                write!(f, "the machine has format {found}, this release reads up to {FORMAT}")
            }
            MachineError::Damaged { detail } => write!(f, "the machine's bytes are damaged: {detail}"),
        }
    }
}

impl std::error::Error for MachineError {}

impl Machine {
    /// Returns the canonical bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match serde_json::to_vec(self) {
            Ok(bytes) => bytes,
            Err(error) => unreachable!("a machine holds only strings, numbers and lists: {error}"),
        }
    }

    /// Returns the hash that a run pins.
    #[must_use]
    pub fn hash(&self) -> MachineHash {
        MachineHash(blake3::hash(&self.encode()).to_hex().to_string())
    }

    /// Reads canonical bytes.
    ///
    /// # Errors
    /// [`MachineError`] if the bytes are damaged or of a newer format.
    pub fn decode(bytes: &[u8]) -> Result<Machine, MachineError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let damaged = |error: serde_json::Error| MachineError::Damaged { detail: error.to_string() };
        let head: Head = serde_json::from_slice(bytes).map_err(damaged)?;
        if head.format > FORMAT {
            return Err(MachineError::Newer { found: head.format });
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }
}
