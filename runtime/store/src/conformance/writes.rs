//! Promises about commits: what is written, what is refused.

use outlast_kernel::ids::{RunId, Seq};

use super::Place;
use super::samples::{self, commit, message, messages, run, step, summary};
use crate::{Batch, Head, Index, Put, RunWrite, StoreError, Table};

fn every_kind_step(of: &RunId) -> RunWrite {
    let events = samples::every_kind().into_iter().map(|(_, event)| event).collect();
    RunWrite { events, ..step(of, Head::default(), 1) }
}

pub(super) fn every_kind(place: &dyn Place) -> Result<(), StoreError> {
    let of = run("every");
    let write = every_kind_step(&of);
    let head = commit(&*place.open(), write.clone())?;
    let store = place.open();
    assert_eq!(store.head(&of)?, Some((head, Index::default())));
    let found = store.history(&of, Seq(0), usize::MAX)?;
    for (found, expected) in found.iter().zip(&write.events) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), write.events.len());
    assert_eq!(store.summary(&of)?, Some(summary(&of, 1_000)));
    Ok(())
}

pub(super) fn any_range(place: &dyn Place) -> Result<(), StoreError> {
    let (store, of) = (place.open(), run("ranges"));
    let mut head = Head::default();
    for count in [1, 3, 2, 1, 4] {
        head = commit(&*store, step(&of, head, count))?;
    }
    let all = messages(&Head::default(), 11);
    for after in 0..=12 {
        for limit in 0..=12 {
            let expected: Vec<_> = all.iter().skip(after).take(limit).cloned().collect();
            let found = store.history(&of, Seq(after as u64), limit)?;
            assert_eq!(found, expected, "{limit} events after {after}");
        }
    }
    assert_eq!(store.history(&of, Seq(u64::MAX), 5)?, []);
    assert_eq!(store.history(&run("nobody"), Seq(0), 5)?, []);
    assert_eq!(store.head(&run("nobody"))?, None);
    assert_eq!(store.summary(&run("nobody"))?, None);
    Ok(())
}

pub(super) fn several_steps(place: &dyn Place) -> Result<(), StoreError> {
    let (apart, together) = (run("apart"), run("together"));
    let store = place.open();
    let first = commit(&*store, step(&apart, Head::default(), 2))?;
    let second = commit(&*store, step(&apart, first, 3))?;
    // The same steps in one commit end in the same chain.
    let runs = vec![step(&together, Head::default(), 2), step(&together, first, 3)];
    assert_eq!(store.commit(&Batch { runs, ..Batch::default() })?, [first, second]);
    // The second of two does not follow the first: nothing of either is written.
    let runs = vec![step(&apart, second, 1), step(&apart, second, 1)];
    assert!(matches!(store.commit(&Batch { runs, ..Batch::default() }), Err(StoreError::Stale { .. })));
    drop(store);
    let store = place.open();
    for id in [apart, together] {
        assert_eq!(store.history(&id, Seq(0), 9)?, messages(&Head::default(), 5), "{id}");
        assert_eq!(store.head(&id)?, Some((second, Index::default())), "{id}");
    }
    Ok(())
}

pub(super) fn wrong_head(place: &dyn Place) -> Result<(), StoreError> {
    let (store, of) = (place.open(), run("cas"));
    let head = commit(&*store, step(&of, Head::default(), 3))?;
    let before = (store.head(&of)?, store.stats()?.commit_last);
    let other_chain = Head { seq: head.seq, chain: [7; 32] };
    let ahead = Head { seq: Seq(4), chain: head.chain };
    for wrong in [Head::default(), other_chain, ahead, Head { seq: Seq(2), chain: head.chain }] {
        match commit(&*store, step(&of, wrong, 1)) {
            Err(StoreError::Stale { run, expected, found }) => {
                assert_eq!((run, expected, found), (of.clone(), wrong.seq, head.seq));
            }
            other => panic!("a commit after {wrong:?}: {other:?}"),
        }
        assert_eq!((store.head(&of)?, store.stats()?.commit_last), before);
    }
    assert!(matches!(
        commit(&*store, step(&run("new"), head, 1)),
        Err(StoreError::Stale { found: Seq(0), .. })
    ));
    assert_eq!(store.head(&run("new"))?, None);
    commit(&*store, step(&of, head, 1))?;
    Ok(())
}

