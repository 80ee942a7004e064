//! The heads that were written last: each step of a run needs the one before, and looking for it among all keys takes longer than anything
//! else that is done for a step.
//!
//! Invariant: what is known here is what the database has, because the store is its only writer and takes note after each commit.

use std::collections::HashMap;

use super::Picture;
use crate::StoreError;
use crate::keys::{self, Space};
use crate::limits::HEADS_KEPT;
use crate::plan::Write;
use crate::view::{View, Visit};

/// Heads by their keys.
#[derive(Debug, Default)]
pub(super) struct Heads(HashMap<Vec<u8>, Vec<u8>>);

/// Tells whether a key is that of a head.
fn is_head(space: Space, key: &[u8]) -> bool {
    space == Space::View && key.first() == Some(&keys::HEADS)
}

impl Heads {
    /// Returns those of the writes that are of interest here.
    pub(super) fn among(writes: &[Write]) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let heads = writes.iter().filter(|write| is_head(write.space, &write.key));
        heads.map(|write| (write.key.clone(), write.value.clone())).collect()
    }

    /// Takes note of writes that were committed.
    pub(super) fn note(&mut self, committed: Vec<(Vec<u8>, Option<Vec<u8>>)>) {
        // Which ones are needed again cannot be told; those that are come back with their next step.
        if self.0.len() + committed.len() > HEADS_KEPT {
            self.0.clear();
        }
        for (key, value) in committed {
            match value {
                Some(value) => self.0.insert(key, value),
                None => self.0.remove(&key),
            };
        }
    }
}

/// All keyspaces at one moment, with the heads that need not be looked for.
pub(super) struct Known<'a> {
    pub(super) picture: &'a Picture<'a>,
    pub(super) heads: &'a Heads,
}

impl View for Known<'_> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.heads.0.get(key).filter(|_| is_head(space, key)) {
            Some(known) => Ok(Some(known.clone())),
            None => self.picture.get(space, key),
        }
    }

    fn size(&self, space: Space, key: &[u8]) -> Result<Option<u64>, StoreError> {
        self.picture.size(space, key)
    }

    fn scan(&self, space: Space, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.picture.scan(space, from, to, visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(space: Space, key: &[u8], value: Option<&[u8]>) -> Write {
        Write { space, key: key.to_vec(), value: value.map(<[u8]>::to_vec) }
    }

    #[test]
    fn only_heads_are_kept_and_what_is_removed_goes() {
        let mut heads = Heads::default();
        let first = [
            write(Space::View, b"ha", Some(b"1")),
            write(Space::View, b"hb", Some(b"2")),
            write(Space::Log, b"hc", Some(b"3")),
        ];
        heads.note(Heads::among(&first));
        heads.note(Heads::among(&[write(Space::View, b"ha", Some(b"4")), write(Space::View, b"hb", None)]));
        assert_eq!(heads.0, HashMap::from([(b"ha".to_vec(), b"4".to_vec())]));
    }

    #[test]
    fn they_are_bounded() {
        let mut heads = Heads::default();
        for n in 0..HEADS_KEPT * 2 {
            heads.note(vec![(n.to_be_bytes().to_vec(), Some(Vec::new()))]);
            assert!(heads.0.len() <= HEADS_KEPT);
        }
    }
}
