//! The first four bytes of every value: version, flags, kind. Leaves the body to its codec.

use super::{CodecError, take_array};

/// The newest version of any value that this release writes and reads.
pub(crate) const VERSION: u8 = 1;

/// Codes of values that are no events; events have the codes below 256.
pub(crate) const STEP: u16 = 256;
/// The end of a run's history, with its views.
pub(crate) const HEAD: u16 = 257;
/// What lists show of a run.
pub(crate) const SUMMARY: u16 = 258;
/// A state of the engine.
pub(crate) const SNAPSHOT: u16 = 259;
/// The number of the last commit.
pub(crate) const COMMIT: u16 = 260;

/// The segments of a fork's history.
pub(crate) const LINEAGE: u16 = 261;
/// What is left of a deleted run.
pub(crate) const REMAINS: u16 = 262;

/// A value of an event that stands alone, under its hash.
pub(crate) const VALUE: u16 = 263;
/// A moment.
pub(crate) const MOMENT: u16 = 264;

/// The flag of an event that holds or names blobs: their list stands before its fields.
pub(crate) const BLOBS: u8 = 1;

/// Appends the frame of a value.
pub(crate) fn write(out: &mut Vec<u8>, kind: u16) {
    write_flagged(out, kind, 0);
}

/// Appends the frame of a value with flags.
pub(crate) fn write_flagged(out: &mut Vec<u8>, kind: u16, flags: u8) {
    out.extend([VERSION, flags]);
    out.extend(kind.to_le_bytes());
}

/// Cuts the frame off the front and returns the kind; the value may have no flags.
pub(crate) fn read(bytes: &mut &[u8]) -> Result<u16, CodecError> {
    read_flagged(bytes, 0).map(|(kind, _)| kind)
}

/// Cuts the frame off the front and returns the kind and the flags, which must be among those that are known.
pub(crate) fn read_flagged(bytes: &mut &[u8], known: u8) -> Result<(u16, u8), CodecError> {
    let [version, flags, low, high] = take_array::<4>(bytes)?;
    if version == 0 {
        return Err(CodecError::Damaged("version 0".into()));
    }
    if version > VERSION {
        return Err(CodecError::Newer { part: "version", found: version.into(), known: VERSION.into() });
    }
    if flags & !known != 0 {
        // The next will say that a body is encrypted or packed, which this release cannot undo.
        return Err(CodecError::Newer { part: "flags", found: flags.into(), known: known.into() });
    }
    Ok((u16::from_le_bytes([low, high]), flags))
}

/// Cuts the frame of a value whose kind is certain from its key.
pub(crate) fn expect(bytes: &mut &[u8], kind: u16) -> Result<(), CodecError> {
    let found = read(bytes)?;
    if found == kind {
        return Ok(());
    }
    Err(CodecError::Damaged(format!("a value of kind {kind} expected, kind {found} found")))
}
