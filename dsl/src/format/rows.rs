//! Rows below each other: what an arrow is for, its acts, and where it goes, each in a column.
//!
//! Leaves the cells to `arrows`. Invariant: a row that does not fit on its line moves no other row, and a long one moves the columns up
//! to a limit only, so a change of one arrow rarely changes the lines of others.

use super::doc::{Doc, SPACE};
use crate::limits::{
    FORMAT_ACTS_COLUMN_MAX, FORMAT_COLUMNS_MAX, FORMAT_GOALS_COLUMN_MAX, FORMAT_INDENT_COLUMNS,
};

/// Spaces before the acts of an arrow.
const GAP: usize = 2;

/// A line of a table, or something that stands between its lines.
pub(super) enum Entry {
    Row(Row),
    /// An arrow with arms; `head` ends in `{`, `end` in `}`.
    Arms {
        head: Doc,
        rows: Vec<Entry>,
        end: Doc,
    },
    Other(Doc),
}

/// An arrow.
pub(super) struct Row {
    /// The line break and the comments before it.
    pub(super) lead: Doc,
    pub(super) head: Doc,
    /// `else` directly before the goal.
    pub(super) otherwise: Doc,
    pub(super) acts: Vec<Doc>,
    pub(super) goal: Doc,
}

/// The columns of one table.
#[derive(Clone, Copy, Default)]
struct Columns {
    acts: usize,
    goals: usize,
}

/// The widths of a row that can stand on one line.
struct Widths {
    indent: usize,
    head: usize,
    otherwise: usize,
    /// With the gaps between them; none without acts.
    acts: Option<usize>,
    goal: usize,
}

impl Entry {
    /// The layout of `entries`, which stand `level` blocks deep.
    pub(super) fn rows(entries: Vec<Self>, level: usize) -> Doc {
        let mut widths = Vec::new();
        for entry in &entries {
            entry.measure(level * FORMAT_INDENT_COLUMNS, &mut widths);
        }
        let columns = Columns::of(&widths);
        Doc::All(entries.into_iter().map(|entry| entry.lay(level * FORMAT_INDENT_COLUMNS, columns)).collect())
    }

    fn measure(&self, indent: usize, out: &mut Vec<Widths>) {
        match self {
            Self::Row(row) => out.extend(row.widths(indent)),
            Self::Arms { rows, .. } => {
                for row in rows {
                    row.measure(indent + FORMAT_INDENT_COLUMNS, out);
                }
            }
            Self::Other(_) => {}
        }
    }

    fn lay(self, indent: usize, columns: Columns) -> Doc {
        match self {
            Self::Row(row) => match row.widths(indent) {
                Some(widths) => row.on_one_line(&widths, columns),
                None => row.on_several_lines(),
            },
            Self::Arms { head, rows, end } => {
                let rows = rows.into_iter().map(|row| row.lay(indent + FORMAT_INDENT_COLUMNS, columns));
                Doc::All(vec![head, Doc::All(rows.collect()).nest(), end])
            }
            Self::Other(doc) => doc,
        }
    }
}

impl Columns {
    fn of(rows: &[Widths]) -> Self {
        let with_acts = rows.iter().filter(|row| row.acts.is_some());
        let ends = with_acts.map(|row| row.indent + row.head + GAP);
        let acts = ends.filter(|end| *end <= FORMAT_ACTS_COLUMN_MAX).max().unwrap_or(0);
        let ends = rows.iter().map(|row| row.end(acts) + 1);
        let goals = ends.filter(|end| *end <= FORMAT_GOALS_COLUMN_MAX).max().unwrap_or(0);
        Self { acts, goals }
    }
}

impl Widths {
    /// Where the acts begin.
    fn acts_start(&self, acts_column: usize) -> usize {
        (self.indent + self.head + GAP).max(acts_column)
    }

    /// The column behind all that stands before the goal.
    fn end(&self, acts_column: usize) -> usize {
        let head = self.acts.map_or(self.indent + self.head, |acts| self.acts_start(acts_column) + acts);
        head + if self.otherwise == 0 { 0 } else { self.otherwise + 1 }
    }

    fn total(&self) -> usize {
        self.end(0) + 1 + self.goal
    }
}

impl Row {
    /// The widths, if the row fits on one line.
    fn widths(&self, indent: usize) -> Option<Widths> {
        // A comment may end the line but not stand within it.
        let cell = |doc: &Doc| Doc::All(vec![doc.clone(), Doc::text("")]).flat_columns();
        let mut acts = None;
        for act in &self.acts {
            acts = Some(acts.map_or(0, |before: usize| before + GAP) + cell(act)?);
        }
        let widths = Widths {
            indent,
            head: cell(&self.head)?,
            otherwise: cell(&self.otherwise)?,
            acts,
            goal: self.goal.flat_columns()?,
        };
        (widths.total() <= FORMAT_COLUMNS_MAX).then_some(widths)
    }

    fn on_one_line(self, widths: &Widths, columns: Columns) -> Doc {
        let fits = |acts: usize| widths.end(acts) + 1 + widths.goal <= FORMAT_COLUMNS_MAX;
        let acts_column = if fits(columns.acts) { columns.acts } else { 0 };
        let end = widths.end(acts_column) + 1;
        let aligned = columns.goals >= end && columns.goals + widths.goal <= FORMAT_COLUMNS_MAX;
        let before_goal = if aligned { columns.goals - end + 1 } else { 1 };
        let mut all = vec![self.lead, self.head];
        for (at, act) in self.acts.into_iter().enumerate() {
            let gap =
                if at == 0 { widths.acts_start(acts_column) - widths.indent - widths.head } else { GAP };
            all.push(Doc::Pad(gap));
            all.push(act);
        }
        if self.otherwise.is_empty() {
            all.push(Doc::Pad(before_goal));
        } else {
            all.extend([Doc::Pad(before_goal), self.otherwise, SPACE]);
        }
        all.push(self.goal);
        Doc::All(all)
    }

    fn on_several_lines(self) -> Doc {
        let mut rest: Vec<Doc> = Vec::new();
        for act in self.acts {
            rest.extend([Doc::Break, act]);
        }
        rest.extend([Doc::Break, self.goal]);
        let otherwise =
            if self.otherwise.is_empty() { Doc::Empty } else { Doc::All(vec![SPACE, self.otherwise]) };
        Doc::All(vec![self.lead, self.head, otherwise, Doc::All(rest).nest()])
    }
}