pub(super) fn one_wrong_head(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    let old = commit(&*store, step(&run("b"), Head::default(), 1))?;
    commit(&*store, step(&run("b"), old, 1))?;
    let runs = vec![
        step(&run("a"), Head::default(), 1),
        step(&run("b"), old, 1),
        step(&run("c"), Head::default(), 1),
    ];
    let puts = vec![Put { table: Table::Flow, key: b"f".to_vec(), value: Some(vec![1]) }];
    assert!(matches!(store.commit(&Batch { runs, puts, ..Batch::default() }), Err(StoreError::Stale { .. })));
    for (id, expected) in [("a", None), ("b", Some(2)), ("c", None)] {
        assert_eq!(store.head(&run(id))?.map(|(head, _)| head.seq.0), expected, "run {id}");
    }
    assert_eq!(store.get(Table::Flow, b"f")?, None);
    Ok(())
}

pub(super) fn broken_rules(place: &dyn Place) -> Result<(), StoreError> {
    let (store, of) = (place.open(), run("rules"));
    let good = step(&of, Head::default(), 2);
    let gap = RunWrite { events: vec![message(1, "a"), message(3, "c")], ..good.clone() };
    let late = RunWrite { events: vec![message(2, "b")], ..good.clone() };
    let none = RunWrite { events: Vec::new(), ..good.clone() };
    let foreign = RunWrite { summary: summary(&run("else"), 1).into(), ..good.clone() };
    for (what, write) in [("gap", gap), ("late", late), ("none", none), ("foreign", foreign)] {
        let refused = store.commit(&Batch { runs: vec![good.clone(), write], ..Batch::default() });
        // A second step that starts anew is stale; alone, each breaks its rule.
        assert!(refused.is_err(), "{what}");
        assert_eq!(store.head(&of)?, None, "{what}");
    }
    for key in [Vec::new(), vec![1; 1_025]] {
        let put = Put { table: Table::Setting, key, value: Some(Vec::new()) };
        let refused = store.commit(&Batch { runs: vec![good.clone()], puts: vec![put], ..Batch::default() });
        assert!(matches!(refused, Err(StoreError::Invalid { .. })), "{refused:?}");
    }
    commit(&*store, good)?;
    Ok(())
}

pub(super) fn commit_numbers(place: &dyn Place) -> Result<(), StoreError> {
    let of = run("numbers");
    let mut head = Head::default();
    for life in 0..3 {
        let store = place.open();
        for i in 0..2 {
            assert_eq!(store.stats()?.commit_last, life * 2 + i);
            head = commit(&*store, step(&of, head, 1))?;
        }
        assert_eq!(store.stats()?.commits, 2);
    }
    Ok(())
}

pub(super) fn empty_batch(place: &dyn Place) -> Result<(), StoreError> {
    let store = place.open();
    assert_eq!(store.commit(&Batch::default())?, []);
    assert_eq!(store.stats()?.commit_last, 0);
    Ok(())
}

pub(super) fn records(place: &dyn Place) -> Result<(), StoreError> {
    let tables = [
        Table::Machine,
        Table::Source,
        Table::Flow,
        Table::Session,
        Table::Profile,
        Table::Setting,
        Table::Schedule,
        Table::Quarantine,
        Table::Token,
    ];
    let put = |table, key: &[u8], value: Option<&[u8]>| Put {
        table,
        key: key.to_vec(),
        value: value.map(<[u8]>::to_vec),
    };
    let store = place.open();
    for (i, table) in tables.into_iter().enumerate() {
        let i = i.to_string();
        let puts = vec![
            put(table, &[0xff; 1_024], Some(b"long")),
            put(table, b"b", Some(i.as_bytes())),
            put(table, b"a", Some(b"old")),
            put(table, b"a", Some(b"new")),
            put(table, b"gone", Some(b"x")),
            put(table, b"gone", None),
            put(table, &[0], Some(b"")),
        ];
        store.commit(&Batch { puts, ..Batch::default() })?;
    }
    drop(store);
    let store = place.open();
    for (i, table) in tables.into_iter().enumerate() {
        let pair = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
        let i = i.to_string();
        let expected =
            [pair(&[0], b""), pair(b"a", b"new"), pair(b"b", i.as_bytes()), pair(&[0xff; 1_024], b"long")];
        assert_eq!(store.list(table)?, expected, "{table:?}");
        assert_eq!(store.get(table, b"a")?, Some(b"new".to_vec()), "{table:?}");
        assert_eq!(store.get(table, b"gone")?, None, "{table:?}");
        assert_eq!(store.get(table, b"")?, None, "{table:?}");
    }
    store.commit(&Batch { puts: vec![put(Table::Flow, b"a", None)], ..Batch::default() })?;
    assert_eq!(store.get(Table::Flow, b"a")?, None);
    Ok(())
}
