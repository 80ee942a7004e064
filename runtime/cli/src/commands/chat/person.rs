//! A person at a terminal: what their keys do.
//!
//! Leaves the line to `editor`, lists to `picker`, and what a line means to `said`.

use tokio::signal::unix::Signal;
use tokio::time::{Duration, Instant};

use super::complete::{Completed, Names, complete, wants};
use super::editor::{Edited, Editor};
use super::history::History;
use super::keys::{Key, Keys};
use super::picker::{Picked, Picker};
use super::questions::is_answer;
use super::said::{After, How, directory, said};
use super::screen::Tone;
use super::slash::{self, Takes};
use super::talk::Talk;
use super::terminal::{self, Terminal, Typing};
use super::{approve, choose, edit};
use crate::failure::{Exit, Failure};
use crate::limits::TWICE_MS;
use crate::signals::Signals;

/// What a Tab writes where there is nothing to complete.
const TAB: &str = "    ";

/// A person at a terminal.
pub(super) struct Person {
    pub(super) terminal: Terminal,
    pub(super) typing: Typing,
    pub(super) editor: Editor,
    /// The list that they pick from.
    pub(super) picker: Option<Picker>,
    pub(super) signals: Signals,
    pub(super) stop: Signal,
    pub(super) go_on: Signal,
    keys: Keys,
    /// The key that means more when it is pressed twice, and when it was.
    pressed: Option<(Key, Instant)>,
}

impl Person {
    /// Begins to listen to them.
    pub(super) fn new(
        terminal: Terminal,
        signals: Signals,
        stop: Signal,
        go_on: Signal,
    ) -> Result<Person, Failure> {
        Ok(Person {
            terminal,
            typing: Typing::open()?,
            editor: Editor::new(History::of_user()),
            picker: None,
            signals,
            stop,
            go_on,
            keys: Keys::default(),
            pressed: None,
        })
    }

    /// Takes what was typed; returns how to leave, if they do.
    pub(super) async fn typed(&mut self, talk: &mut Talk, bytes: &[u8]) -> Result<Option<Exit>, Failure> {
        for key in self.keys.read(bytes) {
            let after = match &mut self.picker {
                Some(picker) => match picker.press(key) {
                    Picked::Nothing => After::Stay,
                    Picked::Left => {
                        self.picker = None;
                        After::Stay
                    }
                    Picked::Taken(choice) => {
                        self.picker = None;
                        if !choice.then.is_empty() {
                            self.editor.put(&choice.then);
                        }
                        slash::command(talk, &choice.command).await?
                    }
                },
                None => match self.editor.press(key) {
                    Edited::Changed => After::Stay,
                    Edited::Line(line) => self.said(talk, &line, How::Entered).await?,
                    Edited::FollowUp(line) => self.said(talk, &line, How::FollowUp).await?,
                    Edited::Other(key) => self.control(talk, key).await?,
                },
            };
            if let Some(exit) = self.after(talk, after).await? {
                return Ok(Some(exit));
            }
        }
        Ok(None)
    }

    /// Does what a finished line means, and keeps it if it is worth bringing back: answers are not.
    async fn said(&mut self, talk: &mut Talk, line: &str, how: How) -> Result<After, Failure> {
        let answers = how == How::Entered && !talk.questions().is_empty() && is_answer(line);
        let after = said(talk, line, how).await;
        match &after {
            // It stands in the line again.
            Ok(After::Back(_)) => {}
            Ok(After::Refused) => self.editor.remember(line),
            Ok(_) if answers => {}
            Ok(_) | Err(_) => self.editor.keep(line),
        }
        after
    }

    /// Shows and keeps what they had typed and not sent, when it is time to leave.
    pub(super) fn leave(&mut self, talk: &mut Talk) -> Result<(), Failure> {
        let line = self.editor.text();
        if line.trim().is_empty() {
            return Ok(());
        }
        self.editor.clear();
        self.editor.keep(&line);
        talk.face.print(Tone::Loud, &format!("not sent; Up has it the next time: {line}"))
    }

    /// Does what a line or a key led to.
    pub(super) async fn after(&mut self, talk: &mut Talk, after: After) -> Result<Option<Exit>, Failure> {
        let mut after = after;
        loop {
            match after {
                After::Stay | After::Refused => return Ok(None),
                After::Leave => return Ok(Some(Exit::Done)),
                After::Back(line) => {
                    self.editor.put(&line);
                    return Ok(None);
                }
                After::Pick(picker) => {
                    self.picker = Some(picker);
                    return Ok(None);
                }
                After::Edit(question) => match self.edited(talk, &question).await? {
                    Ok(next) => after = next,
                    Err(exit) => return Ok(Some(exit)),
                },
            }
        }
    }

