//! Promises about deletions: the run is gone at once, its room comes back, and forks read on.

use std::collections::BTreeMap;

use outlast_kernel::event::{Event, EventKind};
use outlast_kernel::ids::{Attempt, Millis, OpId, RunId, Seq};

use super::Place;
use super::forks::fork;
use super::samples::{commit, messages, run, step};
use crate::{Batch, Delete, Head, Index, RunWrite, Store, StoreError, Usage, limits};

/// Deletes runs in one commit, each where it stands.
pub(super) fn delete(store: &dyn Store, ids: &[&str]) -> Result<(), StoreError> {
    let mut deletes = Vec::new();
    for id in ids {
        let before = store.head(&run(id))?.map(|(head, _)| head).unwrap_or_default();
        deletes.push(Delete { run: run(id), before });
    }
    store.commit(&Batch { deletes, ..Batch::default() }).map(drop)
}

/// Takes away what can be taken away.
fn purge(store: &dyn Store) -> Result<u64, StoreError> {
    purge_at(store, Millis(0))
}

/// Takes away what can be taken away at a moment.
pub(super) fn purge_at(store: &dyn Store, now: Millis) -> Result<u64, StoreError> {
    let (mut bytes, mut after, mut some) = (0, None, false);
    loop {
        match store.purge(after.as_ref(), now)? {
            Some(purge) => (bytes, after, some) = (bytes + purge.bytes, purge.after, true),
            None if !some => return Ok(bytes),
            None => (after, some) = (None, false),
        }
    }
}

pub(super) fn gone_at_once(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let index = Index { ready: true, due: Some(Millis(7)) };
    let write = RunWrite { index, snapshot: Some(vec![1; 9_000]), ..step(&run("a"), Head::default(), 3) };
    let head = commit(&*store, write)?;
    commit(&*store, step(&run("a-b"), Head::default(), 2))?;
    let wrong = Delete { run: run("a"), before: Head { seq: Seq(2), chain: head.chain } };
    let refused = store.commit(&Batch { deletes: vec![wrong], ..Batch::default() });
    assert!(matches!(refused, Err(StoreError::Stale { found: Seq(3), .. })), "{refused:?}");
    let deletes = vec![Delete { run: run("a"), before: head }];
    let both = Batch { runs: vec![step(&run("a"), head, 1)], deletes, ..Batch::default() };
    assert!(matches!(store.commit(&both), Err(StoreError::Invalid { .. })));
    assert!(store.head(&run("a"))?.is_some());
    delete(&*store, &["a"])?;
    assert_eq!(store.head(&run("a"))?, None);
    assert_eq!((store.summary(&run("a"))?, store.snapshot(&run("a"))?), (None, None));
    assert_eq!((store.ready(None, 9)?, store.due(None, Millis(99), 9)?), (Vec::new(), Vec::new()));
    assert_eq!(store.summaries(&crate::Filter::default())?.items.len(), 1);
    assert!(matches!(delete(&*store, &["a"]), Err(StoreError::Stale { found: Seq(0), .. })));
    // Its steps still stand under its id.
    let again = commit(&*store, step(&run("a"), Head::default(), 1));
    assert!(matches!(again, Err(StoreError::Invalid { .. })), "{again:?}");
    assert_eq!(store.deleted(None, 9)?, [run("a")]);
    assert_eq!(store.check()?.findings, Vec::<String>::new());
    drop(store);
    let store = place.open();
    assert!(purge(&*store)? > 0);
    assert_eq!((store.deleted(None, 9)?, store.usage(&run("a"))?), (Vec::new(), Usage::default()));
    assert_eq!(store.history(&run("a-b"), Seq(0), 9)?.len(), 2);
    commit(&*store, step(&run("a"), Head::default(), 1))?;
    assert_eq!(store.history(&run("a"), Seq(0), 9)?.len(), 1);
    store.reclaim()
}

pub(super) fn in_portions(place: &dyn Place) -> Result<(), StoreError> {
    let mut store = place.open();
    let mut head = Head::default();
    for _ in 0..limits::PURGE_KEYS + 100 {
        head = commit(&*store, step(&run("long"), head, 1))?;
    }
    delete(&*store, &["long"])?;
    let mut portions = 0;
    while store.purge(None, Millis(0))?.is_some() {
        portions += 1;
        // An interrupted purge goes on where it was.
        drop(store);
        store = place.open();
        assert_eq!(store.check()?.findings, Vec::<String>::new());
    }
    assert_eq!(portions, 2);
    assert_eq!(store.usage(&run("long"))?, Usage::default());
    Ok(())
}

