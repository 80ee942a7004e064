//! Promises about forks: the prefix is shared, the parent is untouched.

use std::collections::BTreeMap;

use outlast_kernel::event::Event;
use outlast_kernel::ids::{RunId, Seq};

use super::Place;
use super::samples::{commit, messages, run, step};
use crate::{Head, Index, Origin, RunWrite, Segment, Store, StoreError, Usage};

/// Forks a run at an event, with `count` events of its own.
pub(super) fn fork(
    store: &dyn Store,
    id: &str,
    parent: &str,
    at: u64,
    count: u64,
) -> Result<Head, StoreError> {
    let before = store.head_at(&run(parent), Seq(at))?.unwrap_or_default();
    let origin = Some(Origin::Fork { parent: run(parent), at: Seq(at) });
    commit(store, RunWrite { origin, ..step(&run(id), before, count) })
}

fn segment(run_id: &str, to: u64) -> Segment {
    Segment { run: run(run_id), to: Seq(to), held_by: run(run_id) }
}

pub(super) fn shared(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    // Events 1 to 3 are one step: forks may begin within it.
    let head = commit(&*store, step(&run("a"), Head::default(), 3))?;
    commit(&*store, step(&run("a"), head, 2))?;
    let head = fork(&*store, "b", "a", 2, 2)?;
    commit(&*store, step(&run("b"), head, 1))?;
    fork(&*store, "c", "b", 4, 1)?;
    fork(&*store, "d", "b", 1, 3)?;
    drop(store);
    let store = place.open();
    for (id, last) in [("a", 5), ("b", 5), ("c", 5), ("d", 4)] {
        let all = messages(&Head::default(), last);
        for after in 0..=last {
            for limit in 0..=last {
                let skip = usize::try_from(after).unwrap_or_default();
                let take = usize::try_from(limit).unwrap_or_default();
                let expected: Vec<_> = all.iter().skip(skip).take(take).cloned().collect();
                assert_eq!(
                    store.history(&run(id), Seq(after), take)?,
                    expected,
                    "{id}: {limit} after {after}"
                );
            }
        }
        assert_eq!(store.head(&run(id))?.map(|(head, _)| head.seq.0), Some(last), "{id}");
    }
    assert_eq!(store.lineage(&run("a"))?, []);
    assert_eq!(store.lineage(&run("b"))?, [segment("a", 2)]);
    assert_eq!(store.lineage(&run("c"))?, [segment("a", 2), segment("b", 4)]);
    assert_eq!(store.lineage(&run("d"))?, [segment("a", 1)]);
    assert_eq!(store.forks(&run("a"), None, 9)?, [(Seq(2), run("b"))]);
    assert_eq!(store.forks(&run("b"), None, 9)?, [(Seq(1), run("d")), (Seq(4), run("c"))]);
    assert_eq!(store.forks(&run("b"), Some(&(Seq(1), run("d"))), 9)?, [(Seq(4), run("c"))]);
    assert_eq!(store.forks(&run("b"), None, 1)?, [(Seq(1), run("d"))]);
    assert_eq!(store.forks(&run("c"), None, 9)?, []);
    Ok(())
}

pub(super) fn parent_unchanged(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let head = commit(&*store, step(&run("a"), Head::default(), 3))?;
    let before = (store.head(&run("a"))?, store.summary(&run("a"))?, store.history(&run("a"), Seq(0), 9)?);
    fork(&*store, "b", "a", 2, 4)?;
    let after = (store.head(&run("a"))?, store.summary(&run("a"))?, store.history(&run("a"), Seq(0), 9)?);
    assert_eq!(before, after);
    // Both go on, each for itself.
    commit(&*store, step(&run("a"), head, 1))?;
    assert_eq!(store.history(&run("a"), Seq(0), 9)?.len(), 4);
    assert_eq!(store.history(&run("b"), Seq(0), 9)?.len(), 6);
    Ok(())
}

pub(super) fn refused(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let head = commit(&*store, step(&run("a"), Head::default(), 3))?;
    for (parent, at) in [("a", 0), ("a", 4), ("nobody", 1), ("b", 1)] {
        assert_eq!(store.head_at(&run(parent), Seq(at))?, None, "{parent}@{at}");
        let refused = fork(&*store, "b", parent, at, 1);
        assert!(matches!(refused, Err(StoreError::Invalid { .. })), "{parent}@{at}: {refused:?}");
    }
    let elsewhere = Head { seq: Seq(2), chain: [7; 32] };
    let origin = Some(Origin::Fork { parent: run("a"), at: Seq(2) });
    let refused = commit(&*store, RunWrite { origin: origin.clone(), ..step(&run("b"), elsewhere, 1) });
    assert!(matches!(refused, Err(StoreError::Stale { .. })), "{refused:?}");
    // A run that is there does not become a fork.
    let other = commit(&*store, step(&run("c"), Head::default(), 1))?;
    let refused = commit(&*store, RunWrite { origin, ..step(&run("c"), head, 1) });
    assert!(matches!(refused, Err(StoreError::Stale { .. })), "{refused:?}");
    assert_eq!(store.head(&run("c"))?, Some((other, Index::default())));
    assert_eq!(store.head(&run("b"))?, None);
    assert_eq!(store.forks(&run("a"), None, 9)?, []);
    Ok(())
}

