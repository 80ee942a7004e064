//! Expressions: operators, `if`, `match`, and what stands after `=`.
//!
//! Leaves lists and calls to `lists`. Invariant: an operator begins a line and never ends one.

use rowan::NodeOrToken;

use super::build::{Builder, is_word, parts_of};
use super::doc::{Doc, SPACE};
use crate::syntax::kind::{SyntaxElement, SyntaxKind, SyntaxNode};

impl Builder<'_> {
    /// Operators of one strength in one group: all of them break or none.
    pub(super) fn binary(&mut self, node: &SyntaxNode) -> Doc {
        let mut parts = parts_of(node);
        while let Some(left) = parts.first().and_then(NodeOrToken::as_node).filter(|left| is_same(left, node))
        {
            let inner = parts_of(left);
            parts.splice(0..1, inner);
        }
        let mut parts = parts.into_iter();
        let first = parts.next().map_or(Doc::Empty, |part| self.part(&part));
        let mut all = Vec::new();
        let mut in_operator = false;
        for part in parts {
            let is_token = part.as_token().is_some();
            all.push(if is_token && !in_operator { Doc::Line } else { SPACE });
            all.push(self.part(&part));
            in_operator = is_token;
        }
        Doc::All(vec![first, Doc::All(all).nest()]).group()
    }

    /// `if … then … else if … then … else …`
    pub(super) fn if_expr(&mut self, node: &SyntaxNode) -> Doc {
        let mut all = Vec::new();
        let mut rest = parts_of(node);
        let mut is_first = true;
        loop {
            let at = rest.iter().position(|part| is_word(part, "else")).unwrap_or(rest.len());
            let then = rest.iter().position(|part| is_word(part, "then")).unwrap_or(at).min(at);
            all.push(self.side_by_side(SyntaxKind::IfExpr, &rest[..then]));
            if then < at {
                // A further `if` stands on one line with its `then`.
                all.push(if is_first { Doc::Line } else { Doc::fill() });
                all.push(self.side_by_side(SyntaxKind::IfExpr, &rest[then..at]));
            }
            let Some(word) = rest.get(at) else { break };
            all.push(Doc::Line);
            all.push(self.part(word));
            all.push(SPACE);
            let Some(otherwise) = rest.get(at + 1).and_then(NodeOrToken::as_node).cloned() else { break };
            if otherwise.kind() != SyntaxKind::IfExpr {
                all.push(self.node(&otherwise));
                break;
            }
            rest = parts_of(&otherwise);
            is_first = false;
        }
        Doc::All(all).nest().group()
    }

    /// `match v { A { x } => e, … }`; commas only on one line.
    pub(super) fn match_expr(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let at = parts.iter().position(|part| part.kind() == SyntaxKind::LBrace).unwrap_or(parts.len());
        let head = self.side_by_side(SyntaxKind::MatchExpr, &parts[..at]);
        let [open, inner @ .., close] = &parts[at..] else { return head };
        let open = self.part(open);
        let mut all = Vec::new();
        let arms = inner.iter().filter(|part| part.as_node().is_some()).count();
        let mut seen = 0;
        for part in inner {
            match part {
                NodeOrToken::Token(comma) => all.push(self.skipped(comma)),
                NodeOrToken::Node(arm) => {
                    seen += 1;
                    all.push(Doc::Line);
                    all.push(self.lead());
                    all.push(self.node(arm));
                    all.extend((seen < arms).then_some(Doc::IfFlat(",")));
                }
            }
        }
        all.push(self.lead());
        Doc::All(vec![head, SPACE, open, Doc::All(all).nest(), Doc::Line, self.part(close)]).group()
    }

    /// `A { x } if c => value`
    pub(super) fn match_arm(&mut self, node: &SyntaxNode) -> Doc {
        self.with_value(SyntaxKind::MatchArm, &parts_of(node))
    }

    /// `… = value` or `… => value`: the value begins a line if it does not fit, unless it is in brackets.
    pub(super) fn with_value(&mut self, within: SyntaxKind, parts: &[SyntaxElement]) -> Doc {
        let Some((value, before)) = parts.split_last() else { return Doc::Empty };
        let before = self.side_by_side(within, before);
        Doc::All(vec![before, self.value(value)])
    }

    /// What stands after `=`.
    fn value(&mut self, value: &SyntaxElement) -> Doc {
        let is_open = is_open(value) && !self.pieces.next_is_comment();
        let doc = self.part(value);
        if is_open { Doc::Value(Box::new(doc)) } else { Doc::All(vec![Doc::Line, doc]).nest().group() }
    }
}

/// Whether both are chains of operators of the same strength.
fn is_same(left: &SyntaxNode, node: &SyntaxNode) -> bool {
    left.kind() == SyntaxKind::Binary && strength(left) == strength(node)
}

/// How strongly the operator binds; only equality matters here.
fn strength(node: &SyntaxNode) -> Option<u8> {
    let sign = parts_of(node).into_iter().filter_map(NodeOrToken::into_token).next()?;
    Some(match sign.text() {
        "or" => 1,
        "and" => 2,
        "??" => 4,
        "+" | "-" => 5,
        "*" | "/" | "%" => 6,
        _ => 3,
    })
}

/// Whether the value has brackets around several parts, which break better than the line before it.
fn is_open(value: &SyntaxElement) -> bool {
    let Some(node) = value.as_node() else { return false };
    let parts = parts_of(node);
    match node.kind() {
        SyntaxKind::MatchExpr | SyntaxKind::Map => true,
        SyntaxKind::List => parts.len() > 3,
        SyntaxKind::Construct => parts.last().is_some_and(|part| part.kind() == SyntaxKind::InitList),
        SyntaxKind::StringExpr => node.text().contains_char('\n'),
        _ => false,
    }
}
