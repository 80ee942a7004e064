//! From tree to layout: tokens with their comments, and how what stands side by side is joined.
//!
//! Leaves the productions with a layout of their own to the files by concept. Invariant: every token is taken once, in the order of
//! the text, and with it the comments around it.

use rowan::NodeOrToken;

use super::doc::{Doc, SPACE};
use super::pieces::{Pieces, with_plain_line_ends};
use crate::syntax::kind::{SyntaxElement, SyntaxKind, SyntaxNode, SyntaxToken};

/// Builds layouts out of the tree of one file.
pub(super) struct Builder<'t> {
    pub(super) pieces: Pieces<'t>,
}

/// What stands directly in a node, without trivia.
pub(super) fn parts_of(node: &SyntaxNode) -> Vec<SyntaxElement> {
    node.children_with_tokens().filter(|part| !part.kind().is_trivia()).collect()
}

pub(super) fn is_word(part: &SyntaxElement, word: &str) -> bool {
    part.as_token().is_some_and(|token| token.kind() == SyntaxKind::Lower && token.text() == word)
}

impl Builder<'_> {
    /// The comments that stand before the next token.
    pub(super) fn lead(&mut self) -> Doc {
        Doc::All(self.pieces.comments())
    }

    pub(super) fn token(&mut self, token: &SyntaxToken) -> Doc {
        let text = match token.kind() {
            SyntaxKind::Comma => Doc::Glue(","),
            _ => Doc::text(token.text()),
        };
        self.verbatim(text, token.text_range().end().into())
    }

    /// Takes a token that is not written; its comments are.
    pub(super) fn skipped(&mut self, token: &SyntaxToken) -> Doc {
        self.verbatim(Doc::Empty, token.text_range().end().into())
    }

    /// As [`Self::skipped`], with the comments on lines of their own: what follows begins a line.
    pub(super) fn skipped_before(&mut self, token: &SyntaxToken) -> Doc {
        Doc::All(self.pieces.comments_around(token.text_range().end().into()))
    }

    fn verbatim(&mut self, text: Doc, end: u32) -> Doc {
        let mut all = self.pieces.comments();
        all.push(text);
        all.extend(self.pieces.take_tokens(end));
        if all.len() == 1 { all.swap_remove(0) } else { Doc::All(all) }
    }

    pub(super) fn part(&mut self, part: &SyntaxElement) -> Doc {
        match part {
            NodeOrToken::Node(node) => self.node(node),
            NodeOrToken::Token(token) => self.token(token),
        }
    }

    pub(super) fn node(&mut self, node: &SyntaxNode) -> Doc {
        match node.kind() {
            // The white space in a text belongs to it, and that in its holes stays with it. Line ends mean the same in all systems.
            SyntaxKind::StringExpr => {
                let text = with_plain_line_ends(&node.text().to_string());
                self.verbatim(Doc::text(text), node.text_range().end().into())
            }
            SyntaxKind::TypeDecl => self.type_decl(node),
            SyntaxKind::RetryDecl => self.retry_decl(node),
            SyntaxKind::Activity => self.activity(node),
            SyntaxKind::FnDecl => self.fn_decl(node),
            SyntaxKind::Flow => self.flow(node),
            SyntaxKind::FlowResult => self.flow_result(node),
            SyntaxKind::Test => self.test(node),
            SyntaxKind::StepStub => self.stub(node),
            SyntaxKind::Data => self.data(node),
            SyntaxKind::Steps | SyntaxKind::Parallel => self.group_effect(node),
            SyntaxKind::Region => self.region(node),
            SyntaxKind::Each => self.each(node),
            SyntaxKind::Ask => self.ask(node),
            SyntaxKind::FieldList
            | SyntaxKind::ParamList
            | SyntaxKind::ArgList
            | SyntaxKind::InitList
            | SyntaxKind::FieldPatList
            | SyntaxKind::List
            | SyntaxKind::Map => self.list(node),
            SyntaxKind::Binary => self.binary(node),
            SyntaxKind::IfExpr => self.if_expr(node),
            SyntaxKind::MatchExpr => self.match_expr(node),
            SyntaxKind::MatchArm => self.match_arm(node),
            _ => self.row(node),
        }
    }

    /// A node whose parts stand side by side.
    pub(super) fn row(&mut self, node: &SyntaxNode) -> Doc {
        self.side_by_side(node.kind(), &parts_of(node))
    }

    /// Parts of a node of kind `within`, joined by spaces or by nothing; a line may break after a comma.
    pub(super) fn side_by_side(&mut self, within: SyntaxKind, parts: &[SyntaxElement]) -> Doc {
        let mut all = Vec::new();
        let mut before = None;
        for part in parts {
            match before {
                Some(SyntaxKind::Comma) => all.push(Doc::fill().nest()),
                Some(before) if !is_joined(within, before, part.kind()) => all.push(SPACE),
                Some(_) | None => {}
            }
            let doc = self.part(part);
            // A word that a comment has driven from its line stands further to the right; what has brackets keeps its place.
            all.push(if part.as_token().is_some() { doc.nest() } else { doc });
            before = Some(part.kind());
        }
        Doc::All(all)
    }

    /// Lines of a block: `items` with their comments and empty lines.
    pub(super) fn lines(
        &mut self,
        items: &[SyntaxNode],
        item: impl Fn(&mut Self, &SyntaxNode) -> Doc,
    ) -> Doc {
        let mut all = Vec::new();
        for node in items {
            all.push(self.line_break());
            all.push(self.lead());
            all.push(item(self, node));
        }
        Doc::All(all)
    }

    /// The break before the next line of a block, with the empty line that stood there.
    pub(super) fn line_break(&self) -> Doc {
        if self.pieces.blank_before() { Doc::Blank } else { Doc::Break }
    }

    /// `{`, then lines, then `}`. `lines` takes what stands between the two.
    pub(super) fn block(
        &mut self,
        open: &SyntaxElement,
        close: &SyntaxElement,
        lines: impl FnOnce(&mut Self) -> Doc,
    ) -> Doc {
        let open = self.part(open);
        let mut inner = vec![lines(self)];
        inner.extend(self.pieces.comments());
        let inner = Doc::All(inner);
        let end = if inner.is_empty() { Doc::Empty } else { Doc::Break };
        Doc::All(vec![open, inner.nest(), end, self.part(close)])
    }
}

/// Whether no space stands between two parts of a node.
fn is_joined(within: SyntaxKind, before: SyntaxKind, after: SyntaxKind) -> bool {
    use SyntaxKind as K;
    matches!(
        (within, before, after),
        (K::Type, _, _)
            | (K::Unary, K::Minus, _)
            | (K::IndexExpr, _, K::LBrack)
            | (K::Awaited | K::Measure, _, K::LParen)
            | (K::StepStub, K::NameRef, K::LParen)
            | (_, _, K::Comma | K::Colon | K::Dot | K::RParen | K::RBrack | K::ArgList | K::ParamList)
            | (_, K::LParen | K::LBrack | K::Dot, _)
    )
}
