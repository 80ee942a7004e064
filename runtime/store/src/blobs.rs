//! Values by hash: what is large stands once, however many events hold it, and what a text of an event names stays as long as the event.
//!
//! A value of an event of 4 KiB and more is stored under the hash of its bytes; the event holds the hash. Bytes of any other kind are kept
//! under their hash on request, and stay if a text of an event names them in time (`blob:` and 64 hexadecimal digits). A reference stands
//! in the commit of the step that holds or names the blob, and goes with the step. Leaves reading steps to the codec. Invariants: a blob
//! that a step holds or names is there; it goes with its last reference, or an hour after it was brought without one. Nothing is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;

use outlast_kernel::Json;
use outlast_kernel::event::Event;
use outlast_kernel::ids::{Millis, RunId};

use crate::breakage::{Breakage, breaks};
use crate::codec::step::{Filling, Held};
use crate::codec::{kind, record};
use crate::keys::{self, Space};
use crate::limits;
use crate::plan::Plan;
use crate::remains::Purge;
use crate::view::View;
use crate::{Batch, StoreError};

/// The name of a blob: the BLAKE3 hash of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(pub(crate) [u8; 32]);

impl BlobId {
    /// Returns the name of bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> BlobId {
        BlobId(*blake3::hash(bytes).as_bytes())
    }

    /// Reads a name: 64 hexadecimal digits, small letters.
    #[must_use]
    pub fn parse(text: &str) -> Option<BlobId> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let hash = text.bytes().all(is_digit).then(|| blake3::Hash::from_hex(text).ok()).flatten();
        hash.map(|hash| BlobId(*hash.as_bytes()))
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// Bytes to keep until an event names them.
#[derive(Clone, Debug)]
pub struct BlobPut {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Now: if no event names them within an hour from then on, they go.
    pub at: Millis,
}

/// Returns the blobs that texts in the values of events name, whether they are there or not.
#[must_use]
pub fn named(events: &[Event]) -> BTreeSet<BlobId> {
    let mut found = BTreeSet::new();
    for value in events.iter().flat_map(|event| kind::values(&event.kind)) {
        named_in(value, &mut found);
    }
    found
}

/// Collects the blobs that texts in a value name.
pub(crate) fn named_in(value: &Json, found: &mut BTreeSet<BlobId>) {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
        Json::String(text) => named_by(text, found),
        Json::Array(items) => items.iter().for_each(|item| named_in(item, found)),
        Json::Object(fields) => fields.iter().for_each(|(name, field)| {
            named_by(name, found);
            named_in(field, found);
        }),
    }
}

fn named_by(text: &str, found: &mut BTreeSet<BlobId>) {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(PREFIX) {
        found.extend(after.get(..64).and_then(BlobId::parse));
        rest = after;
    }
}

/// What stands before the hash in a text that names a blob.
const PREFIX: &str = "blob:";

/// Returns a blob.
pub(crate) fn get(view: &impl View, id: &BlobId) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(bytes) = view.get(Space::Blob, &keys::blob(id))? else { return Ok(None) };
    if BlobId::of(&bytes) == *id {
        return Ok(Some(bytes));
    }
    Err(StoreError::Damaged { what: format!("blob {id}"), detail: "its bytes have another hash".into() })
}