    /// Lets them change what a question shows, in their editor or in the line.
    async fn edited(&mut self, talk: &mut Talk, id: &str) -> Result<Result<After, Exit>, Failure> {
        let Some(question) = talk.questions().iter().find(|question| question.id == id) else {
            return Ok(Ok(After::Stay));
        };
        let text = approve::text_of(question);
        let Some(program) = edit::program() else {
            talk.face.print(
                Tone::Aside,
                "change it here and press Enter (VISUAL or EDITOR would open your editor)",
            )?;
            return Ok(Ok(After::Back(approve::command_with(id, &text))));
        };
        talk.face.clear();
        self.terminal.leave();
        let outcome = edit::edit(&program, &text, &mut self.signals, &mut self.stop).await;
        self.terminal.enter()?;
        talk.face.begin_anew();
        match outcome? {
            edit::Outcome::Leave(exit) => Ok(Err(exit)),
            edit::Outcome::Nothing(why) => {
                talk.face.print(Tone::Loud, &format!("{why}; nothing was sent"))?;
                Ok(Ok(After::Stay))
            }
            edit::Outcome::Text(same) if same == text => {
                talk.face
                    .print(Tone::Aside, "nothing was changed, so nothing was sent; y approves it as it is")?;
                Ok(Ok(After::Stay))
            }
            edit::Outcome::Text(text) => {
                slash::command(talk, &approve::command_with(id, &text)).await.map(Ok)
            }
        }
    }

    /// Stops the process until it is told to go on, with the terminal as it was.
    pub(super) async fn suspend(&mut self, talk: &mut Talk) -> Result<(), Failure> {
        talk.face.clear();
        self.terminal.leave();
        terminal::stop()?;
        self.go_on.recv().await;
        self.terminal.enter()?;
        talk.face.begin_anew();
        Ok(())
    }

    async fn control(&mut self, talk: &mut Talk, key: Key) -> Result<After, Failure> {
        match key {
            Key::Control('d') if self.editor.is_empty() => return Ok(After::Leave),
            Key::Control('z') => self.suspend(talk).await?,
            Key::Control('l') => talk.face.print(Tone::Plain, "\n")?,
            Key::Control('c') => return self.interrupt(talk).await,
            // What was to be changed stays as it is.
            Key::Escape if self.editor.text().starts_with(approve::EDITING) => self.editor.clear(),
            Key::Escape => {
                let again = self.again(Key::Escape);
                if again && self.editor.is_empty() {
                    return choose::remark(talk);
                }
                if talk.stop().await? {
                    talk.face.print(Tone::Aside, "(stopped; Esc again: back to something you said)")?;
                }
            }
            Key::TakeBack => {
                if let Some(text) = talk.take_back().await? {
                    self.editor.put(&text);
                }
            }
            Key::Tab => self.complete(talk).await?,
            // Keys without a meaning here.
            _ => {}
        }
        Ok(After::Stay)
    }

    /// Clears the line; or ends the person's own command; or stops what goes on; or leaves.
    async fn interrupt(&mut self, talk: &mut Talk) -> Result<After, Failure> {
        if !self.editor.is_empty() {
            self.editor.clear();
            return Ok(After::Stay);
        }
        if let Some(command) = &talk.command {
            command.interrupt();
            return Ok(After::Stay);
        }
        if self.again(Key::Control('c')) {
            return Ok(After::Leave);
        }
        let stopped = if talk.stop().await? { "stopped; " } else { "" };
        talk.face.print(Tone::Aside, &format!("({stopped}Ctrl-C again leaves, and the run stays)"))?;
        Ok(After::Stay)
    }

    /// Whether the same key was pressed a moment ago; then a third press begins anew.
    fn again(&mut self, key: Key) -> bool {
        let within = |at: Instant| at.elapsed() < Duration::from_millis(TWICE_MS);
        let again = self.pressed.take().is_some_and(|(before, at)| before == key && within(at));
        if !again {
            self.pressed = Some((key, Instant::now()));
        }
        again
    }

    async fn complete(&mut self, talk: &mut Talk) -> Result<(), Failure> {
        let before = self.editor.before();
        let mut names = Names::default();
        match wants(&before) {
            Some(Takes::Run) => {
                let runs = choose::unfinished(&talk.session, choose::Where::Anywhere).await?;
                names.runs = runs.into_iter().map(|run| run.id).collect();
            }
            Some(Takes::Event) => {
                names.events = talk.known.remarks.iter().map(|remark| remark.n.to_string()).collect();
            }
            Some(Takes::Question) => {
                names.questions = talk.questions().iter().map(|question| question.id.clone()).collect();
            }
            Some(Takes::File | Takes::Nothing) | None => {}
        }
        match complete(&before, &names, &directory()) {
            Completed::Text(from, text) => self.editor.replace(from, &text),
            Completed::Several(words) => talk.face.print(Tone::Aside, &words.join("  "))?,
            Completed::Nothing if before.starts_with('/') => {}
            Completed::Nothing => {
                self.editor.press(Key::Text(TAB.to_owned()));
            }
        }
        Ok(())
    }
}
