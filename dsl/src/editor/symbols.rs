//! The outline of a file.
//!
//! Leaves how it is shown to the editor. Invariant: symbols come in the order of the text, those of a flow inside of it.

use super::sight::name_of;
use super::title;
use crate::diag::{FileId, TextSpan};
use crate::syntax::kind::{SyntaxKind, SyntaxNode};
use crate::syntax::parse;

/// A declaration, state or message, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name; of a test, its title.
    pub name: String,
    /// The word that declares it: `flow`, `state`, …
    pub word: String,
    /// The declaration up to its body.
    pub detail: String,
    /// All of it, with its documentation.
    pub span: TextSpan,
    /// Its name.
    pub name_span: TextSpan,
    /// What is in it.
    pub children: Vec<Symbol>,
}

/// The outline of a text, also of a broken one.
#[must_use]
pub fn symbols(text: &str) -> Vec<Symbol> {
    parse(FileId(0), text).syntax().children().filter_map(|node| symbol(&node)).collect()
}

fn symbol(node: &SyntaxNode) -> Option<Symbol> {
    let word = match node.kind() {
        SyntaxKind::TypeDecl => "type",
        SyntaxKind::ErrorDecl => "error",
        SyntaxKind::RetryDecl => "retry",
        SyntaxKind::Activity => "activity",
        SyntaxKind::FnDecl => "fn",
        SyntaxKind::Flow => "flow",
        SyntaxKind::Test => "test",
        SyntaxKind::Message => "message",
        SyntaxKind::Data => "data",
        SyntaxKind::State => "state",
        _ => return None,
    };
    let (name, name_span) = match name_of(node) {
        Some(token) => (token.text().to_owned(), token.text_range().into()),
        None => {
            let title = node.children().find(|child| child.kind() == SyntaxKind::StringExpr)?;
            (title.text().to_string().trim_matches('"').to_owned(), title.text_range().into())
        }
    };
    let children = match node.kind() {
        SyntaxKind::Flow => node.children().filter_map(|item| symbol(&item)).collect(),
        _ => Vec::new(),
    };
    let detail = title(node);
    Some(Symbol { name, word: word.to_owned(), detail, span: node.text_range().into(), name_span, children })
}
