//! Files and declarations: types, retries, activities, functions, tests.
//!
//! Leaves flows to their file. Invariant: a flow and a test stand apart by empty lines; elsewhere the empty lines of the text stay, one at
//! most.

use super::build::{Builder, parts_of};
use super::doc::{Doc, SPACE};
use super::print::Printer;
use crate::syntax::kind::{SyntaxElement, SyntaxKind, SyntaxNode};

impl Builder<'_> {
    /// Writes declaration by declaration, so that no layout of a whole file has to be kept.
    pub(super) fn file(&mut self, root: &SyntaxNode, printer: &mut Printer) {
        let stands_apart = |kind| matches!(kind, SyntaxKind::Flow | SyntaxKind::Test);
        let mut before = None;
        for decl in root.children() {
            let apart = before.is_some_and(stands_apart) || stands_apart(decl.kind());
            printer.print(&if apart && before.is_some() { Doc::Blank } else { self.line_break() });
            printer.print(&self.lead());
            printer.print(&self.node(&decl));
            before = Some(decl.kind());
        }
        printer.print(&if before.is_some_and(stands_apart) { Doc::Blank } else { self.line_break() });
        printer.print(&self.lead());
    }

    /// `type T { … }` or `type T with { … } = A | B`
    pub(super) fn type_decl(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let Some(at) = parts.iter().position(|part| part.kind() == SyntaxKind::Eq) else {
            return self.row(node);
        };
        let (head, variants) = parts.split_at(at + 1);
        let mut all = vec![self.side_by_side(SyntaxKind::TypeDecl, head)];
        let (mut is_first, mut before) = (true, Doc::Empty);
        for part in variants {
            match part.as_token() {
                // A bar before the first variant says nothing; remarks before it are the variant's.
                Some(bar) if is_first => before = self.skipped_before(bar),
                Some(bar) => all.push(Doc::All(vec![Doc::Line, self.lead(), self.token(bar), SPACE]).nest()),
                None if is_first => {
                    is_first = false;
                    let before = std::mem::replace(&mut before, Doc::Empty);
                    all.push(Doc::All(vec![Doc::Line, before, self.lead(), self.part(part)]).nest().nest());
                }
                None => all.push(self.part(part).nest()),
            }
        }
        Doc::All(all).group()
    }

    /// `retry R { on … }`; several rules stand below each other.
    pub(super) fn retry_decl(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let at = parts.iter().position(|part| part.kind() == SyntaxKind::LBrace).unwrap_or(parts.len());
        let head = self.side_by_side(SyntaxKind::RetryDecl, &parts[..at]);
        let [open, inner @ .., close] = &parts[at..] else { return head };
        let open = self.part(open);
        let rules = inner.iter().filter(|part| part.as_node().is_some()).count();
        let mut all = Vec::new();
        for part in inner {
            // `then` begins a line, `hold` ends it.
            let begins = part.as_node().is_some() || super::build::is_word(part, "then");
            all.push(match begins {
                true if rules > 1 => Doc::Break,
                true => Doc::Line,
                false => SPACE,
            });
            all.push(self.lead());
            all.push(self.part(part));
        }
        all.push(self.lead());
        Doc::All(vec![head, SPACE, open, Doc::All(all).nest(), Doc::Line, self.part(close)]).group()
    }

    pub(super) fn activity(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let signature = self.signature(node.kind(), &parts);
        Doc::All(vec![signature, self.clauses(&parts)]).group()
    }

    /// `fn f(…) -> T = value`
    pub(super) fn fn_decl(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let signature = self.signature(node.kind(), &parts);
        let Some(at) = parts.iter().position(|part| part.kind() == SyntaxKind::Eq) else { return signature };
        Doc::All(vec![signature, SPACE, self.with_value(SyntaxKind::FnDecl, &parts[at..])])
    }

    /// Word, name and parameters, and the result, which begins a line if it does not fit behind them.
    pub(super) fn signature(&mut self, within: SyntaxKind, parts: &[SyntaxElement]) -> Doc {
        let head_len =
            parts.iter().position(|part| part.kind() == SyntaxKind::ParamList).map_or(0, |at| at + 1);
        let head = self.side_by_side(within, &parts[..head_len]);
        let result: Vec<SyntaxElement> = parts[head_len..].iter().take(2).cloned().collect();
        if result.first().is_none_or(|part| part.kind() != SyntaxKind::Arrow) {
            return head;
        }
        let result = self.side_by_side(within, &result);
        Doc::All(vec![head, Doc::All(vec![Doc::Line, result]).nest().group()])
    }

    /// The clauses behind a signature: on its line, or on one of their own, or what is raised on one and the rest on others.
    pub(super) fn clauses(&mut self, parts: &[SyntaxElement]) -> Doc {
        let (mut raises, mut rest) = (Vec::new(), Vec::new());
        for clause in parts.iter().filter_map(|part| part.as_node()).filter(|node| is_clause(node.kind())) {
            if clause.kind() == SyntaxKind::Raises {
                raises.push(self.node(clause));
            } else {
                rest.extend((!rest.is_empty()).then(Doc::fill));
                rest.push(self.node(clause));
            }
        }
        if raises.is_empty() && rest.is_empty() {
            return Doc::Empty;
        }
        if !raises.is_empty() && !rest.is_empty() {
            raises.push(Doc::Line);
        }
        raises.append(&mut rest);
        Doc::All(vec![Doc::Line, Doc::All(raises).group()]).nest()
    }

    pub(super) fn test(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let at = parts.iter().position(|part| part.kind() == SyntaxKind::LBrace).unwrap_or(parts.len());
        let head = self.side_by_side(SyntaxKind::Test, &parts[..at]);
        let [open, steps @ .., close] = &parts[at..] else { return head };
        let steps: Vec<SyntaxNode> = steps.iter().filter_map(|part| part.as_node().cloned()).collect();
        let body = self.block(open, close, |b| b.lines(&steps, Self::node));
        Doc::All(vec![head, SPACE, body])
    }

    /// `stub model gives [ … ]`, `stub model(messages) if … gives …`
    pub(super) fn stub(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let Some(at) = parts.iter().position(|part| part.kind() == SyntaxKind::LBrack) else {
            return self.row(node);
        };
        let head = self.side_by_side(SyntaxKind::StepStub, &parts[..at]);
        Doc::All(vec![head, SPACE, self.bracketed(&parts[at..])])
    }
}

fn is_clause(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::Raises
            | SyntaxKind::Within
            | SyntaxKind::InAll
            | SyntaxKind::Silent
            | SyntaxKind::RetryUse
            | SyntaxKind::Costs
            | SyntaxKind::Queue
            | SyntaxKind::EffectClass
            | SyntaxKind::Undo
            | SyntaxKind::UnknownHolds
            | SyntaxKind::Emits
            | SyntaxKind::Version
    )
}
