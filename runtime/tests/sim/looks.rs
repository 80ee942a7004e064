//! What people and programs look at: lists, histories, streams, and what the store says of itself.
//!
//! Leaves comparing to [`crate::seen`]. Invariant: looking changes nothing.

use outlast_kernel::ids::{RunId, Seq};
use outlast_protocol::run::{Frame, RunView};
use outlast_store::{Batch, Filter, MemoryStore, RunWrite, Side, Status, Store as _, StoreError, Table};
use serde_json::{Value as Json, json};

use crate::deed::Deed;
use crate::seen::{Verdict, demand};
use crate::world::{World, in_words, name, turn};

/// Turns that a reader waits for its answer while a commit is held.
const READ_TURNS: usize = 40;

impl World {
    /// Somebody follows a run from now on.
    pub(crate) async fn watch(&mut self, run: &str) -> Verdict {
        if let Ok(watch) = self.engine.watch(run, None).await {
            self.watches.push((run.to_owned(), watch));
        }
        Ok(())
    }

    /// Reads what streams show by now: it counts as promised.
    pub(crate) async fn read_streams(&mut self) {
        for (run, watch) in &mut self.watches {
            loop {
                let frame = tokio::select! {
                    biased;
                    frame = watch.next() => frame,
                    () = std::future::ready(()) => None,
                };
                let Some(frame) = frame else { break };
                self.seen.shown(run, frame);
            }
        }
    }

    /// Reads all runs and compares them with what was seen before.
    pub(crate) async fn look(&mut self) -> Verdict {
        if !self.engine.status()["failed"].is_null() {
            return Ok(());
        }
        self.check_store()?;
        for view in self.runs().await? {
            let mut events: Vec<Json> = Vec::new();
            loop {
                let after = events.iter().rev().find_map(|event| event["n"].as_u64()).unwrap_or(0);
                let Ok(page) = self.engine.events(&view.id, after, 1_000).await else { return Ok(()) };
                events.extend(page.items);
                if page.next.is_none() {
                    break;
                }
            }
            self.seen.read(&view.id, events)?;
            if let Some(outcome) = &view.outcome {
                self.seen.ended(&view.id, json!(outcome))?;
            }
        }
        Ok(())
    }

    pub(crate) async fn runs(&self) -> Result<Vec<RunView>, String> {
        let list = self.engine.list(Filter { limit: 100, ..Filter::default() }).await;
        Ok(list.map(|list| list.items).unwrap_or_default())
    }

    /// What is kept beside histories, to find work without reading them, is what follows from them.
    fn check_store(&self) -> Verdict {
        // A store that fails says nothing.
        let Ok(report) = self.store.check() else { return Ok(()) };
        demand(report.findings.is_empty(), || format!("the store finds {:?}", report.findings))?;
        let kept = self.store.get(Table::Setting, b"census");
        let (Ok(Some(kept)), Ok(page)) =
            (kept, self.store.summaries(&Filter { limit: 100, ..Filter::default() }))
        else {
            return Ok(());
        };
        let kept: Json = serde_json::from_slice(&kept).unwrap_or_default();
        let of = |status| page.items.iter().filter(|summary| summary.status == status).count();
        let questions =
            page.items.iter().map(|summary| summary.view["questions"].as_array().map_or(0, Vec::len));
        let doubts = page.items.iter().map(|summary| summary.view["in_doubt"].as_u64().unwrap_or(0));
        let counted = json!({
            "running": of(Status::Running), "waiting": of(Status::Waiting), "blocked": of(Status::Blocked),
            "ended": of(Status::Ended), "questions": questions.sum::<usize>(), "in_doubt": doubts.sum::<u64>(),
        });
        demand(kept["counts"] == counted, || format!("the census is {kept} and counting gives {counted}"))
    }

