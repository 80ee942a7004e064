//! Why a test failed, with everything that helps to see why.
//!
//! Leaves showing it to the callers. Invariant: it always names the step at which it was noticed.

use outlast_dsl::diag::{Diagnostic, FileId, TextSpan, catalogue};

use crate::diff::shown_path;

/// Why a test failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFailure {
    /// The step at which it was noticed.
    pub span: TextSpan,
    /// What is wrong.
    pub message: String,
    /// What was expected.
    pub expected: Option<String>,
    /// What was found instead.
    pub found: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// The states that the run went through, from its start.
    pub path: Vec<String>,
    /// The last events, newest last.
    pub events: Vec<String>,
    /// The crash after which it was noticed; none: it fails without one.
    pub crash: Option<String>,
}

impl TestFailure {
    /// Returns it as a diagnostic of the test's file.
    #[must_use]
    pub fn diagnostic(&self, file: FileId) -> Diagnostic {
        let message = match &self.crash {
            None => self.message.clone(),
            Some(crash) => format!("{}, {crash}", self.message),
        };
        let mut diagnostic = Diagnostic::error(catalogue::tests::FAILED, file, self.span, message);
        diagnostic.expected.clone_from(&self.expected);
        diagnostic.hint.clone_from(&self.hint);
        diagnostic
    }

    /// Returns the path; of a long one its beginning, its end, and how many states are left out between them.
    #[must_use]
    pub fn path_shown(&self) -> String {
        shown_path(&self.path)
    }

    /// Returns what a diagnostic has no place for, as lines of a word and a text.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts: Vec<(&'static str, String)> = Vec::new();
        facts.extend(self.found.iter().map(|found| ("found", found.clone())));
        if !self.path.is_empty() {
            facts.push(("path", self.path_shown()));
        }
        facts.extend(self.events.iter().map(|event| ("event", event.clone())));
        facts
    }
}

/// What stops a play, before it is known at which step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) expected: Option<String>,
    pub(crate) found: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) why: Why,
}

/// What kind of problem it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Something is not as the test expects.
    Expectation,
    /// The test does not say what a call gives.
    NoReply,
    /// A promise of the runtime is broken.
    Promise,
}

impl Problem {
    /// Something is not as the test expects.
    pub(crate) fn new(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), expected: None, found: None, hint: None, why: Why::Expectation }
    }

    /// A promise of the runtime is broken.
    pub(crate) fn promise(message: impl Into<String>) -> Problem {
        Problem { why: Why::Promise, ..Problem::new(message) }
    }

    #[must_use]
    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Problem {
        self.expected = Some(expected.into());
        self
    }

    #[must_use]
    pub(crate) fn found(mut self, found: impl Into<String>) -> Problem {
        self.found = Some(found.into());
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }
}
