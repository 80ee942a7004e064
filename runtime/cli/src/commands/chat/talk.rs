//! One conversation: the run, what was shown of it, and what it asks.
//!
//! Leaves what a person does to `deeds`. Invariant: everything shown comes from the run's history or from the attempt in hand, so it is the same after any crash.

use std::sync::Arc;

use outlast_protocol::requests::Start;
use outlast_protocol::run::{Frame, FrameKind, QuestionView, RunView, WaitingFor};
use outlast_runtime::host::Session;
use serde_json::{Value, json};

use super::face::Face;
use super::known::Known;
use super::mailbox::Mailbox;
use super::questions::{Extent, lines};
use super::screen::{Line, Tone};
use super::shell::Running;
use super::speech::{self, Speech};
use super::transcript;
use super::voice::Voice;
use crate::commands::act;
use crate::commands::run::start_chosen;
use crate::failure::Failure;
use crate::flow_file::Chosen;
use crate::limits::{CATCH_UPS_MAX, EVENTS_PAGE, TRANSCRIPT_LINES};
use crate::tail::Tail;

/// A conversation.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) session: Arc<Session>,
    pub(super) face: Face,
    pub(super) voice: Voice,
    /// The flow that the first line starts.
    pub(super) chosen: Chosen,
    pub(super) run: Option<RunView>,
    pub(super) known: Known,
    pub(super) tail: Option<Tail>,
    /// The person's own command.
    pub(super) command: Option<Running>,
    /// The last event that was shown.
    seen: u64,
    speech: Speech,
    pub(super) mailbox: Mailbox,
    /// The last that the flow said.
    pub(super) last_said: String,
    /// Questions that were shown.
    asked: Vec<String>,
}

impl Talk {
    /// Begins with a flow that is not started yet.
    pub(super) fn new(session: Arc<Session>, face: Face, chosen: Chosen) -> Talk {
        let voice = Voice::of(chosen.flow.machine.root());
        Talk {
            session,
            face,
            voice,
            chosen,
            run: None,
            known: Known::default(),
            tail: None,
            command: None,
            seen: 0,
            speech: Speech::default(),
            mailbox: Mailbox::default(),
            last_said: String::new(),
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
    pub(super) fn listens(&self) -> bool {
        let waiting = self.run.as_ref().and_then(|run| run.waiting_for.as_ref());
        matches!(waiting, Some(WaitingFor::Message { .. }))
    }

    /// Returns the open questions.
    pub(super) fn questions(&self) -> &[QuestionView] {
        self.run.as_ref().map(|run| run.questions.as_slice()).unwrap_or_default()
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
        // What is said on stderr on the way should not be said into the lower part.
        self.face.clear();
        let started = start_chosen(&self.session, chosen, start).await?;
        self.follow(started.run).await
    }

    /// Shows a run and follows it.
    pub(super) async fn follow(&mut self, run: RunView) -> Result<(), Failure> {
        self.face.print(Tone::Aside, &format!("run {} of {}", run.id, run.flow))?;
        self.tail = Some(Tail::start(&self.session, &run.id, None));
        (self.seen, self.speech) = (0, Speech::default());
        (self.mailbox, self.last_said) = (Mailbox::default(), String::new());
        self.face.end_text();
        self.asked.clear();
        self.known = Known::of(&self.session, &run, &self.chosen).await;
        self.voice = match &self.known.machine {
            Some(machine) => Voice::of(machine.root()),
            None => Voice::guessed(run.waiting_for.as_ref()),
        };
        self.run = Some(run);
        if let Some(gone) =
            self.known.profile.as_ref().map(|found| &found.directory).filter(|path| !path.is_dir())
        {
            let gone = gone.display();
            let text = format!(
                "{gone}, where this run works, is not there any more: nothing is run until it is again"
            );
            self.face.print(Tone::Loud, &text)?;
        }
        self.catch_up().await
    }

    /// Takes a frame of the run's stream.
    pub(super) async fn frame(&mut self, frame: &Frame) -> Result<(), Failure> {
        match frame.event {
            FrameKind::Partial => {
                let listens_at = self.run.as_ref().filter(|_| self.listens()).map(|run| run.events);
                // A frame that waited to be shown may be of a turn that was stopped meanwhile.
                if !speech::is_late(&frame.data, listens_at) {
                    self.speech.piece(&mut self.face, &frame.data);
                    // That a worker took it is no event: its first word says so.
                    if let Some(run) = &mut self.run {
                        run.waiting_for.take_if(|waiting| matches!(waiting, WaitingFor::Worker { .. }));
                    }
                }
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

    /// Shows the events that were not shown yet, and where the run stands.
    pub(super) async fn catch_up(&mut self) -> Result<(), Failure> {
        let Some(run) = self.run.as_ref().map(|run| run.id.clone()) else { return Ok(()) };
        let mut view = self.show_events(&run).await?;
        // What it asks stands below what led to it: the events that came meanwhile go first.
        for _ in 0..CATCH_UPS_MAX {
            if self.seen >= view.events {
                break;
            }
            view = self.show_events(&run).await?;
        }
        let all_seen = self.seen >= view.events;
        if all_seen {
            let gone = self.mailbox.gone(&view.unread);
            self.face.print_lines(&gone)?;
        }
        if matches!(self.face, Face::Plain) {
            let news = self.mailbox.news();
            self.face.print_lines(&news)?;
        }
        self.ask(&view)?;
        self.run = Some(view);
        // Who only listens says nothing any more: a turn that was stopped leaves no other trace of its last word.
        if all_seen && self.listens() {
            self.speech.interrupt(&mut self.face);
        }
        Ok(())
    }

    /// Shows the events that were not shown yet; returns where the run stands after them, or a little later.
    async fn show_events(&mut self, run: &str) -> Result<RunView, Failure> {
        let first = self.seen == 0;
        let mut lines = Vec::new();
        loop {
            let after = self.seen;
            let page = self.session.call(async |client| client.events(run, after, EVENTS_PAGE).await).await?;
            for event in &page.items {
                self.seen = self.seen.max(event["n"].as_u64().unwrap_or_default());
                self.known.take(event);
                let shown = self.lines_of(event);
                lines.extend(self.mailbox.event(event, shown));
            }
            if page.next.is_none() || self.seen == after {
                break;
            }
        }
        lines.extend(self.mailbox.rest());
        if first && lines.len() > TRANSCRIPT_LINES {
            let left_out = lines.len() - TRANSCRIPT_LINES;
            self.face.print(Tone::Aside, &format!("({left_out} earlier lines: outlast events {run})"))?;
            lines.drain(..left_out);
        }
        self.face.print_lines(&lines)?;
        Ok(self.session.call(async |client| client.run(run).await).await?)
    }

    /// Returns what an event adds to what is on the screen.
    fn lines_of(&mut self, event: &Value) -> Vec<Line> {
        self.speech.event(&mut self.face, event);
        let mut lines = transcript::lines(event);
        if let Some((_, text)) = lines.iter().rev().find(|(tone, _)| *tone == Tone::Said) {
            self.last_said.clone_from(text);
        }
        lines.retain(|(tone, text)| *tone != Tone::Said || !self.speech.was_shown(text));
        lines
    }

    /// Shows questions that were not shown yet.
    fn ask(&mut self, view: &RunView) -> Result<(), Failure> {
        for question in &view.questions {
            if !self.asked.contains(&question.id) {
                self.asked.push(question.id.clone());
                let directory = self.known.profile.as_ref().map(|profile| profile.directory.as_path());
                self.face.print_lines(&lines(question, directory, Extent::Brief))?;
            }
        }
        Ok(())
    }
}
