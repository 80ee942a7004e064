//! Typed views over the tree: one type for each production of the grammar.
//!
//! A view is a node of the tree under a name with accessors; every accessor may find nothing, since the tree of
//! a broken text has holes. Leaves all meaning to the checker. Invariant: views own nothing and change nothing.
//!
//! `State`, `Arrow` and the others are names for `Ast<KIND>`; the choices of the grammar (`Expr`, `Effect`,
//! `Decl` …) are enums of them. Start with [`File::decls`].

mod activities;
mod arrows;
mod decls;
mod effects;
mod exprs;
mod flows;
mod groups;
mod literals;
mod names;
mod scripts;
mod types;

pub use activities::*;
pub use arrows::*;
pub use decls::*;
pub use effects::*;
pub use exprs::*;
pub use flows::*;
pub use groups::*;
pub use literals::*;
pub use names::*;
pub use scripts::*;
pub use types::*;

use std::marker::PhantomData;

use rowan::SyntaxNodeChildren;

use super::kind::{FlowLanguage, SyntaxKind, SyntaxNode, SyntaxToken};
use crate::diag::TextSpan;

/// A view of a node.
pub trait AstNode: Sized {
    /// The view of `node`, if the node is of this production.
    fn cast(node: SyntaxNode) -> Option<Self>;

    /// The node.
    fn syntax(&self) -> &SyntaxNode;

    /// Where it stands, without the documentation and comments around it.
    fn span(&self) -> TextSpan {
        span_of(self.syntax())
    }

    /// The text of the node, without the documentation and comments around it.
    fn source(&self) -> String {
        let node = self.syntax();
        let (span, start) = (span_of(node), TextSpan::from(node.text_range()).start);
        let text = node.text().to_string();
        TextSpan::new(span.start - start, span.end - start).of(&text).to_owned()
    }

    /// The `///` lines above it, without the slashes; `None` if there are none.
    fn docs(&self) -> Option<String> {
        docs_of(self.syntax())
    }
}

/// A node whose kind has the number `KIND`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ast<const KIND: u16>(SyntaxNode);

impl<const KIND: u16> AstNode for Ast<KIND> {
    fn cast(node: SyntaxNode) -> Option<Self> {
        (node.kind() as u16 == KIND).then_some(Self(node))
    }

    fn syntax(&self) -> &SyntaxNode {
        &self.0
    }
}

/// The first child of this production.
fn child<N: AstNode>(node: &impl AstNode) -> Option<N> {
    node.syntax().children().find_map(N::cast)
}

/// The children of this production, in their order.
fn children<N: AstNode>(node: &impl AstNode) -> AstChildren<N> {
    AstChildren { nodes: node.syntax().children(), view: PhantomData }
}

/// The children of a node that are of one production.
struct AstChildren<N> {
    nodes: SyntaxNodeChildren<FlowLanguage>,
    view: PhantomData<N>,
}

impl<N: AstNode> Iterator for AstChildren<N> {
    type Item = N;

    fn next(&mut self) -> Option<N> {
        self.nodes.by_ref().find_map(N::cast)
    }
}

/// The `n`-th child of this production, from 0.
fn nth_child<N: AstNode>(node: &impl AstNode, n: usize) -> Option<N> {
    children(node).nth(n)
}

/// The tokens that stand directly in the node, without trivia.
fn tokens<A: AstNode>(node: &A) -> impl Iterator<Item = SyntaxToken> + use<A> {
    tokens_of(node.syntax())
}

fn tokens_of(node: &SyntaxNode) -> impl Iterator<Item = SyntaxToken> + use<> {
    let elements = node.children_with_tokens();
    elements.filter_map(|element| element.into_token()).filter(|token| !token.kind().is_trivia())
}

fn token(node: &impl AstNode, kind: SyntaxKind) -> Option<SyntaxToken> {
    tokens(node).find(|token| token.kind() == kind)
}

/// Whether the word stands directly in the node.
fn has_word(node: &impl AstNode, word: &str) -> bool {
    tokens(node).any(|token| token.kind() == SyntaxKind::Lower && token.text() == word)
}

/// The first child of this production after the word.
fn child_after<N: AstNode>(node: &impl AstNode, word: &str) -> Option<N> {
    let elements = node.syntax().children_with_tokens();
    let after = elements.skip_while(|element| element.as_token().is_none_or(|token| token.text() != word));
    after.filter_map(|element| element.into_node()).find_map(N::cast)
}

/// The first child of this production after the first token of this kind.
fn child_after_kind<N: AstNode>(node: &impl AstNode, kind: SyntaxKind) -> Option<N> {
    let elements = node.syntax().children_with_tokens();
    let after = elements.skip_while(|element| element.kind() != kind);
    after.filter_map(|element| element.into_node()).find_map(N::cast)
}

/// The first child of this production before the first token of this kind.
fn child_before_kind<N: AstNode>(node: &impl AstNode, kind: SyntaxKind) -> Option<N> {
    let elements = node.syntax().children_with_tokens();
    let before = elements.take_while(|element| element.kind() != kind);
    before.filter_map(|element| element.into_node()).find_map(N::cast)
}

fn token_span(token: &SyntaxToken) -> TextSpan {
    token.text_range().into()
}

fn span_of(node: &SyntaxNode) -> TextSpan {
    let whole = TextSpan::from(node.text_range());
    // Only documentation stands before the first token of a node, and nothing after the last.
    let mut first = node.first_token();
    while let Some(token) = first.take_if(|token| token.kind().is_trivia()) {
        first = token.next_token();
    }
    match first {
        Some(token) if token_span(&token).start < whole.end => {
            TextSpan::new(token_span(&token).start, whole.end)
        }
        Some(_) | None => whole,
    }
}

/// The `///` lines directly above a node, without the slashes.
pub(crate) fn docs_of(node: &SyntaxNode) -> Option<String> {
    let elements = node.children_with_tokens().take_while(|element| element.kind().is_trivia());
    let docs =
        elements.filter_map(|element| element.into_token()).filter(|token| token.kind() == SyntaxKind::Doc);
    let lines: Vec<String> = docs
        .map(|token| {
            let line = token.text().trim_start_matches('/');
            line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()
        })
        .collect();
    if lines.is_empty() { None } else { Some(lines.join("\n")) }
}

#[cfg(test)]
mod tests;
