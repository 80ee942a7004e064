//! A step: the events of a run that became facts together, packed into one value.
//!
//! ```text
//! frame  | key id u32 | first u64 | count u32 | chain 32 bytes | count times: length u32, event
//! event  = frame | time i64 | digest u64 | blobs if flagged | fields of the kind
//! blobs  = count u16 | count times: place u8, hash 32 bytes
//! ```
//! The value in a place stands under its hash, and `null` in its place; place 255 is for a blob that a text of the event names.
//! Numbers are little-endian. The key id is reserved for encryption and must be 0. Leaves the fields to [`super::kind`].
//! Invariant: the chain hash covers everything before it in the run's history, so no step can be changed, dropped or swapped
//! without the next one telling.

use std::collections::{BTreeMap, BTreeSet};

use outlast_kernel::Json;
use outlast_kernel::event::Event;
use outlast_kernel::ids::{Millis, Seq};

use super::{CodecError, frame, kind, record, take, take_array};
use crate::blobs::{self, BlobId};
use crate::{Head, limits};

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

/// The place of a blob that a text names.
const NAMED: u8 = 255;

/// The blobs of a step that is written.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// All that it holds or names.
    pub(crate) ids: BTreeSet<BlobId>,
    /// The bytes of those that it holds.
    pub(crate) contents: BTreeMap<BlobId, Vec<u8>>,
}

/// A value that has to be put into its place.
#[derive(Debug)]
pub(crate) struct Filling {
    /// The event, among those that were read.
    pub(crate) index: usize,
    /// The place, among the values of its kind.
    pub(crate) place: usize,
    /// Where the value stands.
    pub(crate) blob: BlobId,
}

/// Packs events that follow `before`; returns the bytes, the head after them, and the blobs that they hold, or name of those that are there.
pub(crate) fn encode(
    before: &Head,
    events: &[Event],
    there: &BTreeSet<BlobId>,
) -> Result<(Vec<u8>, Head, Held), CodecError> {
    let mut held = Held::default();
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
        write_event(&mut out, event, there, &mut held)?;
        let length = u32::try_from(out.len() - at - 4)
            .map_err(|_| CodecError::Damaged("an event is larger than 4 GiB".into()))?;
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
    let chain = chain(&before.chain, &out[..CHAIN_AT], &out[CHAIN_AT + 32..]);
    out[CHAIN_AT..CHAIN_AT + 32].copy_from_slice(&chain);
    Ok((out, Head { seq: Seq(before.seq.0 + u64::from(count)), chain }, held))
}

fn write_event(
    out: &mut Vec<u8>,
    event: &Event,
    there: &BTreeSet<BlobId>,
    held: &mut Held,
) -> Result<(), CodecError> {
    let mut blobs = Vec::new();
    for (place, value) in (0..NAMED).zip(kind::values(&event.kind)) {
        if weighs(value, limits::BLOB_BYTES_MIN) {
            kind::check_nesting(value)?;
            let bytes = record::encode_value(value)?;
            let id = BlobId::of(&bytes);
            blobs.push((place, id));
            held.contents.insert(id, bytes);
        }
    }
    let places = blobs.len();
    if !there.is_empty() {
        let named = blobs::named(std::slice::from_ref(event));
        let kept = named.intersection(there).take(limits::BLOBS_NAMED_MAX);
        blobs.extend(kept.map(|id| (NAMED, *id)));
    }
    held.ids.extend(blobs.iter().map(|(_, id)| *id));
    let flags = if blobs.is_empty() { 0 } else { frame::BLOBS };
    frame::write_flagged(out, kind::code(&event.kind), flags);
    out.extend(event.time.0.to_le_bytes());
    out.extend(event.digest.to_le_bytes());
    if blobs.is_empty() {
        return kind::write(out, &event.kind);
    }
    let count = u16::try_from(blobs.len()).map_err(|_| CodecError::Damaged("too many blobs".into()))?;
    out.extend(count.to_le_bytes());
    for (place, id) in &blobs {
        out.push(*place);
        out.extend(id.0);
    }
    if places == 0 {
        return kind::write(out, &event.kind);
    }
    let mut bare = event.kind.clone();
    let mut values = kind::values_mut(&mut bare);
    for (place, _) in &blobs[..places] {
        *values[usize::from(*place)] = Json::Null;
    }
    kind::write(out, &bare)
}