/// Grows trees of forks at random and compares every history with a copy that shares nothing.
pub(super) fn random_trees(place: &dyn Place) -> Result<(), StoreError> {
    let mut seed = 7_u64;
    let mut below = |limit: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % limit
    };
    let mut model = BTreeMap::<RunId, (Head, Vec<Event>)>::new();
    let store = place.open();
    let root = commit(&*store, step(&run("r0"), Head::default(), 4))?;
    model.insert(run("r0"), (root, messages(&Head::default(), 4)));
    for i in 1..40_u64 {
        let parent = run(&format!("r{}", below(i)));
        let Some((parent_head, events)) = model.get(&parent).cloned() else { continue };
        let at = 1 + below(parent_head.seq.0);
        let id = format!("r{i}");
        let head = fork(&*store, &id, parent.as_str(), at, 1 + below(3))?;
        let begins = Head { seq: Seq(at), chain: [0; 32] };
        let mut own: Vec<Event> = events.into_iter().take_while(|event| event.n.0 <= at).collect();
        own.extend(messages(&begins, head.seq.0 - at));
        model.insert(run(&id), (head, own));
        // Some run goes on.
        let other = run(&format!("r{}", below(i + 1)));
        if let Some((head, events)) = model.get_mut(&other) {
            events.extend(messages(head, 2));
            *head = commit(&*store, step(&other, *head, 2))?;
        }
    }
    for (id, (_, events)) in &model {
        assert_eq!(&store.history(id, Seq(0), usize::MAX)?, events, "{id}");
    }
    Ok(())
}

pub(super) fn copies(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    // The runs that it was forked from are not here.
    let origin = |parent: &str, lineage: &[(&str, u64)]| {
        let lineage: Vec<_> = lineage.iter().map(|(id, to)| (run(id), Seq(*to))).collect();
        let at = lineage.last().map(|(_, to)| *to).unwrap_or_default();
        Some(Origin::Copy { lineage, parent: (run(parent), at) })
    };
    for wrong in [origin("x", &[("a", 4), ("b", 4)]), origin("c", &[("a", 4)]), origin("x", &[])] {
        let refused = commit(&*store, RunWrite { origin: wrong, ..step(&run("c"), Head::default(), 6) });
        assert!(matches!(refused, Err(StoreError::Invalid { .. })), "{refused:?}");
    }
    let right = origin("b", &[("a", 2), ("b", 4)]);
    commit(&*store, RunWrite { origin: right, ..step(&run("c"), Head::default(), 6) })?;
    fork(&*store, "d", "c", 3, 2)?;
    fork(&*store, "e", "c", 5, 2)?;
    for (id, last) in [("c", 6), ("d", 5), ("e", 7)] {
        assert_eq!(store.history(&run(id), Seq(0), 9)?, messages(&Head::default(), last), "{id}");
        assert_eq!(store.history(&run(id), Seq(3), 1)?.len(), 1, "{id}");
    }
    let held = |id: &str, to| Segment { run: run(id), to: Seq(to), held_by: run("c") };
    assert_eq!(store.lineage(&run("d"))?, [held("a", 2), held("b", 3)]);
    assert_eq!(store.lineage(&run("e"))?, [held("a", 2), held("b", 4), held("c", 5)]);
    assert_eq!(store.forks(&run("b"), None, 9)?, [(Seq(4), run("c"))]);
    Ok(())
}

pub(super) fn usage(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    assert_eq!(store.usage(&run("a"))?, Usage::default());
    commit(&*store, RunWrite { snapshot: Some(vec![7; 5_000]), ..step(&run("a"), Head::default(), 50) })?;
    let alone = store.usage(&run("a"))?;
    assert!(alone.history_bytes > 1_000 && alone.snapshot_bytes > 5_000, "{alone:?}");
    fork(&*store, "b", "a", 49, 1)?;
    commit(&*store, step(&run("aa"), Head::default(), 50))?;
    // Neither a fork nor a neighbour weighs on the run; the fork weighs only what is its own.
    assert_eq!(store.usage(&run("a"))?, alone);
    let fork = store.usage(&run("b"))?;
    assert!(fork.history_bytes > 0 && fork.history_bytes * 10 < alone.history_bytes, "{fork:?}");
    Ok(())
}