    /// Lets a deed happen and holds its commit on the way to the disk: what a reader sees meanwhile must be there afterwards, also
    /// if the process dies right then.
    pub(crate) async fn happen_in_sight(&mut self, deed: Deed, (run, dies): (u8, bool)) -> Verdict {
        // These do not go through the runtime, or read before they write: nothing of them could be held, or they would wait for what is.
        if matches!(deed, Deed::Crash | Deed::WriteAgain { .. } | Deed::Fork { .. } | Deed::Delete { .. }) {
            return self.happen(deed).await;
        }
        let (engine, store, run) = (self.engine.clone(), self.store.clone(), name(run));
        store.hold(Side::BeforeSync);
        let reading = async {
            turn().await;
            let patience = async {
                for _ in 0..READ_TURNS {
                    turn().await;
                }
            };
            let page = tokio::select! {
                biased;
                page = engine.events(&run, 0, 1_000) => page.ok(),
                () = patience => None,
            };
            if dies {
                store.crash_at(0, Side::BeforeSync);
            }
            store.release();
            page
        };
        let (verdict, page) = tokio::join!(self.happen(deed), reading);
        verdict?;
        page.map_or(Ok(()), |page| self.seen.read(&run, page.items))
    }

    /// A write comes once more, as one does of a process that was believed to be dead: it is refused.
    pub(crate) fn write_again(&mut self, run: u8) -> Verdict {
        let Ok(Some(write)) = last_write(&self.store, &name(run)) else { return Ok(()) };
        let answer = self.store.commit(&Batch { runs: vec![write], ..Batch::default() });
        demand(answer.is_err(), || format!("a write to {} that came twice was taken twice", name(run)))
    }

    /// Checks what only the end can show.
    pub(crate) async fn check(&mut self) -> Verdict {
        self.crash().await?;
        self.seen.check_histories()?;
        let runs = self.runs().await?;
        for view in &runs {
            match view.flow.as_str() {
                "Talk" => self.seen.check_talk(&view.id)?,
                "Trip" => self.seen.check_trip(&view.id)?,
                _ => {}
            }
            let frames = self.check_stream(&view.id).await?;
            self.seen.check_shown(&view.id, &frames)?;
        }
        let idle = self.workers.iter().all(|worker| worker.hands.is_empty());
        demand(idle, || "all has ended and somebody still has work".to_owned())
    }

    /// A stream that is resumed anywhere goes on without a gap and without a repetition.
    async fn check_stream(&self, run: &str) -> Result<Vec<Frame>, String> {
        let whole = self.frames(run, None).await?;
        for at in [0, whole.len() / 2, whole.len().saturating_sub(1)] {
            let Some(frame) = whole.get(at) else { continue };
            let id = frame.id.as_deref();
            let rest = self.frames(run, id).await?;
            demand(rest == whole[at + 1..], || {
                format!("the stream of {run} after {id:?} is {rest:?} of {whole:?}")
            })?;
        }
        Ok(whole)
    }

    async fn frames(&self, run: &str, after: Option<&str>) -> Result<Vec<Frame>, String> {
        let mut watch = self.engine.watch(run, after).await.map_err(in_words)?;
        let mut frames = Vec::new();
        while let Some(frame) = watch.next().await {
            if frame.id.is_some() {
                frames.push(frame);
            }
        }
        Ok(frames)
    }
}

/// Returns the last event of a run as it was written, or would be written if it stood alone.
fn last_write(store: &MemoryStore, run: &str) -> Result<Option<RunWrite>, StoreError> {
    let Ok(run) = RunId::new(run) else { return Ok(None) };
    let (Some((head, index)), Some(summary)) = (store.head(&run)?, store.summary(&run)?) else {
        return Ok(None);
    };
    let before = store.head_at(&run, Seq(head.seq.0 - 1))?.unwrap_or_default();
    let events = store.history(&run, before.seq, 1)?;
    let write = RunWrite {
        run,
        before,
        events,
        index_before: index,
        index,
        summary: summary.into(),
        snapshot: None,
        origin: None,
    };
    Ok(Some(write))
}
