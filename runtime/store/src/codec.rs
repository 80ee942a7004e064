//! Values as bytes: a frame (version, flags, kind), then a body.
//!
//! Leaves keys to [`crate::keys`] and files to the stores. Invariant: what any release wrote is read back as it was, or refused
//! by name: a newer version, flag or kind is [`CodecError::Newer`], anything else that does not fit is [`CodecError::Damaged`].
//! A field added to a kind raises the version, because an old reader would drop it without a word. Start at [`step`].

pub(crate) mod frame;
pub(crate) mod kind;
pub(crate) mod record;
pub(crate) mod step;

use outlast_kernel::Json;

use crate::StoreError;

/// Why bytes cannot be read; [`CodecError::at`] adds whose they are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CodecError {
    /// A newer release wrote it.
    Newer {
        /// What is newer: a version, a flag, a kind.
        part: &'static str,
        /// The number found.
        found: u32,
        /// The highest number known.
        known: u32,
    },
    /// No release wrote it.
    Damaged(String),
}

impl CodecError {
    /// Says whose bytes they are.
    pub(crate) fn at(self, what: String) -> StoreError {
        match self {
            CodecError::Newer { part, found, known } => {
                StoreError::Newer { what: format!("the {part} of {what}"), found, known }
            }
            CodecError::Damaged(detail) => StoreError::Damaged { what, detail },
        }
    }
}

/// Tells whether a value is nested at most this deep. The encoder writes any depth, the decoder refuses over 1,024: without this
/// check a value could be acknowledged and never read back.
pub(crate) fn is_flat(value: &Json, levels: usize) -> bool {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => true,
        Json::Array(items) => levels > 0 && items.iter().all(|item| is_flat(item, levels - 1)),
        Json::Object(fields) => levels > 0 && fields.values().all(|field| is_flat(field, levels - 1)),
    }
}

/// Cuts `count` bytes off the front.
pub(crate) fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], CodecError> {
    let Some((head, rest)) = bytes.split_at_checked(count) else {
        return Err(CodecError::Damaged(format!("{count} bytes expected, {} left", bytes.len())));
    };
    *bytes = rest;
    Ok(head)
}

/// Cuts a fixed number of bytes off the front.
pub(crate) fn take_array<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], CodecError> {
    let Some((head, rest)) = bytes.split_first_chunk::<N>() else {
        return Err(CodecError::Damaged(format!("{N} bytes expected, {} left", bytes.len())));
    };
    *bytes = rest;
    Ok(*head)
}

#[cfg(test)]
mod tests;
