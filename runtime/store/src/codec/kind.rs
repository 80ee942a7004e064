//! Event kinds as bytes: a stable code, and the kind's own fields as a map with short keys.
//!
//! Leaves number, time and digest to the step. Invariant: a code is never reused and never changes its meaning; the golden files
//! in `tests/golden/` hold one event of every kind.

use std::io::Read;

use outlast_kernel::Json;
use outlast_kernel::event::{EventKind, Settlement};
use outlast_kernel::operation::Outcome;
use serde::{Deserialize, Serialize};

use super::CodecError;
use crate::limits::NESTING_MAX;

/// Every kind: its code, and the name under which the serialiser wraps its fields.
const KINDS: [(u16, &str); 22] = [
    (1, "started"),
    (2, "forked"),
    (3, "configured"),
    (4, "done"),
    (5, "failed"),
    (6, "begun"),
    (7, "lost"),
    (8, "void"),
    (9, "handle"),
    (10, "settled"),
    (11, "released"),
    (12, "timer_fired"),
    (13, "message"),
    (14, "withdrawn"),
    (15, "closed"),
    (16, "answered"),
    (17, "cancelled"),
    (18, "terminated"),
    (19, "spawned"),
    (20, "child_ended"),
    (21, "delivered"),
    (22, "migrated"),
];

/// Returns the stable code of a kind.
pub(crate) fn code(kind: &EventKind) -> u16 {
    match kind {
        EventKind::Started(_) => 1,
        EventKind::Forked { .. } => 2,
        EventKind::Configured { .. } => 3,
        EventKind::Done { .. } => 4,
        EventKind::Failed { .. } => 5,
        EventKind::Begun { .. } => 6,
        EventKind::Lost { .. } => 7,
        EventKind::Void { .. } => 8,
        EventKind::Handle { .. } => 9,
        EventKind::Settled { .. } => 10,
        EventKind::Released { .. } => 11,
        EventKind::TimerFired { .. } => 12,
        EventKind::Message { .. } => 13,
        EventKind::Withdrawn { .. } => 14,
        EventKind::Closed => 15,
        EventKind::Answered { .. } => 16,
        EventKind::Cancelled { .. } => 17,
        EventKind::Terminated { .. } => 18,
        EventKind::Spawned { .. } => 19,
        EventKind::ChildEnded { .. } => 20,
        EventKind::Delivered { .. } => 21,
        EventKind::Migrated(_) => 22,
    }
}

/// Appends the kind's own fields.
///
/// The serialiser wraps them as `{"done": {…}}`. The code already says the name, so the wrapper is cut off.
pub(crate) fn write(out: &mut Vec<u8>, kind: &EventKind) -> Result<(), CodecError> {
    values(kind).into_iter().try_for_each(check_nesting)?;
    let wrapper = wrapper(code(kind))?;
    let start = out.len();
    let mut serializer = rmp_serde::Serializer::new(&mut *out).with_struct_map();
    kind.serialize(&mut serializer).map_err(|e| CodecError::Damaged(e.to_string()))?;
    assert!(out[start..].starts_with(&wrapper), "the serialiser wraps a kind in its name");
    out.drain(start..start + wrapper.len());
    Ok(())
}

/// Refuses a value that could be written and never read back.
pub(crate) fn check_nesting(value: &Json) -> Result<(), CodecError> {
    if super::is_flat(value, NESTING_MAX) {
        return Ok(());
    }
    Err(CodecError::Damaged(format!("a value nested deeper than {NESTING_MAX} levels")))
}

/// Reads a kind back; the body must end where its fields end.
pub(crate) fn read(code: u16, body: &[u8]) -> Result<EventKind, CodecError> {
    let wrapper = wrapper(code)?;
    let mut deserializer = rmp_serde::Deserializer::new((&wrapper[..]).chain(body));
    let kind = EventKind::deserialize(&mut deserializer)
        .map_err(|e| CodecError::Damaged(format!("fields of kind {code}: {e}")))?;
    let left = deserializer.get_ref().get_ref().1.len();
    if left != 0 {
        return Err(CodecError::Damaged(format!("{left} bytes after the fields of kind {code}")));
    }
    Ok(kind)
}

/// The values from outside that a kind holds, to be looked at (`values`) or put in their place (`values_mut, mut`).
macro_rules! values_of {
    ($kind:expr, $values:ident $(, $mutable:tt)?) => {
        match $kind {
            EventKind::Started(started) => vec![&$($mutable)? started.input],
            EventKind::Done { value, .. }
            | EventKind::Message { value, .. }
            | EventKind::Handle { handle: value, .. }
            | EventKind::Settled { verdict: Settlement::Happened(value), .. }
            | EventKind::ChildEnded { outcome: Outcome::Done(value) | Outcome::Failed(value), .. } => vec![value],
            EventKind::Answered { value, .. } => value.into_iter().collect(),
            EventKind::Failed { error, .. } => error.fields.$values().collect(),
            EventKind::Settled { verdict: Settlement::NotHappened | Settlement::Fail, .. }
            | EventKind::Forked { .. }
            | EventKind::Configured { .. }
            | EventKind::Begun { .. }
            | EventKind::Lost { .. }
            | EventKind::Void { .. }
            | EventKind::Released { .. }
            | EventKind::TimerFired { .. }
            | EventKind::Withdrawn { .. }
            | EventKind::Closed
            | EventKind::Spawned { .. }
            | EventKind::ChildEnded { outcome: Outcome::Cancelled | Outcome::Terminated, .. }
            | EventKind::Delivered { .. }
            | EventKind::Migrated(_)
            | EventKind::Cancelled { .. }
            | EventKind::Terminated { .. } => Vec::new(),
        }
    };
}

/// Returns the values from outside that a kind holds.
pub(crate) fn values(kind: &EventKind) -> Vec<&Json> {
    values_of!(kind, values)
}

/// Returns the places of [`values`], in the same order.
pub(crate) fn values_mut(kind: &mut EventKind) -> Vec<&mut Json> {
    values_of!(kind, values_mut, mut)
}

/// Returns the bytes that the serialiser puts before the fields of a kind.
fn wrapper(code: u16) -> Result<Vec<u8>, CodecError> {
    let Some((_, name)) = KINDS.iter().find(|(known, _)| *known == code) else {
        let known = KINDS.iter().map(|(known, _)| u32::from(*known)).max().unwrap_or(0);
        let found = u32::from(code);
        return Err(if found == 0 || found >= u32::from(super::frame::STEP) {
            CodecError::Damaged(format!("{code} is no kind of event"))
        } else {
            CodecError::Newer { part: "kind", found, known }
        });
    };
    let length = u8::try_from(name.len()).unwrap_or_else(|_| unreachable!("kind names are short"));
    assert!(length < 32, "a kind's name fits the shortest text header");
    let mut bytes = Vec::with_capacity(2 + name.len());
    if *name != "closed" {
        bytes.push(0x81); // A map of one entry; a kind without fields is its bare name.
    }
    bytes.push(0xa0 | length);
    bytes.extend(name.as_bytes());
    Ok(bytes)
}
