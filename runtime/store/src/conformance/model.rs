//! A store against a model that is too simple to be wrong, over random commits and restarts.

use std::collections::BTreeMap;

use outlast_kernel::event::Event;
use outlast_kernel::ids::{Millis, RunId, Seq};

use super::Place;
use super::samples::{messages, run, summary};
use crate::{Batch, Head, Index, RunWrite, Store, StoreError, Summary};

const SEEDS: u64 = 6;
const COMMITS: u64 = 40;

#[derive(Default)]
struct Run {
    head: Head,
    events: Vec<Event>,
    index: Index,
    summary: Option<Summary>,
    snapshot: Option<(Seq, Vec<u8>)>,
}

/// A generator of small random numbers; the seed is in every message.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

pub(super) fn random_lives(place: &dyn Place) -> Result<(), StoreError> {
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let mut model = BTreeMap::<RunId, Run>::new();
        let mut store = place.open();
        for _ in 0..COMMITS {
            let batch = batch(&mut random, &mut model, seed);
            let heads = store.commit(&batch)?;
            for (write, head) in batch.runs.iter().zip(heads) {
                if let Some(run) = model.get_mut(&write.run) {
                    run.head = head;
                }
            }
            if random.below(8) == 0 {
                drop(store);
                store = place.open();
            }
        }
        compare(&*store, &model, seed)?;
    }
    Ok(())
}

/// Makes a batch of one step for each of some runs, and notes it in the model.
fn batch(random: &mut Random, model: &mut BTreeMap<RunId, Run>, seed: u64) -> Batch {
    let mut batch = Batch::default();
    for i in 0..5 {
        if random.below(2) == 0 {
            continue;
        }
        let id = run(&format!("s{seed}-{i}"));
        let entry = model.entry(id.clone()).or_default();
        let events = messages(&entry.head, 1 + random.below(4));
        let due = (random.below(2) == 0).then(|| Millis(random.below(1_000).cast_signed()));
        let index = Index { ready: random.below(2) == 0, due };
        let summary = summary(&id, random.below(3).cast_signed());
        let snapshot = (random.below(4) == 0).then(|| random.below(1 << 30).to_le_bytes().to_vec());
        entry.events.extend(events.clone());
        if let Some(state) = &snapshot {
            entry.snapshot = Some((Seq(entry.events.len() as u64), state.clone()));
        }
        batch.runs.push(RunWrite {
            run: id,
            before: entry.head,
            events,
            index_before: entry.index,
            index,
            summary: summary.clone().into(),
            snapshot,
            origin: None,
        });
        (entry.index, entry.summary) = (index, Some(summary));
    }
    batch
}

fn compare(store: &dyn Store, model: &BTreeMap<RunId, Run>, seed: u64) -> Result<(), StoreError> {
    for (id, run) in model {
        assert_eq!(store.history(id, Seq(0), usize::MAX)?, run.events, "seed {seed}, run {id}");
        assert_eq!(store.head(id)?, Some((run.head, run.index)), "seed {seed}, run {id}");
        assert_eq!(store.summary(id)?, run.summary, "seed {seed}, run {id}");
        assert_eq!(store.snapshot(id)?, run.snapshot, "seed {seed}, run {id}");
    }
    let mine = |id: &RunId| id.as_str().starts_with(&format!("s{seed}-"));
    let ready: Vec<_> = model.iter().filter(|(_, run)| run.index.ready).map(|(id, _)| id.clone()).collect();
    let found = store.ready(None, usize::MAX)?;
    assert_eq!(found.into_iter().filter(mine).collect::<Vec<_>>(), ready, "seed {seed}");
    let mut due: Vec<_> = model.iter().filter_map(|(id, run)| Some((run.index.due?, id.clone()))).collect();
    due.sort();
    let found = store.due(None, Millis(i64::MAX), usize::MAX)?;
    assert_eq!(found.into_iter().filter(|(_, id)| mine(id)).collect::<Vec<_>>(), due, "seed {seed}");
    Ok(())
}
