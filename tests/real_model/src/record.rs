//! What was answered so far: tests see here that an answer is still being made, or was given up.
//!
//! Invariant: an answer has an end as soon as no more tokens are made for it, however that came.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::limits::ANSWERS_MAX;

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The model had said all.
    Stop,
    /// It reached the limit of tokens.
    Length,
    /// Whoever asked went away.
    Dropped,
    /// The model could not be run.
    Failed,
}

#[derive(Debug)]
struct Answer {
    prompt_tokens: usize,
    tokens: usize,
    end: Option<End>,
}

/// All answers, in order of their requests.
#[derive(Debug, Default)]
pub(crate) struct Record {
    answers: Mutex<Vec<Answer>>,
}

/// An answer that is being made. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Open<'a> {
    record: &'a Record,
    at: usize,
}

impl End {
    pub(crate) fn name(self) -> &'static str {
        match self {
            End::Stop => "stop",
            End::Length => "length",
            End::Dropped => "dropped",
            End::Failed => "failed",
        }
    }
}

impl Record {
    /// Begins an answer; none if as many are made as there may be.
    pub(crate) fn open(&self, prompt_tokens: usize) -> Option<Open<'_>> {
        let mut answers = self.answers();
        if answers.iter().filter(|answer| answer.end.is_none()).count() >= ANSWERS_MAX {
            return None;
        }
        answers.push(Answer { prompt_tokens, tokens: 0, end: None });
        Some(Open { record: self, at: answers.len() - 1 })
    }

    /// All answers, as JSON.
    pub(crate) fn told(&self) -> Value {
        let told = |answer: &Answer| {
            let end = answer.end.map(End::name);
            json!({"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.tokens, "end": end})
        };
        self.answers().iter().map(told).collect()
    }

    fn answers(&self) -> MutexGuard<'_, Vec<Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open<'_> {
    /// Counts a token.
    pub(crate) fn token(&self) {
        self.record.answers()[self.at].tokens += 1;
    }

    /// Notes the end; the first one counts.
    pub(crate) fn end(&self, end: End) {
        self.record.answers()[self.at].end.get_or_insert(end);
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.end(End::Failed);
    }
}
