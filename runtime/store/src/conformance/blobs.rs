//! Promises about values by hash: they stand once, stay as long as they are needed, and go then.

use std::collections::{BTreeMap, BTreeSet};

use outlast_kernel::event::{Event, EventKind};
use outlast_kernel::ids::{Millis, RunId, Seq};
use serde_json::json;

use super::Place;
use super::deletions::{delete, purge_at};
use super::forks::fork;
use super::samples::{commit, message, run, step};
use crate::codec::record;
use crate::{Batch, BlobId, BlobPut, Head, RunWrite, Store, StoreError, Usage, limits};

const HOUR: i64 = 3_600_000;

/// Adds a message with this text to a run, begun if need be.
fn say(store: &dyn Store, id: &str, text: &str) -> Result<Head, StoreError> {
    let before = store.head(&run(id))?.map(|(head, _)| head).unwrap_or_default();
    let events = vec![message(before.seq.0 + 1, text)];
    commit(store, RunWrite { events, ..step(&run(id), before, 1) })
}

fn put(store: &dyn Store, bytes: &[u8], at: i64) -> Result<BlobId, StoreError> {
    let blobs = vec![BlobPut { bytes: bytes.to_vec(), at: Millis(at) }];
    store.commit(&Batch { blobs, ..Batch::default() })?;
    Ok(BlobId::of(bytes))
}

/// The name of the value of a message with this text, if it is large.
fn held(text: &str) -> Option<BlobId> {
    let value = json!({ "text": text });
    let bytes = record::encode_value(&value).ok()?;
    (text.len() >= limits::BLOB_BYTES_MIN).then(|| BlobId::of(&bytes))
}

pub(super) fn once(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let text = "x".repeat(50_000);
    let empty = store.stats()?.bytes;
    for id in ["a", "b", "b", "c"] {
        say(&*store, id, &text)?;
    }
    say(&*store, "a", &"y".repeat(limits::BLOB_BYTES_MIN - 200))?;
    for (id, count) in [("a", 2), ("b", 2), ("c", 1)] {
        let usage = store.usage(&run(id))?;
        assert!(
            usage.history_bytes < 5_000 && (50_000..51_000).contains(&usage.blob_bytes),
            "{id}: {usage:?}"
        );
        let events = store.history(&run(id), Seq(0), 9)?;
        assert_eq!((events.len(), &events[0]), (count, &message(1, &text)), "{id}");
    }
    let grown = store.stats()?.bytes - empty;
    // (The journal of the store on disk has room in advance.)
    assert!(!(100_000..1 << 20).contains(&grown), "{grown} bytes for one value");
    drop(store);
    let store = place.open();
    fork(&*store, "f", "b", 1, 1)?;
    delete(&*store, &["a", "b"])?;
    purge_at(&*store, Millis(2 * HOUR))?;
    assert_eq!(store.history(&run("c"), Seq(0), 9)?, [message(1, &text)]);
    assert_eq!(store.history(&run("f"), Seq(0), 1)?, [message(1, &text)]);
    let id = held(&text).unwrap_or(BlobId::of(b""));
    assert_eq!(store.blob_users(&id, 9)?, [run("b"), run("c")], "the fork shares the step of `b`");
    delete(&*store, &["c", "f"])?;
    purge_at(&*store, Millis(2 * HOUR))?;
    assert_eq!(store.blob(&id)?, None);
    Ok(())
}

pub(super) fn kept_on_request(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let too_large = vec![0; limits::BLOB_BYTES_MAX + 1];
    assert!(matches!(put(&*store, &too_large, 0), Err(StoreError::Invalid { .. })));
    let (named, lost, late) =
        (put(&*store, b"named", 0)?, put(&*store, &[0xff; 9_000], 0)?, put(&*store, b"late", 0)?);
    assert_eq!(put(&*store, b"late", HOUR / 2)?, late);
    say(&*store, "a", &format!("the whole is blob:{named}, not blob:{}", BlobId::of(b"nowhere")))?;
    assert_eq!(store.blob(&lost)?, Some(vec![0xff; 9_000]));
    assert_eq!((store.blob_users(&named, 9)?, store.blob_users(&lost, 9)?), (vec![run("a")], vec![]));
    purge_at(&*store, Millis(HOUR - 1))?;
    assert!(store.blob(&lost)?.is_some());
    drop(store);
    let store = place.open();
    purge_at(&*store, Millis(HOUR))?;
    assert_eq!((store.blob(&lost)?, store.blob(&late)?), (None, Some(b"late".to_vec())));
    purge_at(&*store, Millis(9 * HOUR))?;
    assert_eq!((store.blob(&named)?, store.blob(&late)?), (Some(b"named".to_vec()), None));
    // Brought again a moment ago it may be wanted again.
    assert_eq!(put(&*store, b"named", 9 * HOUR)?, named);
    delete(&*store, &["a"])?;
    purge_at(&*store, Millis(9 * HOUR))?;
    assert!(store.blob(&named)?.is_some());
    purge_at(&*store, Millis(10 * HOUR))?;
    assert_eq!(store.blob(&named)?, None);
    Ok(())
}

