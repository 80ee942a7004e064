//! What a line means: a command of the conversation, a command of the person's own, an answer, or a message.
//!
//! Invariant: a line is done, or comes back to the person with a word why.

use std::path::PathBuf;

use outlast_protocol::requests::Answer;

use super::deeds::Taken;
use super::mention;
use super::picker::Picker;
use super::questions::{Meant, is_answer, is_id, meant};
use super::screen::Tone;
use super::shell::{Piece, Running};
use super::slash;
use super::talk::Talk;
use crate::failure::Failure;

/// What a line leads to.
#[derive(Debug)]
pub(super) enum After {
    /// The conversation goes on.
    Stay,
    /// The person leaves.
    Leave,
    /// The line was not taken: it is to be mended.
    Back(String),
    /// The line was not taken, and there is nothing in it to mend: the next keys begin a new one.
    Refused,
    /// They are to pick something.
    Pick(Picker),
    /// They want to change what this question shows.
    Edit(String),
}

impl After {
    /// Whatever was not taken comes back.
    pub(super) fn of(taken: Taken, line: &str) -> After {
        match taken {
            Taken::Yes => After::Stay,
            Taken::No => After::Back(line.to_owned()),
        }
    }
}

/// How a line was finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// By Enter.
    Entered,
    /// It came as a plain line: there are no keys to say it otherwise.
    Read,
    /// As a message for after this turn: it is never an answer.
    FollowUp,
}

/// Does what a line means.
pub(super) async fn said(talk: &mut Talk, line: &str, how: How) -> Result<After, Failure> {
    if line.starts_with('/') {
        return slash::command(talk, line).await;
    }
    if let Some(command) = line.strip_prefix('!') {
        return own_command(talk, line, command.trim());
    }
    if how != How::FollowUp {
        match meant(talk.questions(), line) {
            Meant::Answer(answer) => return answered(talk, &answer, line).await,
            Meant::Edit(question) => return Ok(After::Edit(question)),
            Meant::Unclear(why) => {
                talk.face.print(Tone::Loud, &why)?;
                return Ok(not_taken(line));
            }
            // A line that begins with a space is said whatever is asked.
            Meant::NoAnswer(why) if how == How::Entered && !line.starts_with(' ') => {
                talk.face.print(Tone::Loud, &format!("{why}; Alt-Enter sends it as a message"))?;
                return Ok(After::Back(line.to_owned()));
            }
            Meant::NoAnswer(why) => talk.face.print(Tone::Aside, &format!("{why}: it is a message"))?,
            Meant::Other => {}
        }
    }
    if line.trim().is_empty() {
        return Ok(After::Stay);
    }
    match mention::expand(line, &directory()) {
        Ok(message) => talk.say(&message).await.map(|taken| After::of(taken, line)),
        Err(why) => {
            talk.face.print(Tone::Loud, &why)?;
            Ok(After::Back(line.to_owned()))
        }
    }
}

/// Answers a question.
async fn answered(talk: &mut Talk, answer: &Answer, line: &str) -> Result<After, Failure> {
    if talk.answer(answer).await? == Taken::No {
        return Ok(not_taken(line));
    }
    if answer.choice == "approve" && answer.note.is_some() {
        let where_it_is =
            "(the note stands in the history; a flow hears one only with a no: say it as a message)";
        talk.face.print(Tone::Aside, where_it_is)?;
    }
    Ok(After::Stay)
}

/// A line that was not taken: a mere word of an answer is not to be mended, so that the next one stands alone.
fn not_taken(line: &str) -> After {
    let mut rest = line.split_whitespace().skip(1);
    let is_bare = rest.next().is_none_or(is_id) && rest.next().is_none();
    if line.trim().is_empty() || is_bare && is_answer(line) {
        return After::Refused;
    }
    After::Back(line.to_owned())
}

/// Starts a command of the person's own.
fn own_command(talk: &mut Talk, line: &str, command: &str) -> Result<After, Failure> {
    let why = match (command, &talk.command) {
        ("", _) => "a command is expected after the !, such as !ls".to_owned(),
        (_, Some(_)) => "your command still runs; Ctrl-C ends it".to_owned(),
        (command, None) => {
            match std::env::current_exe().and_then(|guard| Running::start(&guard, command, &directory())) {
                Ok(running) => {
                    talk.face.print(Tone::Aside, &format!("$ {command}"))?;
                    talk.command = Some(running);
                    return Ok(After::Stay);
                }
                Err(error) => format!("the command cannot be started: {error}"),
            }
        }
    };
    talk.face.print(Tone::Loud, &why)?;
    Ok(After::Back(line.to_owned()))
}

/// Shows what a command of the person's own says.
pub(super) fn heard(talk: &mut Talk, piece: Piece) -> Result<(), Failure> {
    match piece {
        Piece::Line(line) => talk.face.print(Tone::Plain, &line),
        Piece::End(None) => Ok(()),
        Piece::End(Some(how)) => talk.face.print(Tone::Aside, &format!("(the command {how})")),
    }
}

/// Returns the directory that the person is in.
pub(super) fn directory() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mere_word_that_was_not_taken_does_not_stay_in_the_line() {
        for (line, stays) in [
            ("a", false),
            ("e", false),
            ("y 5.0", false),
            ("", false),
            ("n because", true),
            ("y 5.0 because", true),
            ("hello", true),
        ] {
            assert_eq!(matches!(not_taken(line), After::Back(back) if back == line), stays, "{line:?}");
        }
    }
}
