//! Diagnostics: what every part of the crate says about a source text, and how it is shown.
//!
//! Leaves finding faults to the lexer, the parser and the checker, and printing to the caller: everything here
//! returns data or strings. Start with [`Diagnostic`]; `catalogue` explains every code.
//! Invariant: spans are byte offsets into the file named by `file` and lie on character boundaries.

pub mod catalogue;
mod code;
mod examples;
mod lines;
mod render;
mod suggest;
mod width;

pub use code::Code;
pub use examples::{Example, example};
pub use lines::{LineIndex, Position, TextSpan};
pub use render::{Colour, Source, Sources, json, render};
pub use suggest::closest;
pub(crate) use width::{columns, is_bidi_control};

use serde::Serialize;

/// The number of a file in [`Sources`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct FileId(pub u32);

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The text has no meaning until this is changed.
    Error,
    /// The text has a meaning, probably not the wanted one.
    Warning,
    /// Something worth knowing.
    Note,
}

/// A change of the text that removes the diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// What to replace; empty for an insertion.
    pub span: TextSpan,
    /// The new text.
    pub replacement: String,
    /// Whether a tool may apply it unseen: the meaning that was certainly wanted.
    pub safe: bool,
}

/// Another place that explains the diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Related {
    /// The file of `span`.
    pub file: FileId,
    /// The other place.
    pub span: TextSpan,
    /// What is there.
    pub message: String,
}

/// One thing to say about a source text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable; explained in [`catalogue`].
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The file of `span`.
    pub file: FileId,
    /// Where.
    pub span: TextSpan,
    /// What is wrong, in one sentence in lower case without a full stop.
    pub message: String,
    /// What would have been right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// A change that a machine can make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Places that explain it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
}

impl Diagnostic {
    /// Begins an error at `span`.
    pub fn error(code: Code, file: FileId, span: TextSpan, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            file,
            span,
            message: message.into(),
            expected: None,
            hint: None,
            fix: None,
            related: Vec::new(),
        }
    }

    /// Begins a warning at `span`.
    pub fn warning(code: Code, file: FileId, span: TextSpan, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, file, span, message) }
    }

    /// Begins a note at `span`.
    pub fn note(code: Code, file: FileId, span: TextSpan, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(code, file, span, message) }
    }

    /// Adds what would have been right.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a change that a tool may make unseen.
    #[must_use]
    pub fn fix(mut self, span: TextSpan, replacement: impl Into<String>) -> Self {
        self.fix = Some(Fix { span, replacement: replacement.into(), safe: true });
        self
    }

    /// Adds a change that is likely but that somebody should look at.
    #[must_use]
    pub fn unsure_fix(mut self, span: TextSpan, replacement: impl Into<String>) -> Self {
        self.fix = Some(Fix { span, replacement: replacement.into(), safe: false });
        self
    }

    /// Adds another place of the same file.
    #[must_use]
    pub fn related(mut self, span: TextSpan, message: impl Into<String>) -> Self {
        let file = self.file;
        self.related.push(Related { file, span, message: message.into() });
        self
    }

    /// Whether the text is refused because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Sorts into the one order in which diagnostics are reported: file, place, severity, code.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by(|a, b| {
        (a.file, a.span.start, a.span.end, a.severity, a.code).cmp(&(
            b.file,
            b.span.start,
            b.span.end,
            b.severity,
            b.code,
        ))
    });
}
