//! Waiting for a run's end: showing what happens meanwhile, acting by policy, and leaving when it is time.
//!
//! Invariant: leaving never harms the run; whoever leaves before the end says how to come back.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::run::{Frame, FrameKind, OutcomeView, QuestionView};
use outlast_runtime::client::ResultView;
use outlast_runtime::host::{Session, SessionError};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use super::policy::{OnAsk, Step, step};
use super::{Output, act, nudge};
use crate::failure::{Exit, Failure};
use crate::limits::{AGAIN_MS, FIRST_WAIT_MS, LAST_FRAMES_MS_MAX, RESULT_WAIT_MS};
use crate::signals::Signals;
use crate::tail::Tail;
use crate::{out, show};

/// What is waited for, and how.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) run: String,
    pub(super) output: Output,
    pub(super) on_ask: OnAsk,
    pub(super) timeout: Option<Duration>,
    /// Whether this driver says that no more messages come.
    pub(super) closes: bool,
    /// Whether the run was there before, and waited for a message.
    pub(super) continues: bool,
}

impl Plan {
    /// A run that was cancelled because nobody was there to be asked has failed.
    fn exit_of(&self, exit: Exit) -> Exit {
        match (self.on_ask, exit) {
            (OnAsk::Fail, Exit::Cancelled) => Exit::Failed,
            (OnAsk::Wait | OnAsk::Fail | OnAsk::Deny | OnAsk::Approve, exit) => exit,
        }
    }
}

/// What the next turn of the loop is about.
enum Turn {
    Frame(Option<Result<Frame, Failure>>),
    Result(Result<ResultView, SessionError>),
    Signal(Exit),
    TimedOut,
    EngineFailed(String),
}

/// Waits for a run's end, or for a reason to leave it.
pub(super) async fn wait(session: &Arc<Session>, plan: &Plan) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let deadline = plan.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut tail = Some(Tail::start(session, &plan.run, None));
    let exit = turns(session, plan, &mut signals, deadline, &mut tail).await;
    if let Some(tail) = tail {
        tail.stop().await;
    }
    match &exit {
        Ok(exit) => tell_leaving(session, plan, *exit),
        Err(failure) if failure.exit() == Exit::Unavailable => tell_leaving(session, plan, Exit::Unavailable),
        Err(_) => {}
    }
    exit
}

async fn turns(
    session: &Arc<Session>,
    plan: &Plan,
    signals: &mut Signals,
    deadline: Option<Instant>,
    tail: &mut Option<Tail>,
) -> Result<Exit, Failure> {
    let mut failed = pin!(session.failed());
    let mut wait = Duration::from_millis(FIRST_WAIT_MS);
    loop {
        let mut result = pin!(next_result(session, &plan.run, wait));
        let view = loop {
            let turn = tokio::select! {
                frame = next_frame(tail) => Turn::Frame(frame),
                result = &mut result => Turn::Result(result),
                exit = signals.next() => Turn::Signal(exit),
                () = at(deadline) => Turn::TimedOut,
                why = &mut failed => Turn::EngineFailed(why),
            };
            match turn {
                Turn::Frame(Some(frame)) => {
                    let frame = frame?;
                    show_frame(&frame, plan.output)?;
                    // Others of the run's operations may go on for long: act on a question when it is asked.
                    if frame.event == FrameKind::Question {
                        asked(session, plan).await?;
                    }
                }
                Turn::Frame(None) => *tail = None,
                Turn::Result(view) => break view.map_err(|error| Failure::from(error).of_run(&plan.run))?,
                Turn::Signal(exit) => return Ok(exit),
                Turn::TimedOut => return timed_out(session, plan).await,
                Turn::EngineFailed(why) => return Err(Failure::new(Exit::Unavailable, why)),
            }
        };
        wait = Duration::from_millis(RESULT_WAIT_MS);
        if let Some(exit) = advance(session, plan, view, tail).await? {
            return Ok(exit);
        }
    }
}

/// Does what the policy says; returns the exit code if that is to leave.
async fn advance(
    session: &Session,
    plan: &Plan,
    view: ResultView,
    tail: &mut Option<Tail>,
) -> Result<Option<Exit>, Failure> {
    let run = &plan.run;
    match step(&view, plan.on_ask, plan.closes) {
        Step::Ended(outcome) => {
            rest_of_frames(tail, plan.output).await?;
            write_view(&view, plan.output)?;
            return show_outcome(run, &outcome, plan.output).map(|exit| Some(plan.exit_of(exit)));
        }
        Step::Leave(waiting) => {
            write_view(&view, plan.output)?;
            tell_questions(session, run).await;
            out::say(&format!("run {run} {}", show::waiting_for(run, &waiting)));
            return Ok(Some(Exit::Waiting));
        }
        Step::LookAround => {
            if let Some(directory) = nudge::missing_directory(session, run).await {
                let directory = directory.display();
                out::say(&format!(
                    "run {run} works in {directory}, which is missing: restore it to let it go on"
                ));
                write_view(&view, plan.output)?;
                return Ok(Some(Exit::Waiting));
            }
        }
        Step::Close => {
            if plan.continues {
                out::say(&format!(
                    "run {run} waits for messages, and this command sends none: it is closed (a fork goes on: outlast chat --fork {run})"
                ));
            }
            nudge::close(session, run).await?;
        }
        Step::Reject | Step::Cancel => asked(session, plan).await?,
        Step::Wait => {}
    }
    // What was done shows in the next answer; do not ask faster than it can.
    tokio::time::sleep(Duration::from_millis(AGAIN_MS)).await;
    Ok(None)
}

