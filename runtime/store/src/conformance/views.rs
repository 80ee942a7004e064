//! Promises about what is read beside histories: lists, cursors, snapshots.

use outlast_kernel::ids::{Millis, RunId, Seq};

use super::Place;
use super::samples::{commit, run, step, summary};
use crate::{Batch, Filter, Head, Index, RunWrite, Status, StoreError, limits};

fn listed(of: &RunId, before: Head, ready: bool, due: Option<i64>) -> RunWrite {
    RunWrite { index: Index { ready, due: due.map(Millis) }, ..step(of, before, 1) }
}

pub(super) fn snapshots(place: &dyn Place) -> Result<(), StoreError> {
    let (store, of) = (place.open(), run("snap"));
    assert_eq!(store.snapshot(&of)?, None);
    let with = |before, state: &[u8]| RunWrite { snapshot: Some(state.to_vec()), ..step(&of, before, 2) };
    let first = commit(&*store, with(Head::default(), b"one"))?;
    assert_eq!(store.snapshot(&of)?, Some((Seq(2), b"one".to_vec())));
    let second = commit(&*store, step(&of, first, 2))?;
    assert_eq!(store.snapshot(&of)?, Some((Seq(2), b"one".to_vec())), "a step without one keeps it");
    let heads = store.commit(&Batch { runs: vec![with(second, b"")], ..Batch::default() })?;
    assert_eq!(store.snapshot(&of)?, Some((Seq(6), Vec::new())));
    // Only the newest of two in one commit is kept.
    let third = heads[0];
    let later = listed(&of, third, false, None);
    let after_later = commit(&*store, later.clone())?;
    let runs = vec![with(after_later, b"a")];
    store.commit(&Batch { runs, ..Batch::default() })?;
    drop(store);
    assert_eq!(place.open().snapshot(&of)?, Some((Seq(9), b"a".to_vec())));
    Ok(())
}

