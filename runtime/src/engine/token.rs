//! Task tokens: each names one attempt as handed to one worker, and proves itself.
//!
//! Leaves judging whether the attempt still counts to the shard. Invariant: a token that verifies was made by this store, in this or
//! an earlier epoch; so adoption after a restart needs no record of what was handed out.

use outlast_kernel::ids::{Attempt, OpId, RunId};
use outlast_kernel::operation::Class;
use outlast_store::breakage::{Breakage, breaks};
use serde::{Deserialize, Serialize};

use crate::limits;

/// What a token says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// The run.
    #[serde(rename = "r")]
    pub(crate) run: RunId,
    /// The operation.
    #[serde(rename = "o")]
    pub(crate) op: OpId,
    /// Which attempt.
    #[serde(rename = "a")]
    pub(crate) attempt: Attempt,
    /// The epoch that handed it out.
    #[serde(rename = "e")]
    pub(crate) epoch: u64,
    /// The worker's process.
    #[serde(rename = "b")]
    pub(crate) boot: String,
    /// The effect class of the call.
    #[serde(rename = "c")]
    pub(crate) class: Class,
}

/// The key of a store's tokens. Durable, so that tokens outlive the process.
#[derive(Clone)]
pub(crate) struct TokenKey([u8; 32]);

/// Bytes of the MAC that are kept: forging one is out of reach, and tokens stay short.
const MAC_LENGTH: usize = 16;

impl TokenKey {
    /// Takes the key from its stored bytes.
    pub(crate) fn new(bytes: [u8; 32]) -> TokenKey {
        TokenKey(bytes)
    }

    /// Makes a token.
    pub(crate) fn issue(&self, claim: &Claim) -> String {
        let Ok(mut bytes) = serde_json::to_vec(claim) else {
            unreachable!("a claim has only text and numbers, which JSON can always hold")
        };
        let mac = self.mac(&bytes);
        bytes.extend_from_slice(&mac);
        encode(&bytes)
    }

    /// Reads a token; none if this store did not make it.
    pub(crate) fn verify(&self, token: &str) -> Option<Claim> {
        if token.len() > limits::TOKEN_BYTES_MAX {
            return None;
        }
        let bytes = decode(token)?;
        let (said, mac) = bytes.split_at_checked(bytes.len().checked_sub(MAC_LENGTH)?)?;
        let differs = self.mac(said).iter().zip(mac).fold(0, |acc, (a, b)| acc | (a ^ b));
        (differs == 0 || breaks(Breakage::AcceptForgedToken)).then(|| serde_json::from_slice(said).ok())?
    }

    /// Seals text: what it says is shown to nobody, and only what this store has sealed is opened again.
    pub(crate) fn seal(&self, text: &str) -> String {
        let tag = self.mac(&[SEALED, text.as_bytes()].concat());
        let mut bytes = text.as_bytes().to_vec();
        self.mask(&tag, &mut bytes);
        bytes.extend_from_slice(&tag);
        encode(&bytes)
    }

    /// Opens sealed text; none if this store did not seal it.
    pub(crate) fn open(&self, sealed: &str) -> Option<String> {
        let bytes = decode(sealed)?;
        let (masked, tag) = bytes.split_last_chunk::<MAC_LENGTH>()?;
        let mut bytes = masked.to_vec();
        self.mask(tag, &mut bytes);
        let genuine = self.mac(&[SEALED, &bytes].concat()) == *tag;
        String::from_utf8(bytes).ok().filter(|_| genuine)
    }

    /// Covers or uncovers bytes. Equal texts have equal tags, so no cover is used for two texts.
    fn mask(&self, tag: &[u8; MAC_LENGTH], bytes: &mut [u8]) {
        let mut cover = vec![0; bytes.len()];
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(COVER).update(tag).finalize_xof().fill(&mut cover);
        for (byte, cover) in bytes.iter_mut().zip(cover) {
            *byte ^= cover;
        }
    }

    fn mac(&self, said: &[u8]) -> [u8; MAC_LENGTH] {
        let mut mac = [0; MAC_LENGTH];
        mac.copy_from_slice(&blake3::keyed_hash(&self.0, said).as_bytes()[..MAC_LENGTH]);
        mac
    }
}

/// What stands before sealed text when it is hashed; claims begin otherwise, being JSON.
const SEALED: &[u8] = b"sealed ";
/// What stands before a tag when its cover is made.
const COVER: &[u8] = b"cover ";

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Writes bytes in the URL-safe base64 alphabet without padding.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |acc, b| acc << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(group >> (18 - 6 * i) & 63) as usize]));
        }
    }
    text
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
    for chunk in text.as_bytes().chunks(4) {
        let mut group = 0_u32;
        for c in chunk {
            let digit = ALPHABET.iter().position(|a| a == c)?;
            group = group << 6 | u32::try_from(digit).ok()?;
        }
        group <<= 6 * (4 - chunk.len());
        let length = match chunk.len() {
            1 => return None,
            n => n - 1,
        };
        bytes.extend_from_slice(&group.to_be_bytes()[1..=length]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use outlast_kernel::ids::Seq;

    use super::*;

    fn claim() -> Claim {
        Claim {
            run: RunId::new("r-1").unwrap(),
            op: OpId(Seq(7), 2),
            attempt: Attempt(3),
            epoch: 4,
            boot: "b5".into(),
            class: Class::Once,
        }
    }

    #[test]
    fn a_token_reads_back_and_any_change_breaks_it() {
        let key = TokenKey::new([1; 32]);
        let token = key.issue(&claim());
        assert_eq!(key.verify(&token), Some(claim()));
        assert_eq!(TokenKey::new([2; 32]).verify(&token), None, "a key of another store");
        for at in 0..token.len() {
            let mut other = token.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            // The last character carries spare bits, which may differ without meaning anything.
            assert!(key.verify(&other).is_none() || at + 1 == token.len(), "changed at {at}");
        }
        for nonsense in ["", "A", "AAAA", "ä", &"A".repeat(5000)] {
            assert_eq!(key.verify(nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn sealed_text_opens_for_its_own_store_only_and_shows_nothing() {
        let key = TokenKey::new([1; 32]);
        for text in ["", "r", "5:run-of-somebody-else", "ü"] {
            let sealed = key.seal(text);
            assert_eq!(key.open(&sealed).as_deref(), Some(text));
            assert_eq!(TokenKey::new([2; 32]).open(&sealed), None);
            assert_eq!(key.open(&format!("A{sealed}")), None);
            assert_eq!(key.verify(&sealed), None, "no task token");
            assert!(!sealed.contains(&encode(text.as_bytes())) || text.is_empty());
        }
        assert_eq!((key.open(""), key.open("AAAA"), key.open(&key.issue(&claim()))), (None, None, None));
    }

    #[test]
    fn base64_reads_back_at_every_length() {
        for length in 0..70_u8 {
            let bytes: Vec<u8> = (0..length).map(|i| i.wrapping_mul(37)).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
