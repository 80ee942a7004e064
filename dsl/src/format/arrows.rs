//! Arrows, limits, branches and arms as rows of a table.
//!
//! Leaves the columns to `rows`. Invariant: a row is cut at the first act and at the goal, nowhere else.

use super::build::{Builder, is_word, parts_of};
use super::doc::{Doc, SPACE};
use super::rows::{Entry, Row};
use crate::syntax::kind::{SyntaxElement, SyntaxKind, SyntaxNode};

impl Builder<'_> {
    /// A node that ends in a goal or in arms.
    pub(super) fn arrow(&mut self, node: &SyntaxNode) -> Entry {
        let lead = vec![self.line_break(), self.lead()];
        let parts = parts_of(node);
        if parts.last().is_some_and(|part| part.kind() == SyntaxKind::Arms) {
            return self.with_arms(&parts, lead);
        }
        let goal_at = parts.iter().position(|part| part.kind() == SyntaxKind::Goal).unwrap_or(parts.len());
        let acts_at = parts[..goal_at].iter().position(is_act).unwrap_or(goal_at);
        // The `else` of a limit stands before its goal; a branch is nothing but `else`.
        let has_else = acts_at == goal_at && acts_at > 1 && is_word(&parts[acts_at - 1], "else");
        let head_len = if has_else { acts_at - 1 } else { acts_at };
        let head = self.side_by_side(node.kind(), &parts[..head_len]);
        let otherwise = self.side_by_side(node.kind(), &parts[head_len..acts_at]);
        let acts = parts[acts_at..goal_at].iter().map(|act| self.part(act)).collect();
        let goal = self.side_by_side(node.kind(), &parts[goal_at..]);
        Entry::Row(Row { lead: Doc::All(lead), head, otherwise, acts, goal })
    }

    /// `on ok set … { arms }`, `choose v { arms }`
    pub(super) fn with_arms(&mut self, parts: &[SyntaxElement], lead: Vec<Doc>) -> Entry {
        let mut all = lead;
        if all.is_empty() {
            all = vec![self.line_break(), self.lead()];
        }
        let Some((arms, before)) = parts.split_last() else { return Entry::Other(Doc::All(all)) };
        let acts_at = before.iter().position(is_act).unwrap_or(before.len());
        let mut line = vec![self.side_by_side(SyntaxKind::OnArrow, &before[..acts_at])];
        for act in &before[acts_at..] {
            line.push(Doc::Pad(1));
            line.push(Doc::All(vec![Doc::Line, self.part(act)]).nest());
        }
        all.push(Doc::All(line).group());
        all.push(SPACE);
        let inner = arms.as_node().map(parts_of).unwrap_or_default();
        let [open, rows @ .., close] = inner.as_slice() else { return Entry::Other(Doc::All(all)) };
        all.push(self.part(open));
        let rows = rows.iter().filter_map(|part| part.as_node()).map(|arm| self.arrow(arm)).collect();
        let end = self.lead().nest();
        Entry::Arms { head: Doc::All(all), rows, end: Doc::All(vec![end, Doc::Break, self.part(close)]) }
    }
}

fn is_act(part: &SyntaxElement) -> bool {
    matches!(
        part.kind(),
        SyntaxKind::SetAct | SyntaxKind::Discard | SyntaxKind::Settle | SyntaxKind::AlsoDo | SyntaxKind::Emit
    )
}