/// Returns runs whose steps hold or name a blob, each once, at most `limit`.
pub(crate) fn users(view: &impl View, id: &BlobId, limit: usize) -> Result<Vec<RunId>, StoreError> {
    let mut runs: Vec<RunId> = Vec::new();
    each_reference(view, id, &mut |step| {
        let Some((run, _)) = keys::parse_step(step) else { return Err(unreadable(id)) };
        if runs.last() != Some(&run) {
            runs.push(run);
        }
        Ok(if runs.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(runs)
}

/// Puts values into the places of the events that hold them by hash.
pub(crate) fn fill(
    view: &impl View,
    run: &RunId,
    events: &mut [Event],
    filling: Vec<Filling>,
) -> Result<(), StoreError> {
    for Filling { index, place, blob } in filling {
        let what = || format!("a value of run {run}, blob {blob}");
        let bytes = get(view, &blob)?;
        let bytes =
            bytes.ok_or_else(|| StoreError::Damaged { what: what(), detail: "it is missing".into() })?;
        let value = record::decode_value(&bytes).map_err(|e| e.at(what()))?;
        let place =
            events.get_mut(index).and_then(|event| kind::values_mut(&mut event.kind).into_iter().nth(place));
        match place {
            Some(place) => *place = value,
            None => {
                return Err(StoreError::Damaged {
                    what: what(),
                    detail: "its event has no such place".into(),
                });
            }
        }
    }
    Ok(())
}

/// Returns the blobs that are there, or come with the batch, of those that texts of events name.
pub(crate) fn there(
    view: &impl View,
    batch: &Batch,
    events: &[Event],
) -> Result<BTreeSet<BlobId>, StoreError> {
    let mut there = BTreeSet::new();
    let mut coming = None;
    for id in named(events) {
        let coming = coming.get_or_insert_with(|| {
            batch.blobs.iter().map(|put| BlobId::of(&put.bytes)).collect::<BTreeSet<BlobId>>()
        });
        if coming.contains(&id) || view.has(Space::Blob, &keys::blob(&id))? {
            there.insert(id);
        }
    }
    Ok(there)
}

/// Plans what a step holds and names.
pub(crate) fn plan_held(
    view: &impl View,
    plan: &mut Plan,
    step: &[u8],
    held: Held,
) -> Result<(), StoreError> {
    for (id, bytes) in held.contents {
        plan_content(view, plan, id, bytes)?;
    }
    for id in held.ids {
        if !breaks(Breakage::ForgetBlobReference) {
            plan.put(Space::Blob, keys::reference(&id, step), Some(Vec::new()));
        }
    }
    Ok(())
}

/// Plans bytes that are kept on request.
pub(crate) fn plan_puts(view: &impl View, plan: &mut Plan, puts: &[BlobPut]) -> Result<(), StoreError> {
    let mut waiting = BTreeMap::new();
    for BlobPut { bytes, at } in puts {
        if bytes.len() > limits::BLOB_BYTES_MAX {
            let (what, detail) = ("a blob".to_owned(), format!("{} bytes are too many", bytes.len()));
            return Err(StoreError::Invalid { what, detail });
        }
        let id = BlobId::of(bytes);
        plan_content(view, plan, id, bytes.clone())?;
        waiting.insert(id, *at);
    }
    for (id, at) in waiting {
        plan.put(Space::Blob, keys::waiting(&id), Some(record::encode_moment(at)));
    }
    Ok(())
}

fn plan_content(view: &impl View, plan: &mut Plan, id: BlobId, bytes: Vec<u8>) -> Result<(), StoreError> {
    let key = keys::blob(&id);
    if !plan.blobs.contains(&id) && !view.has(Space::Blob, &key)? {
        plan.put(Space::Blob, key, Some(bytes));
    }
    plan.blobs.insert(id);
    Ok(())
}

/// Plans that steps which go refer to blobs no more: a blob to which no other step refers goes, too, unless it was brought within the hour.
pub(crate) fn plan_gone(
    view: &impl View,
    plan: &mut Plan,
    purge: &mut Purge,
    gone: &[(BlobId, Vec<u8>)],
    now: Millis,
) -> Result<(), StoreError> {
    let mut steps_of = BTreeMap::<BlobId, BTreeSet<&[u8]>>::new();
    for (id, step) in gone {
        plan.put(Space::Blob, keys::reference(id, step), None);
        steps_of.entry(*id).or_default().insert(step);
    }
    for (id, steps) in steps_of {
        let mut is_needed = is_awaited(view, &id, now)?;
        each_reference(view, &id, &mut |step| {
            is_needed |= !steps.contains(step);
            Ok(if is_needed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if !is_needed {
            purge.bytes += view.size(Space::Blob, &keys::blob(&id))?.unwrap_or_default();
            plan.put(Space::Blob, keys::blob(&id), None);
            plan.put(Space::Blob, keys::waiting(&id), None);
        }
    }
    Ok(())
}

/// Tells whether a blob was brought within the hour: an event that names it may be on its way.
fn is_awaited(view: &impl View, id: &BlobId, now: Millis) -> Result<bool, StoreError> {
    let Some(bytes) = view.get(Space::Blob, &keys::waiting(id))? else { return Ok(false) };
    let since = record::decode_moment(&bytes).map_err(|e| e.at(format!("the time of blob {id}")))?;
    Ok(since.plus(limits::BLOB_UNNAMED_MS) > now)
}

/// Plans a portion of the blobs that nobody has named for an hour; none if there are none.
pub(crate) fn plan_sweep(view: &impl View, now: Millis) -> Result<Option<(Plan, Purge)>, StoreError> {
    let mut over = Vec::new();
    view.scan(Space::Blob, &[keys::WAITING], &[keys::WAITING + 1], &mut |key, value| {
        let Some(id) = keys::parse_waiting(key) else {
            let what = "the list of blobs that were brought".to_owned();
            return Err(StoreError::Damaged { what, detail: "a key cannot be read".into() });
        };
        let since = record::decode_moment(value).map_err(|e| e.at(format!("the time of blob {id}")))?;
        if since.plus(limits::BLOB_UNNAMED_MS) <= now {
            over.push(id);
        }
        Ok(if over.len() < limits::PURGE_KEYS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    if over.is_empty() {
        return Ok(None);
    }
    let (mut plan, mut purge) = (Plan::default(), Purge::default());
    for id in over {
        plan.put(Space::Blob, keys::waiting(&id), None);
        if users(view, &id, 1)?.is_empty() || breaks(Breakage::SweepNamedBlobs) {
            purge.bytes += view.size(Space::Blob, &keys::blob(&id))?.unwrap_or_default();
            plan.put(Space::Blob, keys::blob(&id), None);
        }
    }
    Ok(Some((plan, purge)))
}

/// What is called with the key of each step.
pub(crate) type VisitStep<'a> = dyn FnMut(&[u8]) -> Result<ControlFlow<()>, StoreError> + 'a;

/// Visits the keys of the steps that hold or name a blob.
pub(crate) fn each_reference(
    view: &impl View,
    id: &BlobId,
    visit: &mut VisitStep<'_>,
) -> Result<(), StoreError> {
    let from = keys::reference(id, &[]);
    let to = keys::reference(id, &[0xff]);
    view.scan(Space::Blob, &from, &to, &mut |key, _| match keys::parse_reference(key) {
        Some((_, step)) => visit(step),
        None => Err(unreadable(id)),
    })
}

fn unreadable(id: &BlobId) -> StoreError {
    StoreError::Damaged {
        what: format!("the references of blob {id}"),
        detail: "a key cannot be read".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_found_anywhere_in_a_value_and_only_whole() {
        let id = BlobId::of(b"x");
        let cut = &id.to_string()[..63];
        let capital = id.to_string().to_uppercase();
        for (value, expected) in [
            (json!(format!("blob:{id}")), true),
            (json!({"a": [1, format!("cut; see blob:{id}.")]}), true),
            (json!({format!("blob:{id}"): null}), true),
            (json!(format!("blob:blob:{id}")), true),
            (json!(id.to_string()), false),
            (json!(format!("blob:{cut}")), false),
            (json!(format!("blob:{capital}")), false),
            (json!("blob:éééééééééééééééééééééééééééééééééééé"), false),
            (json!(7), false),
        ] {
            let mut found = BTreeSet::new();
            named_in(&value, &mut found);
            assert_eq!(found.contains(&id), expected, "{value}");
            assert_eq!(BlobId::parse(&id.to_string()), Some(id));
        }
    }
}