/// Whatever happens in which order: in the end exactly those blobs are there that something needs.
pub(super) fn random_lives(place: &dyn Place) -> Result<(), StoreError> {
    for seed in 0..3_u64 {
        let mut state = seed + 77;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let mut store = place.open();
        let (mut now, mut model, mut all) = (0, BTreeMap::<RunId, Vec<Event>>::new(), BTreeSet::new());
        for i in 0..100 {
            now += (below(20) * 60_000).cast_signed();
            let ids: Vec<RunId> = model.keys().cloned().collect();
            let any = ids.get(usize::try_from(below(ids.len().max(1) as u64)).unwrap_or_default()).cloned();
            let small = format!("seed {seed}, bytes {}", below(8));
            match (below(10), any) {
                (0, Some(id)) => {
                    delete(&*store, &[id.as_str()])?;
                    model.remove(&id);
                }
                (1, Some(parent)) => {
                    let events = model.get(&parent).cloned().unwrap_or_default();
                    let at = 1 + below(events.len() as u64);
                    let id = run(&format!("s{seed}-{i}"));
                    fork(&*store, id.as_str(), parent.as_str(), at, 1)?;
                    model.insert(id.clone(), store.history(&id, Seq(0), 999)?);
                }
                (2..4, _) => drop(all.insert(put(&*store, small.as_bytes(), now)?)),
                (4, _) => drop(store.purge(None, Millis(now))?),
                (5, _) => {
                    drop(store);
                    store = place.open();
                }
                (what, any) => {
                    let id = any.filter(|_| what > 6).unwrap_or_else(|| run(&format!("s{seed}-{i}")));
                    let text = match below(2) {
                        0 => format!("{small} {}", "z".repeat(limits::BLOB_BYTES_MIN)),
                        _ => format!("blob:{}", BlobId::of(small.as_bytes())),
                    };
                    say(&*store, id.as_str(), &text)?;
                    all.extend(held(&text));
                    model.insert(id.clone(), store.history(&id, Seq(0), 999)?);
                }
            }
            if i % 10 == 0 {
                assert_eq!(store.check()?.findings, Vec::<String>::new(), "seed {seed}, after {i}");
            }
        }
        what_is_needed_is_there(&*store, &model, &all, now)?;
    }
    Ok(())
}

/// Compares what is there with what events need, now and when nothing is left.
fn what_is_needed_is_there(
    store: &dyn Store,
    model: &BTreeMap<RunId, Vec<Event>>,
    all: &BTreeSet<BlobId>,
    now: i64,
) -> Result<(), StoreError> {
    purge_at(store, Millis(now))?;
    purge_at(store, Millis(now + 2 * HOUR))?;
    for (id, events) in model {
        assert_eq!(&store.history(id, Seq(0), 999)?, events, "{id}");
    }
    let reachable = reachable(model);
    for id in all {
        // A text that named a blob which was not there keeps nothing.
        let (there, is_needed) = (store.blob(id)?.is_some(), !store.blob_users(id, 1)?.is_empty());
        assert_eq!(there, is_needed, "{id}");
        assert!(!there || reachable.contains(id), "{id}: nobody needs it");
    }
    let left: Vec<&str> = model.keys().map(RunId::as_str).collect();
    delete(store, &left)?;
    purge_at(store, Millis(now + 3 * HOUR))?;
    purge_at(store, Millis(now + 5 * HOUR))?;
    assert!(all.iter().all(|id| matches!(store.blob(id), Ok(None))));
    assert!(left.iter().all(|id| store.usage(&run(id)).ok() == Some(Usage::default())));
    Ok(())
}

fn reachable(model: &BTreeMap<RunId, Vec<Event>>) -> BTreeSet<BlobId> {
    let mut found = BTreeSet::new();
    for event in model.values().flatten() {
        found.extend(crate::named(std::slice::from_ref(event)));
        if let EventKind::Message { value, .. } = &event.kind {
            found.extend(value["text"].as_str().and_then(held));
        }
    }
    found
}
