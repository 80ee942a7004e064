//! What a layout is made of: texts, places where a line may break, groups that break together.
//!
//! Leaves choosing the breaks to `print`. Invariant: a comment ends its line whatever stands around it, so no layout can swallow
//! what follows it.

use crate::diag::columns;

/// A piece of a layout.
#[derive(Clone, Debug)]
pub(super) enum Doc {
    /// Nothing at all.
    Empty,
    /// Written as it is; only a text literal holds line breaks.
    Text(String),
    /// Written before the comments that stand between it and the text before it: a comma.
    Glue(&'static str),
    /// So many spaces, unless the line ends here.
    Pad(usize),
    /// A space, or a line break in a broken group.
    Line,
    /// Nothing, or a line break in a broken group.
    Soft,
    /// A line break.
    Break,
    /// A line break and an empty line.
    Blank,
    /// Glue in a broken group only.
    IfBroken(&'static str),
    /// Glue in a group on one line only.
    IfFlat(&'static str),
    /// A comment.
    Comment(Comment),
    /// One after the other.
    All(Vec<Doc>),
    /// Lines that begin inside stand further to the right.
    Nest(Box<Doc>),
    /// On one line if it fits, otherwise broken at every place of its own.
    Group(Box<Doc>),
    /// Behind a space, or on one line of its own further to the right; broken, behind a space, if it fits neither way.
    Value(Box<Doc>),
}

/// A comment with its place.
#[derive(Clone, Debug)]
pub(super) struct Comment {
    pub(super) text: String,
    /// Whether it stands on a line of its own and not behind something.
    pub(super) own_line: bool,
    pub(super) blank_before: bool,
    pub(super) blank_after: bool,
}

/// A single space.
pub(super) const SPACE: Doc = Doc::Pad(1);

impl Doc {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn nest(self) -> Self {
        Self::Nest(Box::new(self))
    }

    pub(super) fn group(self) -> Self {
        Self::Group(Box::new(self))
    }

    /// A place that breaks only if what follows, up to the next such place, does not fit.
    pub(super) fn fill() -> Self {
        Self::Line.group()
    }

    /// Columns on one line; none if it cannot stand on one, or if a comment ends the line before its end.
    pub(super) fn flat_columns(&self) -> Option<usize> {
        let mut flat = Flat { columns: 0, ended: false };
        flat.add(self).then_some(flat.columns)
    }

    /// Whether nothing is written.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::All(parts) => parts.iter().all(Self::is_empty),
            Self::Nest(inner) | Self::Group(inner) | Self::Value(inner) => inner.is_empty(),
            Self::Text(_)
            | Self::Glue(_)
            | Self::Pad(_)
            | Self::Line
            | Self::Soft
            | Self::Break
            | Self::Blank
            | Self::IfBroken(_)
            | Self::IfFlat(_)
            | Self::Comment(_) => false,
        }
    }
}

struct Flat {
    columns: usize,
    /// Whether a comment has ended the line.
    ended: bool,
}

impl Flat {
    fn add(&mut self, doc: &Doc) -> bool {
        match doc {
            Doc::Text(text) => {
                self.columns += columns(text);
                !self.ended && !text.contains('\n')
            }
            Doc::Glue(text) | Doc::IfFlat(text) => {
                self.columns += text.len();
                true
            }
            Doc::Pad(spaces) => {
                self.columns += spaces;
                true
            }
            Doc::Line => {
                self.columns += 1;
                true
            }
            Doc::Empty | Doc::Soft | Doc::IfBroken(_) => true,
            Doc::Break | Doc::Blank => false,
            Doc::Comment(comment) => {
                self.ended = true;
                !comment.own_line
            }
            Doc::All(parts) => parts.iter().all(|part| self.add(part)),
            Doc::Nest(inner) | Doc::Group(inner) => self.add(inner),
            Doc::Value(inner) => {
                self.columns += 1;
                self.add(inner)
            }
        }
    }
}
