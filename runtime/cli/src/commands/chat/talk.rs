//! One conversation: the run, what was shown of it, what it asks, and what a person's lines do.
//!
//! Invariant: everything shown comes from the run's history or from the attempt in hand, so it is the same after any crash; a line is
//! acknowledged only when it is durable.

use std::sync::Arc;

use outlast_protocol::requests::{Send, Start, Withdraw};
use outlast_protocol::run::{Frame, FrameKind, QuestionView, RunView, WaitingFor};
use outlast_protocol::{ApiError, Code};
use outlast_runtime::client::ClientError;
use outlast_runtime::host::{Session, SessionError};
use serde_json::{Value, json};

use super::face::Face;
use super::screen::Tone;
use super::transcript;
use super::voice::{self, Voice};
use crate::commands::act;
use crate::commands::run::start_chosen;
use crate::failure::{Exit, Failure};
use crate::flow_file::Chosen;
use crate::limits::{EVENTS_PAGE, TRANSCRIPT_LINES};
use crate::show;
use crate::tail::Tail;

/// Text of the attempt that is being shown as it comes.
#[derive(Debug, Default)]
struct Speech {
    op: String,
    attempt: u64,
    text: String,
}

/// A conversation.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) session: Arc<Session>,
    pub(super) face: Face,
    pub(super) voice: Voice,
    /// The flow that the first line starts.
    chosen: Chosen,
    pub(super) run: Option<RunView>,
    pub(super) tail: Option<Tail>,
    /// The last event that was shown.
    seen: u64,
    speech: Option<Speech>,
    /// What was shown as it came and is not to be shown again.
    said: String,
    /// Questions that were shown.
    asked: Vec<String>,
}

impl Talk {
    /// Begins with a flow that is not started yet.
    pub(super) fn new(session: Arc<Session>, face: Face, chosen: Chosen) -> Talk {
        let voice = Voice::of(chosen.flow.machine.root());
        let (run, tail, speech) = (None, None, None);
        Talk {
            session,
            face,
            voice,
            chosen,
            run,
            tail,
            seen: 0,
            speech,
            said: String::new(),
            asked: Vec::new(),
        }
    }

    /// Whether a run goes on that a person cannot move now.
    pub(super) fn is_busy(&self) -> bool {
        self.run.as_ref().is_some_and(|run| {
            run.outcome.is_none()
                && !matches!(run.waiting_for, Some(WaitingFor::Message { .. } | WaitingFor::Question { .. }))
        })
    }

    /// Whether the run only waits for what is said next.
    fn listens(&self) -> bool {
        let waiting = self.run.as_ref().and_then(|run| run.waiting_for.as_ref());
        matches!(waiting, Some(WaitingFor::Message { .. }))
    }

    /// Returns the oldest open question.
    pub(super) fn question(&self) -> Option<&QuestionView> {
        self.run.as_ref()?.questions.first()
    }

    /// Starts the run with what a person said first.
    pub(super) async fn begin(&mut self, line: &str) -> Result<(), Failure> {
        let chosen = &self.chosen;
        let input = match &self.voice.first {
            Some(parameter) => json!({ parameter: line }),
            None => json!({}),
        };
        let id = act::fresh_id(&chosen.flow.name.to_lowercase())?;
        let start = Start { id: Some(id), input, ..Start::default() };
        let started = start_chosen(&self.session, chosen, start).await?;
        self.follow(started.run).await
    }

    /// Shows a run and follows it.
    pub(super) async fn follow(&mut self, run: RunView) -> Result<(), Failure> {
        self.face.print(Tone::Aside, &format!("run {} of {}", run.id, run.flow))?;
        self.tail = Some(Tail::start(&self.session, &run.id, None));
        (self.seen, self.speech) = (0, None);
        self.asked.clear();
        self.run = Some(run);
        self.catch_up().await
    }

    /// Takes a frame of the run's stream.
    pub(super) async fn frame(&mut self, frame: &Frame) -> Result<(), Failure> {
        match frame.event {
            FrameKind::Partial => {
                self.partial(&frame.data);
                Ok(())
            }
            FrameKind::Emit
            | FrameKind::Question
            | FrameKind::Answered
            | FrameKind::State
            | FrameKind::Ended => {
                // Frames of the past come when a run is found again: they tell nothing new.
                let place = frame.id.as_ref().and_then(|id| id.rsplit_once('/')?.1.split_once('.'));
                let event = place.and_then(|(n, _)| n.parse::<u64>().ok());
                let news = event.is_none_or(|n| n > self.seen);
                if news { self.catch_up().await } else { Ok(()) }
            }
        }
    }