pub(super) fn forks_read_on(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let head = commit(&*store, step(&run("a"), Head::default(), 3))?;
    commit(&*store, step(&run("a"), head, 90))?;
    let head = fork(&*store, "b", "a", 2, 2)?;
    commit(&*store, step(&run("b"), head, 50))?;
    fork(&*store, "c", "b", 4, 1)?;
    // It begins within what `b` shares itself: `b` is its parent, though none of its events are of `b`.
    fork(&*store, "d", "b", 1, 3)?;
    let whole = store.usage(&run("a"))?;
    delete(&*store, &["a", "b"])?;
    purge(&*store)?;
    drop(store);
    let store = place.open();
    for (id, last) in [("c", 5), ("d", 4)] {
        assert_eq!(store.history(&run(id), Seq(0), 99)?, messages(&Head::default(), last), "{id}");
    }
    assert_eq!(store.deleted(None, 9)?, [run("a"), run("b")]);
    let left = store.usage(&run("a"))?;
    assert!(left.history_bytes > 0 && left.history_bytes * 10 < whole.history_bytes, "{left:?} of {whole:?}");
    assert_eq!(store.head_at(&run("a"), Seq(1))?, None, "nobody forks what is deleted");
    fork(&*store, "e", "c", 2, 1)?;
    // `d` still needs the first event of `a`; `b` goes with its last fork.
    delete(&*store, &["c", "e"])?;
    purge(&*store)?;
    assert_eq!(store.history(&run("d"), Seq(0), 99)?.len(), 4);
    delete(&*store, &["d"])?;
    purge(&*store)?;
    assert_eq!(store.deleted(None, 9)?, []);
    for id in ["a", "b", "c", "d", "e"] {
        assert_eq!(store.usage(&run(id))?, Usage::default(), "{id}");
        assert_eq!((store.lineage(&run(id))?, store.forks(&run(id), None, 9)?), (vec![], vec![]), "{id}");
    }
    Ok(())
}

pub(super) fn remembers_begun(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let mut events = messages(&Head::default(), 5);
    let begun = |op| EventKind::Begun { op, attempt: Attempt(1), worker: "w".into() };
    events[3].kind = begun(OpId(Seq(2), 0));
    events[4].kind = begun(OpId(Seq(4), 0));
    commit(&*store, RunWrite { events, ..step(&run("a"), Head::default(), 5) })?;
    assert_eq!(store.remains(&run("a"))?, None);
    fork(&*store, "b", "a", 2, 1)?;
    delete(&*store, &["a"])?;
    purge(&*store)?;
    // The other operation was opened after what is shared.
    let remains = store.remains(&run("a"))?.unwrap_or_default();
    assert_eq!(remains.begun, [OpId(Seq(2), 0)]);
    Ok(())
}

/// Grows and cuts trees of forks at random and compares every history with a copy that shares nothing.
pub(super) fn random_trees(place: &dyn Place) -> Result<(), StoreError> {
    for seed in 0..2_u64 {
        let mut state = seed;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let mut model = BTreeMap::<RunId, (Head, Vec<Event>)>::new();
        let mut store = place.open();
        for i in 0..80_u64 {
            let ids: Vec<RunId> = model.keys().cloned().collect();
            let any = ids.get(usize::try_from(below(ids.len().max(1) as u64)).unwrap_or_default()).cloned();
            let id = format!("s{seed}-{}", (i * 7) % 80);
            match (below(10), any) {
                (0..2, _) | (_, None) => {
                    let head = commit(&*store, step(&run(&id), Head::default(), 3))?;
                    model.insert(run(&id), (head, messages(&Head::default(), 3)));
                }
                (2..6, Some(parent)) => {
                    let (head, events) = model.get(&parent).cloned().unwrap_or_default();
                    let at = 1 + below(head.seq.0);
                    let head = fork(&*store, &id, parent.as_str(), at, 1 + below(3))?;
                    let begins = Head { seq: Seq(at), chain: [0; 32] };
                    let mut own: Vec<Event> =
                        events.into_iter().take_while(|event| event.n.0 <= at).collect();
                    own.extend(messages(&begins, head.seq.0 - at));
                    model.insert(run(&id), (head, own));
                }
                (6..8, Some(other)) => {
                    delete(&*store, &[other.as_str()])?;
                    model.remove(&other);
                }
                (8, _) => drop(store.purge(None, Millis(0))?),
                (_, Some(_)) => {
                    drop(store);
                    store = place.open();
                }
            }
            if i % 8 == 0 {
                assert_eq!(store.check()?.findings, Vec::<String>::new(), "seed {seed}, after {i}");
            }
        }
        let mut left = Vec::new();
        for (id, (_, events)) in &model {
            assert_eq!(&store.history(id, Seq(0), usize::MAX)?, events, "seed {seed}, {id}");
            left.push(id.as_str());
        }
        nothing_is_left(&*store, &left, seed)?;
    }
    Ok(())
}

/// Deletes the last runs of a seed, and looks for anything that any of its runs left.
fn nothing_is_left(store: &dyn Store, runs: &[&str], seed: u64) -> Result<(), StoreError> {
    purge(store)?;
    delete(store, runs)?;
    purge(store)?;
    assert_eq!(store.deleted(None, 999)?, [], "seed {seed}");
    for i in 0..80 {
        assert_eq!(store.usage(&run(&format!("s{seed}-{i}")))?, Usage::default(), "seed {seed}, {i}");
    }
    assert!(store.summaries(&crate::Filter::default())?.items.is_empty(), "seed {seed}");
    Ok(())
}
