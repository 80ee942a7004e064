//! The other stored values: heads, summaries, snapshots, the commit number. Leaves steps to [`super::step`].

use outlast_kernel::Json;
use outlast_kernel::ids::{Millis, Seq};
use serde::{Deserialize, Serialize};

use super::{CodecError, frame, take_array};
use crate::limits::{self, NESTING_MAX};
use crate::{Head, Index, Remains, Segment, Summary};

/// The end of a run's history, as stored: with its views and with where its summary is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadRecord {
    /// The head.
    pub(crate) head: Head,
    /// The views.
    pub(crate) index: Index,
    /// The start under which the summary is listed.
    pub(crate) started_at: Millis,
}

const READY: u8 = 1;
const DUE: u8 = 2;

/// Encodes a head record: fixed length, since every step of every run writes one.
pub(crate) fn encode_head(record: &HeadRecord) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    frame::write(&mut out, frame::HEAD);
    out.extend(record.head.seq.0.to_le_bytes());
    out.extend(record.head.chain);
    out.push(u8::from(record.index.ready) * READY + u8::from(record.index.due.is_some()) * DUE);
    out.extend(record.index.due.unwrap_or_default().0.to_le_bytes());
    out.extend(record.started_at.0.to_le_bytes());
    out
}

/// Decodes a head record.
pub(crate) fn decode_head(mut bytes: &[u8]) -> Result<HeadRecord, CodecError> {
    frame::expect(&mut bytes, frame::HEAD)?;
    let head = Head { seq: Seq(u64::from_le_bytes(take_array(&mut bytes)?)), chain: take_array(&mut bytes)? };
    let [views] = take_array::<1>(&mut bytes)?;
    let due = Millis(i64::from_le_bytes(take_array(&mut bytes)?));
    let started_at = Millis(i64::from_le_bytes(take_array(&mut bytes)?));
    if views > READY + DUE {
        return Err(CodecError::Damaged(format!("views {views}")));
    }
    let index = Index { ready: views & READY != 0, due: (views & DUE != 0).then_some(due) };
    end(bytes, HeadRecord { head, index, started_at })
}

/// Encodes a summary.
pub(crate) fn encode_summary(summary: &Summary) -> Result<Vec<u8>, CodecError> {
    if !super::is_flat(&summary.view, NESTING_MAX) {
        return Err(CodecError::Damaged(format!("a view nested deeper than {NESTING_MAX} levels")));
    }
    pack(frame::SUMMARY, 256, summary)
}

/// Decodes a summary.
pub(crate) fn decode_summary(bytes: &[u8]) -> Result<Summary, CodecError> {
    unpack(frame::SUMMARY, bytes)
}

/// Encodes a snapshot taken after an event.
pub(crate) fn encode_snapshot(after: Seq, state: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(12 + state.len());
    frame::write(&mut out, frame::SNAPSHOT);
    out.extend(after.0.to_le_bytes());
    out.extend(state);
    out
}

/// Decodes a snapshot.
pub(crate) fn decode_snapshot(mut bytes: &[u8]) -> Result<(Seq, Vec<u8>), CodecError> {
    frame::expect(&mut bytes, frame::SNAPSHOT)?;
    let after = Seq(u64::from_le_bytes(take_array(&mut bytes)?));
    Ok((after, bytes.to_vec()))
}

/// Encodes the segments of a fork's history.
pub(crate) fn encode_lineage(segments: &[Segment]) -> Result<Vec<u8>, CodecError> {
    pack(frame::LINEAGE, 64, segments)
}

/// Decodes the segments of a fork's history.
pub(crate) fn decode_lineage(bytes: &[u8]) -> Result<Vec<Segment>, CodecError> {
    unpack(frame::LINEAGE, bytes)
}

/// Encodes what is left of a deleted run.
pub(crate) fn encode_remains(remains: &Remains) -> Result<Vec<u8>, CodecError> {
    pack(frame::REMAINS, 64, remains)
}

/// Decodes what is left of a deleted run.
pub(crate) fn decode_remains(bytes: &[u8]) -> Result<Remains, CodecError> {
    unpack(frame::REMAINS, bytes)
}

/// Encodes a value that stands alone.
pub(crate) fn encode_value(value: &Json) -> Result<Vec<u8>, CodecError> {
    pack(frame::VALUE, limits::BLOB_BYTES_MIN * 2, value)
}

/// Decodes a value that stands alone.
pub(crate) fn decode_value(bytes: &[u8]) -> Result<Json, CodecError> {
    unpack(frame::VALUE, bytes)
}

/// Encodes a moment.
pub(crate) fn encode_moment(moment: Millis) -> Vec<u8> {
    let mut out = Vec::with_capacity(12);
    frame::write(&mut out, frame::MOMENT);
    out.extend(moment.0.to_le_bytes());
    out
}

/// Decodes a moment.
pub(crate) fn decode_moment(mut bytes: &[u8]) -> Result<Millis, CodecError> {
    frame::expect(&mut bytes, frame::MOMENT)?;
    let moment = Millis(i64::from_le_bytes(take_array(&mut bytes)?));
    end(bytes, moment)
}

/// Encodes the number of a commit.
pub(crate) fn encode_commit(number: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(12);
    frame::write(&mut out, frame::COMMIT);
    out.extend(number.to_le_bytes());
    out
}

/// Decodes the number of a commit.
pub(crate) fn decode_commit(mut bytes: &[u8]) -> Result<u64, CodecError> {
    frame::expect(&mut bytes, frame::COMMIT)?;
    let number = u64::from_le_bytes(take_array(&mut bytes)?);
    end(bytes, number)
}

/// Writes a frame, and a value as MessagePack behind it, in about so many bytes.
fn pack<T: Serialize + ?Sized>(kind: u16, capacity: usize, value: &T) -> Result<Vec<u8>, CodecError> {
    let mut out = Vec::with_capacity(capacity);
    frame::write(&mut out, kind);
    let mut serializer = rmp_serde::Serializer::new(&mut out).with_struct_map();
    value.serialize(&mut serializer).map_err(|e| CodecError::Damaged(e.to_string()))?;
    Ok(out)
}

/// Reads what [`pack`] wrote, to its last byte.
fn unpack<'b, T: Deserialize<'b>>(kind: u16, mut bytes: &'b [u8]) -> Result<T, CodecError> {
    frame::expect(&mut bytes, kind)?;
    let mut deserializer = rmp_serde::Deserializer::new(bytes);
    let value = T::deserialize(&mut deserializer).map_err(|e| CodecError::Damaged(e.to_string()))?;
    end(deserializer.get_ref(), value)
}

fn end<T>(rest: &[u8], value: T) -> Result<T, CodecError> {
    if rest.is_empty() {
        return Ok(value);
    }
    Err(CodecError::Damaged(format!("{} bytes after its end", rest.len())))
}