/// Does what the policy says of open questions. The stream tells people what became of them, below the question.
async fn asked(session: &Session, plan: &Plan) -> Result<(), Failure> {
    let rejected = nudge::asked(session, &plan.run, plan.on_ask).await?;
    if plan.output != Output::Text {
        nudge::tell_rejected(&rejected);
    }
    Ok(())
}

async fn next_result(session: &Session, run: &str, wait: Duration) -> Result<ResultView, SessionError> {
    session.call(async |client| client.result(run, wait).await).await
}

async fn next_frame(tail: &mut Option<Tail>) -> Option<Result<Frame, Failure>> {
    match tail {
        Some(tail) => tail.next().await,
        None => std::future::pending().await,
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn timed_out(session: &Session, plan: &Plan) -> Result<Exit, Failure> {
    let view = next_result(session, &plan.run, Duration::ZERO).await?;
    // It may have ended in this very moment.
    if let Some(outcome) = &view.outcome {
        write_view(&view, plan.output)?;
        return show_outcome(&plan.run, outcome, plan.output);
    }
    write_view(&view, plan.output)?;
    let why = view.waiting_for.map(|waiting| show::waiting_for(&plan.run, &waiting));
    out::say(&format!(
        "run {} has not ended in time{}",
        plan.run,
        why.map(|why| format!(": {why}")).unwrap_or_default()
    ));
    Ok(Exit::TimedOut)
}

/// Shows the frames that were on their way when the run ended.
async fn rest_of_frames(tail: &mut Option<Tail>, output: Output) -> Result<(), Failure> {
    let Some(mut tail) = tail.take() else { return Ok(()) };
    let end = Instant::now() + Duration::from_millis(LAST_FRAMES_MS_MAX);
    while let Ok(Some(frame)) = timeout(end - Instant::now(), tail.next()).await {
        show_frame(&frame?, output)?;
    }
    tail.stop().await;
    Ok(())
}

fn show_frame(frame: &Frame, output: Output) -> Result<(), Failure> {
    match output {
        Output::Json => Ok(()),
        // Frames without an id are no part of the history: another reader would not see them again.
        Output::Jsonl => match &frame.id {
            None => Ok(()),
            Some(id) => out::json(&line(frame, id)),
        },
        Output::Text => {
            match frame.event {
                FrameKind::Emit => out::say(&format!("| {}", out::tame(&show::value(&frame.data["value"])))),
                FrameKind::Question => {
                    if let Ok(question) = serde_json::from_value::<QuestionView>(frame.data.clone()) {
                        out::say(&show::question(&question));
                    }
                }
                FrameKind::Answered => out::say(&format!("  {}", answered(&frame.data))),
                FrameKind::State | FrameKind::Ended | FrameKind::Partial => {}
            }
            Ok(())
        }
    }
}

/// Says what became of a question.
fn answered(event: &Value) -> String {
    match (event["kind"].as_str(), event["note"].as_str()) {
        (Some("answered"), Some(nudge::NOBODY)) => "rejected by --on-ask deny".to_owned(),
        (Some("answered"), _) => show::answered(event),
        (_, _) => "not answered: the run went on without".to_owned(),
    }
}

/// Returns a frame as a line for machines.
fn line(frame: &Frame, id: &str) -> Value {
    let mut line = frame.data.clone();
    if let Value::Object(fields) = &mut line {
        fields.insert("kind".to_owned(), frame.event.name().into());
        fields.insert("frame".to_owned(), id.into());
    }
    line
}

/// Writes where the run stands, for machines.
fn write_view(view: &ResultView, output: Output) -> Result<(), Failure> {
    match output {
        Output::Text => Ok(()),
        Output::Json => out::json(view),
        Output::Jsonl => {
            let mut line = json!(view);
            line["kind"] = json!("result");
            out::json(&line)
        }
    }
}

/// Shows an outcome to people and returns the exit code for it.
pub(super) fn show_outcome(run: &str, outcome: &OutcomeView, output: Output) -> Result<Exit, Failure> {
    let exit = show::exit_of(outcome);
    if output == Output::Text {
        match exit {
            Exit::Done => out::result(&show::outcome(outcome))?,
            _ => out::say(&format!("run {run} {}", show::outcome(outcome))),
        }
    }
    Ok(exit)
}

async fn tell_questions(session: &Session, run: &str) {
    if let Ok(view) = session.call(async |client| client.run(run).await).await {
        for question in &view.questions {
            out::say(&format!("question {}\n{}", question.id, show::question(question)));
        }
    }
}

fn tell_leaving(session: &Session, plan: &Plan, exit: Exit) {
    match exit {
        Exit::Waiting | Exit::TimedOut | Exit::Signal(_) | Exit::Unavailable => {
            out::say(&format!(
                "run {} stays; to go on: {}",
                plan.run,
                act::again(&plan.run, session, plan.closes)
            ));
        }
        Exit::Done | Exit::Failed | Exit::Usage | Exit::Cancelled | Exit::SomeFailed => {}
    }
}
