//! A step: the events of a run that became facts together, packed into one value.
//!
//! ```text
//! frame  | key id u32 | first u64 | count u32 | chain 32 bytes | count times: length u32, event
//! event  = frame | time i64 | digest u64 | fields of the kind
//! ```
//! Numbers are little-endian. The key id is reserved for encryption and must be 0. Leaves the fields to [`super::kind`].
//! Invariant: the chain hash covers everything before it in the run's history, so no step can be changed, dropped or swapped
//! without the next one telling.

use outlast_kernel::event::Event;
use outlast_kernel::ids::{Millis, Seq};

use super::{CodecError, frame, kind, take, take_array};
use crate::Head;

/// Where the chain hash stands in a step.
const CHAIN_AT: usize = 4 + 4 + 8 + 4;

/// A step as read: the header, and events still as bytes.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    /// The number of its first event.
    pub(crate) first: Seq,
    /// How many events it holds; at least one.
    pub(crate) count: u32,
    /// The chain hash after it.
    pub(crate) chain: [u8; 32],
    header: &'a [u8],
    events: &'a [u8],
}

/// Packs events that follow `before`; returns the bytes and the head after them.
pub(crate) fn encode(before: &Head, events: &[Event]) -> Result<(Vec<u8>, Head), CodecError> {
    let count = u32::try_from(events.len()).map_err(|_| CodecError::Damaged("too many events".into()))?;
    let mut out = Vec::with_capacity(CHAIN_AT + 32 + events.len() * 128);
    frame::write(&mut out, frame::STEP);
    out.extend(0_u32.to_le_bytes());
    out.extend(before.seq.next().0.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend([0; 32]);
    for event in events {
        let at = out.len();
        out.extend([0; 4]);
        frame::write(&mut out, kind::code(&event.kind));
        out.extend(event.time.0.to_le_bytes());
        out.extend(event.digest.to_le_bytes());
        kind::write(&mut out, &event.kind)?;
        let length = u32::try_from(out.len() - at - 4)
            .map_err(|_| CodecError::Damaged("an event is larger than 4 GiB".into()))?;
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
    let chain = chain(&before.chain, &out[..CHAIN_AT], &out[CHAIN_AT + 32..]);
    out[CHAIN_AT..CHAIN_AT + 32].copy_from_slice(&chain);
    Ok((out, Head { seq: Seq(before.seq.0 + u64::from(count)), chain }))
}

/// Reads the header of a step; events are decoded by [`Step::events_after`].
pub(crate) fn decode(bytes: &[u8]) -> Result<Step<'_>, CodecError> {
    let mut rest = bytes;
    frame::expect(&mut rest, frame::STEP)?;
    let key_id = u32::from_le_bytes(take_array(&mut rest)?);
    if key_id != 0 {
        return Err(CodecError::Newer { part: "key id", found: key_id, known: 0 });
    }
    let first = Seq(u64::from_le_bytes(take_array(&mut rest)?));
    let count = u32::from_le_bytes(take_array(&mut rest)?);
    let chain = take_array(&mut rest)?;
    if first.0 == 0 || count == 0 || first.0.checked_add(u64::from(count)).is_none() {
        return Err(CodecError::Damaged(format!("a step of {count} events from {first} on")));
    }
    Ok(Step { first, count, chain, header: &bytes[..CHAIN_AT], events: rest })
}

impl Step<'_> {
    /// Returns the number of its last event.
    pub(crate) fn last(&self) -> Seq {
        Seq(self.first.0 + u64::from(self.count) - 1)
    }

    /// Tells whether the step follows a history with this chain hash.
    pub(crate) fn follows(&self, before: &[u8; 32]) -> bool {
        chain(before, self.header, self.events) == self.chain
    }

    /// Decodes the events after a number, at most `limit`; every event is walked over, so a cut step is noticed.
    pub(crate) fn events_after(&self, after: Seq, limit: usize) -> Result<Vec<Event>, CodecError> {
        let mut rest = self.events;
        let mut found = Vec::new();
        for i in 0..u64::from(self.count) {
            let length = u32::from_le_bytes(take_array(&mut rest)?);
            let body = take(&mut rest, length as usize)?;
            let n = Seq(self.first.0 + i);
            if n > after && found.len() < limit {
                found.push(event(n, body)?);
            }
        }
        if !rest.is_empty() {
            return Err(CodecError::Damaged(format!("{} bytes after the last event", rest.len())));
        }
        Ok(found)
    }
}

fn event(n: Seq, mut bytes: &[u8]) -> Result<Event, CodecError> {
    let code = frame::read(&mut bytes)?;
    let time = Millis(i64::from_le_bytes(take_array(&mut bytes)?));
    let digest = u64::from_le_bytes(take_array(&mut bytes)?);
    Ok(Event { n, time, digest, kind: kind::read(code, bytes)? })
}

fn chain(before: &[u8; 32], header: &[u8], events: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(before);
    hasher.update(header);
    hasher.update(events);
    *hasher.finalize().as_bytes()
}
