//! One item: its run is started or found again, and followed to its end.
//!
//! Leaves writing the row to the batch. Invariant: dropping an item at any moment harms nothing; its run stays and is found again.

use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::requests::Start;
use outlast_protocol::run::{OutcomeView, WaitingFor};
use outlast_protocol::{ApiError, Code};
use outlast_runtime::batch::{Item, Row};
use outlast_runtime::client::{ClientError, Started};
use outlast_runtime::host::{Session, SessionError};
use outlast_runtime::limits::EVENTS_PAGE_MAX;
use tokio::time::{sleep, timeout};

use super::super::run::nudge;
use super::super::run::policy::{OnAsk, Step, step};
use crate::failure::Failure;
use crate::limits::{AGAIN_MS, FIRST_WAIT_MS, RESULT_WAIT_MS};

/// Why a batch cancels a run whose item takes too long: so its history says, and the row of the item.
const ITEM_TIMEOUT: &str = "item_timeout";

/// How items are worked on.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// What every run is started with; id and input are the item's.
    pub(super) start: Start,
    pub(super) on_ask: OnAsk,
    pub(super) item_timeout: Option<Duration>,
    pub(super) retry_failed: bool,
}

/// What became of an item.
#[derive(Debug)]
pub(super) enum Ended {
    /// It has ended.
    Row(Box<Row>),
    /// Its run had ended before.
    Before(Box<Row>),
    /// Only people can move it.
    Parked(Parked),
}

/// An item that only people can move.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parked {
    pub(super) id: String,
    pub(super) line: u64,
    pub(super) run: String,
    pub(super) waiting: WaitingFor,
}

/// An item whose run is there.
#[derive(Clone, Debug)]
struct Place {
    id: String,
    line: u64,
    run: String,
}

/// Returns the row of a line that cannot become a run.
pub(super) fn invalid(id: String, line: u64, error: ApiError) -> Row {
    Row { id, line, status: "invalid".to_owned(), run: None, outcome: None, error: Some(error), why: None }
}

/// Works on an item until its run has ended, or only people can move it.
pub(super) async fn work(session: Arc<Session>, plan: Arc<Plan>, item: Item) -> Result<Ended, Failure> {
    let Item { id, line, input, .. } = item;
    let input = match input {
        Ok(input) => input,
        Err(error) => return Ok(Ended::Row(Box::new(invalid(id, line, error)))),
    };
    let mut attempt = 1_u64;
    loop {
        let run = run_of(&id, attempt);
        let start = Start { id: Some(run.clone()), input: input.clone(), ..plan.start.clone() };
        let started = session.call(async |client| client.start(&start).await).await;
        let Started { run: view, existing } = match started {
            Ok(started) => started,
            Err(error) => return refused(error).map(|error| Ended::Row(Box::new(invalid(id, line, error)))),
        };
        let place = Place { id: id.clone(), line, run };
        let Some(outcome) = view.outcome else { return follow(&session, &plan, place).await };
        // What ended before this command began may have been tried again since, or is to be tried again now.
        let over = existing && outcome.kind != "done";
        if over && (plan.retry_failed || is_there(&session, &run_of(&id, attempt + 1)).await?) {
            attempt += 1;
            continue;
        }
        let why = why(&session, &plan, &place.run, &outcome, None).await?;
        let row = Box::new(row(place, outcome, why));
        return Ok(if existing { Ended::Before(row) } else { Ended::Row(row) });
    }
}

/// Looks again at an item that only people could move.
pub(super) async fn look_again(
    session: Arc<Session>,
    plan: Arc<Plan>,
    parked: Parked,
) -> Result<Ended, Failure> {
    let Parked { id, line, run, .. } = parked;
    follow(&session, &plan, Place { id, line, run }).await
}

fn run_of(id: &str, attempt: u64) -> String {
    if attempt == 1 { id.to_owned() } else { format!("{id}~{attempt}") }
}

/// Returns why an item cannot become a run, if that is about this item; else the batch cannot go on.
fn refused(error: SessionError) -> Result<ApiError, Failure> {
    match error {
        SessionError::Call(ClientError::Refused(refused))
            if matches!(refused.code, Code::Invalid | Code::TooLarge | Code::Conflict) =>
        {
            Ok(refused)
        }
        error => Err(error.into()),
    }
}

