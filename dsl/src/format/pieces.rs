//! The tokens and comments of a text in their order, with what the layout keeps of the white space between them.
//!
//! Leaves the layout to the builder, which takes the pieces one by one. Invariant: of white space only "on a line of its own" and
//! "an empty line before it" are kept, so two texts with the same pieces get the same layout.

use super::doc::{Comment, Doc};
use crate::diag::TextSpan;
use crate::syntax::kind::{SyntaxKind, SyntaxNode, SyntaxToken};

/// A token that is not white space.
pub(super) struct Piece {
    kind: SyntaxKind,
    span: TextSpan,
    /// Whether it is the first on its line.
    first_on_line: bool,
    /// Whether an empty line stands before it that is worth keeping: none after an opening or before a closing bracket.
    blank_before: bool,
}

impl Piece {
    fn is_comment(&self) -> bool {
        self.kind.is_trivia()
    }
}

/// The pieces that are not laid out yet.
pub(super) struct Pieces<'t> {
    text: &'t str,
    all: Vec<Piece>,
    at: usize,
}

impl<'t> Pieces<'t> {
    /// The pieces of `text`, whose tree is `root`.
    pub(super) fn of(text: &'t str, root: &SyntaxNode) -> Self {
        let mut all: Vec<Piece> = Vec::new();
        let (mut newlines, mut after_opener) = (0, false);
        for token in tokens(root) {
            let kind = token.kind();
            if kind == SyntaxKind::Whitespace {
                newlines += line_breaks(token.text());
                continue;
            }
            let blank_before = newlines > 1 && !after_opener && !kind.is_closer();
            let first_on_line = newlines > 0 || all.is_empty();
            all.push(Piece { kind, span: token.text_range().into(), first_on_line, blank_before });
            (newlines, after_opener) = (0, kind.closer().is_some());
        }
        Self { text, all, at: 0 }
    }

    fn next(&self) -> Option<&Piece> {
        self.all.get(self.at)
    }

    /// Whether an empty line stands before the next piece.
    pub(super) fn blank_before(&self) -> bool {
        self.next().is_some_and(|piece| piece.blank_before)
    }

    /// Whether the next piece is a comment.
    pub(super) fn next_is_comment(&self) -> bool {
        self.next().is_some_and(Piece::is_comment)
    }

    /// Whether a comment stands before `end`.
    pub(super) fn has_comment_before(&self, end: u32) -> bool {
        self.all[self.at..].iter().take_while(|piece| piece.span.start < end).any(Piece::is_comment)
    }

    /// Takes the comments before the next token.
    pub(super) fn comments(&mut self) -> Vec<Doc> {
        let mut out = Vec::new();
        while let Some(comment) = self.take_comment(|_| true) {
            out.push(comment);
        }
        out
    }

    /// Takes the tokens up to the byte `end`, which are not written; the comments around them get lines of their own.
    pub(super) fn comments_around(&mut self, end: u32) -> Vec<Doc> {
        let mut out = self.comments();
        if let Some(Doc::Comment(behind)) = self.take_tokens(end) {
            out.push(Doc::Comment(Comment { own_line: true, ..behind }));
        }
        out
    }

    /// Takes the tokens up to the byte `end` and the comment behind them on their line.
    pub(super) fn take_tokens(&mut self, end: u32) -> Option<Doc> {
        while self.next().is_some_and(|piece| piece.span.start < end) {
            self.at += 1;
        }
        self.take_comment(|piece| !piece.first_on_line)
    }

    fn take_comment(&mut self, wanted: impl Fn(&Piece) -> bool) -> Option<Doc> {
        let piece = self.next().filter(|piece| piece.is_comment() && wanted(piece))?;
        let comment = Comment {
            text: piece.span.of(self.text).trim_end().to_owned(),
            own_line: piece.first_on_line,
            blank_before: piece.blank_before,
            blank_after: self.all.get(self.at + 1).is_some_and(|next| next.blank_before),
        };
        self.at += 1;
        Some(Doc::Comment(comment))
    }
}

fn line_breaks(text: &str) -> usize {
    text.matches('\n').count() + text.matches('\r').count() - text.matches("\r\n").count()
}

/// A text whose lines end as they do in everything that is laid out.
pub(super) fn with_plain_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Whether two trees have the same comments, and the same tokens but for what a layout may add or leave out at the edges of lists:
/// commas, the bar before a first variant, and how lines of a text end.
pub(super) fn says_the_same(before: &SyntaxNode, after: &SyntaxNode) -> bool {
    let comments = |root: &SyntaxNode| {
        let all =
            tokens(root).filter(|token| token.kind() != SyntaxKind::Whitespace && token.kind().is_trivia());
        all.map(|token| token.text().trim_end().to_owned())
    };
    let solid = |root: &SyntaxNode| {
        let edges = |kind| matches!(kind, SyntaxKind::Comma | SyntaxKind::Pipe);
        let all = tokens(root).filter(move |token| !token.kind().is_trivia() && !edges(token.kind()));
        all.map(|token| (token.kind(), with_plain_line_ends(token.text())))
    };
    comments(before).eq(comments(after)) && solid(before).eq(solid(after))
}

fn tokens(root: &SyntaxNode) -> impl Iterator<Item = SyntaxToken> + use<> {
    root.descendants_with_tokens().filter_map(|element| element.into_token())
}
