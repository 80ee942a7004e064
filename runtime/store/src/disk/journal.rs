//! Batches of fjall 3.1.13's journal, read without changing anything.
//!
//! ```text
//! batch = 1u8 | items u32 | sequence number u64 | items times item | 3u8 | xxh3 of all items u64 | "FJL" 3u8
//! item  = 2u8 | type u8 | compression u8 | keyspace u64 | key length u16 | value length u32 | stored length u32 | key | value
//!       | 4u8 | keyspace u64
//! ```
//! Numbers are little-endian; new files are filled up with zeroes. Leaves judging a bad place to [`super::scan`]. Invariant: a
//! batch is returned only if it is complete and its checksum fits. A test compares this with what fjall writes.

use xxhash_rust::xxh3::xxh3_64;

use crate::codec::record;
use crate::keys;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const MAGIC: &[u8] = b"FJL\x03";
/// Value, tombstone, weak tombstone; pointers into value logs are never written.
const TYPE_MAX: u8 = 2;
/// Bytes of the shortest item.
const ITEM_BYTES_MIN: usize = 9;

/// A complete batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Where the next batch begins.
    pub(super) end: usize,
    /// fjall's sequence number.
    pub(super) number: u64,
    /// The commit that it holds; every batch of ours holds one.
    pub(super) commit: Option<u64>,
}

/// Reads the batch that begins at a place; none if no complete batch does.
pub(super) fn batch(bytes: &[u8], at: usize) -> Option<Found> {
    let mut rest = Rest { bytes: bytes.get(at..)?, at };
    (rest.byte()? == START).then_some(())?;
    let items = u32::from_le_bytes(rest.array()?);
    let number = u64::from_le_bytes(rest.array()?);
    if items == 0 || items as usize > rest.bytes.len() / ITEM_BYTES_MIN {
        return None;
    }
    let first = rest.at;
    let mut commit = None;
    for _ in 0..items {
        commit = item(&mut rest)?.or(commit);
    }
    let checked = bytes.get(first..rest.at)?;
    (rest.byte()? == END).then_some(())?;
    let checksum = u64::from_le_bytes(rest.array()?);
    (rest.take(MAGIC.len())? == MAGIC && checksum == xxh3_64(checked)).then_some(())?;
    Some(Found { end: rest.at, number, commit })
}

/// Looks for a complete batch at or after a place whose sequence number is higher than one.
pub(super) fn later_batch(bytes: &[u8], from: usize, than: Option<u64>) -> Option<usize> {
    (from..bytes.len()).find(|at| {
        // Only a start tag with an item behind it is worth a full read.
        bytes[*at] == START
            && bytes.get(at + 13).is_some_and(|tag| matches!(*tag, ITEM | CLEAR))
            && batch(bytes, *at).is_some_and(|found| than.is_none_or(|than| found.number > than))
    })
}

/// Skips an item and returns the commit number, if it is that.
fn item(rest: &mut Rest<'_>) -> Option<Option<u64>> {
    match rest.byte()? {
        ITEM => {
            (rest.byte()? <= TYPE_MAX && rest.byte()? == 0).then_some(())?;
            let _keyspace = rest.array::<8>()?;
            let key_length = u16::from_le_bytes(rest.array()?);
            let value_length = u32::from_le_bytes(rest.array()?);
            let stored_length = u32::from_le_bytes(rest.array()?);
            (key_length > 0 && value_length == stored_length).then_some(())?;
            let key = rest.take(usize::from(key_length))?;
            let value = rest.take(stored_length as usize)?;
            Some(if key == keys::COMMIT { record::decode_commit(value).ok() } else { None })
        }
        CLEAR => rest.take(8).map(|_| None),
        _ => None,
    }
}

struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(count)?;
        (self.bytes, self.at) = (rest, self.at + count);
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.bytes.split_first_chunk::<N>()?;
        (self.bytes, self.at) = (rest, self.at + N);
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }
}