/// Tells whether a value has about this many bytes, looking no further than it takes to know.
fn weighs(value: &Json, bytes: usize) -> bool {
    let mut left = bytes;
    !fits(value, &mut left)
}

/// Takes about the bytes of a value off what is left; tells whether that was more.
fn fits(value: &Json, left: &mut usize) -> bool {
    let take = |bytes: usize, left: &mut usize| {
        *left = left.saturating_sub(bytes);
        *left > 0
    };
    match value {
        Json::Null | Json::Bool(_) => take(1, left),
        Json::Number(_) => take(8, left),
        Json::String(text) => take(1 + text.len(), left),
        Json::Array(items) => items.iter().all(|item| take(1, left) && fits(item, left)),
        Json::Object(fields) => {
            fields.iter().all(|(name, field)| take(1 + name.len(), left) && fits(field, left))
        }
    }
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

/// What is called with each event as bytes.
type VisitEvent<'a> = dyn FnMut(Seq, &[u8]) -> Result<(), CodecError> + 'a;

impl Step<'_> {
    /// Returns the number of its last event.
    pub(crate) fn last(&self) -> Seq {
        Seq(self.first.0 + u64::from(self.count) - 1)
    }

    /// Tells whether the step follows a history with this chain hash.
    pub(crate) fn follows(&self, before: &[u8; 32]) -> bool {
        chain(before, self.header, self.events) == self.chain
    }

    /// Decodes the events after a number, at most `limit`; every event is walked over, so a cut step is noticed. The values that stand
    /// under their hashes have to be put into their places yet.
    pub(crate) fn events_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<(Vec<Event>, Vec<Filling>), CodecError> {
        let (mut found, mut filling) = (Vec::new(), Vec::new());
        self.each_event(&mut |n, body| {
            if n > after && found.len() < limit {
                let (event, blobs) = event(n, body)?;
                let held = blobs.into_iter().filter(|(place, _)| *place != NAMED);
                let index = found.len();
                filling.extend(held.map(|(place, blob)| Filling { index, place: place.into(), blob }));
                found.push(event);
            }
            Ok(())
        })?;
        Ok((found, filling))
    }

    /// Returns the blobs that its events hold or name.
    pub(crate) fn blobs(&self) -> Result<BTreeSet<BlobId>, CodecError> {
        let mut found = BTreeSet::new();
        self.each_event(&mut |_, mut body| {
            let (_, flags) = frame::read_flagged(&mut body, frame::BLOBS)?;
            take(&mut body, 16)?;
            found.extend(read_blobs(flags, &mut body)?.into_iter().map(|(_, blob)| blob));
            Ok(())
        })?;
        Ok(found)
    }

    fn each_event(&self, visit: &mut VisitEvent<'_>) -> Result<(), CodecError> {
        let mut rest = self.events;
        for i in 0..u64::from(self.count) {
            let length = u32::from_le_bytes(take_array(&mut rest)?);
            visit(Seq(self.first.0 + i), take(&mut rest, length as usize)?)?;
        }
        if !rest.is_empty() {
            return Err(CodecError::Damaged(format!("{} bytes after the last event", rest.len())));
        }
        Ok(())
    }
}

fn event(n: Seq, mut bytes: &[u8]) -> Result<(Event, Blobs), CodecError> {
    let (code, flags) = frame::read_flagged(&mut bytes, frame::BLOBS)?;
    let time = Millis(i64::from_le_bytes(take_array(&mut bytes)?));
    let digest = u64::from_le_bytes(take_array(&mut bytes)?);
    let blobs = read_blobs(flags, &mut bytes)?;
    Ok((Event { n, time, digest, kind: kind::read(code, bytes)? }, blobs))
}

/// Places, and the blobs that are for them.
type Blobs = Vec<(u8, BlobId)>;

fn read_blobs(flags: u8, bytes: &mut &[u8]) -> Result<Blobs, CodecError> {
    if flags & frame::BLOBS == 0 {
        return Ok(Vec::new());
    }
    let count = u16::from_le_bytes(take_array(bytes)?);
    let mut blobs = Vec::new();
    for _ in 0..count {
        let [place] = take_array(bytes)?;
        blobs.push((place, BlobId(take_array(bytes)?)));
    }
    Ok(blobs)
}

fn chain(before: &[u8; 32], header: &[u8], events: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(before);
    hasher.update(header);
    hasher.update(events);
    *hasher.finalize().as_bytes()
}
