//! What callers see who may know of some flows only.
//!
//! Invariant: neither an item, nor an error, nor a cursor tells them that there is a run, a flow or a schedule beyond theirs. That an id is
//! taken is all that they learn when they want it for themselves.

use outlast_kernel::Json;
use outlast_protocol::requests::List;
use outlast_protocol::run::RunView;
use outlast_protocol::schedule::ScheduleView;
use outlast_protocol::{ApiError, Code};
use outlast_store::Filter;

use super::Api;
use crate::access::Caller;
use crate::engine::errors;

impl Api<'_> {
    fn is_limited(self) -> bool {
        self.caller.flows().is_some()
    }

    /// Refuses a flow that the caller may not know of, as one that is not deployed.
    pub(crate) fn see_flow(self, flow: &str) -> Result<(), ApiError> {
        if self.caller.sees(flow) { Ok(()) } else { Err(errors::no_flow(flow)) }
    }

    /// Refuses a machine of a flow that the caller may not know of, as one that is not there.
    pub(super) fn see_machine(self, hash: &str) -> Result<(), ApiError> {
        if !self.is_limited() || self.caller.sees(&self.engine().flow_of_machine(hash)?) {
            return Ok(());
        }
        Err(errors::no_machine(hash))
    }

    /// Refuses a run that the caller may not know of, as one that is not there.
    pub(crate) fn see_run(self, run: &str) -> Result<(), ApiError> {
        if !self.is_limited() || self.caller.sees(&self.engine().flow_of(run)?) {
            return Ok(());
        }
        Err(errors::no_run(run))
    }

    /// Returns a schedule that the caller may know of.
    pub(crate) async fn schedule(self, name: &str) -> Result<ScheduleView, ApiError> {
        let schedule = self.engine().schedule(name).await?;
        if self.caller.sees(&schedule.definition.flow) {
            Ok(schedule)
        } else {
            Err(errors::no_schedule(name))
        }
    }

    /// Lists schedules.
    pub(crate) async fn schedules(self) -> Result<List<ScheduleView>, ApiError> {
        let list = self.engine().schedules().await?;
        Ok(self.seen(list, |schedule| self.caller.sees(&schedule.definition.flow)))
    }

    /// Refuses the name of a schedule that another flow has.
    pub(super) async fn demand_free(self, name: &str) -> Result<(), ApiError> {
        if !self.is_limited() {
            return Ok(());
        }
        match self.engine().schedule(name).await {
            Ok(other) if !self.caller.sees(&other.definition.flow) => Err(taken("name", name)),
            Ok(_) => Ok(()),
            Err(error) if error.code == Code::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lists what runs weigh.
    pub(crate) async fn usages(self, cursor: Option<String>) -> Result<List<Json>, ApiError> {
        let list = self.engine().usages(self.open_cursor(cursor)?).await?;
        let sees = |item: &Json| {
            let run = item["run"].as_str().unwrap_or_default();
            self.see_run(run).is_ok()
        };
        Ok(self.seen(list, sees))
    }

    /// Lists a run's relatives.
    pub(crate) async fn tree(self, run: &str) -> Result<List<RunView>, ApiError> {
        let list = self.engine().tree(run).await?;
        Ok(List {
            items: list.items.into_iter().filter(|run| self.caller.sees(&run.flow)).collect(),
            next: list.next,
        })
    }

    /// Has the store look for one flow only, if that is all that the caller may know of.
    pub(super) fn narrow(self, filter: Filter) -> Filter {
        match self.caller.flows() {
            Some([flow]) if filter.flow.is_none() => Filter { flow: Some(flow.clone()), ..filter },
            Some(_) | None => filter,
        }
    }

    /// Leaves out what the caller may not know of. The cursor names the last run that was looked at, which may be such a one, so it is sealed.
    pub(super) fn seen<T>(self, list: List<T>, sees: impl Fn(&T) -> bool) -> List<T> {
        if !self.is_limited() {
            return list;
        }
        let List { items, next } = list;
        let next = next.map(|next| self.engine().seal(&next));
        List { items: items.into_iter().filter(|item| sees(item)).collect(), next }
    }

    pub(super) fn open_cursor(self, cursor: Option<String>) -> Result<Option<String>, ApiError> {
        match cursor {
            Some(sealed) if self.is_limited() => match self.engine().unseal(&sealed) {
                Some(cursor) => Ok(Some(cursor)),
                None => Err(ApiError::new(Code::InvalidCursor, "no page gave this cursor to this token")),
            },
            cursor => Ok(cursor),
        }
    }

    /// Says of a run in the way no more than that its id is taken.
    pub(super) fn veil(self, error: ApiError) -> ApiError {
        match (self.caller, error.code, error.run.as_deref()) {
            (Caller::Token(_), Code::Conflict, Some(run)) if self.is_limited() => taken("id", run),
            _ => error,
        }
    }
}

fn taken(at: &str, id: &str) -> ApiError {
    ApiError::new(Code::Conflict, format!("{id:?} is taken, or was asked for otherwise"))
        .at(at)
        .hint("give another one")
}
