//! Runs one attempt to its end, whatever the end is.
//!
//! Leaves what the attempt does to its activity. Invariant: the end is put on the desk exactly once, after the attempt's future is
//! gone and its holds are dropped; a `once` attempt that broke off is reported as stopped, never as failed, because nobody knows
//! whether its effect happened.

use std::sync::Arc;
use std::time::Instant;

use outlast_protocol::worker::{OutcomeKind, StoppedWhy};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument as _;

use super::activity::{Activity, Done, Failure};
use super::context::{Hand, Home, TaskContext};
use super::desk::bad_result;
use crate::limits::{HOLD_MAX, RESULT_BYTES_MAX, STOP_GRACE};

type Ended = Result<Result<Done, Failure>, JoinError>;

/// Runs the attempt and puts its end on the desk. What is logged meanwhile says of which attempt it is.
pub(crate) async fn run(
    activity: Option<Arc<dyn Activity>>,
    hand: Arc<Hand>,
    all_gone: mpsc::Receiver<()>,
    home: Home,
) {
    let task = &hand.task;
    let (run, op, attempt) = (&task.run, &task.op, task.attempt);
    let span = tracing::info_span!("attempt", run, op, attempt, activity = task.activity);
    to_its_end(activity, Arc::clone(&hand), all_gone, home).instrument(span).await;
}

async fn to_its_end(
    activity: Option<Arc<dyn Activity>>,
    hand: Arc<Hand>,
    mut all_gone: mpsc::Receiver<()>,
    home: Home,
) {
    let started = Instant::now();
    let kind = match activity {
        Some(activity) => {
            let context = TaskContext::new(hand.clone(), home.clone());
            let work = tokio::spawn(async move { activity.run(context).await }.in_current_span());
            until_end(work, &hand).await
        }
        None => {
            let text = format!("this worker does not offer {}", hand.task.activity);
            OutcomeKind::Failed {
                error: Failure::new("UnknownActivity", text).into_error(),
                cost: None,
                usage: None,
            }
        }
    };
    hand.close_holds();
    if tokio::time::timeout(HOLD_MAX, all_gone.recv()).await.is_err() {
        tracing::error!("an attempt left processes behind");
    }
    tracing::debug!(took = ?started.elapsed(), "ended");
    home.desk.finish(&hand.task.token, kind);
}

async fn until_end(mut work: JoinHandle<Result<Done, Failure>>, hand: &Hand) -> OutcomeKind {
    let out_of_time = async {
        match hand.ends_at {
            Some(end) => tokio::time::sleep_until(end.into()).await,
            None => std::future::pending().await,
        }
    };
    let why = tokio::select! {
        ended = &mut work => return match hand.why() {
            Some(why) => after_stop(ended, why, hand),
            None => outcome(ended, hand),
        },
        why = hand.stopped() => why,
        () = out_of_time => StoppedWhy::Timeout,
    };
    hand.stop(why);
    if hand.listens()
        && let Ok(ended) = tokio::time::timeout(STOP_GRACE, &mut work).await
    {
        return after_stop(ended, why, hand);
    }
    work.abort();
    // An activity that blocks its thread cannot be aborted; the report does not wait for it for ever.
    match tokio::time::timeout(STOP_GRACE, &mut work).await {
        Ok(ended) => after_stop(ended, why, hand),
        Err(_) => {
            tracing::error!(
                activity = hand.task.activity,
                "an activity blocks its thread and cannot be stopped"
            );
            OutcomeKind::Stopped { why }
        }
    }
}

/// The end of an attempt that was asked to end.
fn after_stop(ended: Ended, why: StoppedWhy, hand: &Hand) -> OutcomeKind {
    match ended {
        // It came to an end in spite of all: that is the truth, and the runtime judges whether it still counts.
        Ok(Ok(done)) => outcome(Ok(Ok(done)), hand),
        Ok(Err(_)) | Err(_) => OutcomeKind::Stopped { why },
    }
}

fn outcome(ended: Ended, hand: &Hand) -> OutcomeKind {
    match ended {
        Ok(Ok(done)) => match serde_json::to_vec(&done.value) {
            Ok(bytes) if bytes.len() > RESULT_BYTES_MAX => {
                bad_result(&format!("the result has {} bytes; {RESULT_BYTES_MAX} are allowed", bytes.len()))
            }
            Ok(_) => OutcomeKind::Done { value: done.value, cost: done.cost, usage: done.usage },
            Err(error) => bad_result(&format!("the result cannot be written as JSON: {error}")),
        },
        Ok(Err(failure)) => {
            let (cost, usage) =
                (failure.cost.as_deref().map(str::to_owned), failure.usage.as_deref().cloned());
            OutcomeKind::Failed { error: failure.into_error(), cost, usage }
        }
        Err(_) if hand.task.effect == "once" => {
            tracing::error!(activity = hand.task.activity, "an activity panicked; its effect is in doubt");
            OutcomeKind::Stopped { why: StoppedWhy::BrokenOff }
        }
        Err(error) => {
            let text = format!("the activity panicked: {}", panic_text(error));
            OutcomeKind::Failed {
                error: Failure::new("Panicked", text).into_error(),
                cost: None,
                usage: None,
            }
        }
    }
}

fn panic_text(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(panic) => {
                panic.downcast::<&str>().map_or_else(|_| "no text".to_owned(), |text| (*text).to_owned())
            }
        },
        Err(error) => error.to_string(),
    }
}