pub(super) fn ready(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let ids: Vec<_> = (0..25).map(|i| run(&format!("r{i:02}"))).collect();
    for (i, id) in ids.iter().enumerate() {
        commit(&*store, listed(id, Head::default(), i % 2 == 0, None))?;
    }
    let expected: Vec<_> = ids.iter().step_by(2).cloned().collect();
    for limit in [1, 4, 13, 100] {
        let mut found = Vec::new();
        loop {
            let page = store.ready(found.last(), limit)?;
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        assert_eq!(found, expected, "in pages of {limit}");
    }
    assert_eq!(store.ready(Some(&run("r03")), 1)?, [run("r04")], "a cursor need not be in the list");
    assert_eq!(store.ready(None, 0)?, []);
    Ok(())
}

pub(super) fn due(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let times = [5, -3, 1_000_000, 5, 0, 256, i64::MAX, i64::MIN, 255];
    let mut expected = Vec::new();
    for (i, time) in times.into_iter().enumerate() {
        let id = run(&format!("d{i}"));
        commit(&*store, listed(&id, Head::default(), false, Some(time)))?;
        expected.push((Millis(time), id));
    }
    commit(&*store, listed(&run("never"), Head::default(), true, None))?;
    expected.sort();
    for before in [i64::MIN, -3, 0, 5, 6, 257, i64::MAX] {
        let expected: Vec<_> = expected.iter().filter(|(due, _)| due.0 < before).cloned().collect();
        for limit in [1, 2, 100] {
            let mut found = Vec::new();
            loop {
                let page = store.due(found.last(), Millis(before), limit)?;
                if page.is_empty() {
                    break;
                }
                assert!(page.len() <= limit);
                found.extend(page);
            }
            assert_eq!(found, expected, "before {before} in pages of {limit}");
        }
    }
    Ok(())
}

pub(super) fn moves(place: &dyn Place) -> Result<(), StoreError> {
    let of = run("mover");
    let mut head = Head::default();
    for (ready, due) in
        [(true, Some(9)), (true, Some(7)), (false, Some(7)), (false, None), (true, None), (false, Some(1))]
    {
        let store = place.open();
        head = commit(&*store, listed(&of, head, ready, due))?;
        let index = Index { ready, due: due.map(Millis) };
        assert_eq!(store.head(&of)?, Some((head, index)));
        let expected: Vec<_> = due.into_iter().map(|due| (Millis(due), of.clone())).collect();
        assert_eq!(store.due(None, Millis(100), 9)?, expected);
        assert_eq!(store.ready(None, 9)?.len(), usize::from(ready));
        assert_eq!(store.check()?.findings, Vec::<String>::new());
    }
    // Two steps of one commit: only the last one's views remain.
    let store = place.open();
    let first = listed(&of, head, true, Some(50));
    let probe = commit(&*store, first)?;
    let twice = vec![listed(&run("twice"), Head::default(), true, Some(60))];
    store.commit(&Batch { runs: twice, ..Batch::default() })?;
    commit(&*store, listed(&of, probe, false, None))?;
    assert_eq!(store.due(None, Millis(100), 9)?, [(Millis(60), run("twice"))]);
    Ok(())
}

pub(super) fn pages(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let mut expected = Vec::new();
    for i in 0..23_i64 {
        let id = run(&format!("p_{i}~x"));
        let started_at = (i * 7) % 10 - 4; // Some start together, some before 1970.
        let summary = summary(&id, started_at);
        commit(&*store, RunWrite { summary: summary.clone().into(), ..step(&id, Head::default(), 1) })?;
        expected.push(summary);
    }
    expected.sort_by(|a, b| (b.started_at, &a.run).cmp(&(a.started_at, &b.run)));
    for limit in [1, 5, 23, 0] {
        let mut found = Vec::new();
        let mut filter = Filter { limit, ..Filter::default() };
        loop {
            let page = store.summaries(&filter)?;
            found.extend(page.items);
            filter.after = page.next;
            if filter.after.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "in pages of {limit}");
    }
    for before in [i64::MIN, -4, 0, 3, 99] {
        let filter = Filter { started_before: Some(Millis(before)), ..Filter::default() };
        let expected: Vec<_> =
            expected.iter().filter(|summary| summary.started_at.0 < before).cloned().collect();
        assert_eq!(store.summaries(&filter)?.items, expected, "before {before}");
    }
    for cursor in ["", "x", "1_", "_a", "1_a b", "9999999999999999999_a"] {
        let filter = Filter { after: Some(cursor.into()), ..Filter::default() };
        assert!(matches!(store.summaries(&filter), Err(StoreError::Invalid { .. })), "{cursor:?}");
    }
    Ok(())
}

pub(super) fn filters(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let count = limits::PAGE_SCAN_MAX as i64 + 500;
    let mut runs = Vec::new();
    for i in 0..count {
        let id = run(&format!("f{i}"));
        let mut summary = summary(&id, i);
        if i == 3 {
            (summary.status, summary.flow, summary.profile) =
                (Status::Blocked, "rare".into(), "other".into());
        }
        runs.push(RunWrite { summary: summary.into(), ..step(&id, Head::default(), 1) });
    }
    store.commit(&Batch { runs, ..Batch::default() })?;
    let any = Filter::default();
    for rare in [
        Filter { statuses: vec![Status::Blocked], ..any.clone() },
        Filter { statuses: vec![Status::Ended, Status::Blocked], ..any.clone() },
        Filter { statuses: vec![Status::Ended], besides: [run("f3")].into(), ..any.clone() },
        Filter { flow: Some("rare".into()), ..any.clone() },
        Filter { profile: Some("other".into()), ..any.clone() },
    ] {
        let first = store.summaries(&rare)?;
        assert_eq!(first.items, [], "the rare one is the last but three, further than one page looks");
        let second = store.summaries(&Filter { after: first.next, ..rare })?;
        assert_eq!(second.items.iter().map(|s| s.run.as_str()).collect::<Vec<_>>(), ["f3"]);
        assert_eq!(second.next, None);
    }
    Ok(())
}

pub(super) fn prefixes(place: &dyn Place) -> Result<(), StoreError> {
    let ids = ["a", "a-", "a.", "a0", "aa", "a~", "b"].map(run);
    let store = place.open();
    for (i, id) in ids.iter().enumerate() {
        commit(&*store, step(id, Head::default(), i as u64 + 1))?;
    }
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(store.history(id, Seq(0), 100)?.len(), i + 1, "{id}");
    }
    Ok(())
}
