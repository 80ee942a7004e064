//! What all parts of an engine share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use outlast_kernel::ids::{Millis, RunId};
use outlast_store::Store;
use tokio::sync::{Notify, mpsc};

use super::clock::Clock;
use super::committer::Committer;
use super::counters::Counters;
use super::dispatch::Dispatch;
use super::errors;
use super::flows::Flows;
use super::hydrated::Gauge;
use super::keyring::Keyring;
use super::message::Message;
use super::quarantine::Quarantine;
use super::token::TokenKey;
use super::walks::Walks;
use crate::limits;
use outlast_protocol::ApiError;

/// What all parts of an engine share.
pub(crate) struct Context {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) dispatch: Dispatch,
    pub(crate) committer: Committer,
    pub(crate) counters: Arc<Counters>,
    pub(crate) quarantine: Quarantine,
    pub(crate) post: Post,
    pub(crate) flows: Flows,
    pub(crate) key: TokenKey,
    /// Access tokens.
    pub(crate) keyring: Keyring,
    /// The number of this opening of the store.
    pub(crate) epoch: u64,
    /// When this epoch began: what is older may be in hand of workers of the last one.
    pub(crate) opened_at: Millis,
    pub(crate) lease_ms: u64,
    pub(crate) random: Arc<Random>,
    /// Where reads of histories ended.
    pub(crate) walks: Walks,
    /// What is in memory.
    pub(crate) hydrated: Arc<Gauge>,
    /// Something was deleted, of which the rest can be taken away.
    pub(crate) purge: Notify,
    /// How long ended runs are kept has changed.
    pub(crate) retention: Notify,
}

/// The way to the shards.
#[derive(Clone)]
pub(crate) struct Shards {
    senders: Arc<[mpsc::Sender<Message>]>,
}

impl Shards {
    /// Takes the shards' senders.
    pub(crate) fn new(senders: Vec<mpsc::Sender<Message>>) -> Shards {
        Shards { senders: senders.into() }
    }

    /// Sends a message to the shard of a run.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotReady`] if the engine is stopping.
    pub(crate) async fn send(&self, run: &RunId, message: Message) -> Result<(), ApiError> {
        let shard = shard_of(run, self.senders.len());
        self.senders[shard].send(message).await.map_err(|_| errors::stopping())
    }

    /// Sends a message without waiting, if there is room for it.
    pub(crate) fn try_send(&self, run: &RunId, message: Message) {
        let shard = shard_of(run, self.senders.len());
        if self.senders[shard].try_send(message).is_err() {
            tracing::warn!(run = %run, "a shard has no room for a word about an attempt");
        }
    }

    /// Returns all senders.
    pub(crate) fn all(&self) -> &[mpsc::Sender<Message>] {
        &self.senders
    }
}

/// The way from shard to shard: a shard never waits for another one. What is on its way is no more than runs have open for others.
pub(crate) struct Post {
    sender: mpsc::UnboundedSender<(RunId, Message)>,
}

impl Post {
    /// Begins, with what [`Shards`] are to be told.
    pub(crate) fn new() -> (Post, mpsc::UnboundedReceiver<(RunId, Message)>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Post { sender }, receiver)
    }

    /// Tells the shard of a run something, in order. If the engine is stopping it is told again by the next one.
    pub(crate) fn send(&self, run: RunId, message: Message) {
        let _ = self.sender.send((run, message));
    }
}

/// Returns the shard that owns a run. Ids that differ only in case share one, so that it sees both.
pub(crate) fn shard_of(run: &RunId, shards: usize) -> usize {
    let hash = blake3::hash(run.as_str().to_ascii_lowercase().as_bytes());
    let mut low = [0; 8];
    low.copy_from_slice(&hash.as_bytes()[..8]);
    usize::try_from(u64::from_le_bytes(low) % shards as u64).unwrap_or(0)
}

/// Makes ids, seeds and keys: random ones, or repeatable ones for tests.
pub(crate) struct Random {
    seed: Option<u64>,
    count: AtomicU64,
    /// Bytes that the system gave and nobody has seen yet: it is asked for many at once.
    unseen: Mutex<Vec<u8>>,
}

impl Random {
    /// Begins; with a seed the same calls give the same results.
    pub(crate) fn new(seed: Option<u64>) -> Random {
        Random { seed, count: AtomicU64::new(0), unseen: Mutex::default() }
    }

    /// Returns another source: what is drawn from it does not hang on what is drawn from this one.
    pub(crate) fn stream(&self, number: usize) -> Random {
        let seeded = |seed: u64| blake3::hash(&[seed.to_le_bytes(), (number as u64).to_le_bytes()].concat());
        Random::new(self.seed.map(|seed| first(seeded(seed).as_bytes())))
    }

    /// Returns 32 bytes that nobody has seen before.
    pub(crate) fn bytes(&self) -> [u8; 32] {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(seed) = self.seed {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&seed.to_le_bytes()).update(&count.to_le_bytes());
            return *hasher.finalize().as_bytes();
        }
        let mut unseen = self.unseen.lock().unwrap_or_else(PoisonError::into_inner);
        if unseen.is_empty() {
            *unseen = of_the_system();
        }
        let (mut bytes, rest) = ([0; 32], unseen.len() - 32);
        bytes.copy_from_slice(&unseen[rest..]);
        unseen.truncate(rest);
        bytes
    }

    /// Returns a number.
    pub(crate) fn number(&self) -> u64 {
        first(&self.bytes())
    }

    /// Returns an id of lower-case letters and digits that sorts by the time of its making.
    pub(crate) fn id(&self, now: Millis) -> String {
        let mut text = String::with_capacity(18);
        base32(&mut text, u64::try_from(now.0).unwrap_or(0), 9);
        base32(&mut text, self.number(), 9);
        text
    }
}

/// Returns bytes that nobody can guess.
fn of_the_system() -> Vec<u8> {
    let mut bytes = vec![0; limits::RANDOM_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        let Ok(n) = rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
        else {
            panic!("the system gives no random bytes, so no id and no key can be made")
        };
        filled += n;
    }
    bytes
}

/// Returns the number that so many bytes begin with.
fn first(bytes: &[u8; 32]) -> u64 {
    let mut low = [0; 8];
    low.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(low)
}

fn base32(text: &mut String, number: u64, digits: u32) {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    for i in (0..digits).rev() {
        text.push(char::from(DIGITS[(number >> (5 * i) & 31) as usize]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_repeatable_with_a_seed_sort_by_time_and_are_run_ids() {
        let make = || Random::new(Some(7)).id(Millis(1_800_000_000_000));
        assert_eq!(make(), make());
        let random = Random::new(None);
        let (early, late) = (random.id(Millis(1_800_000_000_000)), random.id(Millis(1_800_000_000_001)));
        assert!(early < late && RunId::new(&early).is_ok(), "{early} {late}");
    }

    #[test]
    fn ids_that_differ_in_case_share_a_shard() {
        for shards in 1..9 {
            let (a, b) = (RunId::new("Abc").unwrap(), RunId::new("aBC").unwrap());
            assert_eq!(shard_of(&a, shards), shard_of(&b, shards));
        }
    }
}
