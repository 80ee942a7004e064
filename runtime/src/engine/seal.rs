//! The seal of an export: a hash over its records, by which a file that was changed on its way is known.
//!
//! Leaves whether the records make sense to `transfer`. Invariant: the same records in the same order give the same seal, page by page
//! or all at once. It tells accidents and edits, not forgers, who can make a seal of their own.

use outlast_kernel::Json;
use outlast_kernel::json::canonical_text;

/// A hash over the records so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seal([u8; 32]);

impl Seal {
    /// Takes in the next record.
    pub(crate) fn take(&mut self, record: &Json) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(canonical_text(record).as_bytes());
        self.0 = *hasher.finalize().as_bytes();
    }

    /// Returns it as it is written.
    pub(crate) fn text(self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    /// Reads what [`Seal::text`] wrote.
    pub(crate) fn parse(text: &str) -> Option<Seal> {
        blake3::Hash::from_hex(text).ok().map(|hash| Seal(*hash.as_bytes()))
    }
}
