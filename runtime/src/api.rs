//! The calls of drivers and clients as they come over a wire: defaults, limits, rights and shapes, the same for HTTP and JSON-RPC.
//!
//! Leaves transport to its callers, runs to the engine and what a caller may do to `access`. Invariant: a call means the same whichever
//! way it came; what a caller may not know of is answered as if it were not there.

mod limited;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outlast_dsl::machine::Machine;
use outlast_kernel::Json;
use outlast_protocol::access::Scope;
use outlast_protocol::audit::AuditRecord;
use outlast_protocol::requests::{
    Accepted, Answer, Cancel, Deploy, FlowView, Fork, List, Migrate, Permissions, Retention, Send, Start,
};
use outlast_protocol::run::RunView;
use outlast_protocol::schedule::{KeptSchedule, Schedule};
use outlast_protocol::{ApiError, Code};
use outlast_store::{Filter, Status};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::access::{Caller, Need};
use crate::duration;
use crate::engine::{DeployError, Engine};
use crate::http::Served;
use crate::limits::{EVENTS_PAGE, EVENTS_PAGE_MAX, RUNS_PAGE_MAX, WAIT_MS_MAX, WHY_CHARS_MAX};

/// The calls of one caller.
#[derive(Clone, Copy)]
pub(crate) struct Api<'a> {
    /// What is served.
    pub(crate) served: &'a Served,
    /// Who calls.
    pub(crate) caller: &'a Caller,
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

    /// Returns under which name the caller is recorded.
    pub(crate) fn by(self) -> String {
        self.caller.by()
    }

    /// Deploys flows.
    pub(crate) async fn deploy(self, deploy: Deploy) -> Result<Vec<FlowView>, DeployError> {
        if deploy.profile.is_some() {
            self.caller.demand(Need::Owner)?;
        }
        self.engine().deploy_if(deploy, &|flow| self.caller.sees(flow)).await
    }

    /// Lists the deployed flows.
    pub(crate) fn flows(self) -> Result<List<FlowView>, ApiError> {
        let mut items = self.engine().flows()?;
        items.retain(|flow| self.caller.sees(&flow.name));
        Ok(List { items, next: None })
    }

    /// Starts a run, or finds it.
    pub(crate) async fn start(self, mut start: Start) -> Result<Started, ApiError> {
        self.see_flow(&start.flow)?;
        self.demand_terms(start.profile.as_deref(), start.permissions.as_ref())?;
        start.profile = start.profile.take().or_else(|| self.profile_of(&start.flow));
        let started = match self.caller.demand(Need::Scope(Scope::Send)) {
            Ok(()) => self.engine().start(start, &self.by()).await,
            Err(_) => self.engine().start_or_find(start, &self.by()).await,
        };
        let (run, existing) = started.map_err(|error| self.veil(error))?;
        Ok(Started { run, existing })
    }

    /// Forks a run, or finds the fork.
    pub(crate) async fn fork(self, run: &str, fork: Fork) -> Result<Started, ApiError> {
        let forked = self.engine().fork(run, fork, &self.by()).await;
        let (run, existing) = forked.map_err(|error| self.veil(error))?;
        Ok(Started { run, existing })
    }

    /// Refuses terms of new runs that are beyond the caller: an environment is what a run may touch, and a tool that is allowed in advance
    /// is a question that is answered in advance.
    fn demand_terms(self, profile: Option<&str>, permissions: Option<&Permissions>) -> Result<(), ApiError> {
        if profile.is_some() && matches!(self.caller, Caller::Token(_)) {
            self.caller.demand(Need::Scope(Scope::Admin)).map_err(|error| error.at("profile"))?;
        }
        if permissions.is_some_and(|permissions| !permissions.allow.is_empty()) {
            self.caller.demand_every_role().map_err(|error| error.at("permissions"))?;
        }
        Ok(())
    }

    /// Answers a question, in a role that the caller has.
    pub(crate) async fn answer(self, run: &str, answer: Answer) -> Result<Accepted, ApiError> {
        if answer.always.is_some() {
            self.caller.demand_every_role().map_err(|error| error.at("always"))?;
        }
        let answer = Answer { role: self.caller.in_role(answer.role)?, ..answer };
        self.engine().answer(run, answer, &self.by()).await
    }

    /// Asks a run to end.
    pub(crate) async fn cancel(self, run: &str, cancel: Cancel) -> Result<Accepted, ApiError> {
        let by = match cancel.why {
            None => self.by(),
            Some(why) if is_word(&why) => format!("{}: {why}", self.by()),
            Some(_) => {
                let message = format!("why: 1 to {WHY_CHARS_MAX} small letters, digits or `_` are expected");
                return Err(ApiError::new(Code::Invalid, message).at("why"));
            }
        };
        self.engine().cancel(run, &by).await
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
        self.see_flow(&schedule.flow)?;
        self.demand_terms(schedule.profile.as_deref(), schedule.permissions.as_ref())?;
        self.demand_free(name).await?;
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
            statuses: status.into_iter().collect(),
            besides: BTreeSet::new(),
            flow: wanted.flow,
            profile: wanted.profile,
            started_before: None,
            after: self.open_cursor(wanted.cursor)?,
            limit: page_limit(wanted.limit, RUNS_PAGE_MAX)?.unwrap_or_default(),
        };
        let list = self.engine().list(self.narrow(filter)).await?;
        Ok(self.seen(list, |run| self.caller.sees(&run.flow)))
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
            None => Ok(json!(self.engine().message(run, send, &self.by()).await?)),
            Some("handled") => {
                let by = self.by();
                let handled = self.engine().message_handled(run, send, &by);
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

    /// Returns a machine by its hash, as runs name it.
    pub(crate) fn machine(self, hash: &str) -> Result<Arc<Machine>, ApiError> {
        self.see_machine(hash)?;
        self.engine().machine(hash)
    }

    /// Returns bytes by their hash, to whoever may look at runs or works for them; to whom may know of some flows only, those of their runs.
    pub(crate) async fn blob(self, hash: &str) -> Result<Vec<u8>, ApiError> {
        let works = self.caller.demand(Need::Scope(Scope::Work));
        self.caller.demand(Need::Scope(Scope::Read)).or(works)?;
        let sees = |flow: &str| self.caller.sees(flow);
        let limited = self.caller.flows().is_some();
        self.engine().blob(hash, limited.then_some(&sees)).await
    }

    /// Returns how long ended runs are kept, as far as the caller may know of their flows.
    pub(crate) fn retention(self) -> Result<Retention, ApiError> {
        let mut retention = self.engine().retention()?;
        retention.flows.retain(|flow, _| self.caller.sees(flow));
        Ok(retention)
    }

    /// Says how long ended runs are kept.
    pub(crate) async fn put_retention(self, retention: Retention) -> Result<Retention, ApiError> {
        if self.caller.flows().is_some() {
            let message = "how long runs are kept is said for all flows; this token is limited to some";
            return Err(ApiError::new(Code::Forbidden, message).hint("ask for a token without --flow"));
        }
        self.engine().put_retention(&retention).await?;
        Ok(retention)
    }

    /// Lets a run go on with another version of its flow.
    pub(crate) async fn migrate(self, run: &str, migrate: Migrate) -> Result<Json, ApiError> {
        self.see_machine(&migrate.machine)?;
        self.engine().migrate(run, migrate, &self.by()).await
    }

    /// Returns the figures of the engine; to whom they would tell of what is not theirs, whether it is ready.
    pub(crate) fn status(self) -> Json {
        let status = self.engine().status();
        if self.caller.flows().is_none() && self.caller.demand(Need::Scope(Scope::Read)).is_ok() {
            return status;
        }
        json!({ "ready": status["ready"], "recovering": status["recovering"] })
    }

    /// Lists events.
    pub(crate) async fn events(self, run: &str, page: EventsPage) -> Result<List<Json>, ApiError> {
        let limit = page_limit(page.limit, EVENTS_PAGE_MAX)?.unwrap_or(EVENTS_PAGE);
        self.engine().events(run, page.after, limit).await
    }

    /// Lists what events say about who did what.
    pub(crate) async fn audit(self, run: &str, page: EventsPage) -> Result<List<AuditRecord>, ApiError> {
        let limit = page_limit(page.limit, EVENTS_PAGE_MAX)?.unwrap_or(EVENTS_PAGE);
        self.engine().audit(run, page.after, limit).await
    }
}

/// Tells whether a text is one word, so that it can stand after a name.
fn is_word(why: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (1..=WHY_CHARS_MAX).contains(&why.len()) && why.chars().all(fits)
}

/// Reads a `limit`, cut to the most that a page has.
fn page_limit(limit: Option<usize>, most: usize) -> Result<Option<usize>, ApiError> {
    match limit {
        Some(0) => {
            let message = format!("limit: a number from 1 on is expected ({most} at most count), not 0");
            Err(ApiError::new(Code::Invalid, message)
                .at("limit")
                .hint("without `limit` a page has a usual size"))
        }
        limit => Ok(limit.map(|limit| limit.min(most))),
    }
}

/// Reads a `wait`, cut to what one request may wait.
fn wait(text: Option<&str>) -> Result<Duration, ApiError> {
    let wait = text.map_or(Ok(Duration::ZERO), duration::parse);
    let wait = wait.map_err(|error| ApiError::new(Code::Invalid, format!("wait: {error}")))?;
    Ok(wait.min(Duration::from_millis(WAIT_MS_MAX)))
}