    fn partial(&mut self, data: &Value) {
        let (op, attempt) =
            (data["op"].as_str().unwrap_or_default(), data["attempt"].as_u64().unwrap_or_default());
        let Some(text) = data["text"].as_str() else {
            // The attempt whose text is on the screen was lost, and another one begins.
            if self.speech.as_ref().is_some_and(|speech| speech.op == op) {
                self.face.write(" (interrupted)\n");
                self.speech = None;
            }
            return;
        };
        let speech =
            self.speech.get_or_insert_with(|| Speech { op: op.to_owned(), attempt, text: String::new() });
        // One at a time: two voices in one line would be none.
        if speech.op == op && speech.attempt == attempt && self.face.write(text) {
            speech.text.push_str(text);
        }
    }

    /// Shows the events that were not shown yet, and where the run stands.
    pub(super) async fn catch_up(&mut self) -> Result<(), Failure> {
        let Some(run) = self.run.as_ref().map(|run| run.id.clone()) else { return Ok(()) };
        let first = self.seen == 0;
        let mut lines = Vec::new();
        loop {
            let after = self.seen;
            let page =
                self.session.call(async |client| client.events(&run, after, EVENTS_PAGE).await).await?;
            for event in &page.items {
                self.seen = self.seen.max(event["n"].as_u64().unwrap_or_default());
                lines.extend(self.lines_of(event));
            }
            if page.next.is_none() || self.seen == after {
                break;
            }
        }
        if first && lines.len() > TRANSCRIPT_LINES {
            let left_out = lines.len() - TRANSCRIPT_LINES;
            self.face.print(Tone::Aside, &format!("({left_out} earlier lines: outlast events {run})"))?;
            lines.drain(..left_out);
        }
        for (tone, line) in lines {
            self.face.print(tone, &line)?;
        }
        let view = self.session.call(async |client| client.run(&run).await).await?;
        self.ask(&view)?;
        self.run = Some(view);
        Ok(())
    }

    /// Returns what an event adds to what is on the screen.
    fn lines_of(&mut self, event: &Value) -> Vec<transcript::Line> {
        if self.speech.as_ref().is_some_and(|speech| Some(speech.op.as_str()) == event["op"].as_str()) {
            self.said = self.speech.take().map(|speech| speech.text).unwrap_or_default();
            // The last pieces of a text may come with its result only.
            if let Some(rest) = transcript::rest(&event["value"], &self.said)
                && self.face.write(rest)
            {
                self.said.push_str(rest);
            }
            self.face.end_tail();
        }
        let mut lines = transcript::lines(event);
        let shown = |text: &str| !text.trim().is_empty() && self.said.contains(text.trim());
        lines.retain(|(tone, text)| *tone != Tone::Said || !shown(text));
        lines
    }

    /// Shows questions that were not shown yet.
    fn ask(&mut self, view: &RunView) -> Result<(), Failure> {
        for question in &view.questions {
            if !self.asked.contains(&question.id) {
                self.asked.push(question.id.clone());
                self.face.print(Tone::Loud, &show::question(question))?;
                self.face.print(Tone::Aside, &choices(question))?;
            }
        }
        Ok(())
    }

    /// Does what a line means: an answer if a question is open and it is one, else a message.
    pub(super) async fn line(&mut self, line: &str) -> Result<(), Failure> {
        let Some(run) = self.run.as_ref().map(|run| run.id.clone()) else { return self.begin(line).await };
        if let Some(question) = self.question()
            && let Some(answer) = voice::answer(question, line)
        {
            let called = self.session.call(async |client| client.answer(&run, &answer).await).await;
            return self.told(called.map(|_| ())).await;
        }
        if line.trim().is_empty() {
            return Ok(());
        }
        let id = act::fresh_id("m")?;
        let Some(message) = self.voice.say(line, id) else {
            return self.face.print(Tone::Loud, "this flow takes no text; /help shows what else there is");
        };
        let called = self.session.call(async |client| client.message(&run, &message).await).await;
        self.told(called.map(|_| ())).await
    }

