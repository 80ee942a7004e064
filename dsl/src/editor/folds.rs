//! What an editor can fold away.
//!
//! Leaves how it is shown to the editor. Invariant: folds come in the order of the text, each lies within another or beside it, and each
//! goes over a line's end.

use crate::diag::{FileId, TextSpan};
use crate::syntax::kind::{SyntaxKind, SyntaxNode, SyntaxToken};
use crate::syntax::parse;

/// A part of a text that can be hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// From its first character to behind its last one: of a block with its braces.
    pub span: TextSpan,
    /// What it is.
    pub kind: FoldKind,
}

/// What is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldKind {
    /// What stands in braces, brackets or parentheses.
    Block,
    /// A text over several lines.
    Text,
    /// Comments that follow one another.
    Comment,
}

/// The parts of a text that can be folded away, also of a broken one.
#[must_use]
pub fn folds(text: &str) -> Vec<Fold> {
    let tree = parse(FileId(0), text).syntax();
    let mut all = comments(&tree);
    for node in tree.descendants() {
        all.extend(block(&node));
        if node.kind() == SyntaxKind::StringExpr {
            all.push(Fold { span: solid(&node), kind: FoldKind::Text });
        }
    }
    all.retain(|fold| fold.span.of(text).contains('\n'));
    all.sort_by_key(|fold| (fold.span.start, std::cmp::Reverse(fold.span.end)));
    all
}

/// What stands between the first opener of a node and the closer that belongs to it.
fn block(node: &SyntaxNode) -> Option<Fold> {
    let mut tokens = node.children_with_tokens().filter_map(|part| part.into_token());
    let (opener, closer) = tokens.find_map(|token| Some((token.clone(), token.kind().closer()?)))?;
    let end = tokens.filter(|token| token.kind() == closer).last()?;
    let span = TextSpan::new(opener.text_range().start().into(), end.text_range().end().into());
    Some(Fold { span, kind: FoldKind::Block })
}

/// A node without the space around it.
fn solid(node: &SyntaxNode) -> TextSpan {
    let tokens = || super::tokens(node).filter(|token| !token.kind().is_trivia());
    let whole: TextSpan = node.text_range().into();
    let start = tokens().next().map_or(whole.start, |token| token.text_range().start().into());
    let end = tokens().last().map_or(whole.end, |token| token.text_range().end().into());
    TextSpan::new(start, end)
}

/// Comments with nothing but line ends between them.
fn comments(tree: &SyntaxNode) -> Vec<Fold> {
    let mut all: Vec<Fold> = Vec::new();
    let mut goes_on = false;
    for token in super::tokens(tree) {
        let span: TextSpan = token.text_range().into();
        if is_comment(&token) {
            match all.last_mut().filter(|_| goes_on) {
                Some(last) => last.span.end = span.end,
                None => all.push(Fold { span, kind: FoldKind::Comment }),
            }
            goes_on = true;
        } else {
            let line_end = token.kind().is_trivia() && token.text().matches('\n').count() <= 1;
            goes_on &= line_end;
        }
    }
    all
}

fn is_comment(token: &SyntaxToken) -> bool {
    matches!(token.kind(), SyntaxKind::Comment | SyntaxKind::Doc)
}
