//! The calls of drivers and clients as they come over a wire: defaults, limits and shapes, the same for HTTP and JSON-RPC.
//!
//! Leaves transport to its callers and runs to the engine. Invariant: a call means the same whichever way it came.

use std::time::Duration;

use outlast_kernel::Json;
use outlast_protocol::requests::{Deploy, FlowView, List, Send, Start};
use outlast_protocol::run::RunView;
use outlast_protocol::schedule::{KeptSchedule, Schedule};
use outlast_protocol::{ApiError, Code};
use outlast_store::{Filter, Status};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::duration;
use crate::engine::{DeployError, Engine};
use crate::http::Served;
use crate::limits::{EVENTS_PAGE, EVENTS_PAGE_MAX, RUNS_PAGE_MAX, WAIT_MS_MAX};

/// The calls of one caller.
#[derive(Clone, Copy)]
pub(crate) struct Api<'a> {
    /// What is served.
    pub(crate) served: &'a Served,
    /// Under which name the caller is recorded.
    pub(crate) by: &'static str,
    /// Whether the caller owns the data directory.
    pub(crate) is_owner: bool,
}

/// A run, and whether it was there before.
#[derive(Serialize)]
pub(crate) struct Started {
    #[serde(flatten)]
    pub(crate) run: RunView,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) existing: bool,
}

/// Which runs are listed.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Wanted {
    status: Option<String>,
    flow: Option<String>,
    profile: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
}

/// Which events are listed.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EventsPage {
    after: u64,
    limit: Option<usize>,
}

/// How long to wait.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Wait {
    pub(crate) wait: Option<String>,
}

impl<'a> Api<'a> {
    /// Returns the engine, for calls that need nothing else.
    pub(crate) fn engine(self) -> &'a Engine {
        &self.served.engine
    }

    /// Refuses what only the owner of the data directory may do.
    pub(crate) fn demand_owner(self) -> Result<(), ApiError> {
        if self.is_owner {
            return Ok(());
        }
        Err(ApiError::new(Code::Forbidden, "environment profiles are for the owner's socket only"))
    }

    /// Deploys flows.
    pub(crate) async fn deploy(self, deploy: Deploy) -> Result<Vec<FlowView>, DeployError> {
        if deploy.profile.is_some() {
            self.demand_owner()?;
        }
        self.engine().deploy(deploy).await
    }

    /// Starts a run, or finds it.
    pub(crate) async fn start(self, mut start: Start) -> Result<Started, ApiError> {
        start.profile = start.profile.take().or_else(|| self.profile_of(&start.flow));
        let (run, existing) = self.engine().start(start, self.by).await?;
        Ok(Started { run, existing })
    }

    /// Returns the environment of runs of a flow that name none: that of the flow if the server's own model is scripted, since a
    /// flow's script fits it better; else the server's own.
    fn profile_of(self, flow: &str) -> Option<String> {
        let of_flow = self.engine().flow(flow).and_then(|flow| flow.profile);
        of_flow.filter(|_| self.served.scripted).or_else(|| self.served.profile.clone())
    }

    /// Keeps a schedule, in the environment that its runs would have now.
    pub(crate) async fn put_schedule(
        self,
        name: &str,
        mut schedule: Schedule,
    ) -> Result<KeptSchedule, ApiError> {
        schedule.profile = schedule.profile.take().or_else(|| self.profile_of(&schedule.flow));
        self.engine().put_schedule(name, schedule).await
    }

    /// Lists runs.
    pub(crate) async fn list(self, wanted: Wanted) -> Result<List<RunView>, ApiError> {
        let status = match wanted.status.as_deref() {
            None => None,
            Some("running") => Some(Status::Running),
            Some("waiting") => Some(Status::Waiting),
            Some("blocked") => Some(Status::Blocked),
            Some("ended") => Some(Status::Ended),
            Some(other) => {
                let known = "`running`, `waiting`, `blocked` or `ended`";
                let message = format!("status: {known} is expected, not {other:?}");
                return Err(ApiError::new(Code::Invalid, message));
            }
        };
        let filter = Filter {
            status,
            flow: wanted.flow,
            profile: wanted.profile,
            after: wanted.cursor,
            limit: wanted.limit.unwrap_or_default().min(RUNS_PAGE_MAX),
        };
        self.engine().list(filter).await
    }

    /// Returns where a run stands, in short.
    pub(crate) async fn result(self, run: &str, query: Wait) -> Result<Json, ApiError> {
        let run = self.engine().result(run, wait(query.wait.as_deref())?).await?;
        let mut shown = json!({ "id": run.id, "status": run.status });
        if let Some(outcome) = run.outcome {
            shown["outcome"] = json!(outcome);
        }
        if let Some(waiting_for) = run.waiting_for {
            shown["waiting_for"] = json!(waiting_for);
        }
        Ok(shown)
    }

    /// Sends a message and, if so wanted, waits until the run took it.
    pub(crate) async fn message(self, run: &str, query: Wait, send: Send) -> Result<Json, ApiError> {
        match query.wait.as_deref() {
            None => Ok(json!(self.engine().message(run, send, self.by).await?)),
            Some("handled") => {
                let handled = self.engine().message_handled(run, send, self.by);
                let handled = tokio::time::timeout(Duration::from_millis(WAIT_MS_MAX), handled).await;
                let late = |_| ApiError::new(Code::Overloaded, "the message is accepted, but not taken yet");
                let late = |error| late(error).of_run(run).hint("send it again with the same id to wait on");
                handled.map_err(late)?
            }
            Some(other) => {
                let message = format!("wait: `handled` is expected, not {other:?}");
                Err(ApiError::new(Code::Invalid, message))
            }
        }
    }

    /// Lists events.
    pub(crate) async fn events(self, run: &str, page: EventsPage) -> Result<List<Json>, ApiError> {
        let limit = page.limit.unwrap_or(EVENTS_PAGE).clamp(1, EVENTS_PAGE_MAX);
        self.engine().events(run, page.after, limit).await
    }
}

/// Reads a `wait`, cut to what one request may wait.
fn wait(text: Option<&str>) -> Result<Duration, ApiError> {
    let wait = text.map_or(Ok(Duration::ZERO), duration::parse);
    let wait = wait.map_err(|error| ApiError::new(Code::Invalid, format!("wait: {error}")))?;
    Ok(wait.min(Duration::from_millis(WAIT_MS_MAX)))
}