    /// Stops what goes on; returns whether there was something and the run was told.
    pub(super) async fn stop(&mut self) -> Result<bool, Failure> {
        if self.listens() {
            return Ok(false);
        }
        let Some(run) = self.run.as_ref().map(|run| run.id.clone()) else { return Ok(false) };
        let Some(stop) = self.voice.stop(act::fresh_id("m")?) else { return Ok(false) };
        match self.session.call(async |client| client.message(&run, &stop).await).await {
            Ok(_) => {
                self.catch_up().await?;
                Ok(true)
            }
            Err(SessionError::Call(ClientError::Refused(_))) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the newest message back that the run has not taken yet; returns its text.
    pub(super) async fn take_back(&mut self) -> Result<Option<String>, Failure> {
        let Some(run) = &self.run else { return Ok(None) };
        let Some(message) = run.unread.last() else { return Ok(None) };
        let text = message.pointer("/value/text").and_then(Value::as_str).map(str::to_owned);
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        let (run, withdraw) = (run.id.clone(), Withdraw { id });
        match self.session.call(async |client| client.withdraw(&run, &withdraw).await).await {
            Ok(_) => {
                self.catch_up().await?;
                Ok(text)
            }
            // The run took it in this very moment.
            Err(SessionError::Call(ClientError::Refused(_))) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Says that no more messages come.
    pub(super) async fn close(&mut self) -> Result<(), Failure> {
        let Some(run) = self.run.as_ref().map(|run| run.id.clone()) else { return Ok(()) };
        let closed = Send { name: "closed".to_owned(), value: json!({}), id: Some("closed".to_owned()) };
        let called = self.session.call(async |client| client.message(&run, &closed).await).await;
        self.told(called.map(|_| ())).await
    }

    /// Shows a refusal to the person, who may try something else; other failures end the conversation.
    async fn told(&mut self, called: Result<(), SessionError>) -> Result<(), Failure> {
        match called {
            Ok(()) => self.catch_up().await,
            Err(SessionError::Call(ClientError::Refused(ApiError { code, message, .. })))
                if code != Code::NotReady && code != Code::Internal =>
            {
                self.face.print(Tone::Loud, &message)?;
                self.catch_up().await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the status line.
    pub(super) fn status(&self) -> String {
        let Some(run) = &self.run else { return String::new() };
        let doing = match (&run.outcome, &run.waiting_for) {
            (Some(outcome), _) => outcome.kind.clone(),
            (None, Some(WaitingFor::Message { .. })) => "listens".to_owned(),
            (None, Some(WaitingFor::Question { .. })) => "asks".to_owned(),
            (None, Some(waiting)) => show::waiting_for(&run.id, waiting),
            (None, None) => "works; Esc stops".to_owned(),
        };
        let queued = match run.unread.len() {
            0 => String::new(),
            queued => format!(" · {queued} queued"),
        };
        format!("{} · {} · {doing} · {} events · cost {}{queued}", run.id, run.state, run.events, run.cost)
    }

    /// Returns what stands before the line that is typed.
    pub(super) fn prompt(&self) -> &'static str {
        match self.question() {
            Some(question) if question.wanted.is_some() => "answer> ",
            Some(question) if voice::always(&question.show).is_some() => "[y/N/a]> ",
            Some(_) => "[y/N]> ",
            None => "> ",
        }
    }

    /// Returns how the conversation ends, once the run has ended.
    pub(super) fn ended(&mut self) -> Result<Option<Exit>, Failure> {
        let Some(outcome) = self.run.as_ref().and_then(|run| run.outcome.clone()) else { return Ok(None) };
        self.face.print(Tone::Aside, &format!("the run has ended: {}", show::outcome(&outcome)))?;
        Ok(Some(show::exit_of(&outcome)))
    }
}

/// Says how a question may be answered.
fn choices(question: &QuestionView) -> String {
    if question.wanted.is_some() {
        return "  type the answer, or n to reject".to_owned();
    }
    let always =
        voice::always(&question.show).map(|pattern| format!(" · a: yes, and always {pattern} in this run"));
    format!("  y: yes · n: no, a note may follow{}", always.unwrap_or_default())
}