async fn is_there(session: &Session, run: &str) -> Result<bool, Failure> {
    match session.call(async |client| client.run(run).await).await {
        Ok(_) => Ok(true),
        Err(SessionError::Call(ClientError::Refused(ApiError { code: Code::NotFound, .. }))) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

enum End {
    Outcome(OutcomeView),
    Parked(WaitingFor),
}

async fn follow(session: &Session, plan: &Plan, place: Place) -> Result<Ended, Failure> {
    let ending = to_the_end(session, plan, &place.run);
    let (end, why) = match plan.item_timeout {
        None => (ending.await?, None),
        Some(time) => match timeout(time, ending).await {
            Ok(end) => (end?, None),
            Err(_) => {
                let cancelled =
                    session.call(async |client| client.cancel_because(&place.run, ITEM_TIMEOUT).await).await;
                nudge::settled(cancelled)?;
                (to_the_end(session, plan, &place.run).await?, Some(ITEM_TIMEOUT))
            }
        },
    };
    Ok(match end {
        End::Parked(waiting) => {
            let Place { id, line, run } = place;
            Ended::Parked(Parked { id, line, run, waiting })
        }
        End::Outcome(outcome) => {
            let why = self::why(session, plan, &place.run, &outcome, why).await?;
            Ended::Row(Box::new(row(place, outcome, why)))
        }
    })
}

/// Returns why a batch cancelled a run: `known` if it was this process.
async fn why(
    session: &Session,
    plan: &Plan,
    run: &str,
    outcome: &OutcomeView,
    known: Option<&'static str>,
) -> Result<Option<&'static str>, Failure> {
    // What ended by itself at the last moment was not cancelled.
    if outcome.kind != "cancelled" {
        return Ok(None);
    }
    if known.is_some() || had_its_time(session, run).await? {
        return Ok(Some(ITEM_TIMEOUT));
    }
    Ok((plan.on_ask == OnAsk::Fail).then_some("asked"))
}

/// Tells whether the history says that a run was cancelled because the time of its item was over.
async fn had_its_time(session: &Session, run: &str) -> Result<bool, Failure> {
    let mut after = 0;
    loop {
        let page = session.call(async |client| client.audit(run, after, EVENTS_PAGE_MAX).await).await;
        let page = page.map_err(|error| Failure::from(error).of_run(run))?;
        if let Some(cancelled) = page.items.iter().find(|record| record.what == "cancelled") {
            return Ok(cancelled.detail.as_deref() == Some(ITEM_TIMEOUT));
        }
        match page.next.and_then(|next| next.parse().ok()) {
            Some(next) => after = next,
            None => return Ok(false),
        }
    }
}

async fn to_the_end(session: &Session, plan: &Plan, run: &str) -> Result<End, Failure> {
    let told = |error: SessionError| Failure::from(error).of_run(run);
    let mut wait = Duration::from_millis(FIRST_WAIT_MS);
    loop {
        let view = session.call(async |client| client.result(run, wait).await).await.map_err(told)?;
        wait = Duration::from_millis(RESULT_WAIT_MS);
        match step(&view, plan.on_ask, true) {
            Step::Ended(outcome) => return Ok(End::Outcome(outcome)),
            Step::Leave(waiting) => return Ok(End::Parked(waiting)),
            Step::LookAround => {
                let missing = nudge::missing_directory(session, run).await.is_some();
                if let Some(waiting) = view.waiting_for.filter(|_| missing) {
                    return Ok(End::Parked(waiting));
                }
            }
            Step::Close => nudge::close(session, run).await?,
            Step::Reject | Step::Cancel => {
                nudge::tell_rejected(&nudge::asked(session, run, plan.on_ask).await?);
            }
            Step::Wait => {}
        }
        // What was done shows in the next answer; do not ask faster than it can.
        sleep(Duration::from_millis(AGAIN_MS)).await;
    }
}

fn row(place: Place, outcome: OutcomeView, why: Option<&str>) -> Row {
    let Place { id, line, run } = place;
    let run = (run != id).then_some(run);
    let why = why.map(str::to_owned);
    Row { id, line, status: outcome.kind.clone(), run, outcome: Some(outcome), error: None, why }
}
