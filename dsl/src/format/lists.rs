//! Lists in brackets: on one line, or one item a line with a comma behind each.
//!
//! Leaves the items to their files. Invariant: the comma behind the last item is there exactly where the list is broken; a
//! comprehension never has one.

use rowan::NodeOrToken;

use super::build::{Builder, parts_of};
use super::doc::{Doc, SPACE};
use crate::syntax::kind::{SyntaxElement, SyntaxKind, SyntaxNode};

impl Builder<'_> {
    /// A node that is a list in brackets, perhaps after a word (`map { … }`).
    pub(super) fn list(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let open = parts.iter().position(|part| part.kind().closer().is_some()).unwrap_or(parts.len());
        let mut all = Vec::new();
        for word in &parts[..open] {
            all.push(self.part(word));
            all.push(SPACE);
        }
        all.push(self.bracketed(&parts[open..]));
        Doc::All(all)
    }

    /// A list from its opening to its closing bracket.
    pub(super) fn bracketed(&mut self, parts: &[SyntaxElement]) -> Doc {
        let [open, inner @ .., close] = parts else { return self.side_by_side(SyntaxKind::List, parts) };
        if let [item] = inner
            && open.kind() != SyntaxKind::LBrace
            && is_bracketed(item)
            && !self.pieces.has_comment_before(close.text_range().end().into())
        {
            // The brackets of the only item do for both.
            return Doc::All(vec![self.part(open), self.part(item), self.part(close)]);
        }
        let edge = if open.kind() == SyntaxKind::LBrace { Doc::Line } else { Doc::Soft };
        let open = self.part(open);
        let mut all = vec![edge.clone()];
        let is_comprehension = inner.iter().any(|part| part.kind() == SyntaxKind::ForIn);
        let mut items = inner.split(|part| part.kind() == SyntaxKind::Comma).peekable();
        let mut commas = inner.iter().filter(|part| part.kind() == SyntaxKind::Comma);
        while let Some(item) = items.next() {
            if item.is_empty() {
                break;
            }
            all.push(self.lead());
            all.push(self.item(item));
            let is_last = items.peek().is_none_or(|next| next.is_empty());
            let comma = commas.next().and_then(NodeOrToken::as_token);
            match comma {
                Some(comma) if !is_last => all.push(self.token(comma)),
                Some(comma) => {
                    all.extend((!is_comprehension).then_some(Doc::IfBroken(",")));
                    all.push(self.skipped(comma));
                }
                None => all.extend((!is_comprehension).then_some(Doc::IfBroken(","))),
            }
            all.extend((!is_last).then_some(Doc::Line));
        }
        let end = self.lead();
        if inner.is_empty() && end.is_empty() {
            return Doc::All(vec![open, self.part(close)]);
        }
        all.push(end);
        Doc::All(vec![open, Doc::All(all).nest(), edge, self.part(close)]).group()
    }

    /// An item, or an item and its `for`.
    fn item(&mut self, parts: &[SyntaxElement]) -> Doc {
        let mut all = Vec::new();
        for part in parts {
            if !all.is_empty() {
                all.push(Doc::Line);
            }
            all.push(self.part(part));
        }
        Doc::All(all).group()
    }
}

/// Whether the part is a value in brackets of its own, or a text.
fn is_bracketed(part: &SyntaxElement) -> bool {
    let Some(node) = part.as_node() else { return false };
    match node.kind() {
        SyntaxKind::List | SyntaxKind::Map | SyntaxKind::Call | SyntaxKind::StringExpr => true,
        SyntaxKind::Construct => node.children().any(|child| child.kind() == SyntaxKind::InitList),
        SyntaxKind::Arg | SyntaxKind::Reply => parts_of(node).last().is_some_and(is_bracketed),
        _ => false,
    }
}
