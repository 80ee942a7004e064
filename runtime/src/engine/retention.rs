//! How long ended runs are kept.
//!
//! Leaves deleting to the shards, which look again. Invariant: a run is deleted only when its last event is older than its flow's time.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_kernel::ids::{Millis, RunId};
use outlast_protocol::requests::Retention;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Filter, Put, Status, Summary, Table};
use tokio::sync::oneshot;

use super::core::Core;
use super::message::Message;
use super::{Engine, errors};
use crate::duration;
use crate::limits;

/// The key of the rules in [`Table::Setting`].
const KEY: &[u8] = b"retention";

impl Engine {
    /// Returns how long ended runs are kept.
    ///
    /// # Errors
    /// [`Code::Internal`] if that cannot be read.
    pub fn retention(&self) -> Result<Retention, ApiError> {
        self.core.retention()
    }

    /// Says how long ended runs are kept, in the place of what was said before.
    ///
    /// # Errors
    /// [`Code::Invalid`] for a time that is none or too short, [`Code::DiskFull`].
    pub async fn put_retention(&self, retention: &Retention) -> Result<(), ApiError> {
        Times::of(retention)?;
        let value = serde_json::to_vec(retention).map_err(|e| ApiError::new(Code::Invalid, e.to_string()))?;
        let put = Put { table: Table::Setting, key: KEY.to_vec(), value: Some(value) };
        self.core.ctx.committer.put(vec![put]).await.map_err(|refused| errors::refused(&refused))?;
        self.core.ctx.retention.notify_one();
        Ok(())
    }
}

/// Times in milliseconds; none: for ever.
struct Times {
    keep: Option<u64>,
    flows: BTreeMap<String, Option<u64>>,
}

impl Times {
    fn of(retention: &Retention) -> Result<Times, ApiError> {
        if retention.flows.len() > limits::RETENTION_FLOWS_MAX {
            let message = format!("at most {} flows have a time of their own", limits::RETENTION_FLOWS_MAX);
            return Err(ApiError::new(Code::Invalid, message).at("flows"));
        }
        let keep = retention.keep.as_deref().map(|text| time(text, "keep")).transpose()?;
        let flow = |(name, text): (&String, &Option<String>)| {
            let ms = text.as_deref().map(|text| time(text, &format!("flows.{name}"))).transpose()?;
            Ok((name.clone(), ms))
        };
        Ok(Times { keep, flows: retention.flows.iter().map(flow).collect::<Result<_, ApiError>>()? })
    }

    /// Returns the shortest of them.
    fn shortest(&self) -> Option<u64> {
        self.flows.values().copied().chain([self.keep]).flatten().min()
    }

    /// Tells whether a run was kept long enough.
    fn is_over(&self, run: &Summary, now: Millis) -> bool {
        let keep = self.flows.get(&run.flow).copied().unwrap_or(self.keep);
        keep.is_some_and(|ms| run.updated_at.plus(ms) <= now)
    }
}

fn time(text: &str, at: &str) -> Result<u64, ApiError> {
    let refuse = |message: String| ApiError::new(Code::Invalid, message).at(at);
    let time = duration::parse(text).map_err(|error| refuse(error.to_string()))?;
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    if ms < limits::RETENTION_MS_MIN {
        return Err(refuse(format!("{text:?} is too short: ended runs are kept for 1m at least")));
    }
    Ok(ms)
}

impl Core {
    fn retention(&self) -> Result<Retention, ApiError> {
        let bytes = self.ctx.store.get(Table::Setting, KEY).map_err(|e| errors::store(&e))?;
        let Some(bytes) = bytes else { return Ok(Retention::default()) };
        serde_json::from_slice(&bytes)
            .map_err(|e| ApiError::new(Code::Internal, format!("the retention cannot be read: {e}")))
    }

    /// Deletes what was kept long enough, for ever.
    pub(crate) async fn retain(self: Arc<Core>) {
        let clock = Arc::clone(&self.ctx.clock);
        loop {
            let next = match self.retention().and_then(|retention| Times::of(&retention)) {
                Ok(times) => match times.shortest() {
                    Some(shortest) => {
                        self.delete_what_is_over(&times, shortest).await;
                        clock.now().plus(limits::RETENTION_EVERY_MS)
                    }
                    None => Millis(i64::MAX),
                },
                Err(error) => {
                    tracing::error!(%error, "ended runs are kept: nobody knows how long");
                    clock.now().plus(limits::RETENTION_EVERY_MS)
                }
            };
            tokio::select! {
                () = self.ctx.retention.notified() => {}
                () = clock.sleep_until(next) => {}
            }
        }
    }

    async fn delete_what_is_over(&self, times: &Times, shortest: u64) {
        let now = self.ctx.clock.now();
        // Runs are listed by their starts, and what started later cannot have ended long enough ago.
        let started_before = Some(Millis(now.0.saturating_sub_unsigned(shortest)).plus(1));
        let statuses = vec![Status::Ended];
        let mut filter =
            Filter { statuses, started_before, limit: limits::RETENTION_PAGE, ..Filter::default() };
        loop {
            let (store, wanted) = (Arc::clone(&self.ctx.store), filter.clone());
            let page = match tokio::task::spawn_blocking(move || store.summaries(&wanted)).await {
                Ok(Ok(page)) => page,
                Ok(Err(error)) => {
                    return tracing::error!(%error, "ended runs cannot be read; looking again later");
                }
                Err(_) => return,
            };
            let over = page.items.into_iter().filter(|summary| times.is_over(summary, now));
            self.delete_all(over.map(|summary| summary.run).collect()).await;
            filter.after = page.next;
            if filter.after.is_none() {
                return;
            }
        }
    }

    async fn delete_all(&self, runs: Vec<RunId>) {
        let mut answers = Vec::new();
        for run in runs {
            let (reply, answer) = oneshot::channel();
            if self.shards.send(&run, Message::Delete(run.clone(), reply)).await.is_err() {
                return;
            }
            answers.push((run, answer));
        }
        for (run, answer) in answers {
            if let Ok(Err(error)) = answer.await {
                // It is looked at again: somebody has to hear of it, or it is quarantined.
                tracing::debug!(run = %run, %error, "an ended run is kept for now");
            }
        }
    }
}
