//! Runs that are forked from others, and runs that are deleted, in any order.
//!
//! Leaves comparing to [`crate::seen`]. Invariant: no run gets the id of another one that was deleted.

use outlast_protocol::requests::Fork;
use serde_json::Value as Json;

use crate::seen::{Verdict, demand};
use crate::world::{World, name};

impl World {
    /// Forks a run from one of its events.
    pub(crate) async fn fork(&mut self, run: u8, at: u8) -> Verdict {
        let parent = name(run);
        let Ok(page) = self.engine.events(&parent, 0, 1_000).await else { return Ok(()) };
        if page.items.is_empty() {
            return Ok(());
        }
        let shared = 1 + usize::from(at) % page.items.len();
        let id = format!("f{run}-{shared}");
        let fork = Fork { at: Some(shared as u64), id: Some(id.clone()), children: None };
        if self.seen.is_gone(&id) || self.engine.fork(&parent, fork, "ann").await.is_err() {
            return Ok(());
        }
        self.seen.started.insert(id.clone());
        self.seen.forked(&id, page.items[..shared].to_vec())
    }

    /// Deletes a run that has ended.
    pub(crate) async fn delete(&mut self, which: u8) -> Verdict {
        // What it was is read first: afterwards nobody can.
        self.look().await?;
        let own = |id: &str| id.starts_with('r') || id.starts_with('f');
        let ended = self.runs().await?.into_iter().filter(|run| run.outcome.is_some() && own(&run.id));
        let mut ended: Vec<String> = ended.map(|run| run.id).collect();
        ended.sort_unstable();
        let Some(id) = ended.get(usize::from(which) % ended.len().max(1)) else { return Ok(()) };
        // A process that dies may have deleted it, or not.
        self.seen.perhaps_deleted.insert(id.clone());
        if self.engine.delete(id).await.is_err() {
            return Ok(());
        }
        self.seen.deleted.insert(id.clone());
        let left = self.engine.get(id).await;
        demand(left.is_err(), || format!("{id} was deleted and is {left:?}"))
    }
}

/// An event as it is in every run that shares it.
pub(crate) fn nobodys(event: &Json) -> Json {
    let mut event = event.clone();
    if let Some(fields) = event.as_object_mut() {
        fields.remove("run");
    }
    event
}
