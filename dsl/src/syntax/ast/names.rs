//! Names, bindings, paths.
//!
//! Leaves what a name stands for to the checker. Invariant: `Name` declares or binds, `NameRef` uses.

use super::{Ast, AstNode, SyntaxKind, child, children, token, tokens};
use crate::diag::TextSpan;

/// A name that is declared or bound here.
pub type Name = Ast<{ SyntaxKind::Name as u16 }>;
/// A name that is used here.
pub type NameRef = Ast<{ SyntaxKind::NameRef as u16 }>;
/// `as name`.
pub type Binding = Ast<{ SyntaxKind::Binding as u16 }>;
/// The name of a variant or type, with what stands before it: `T.V`, `dev.T`.
pub type TypePath = Ast<{ SyntaxKind::TypePath as u16 }>;

impl Name {
    /// The name.
    pub fn text(&self) -> String {
        tokens(self).map(|token| token.text().to_owned()).collect()
    }
}

impl NameRef {
    /// The name.
    pub fn text(&self) -> String {
        tokens(self).map(|token| token.text().to_owned()).collect()
    }

    /// Whether it begins with an upper-case letter.
    pub fn is_upper(&self) -> bool {
        token(self, SyntaxKind::Upper).is_some()
    }
}

impl Binding {
    /// The variable.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }
}

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPart {
    /// The name.
    pub text: String,
    /// Where.
    pub span: TextSpan,
}

impl TypePath {
    /// The catalogue `dev` of `dev.T`.
    pub fn catalogue(&self) -> Option<PathPart> {
        self.parts(SyntaxKind::Lower).next()
    }

    /// The type `T` of `T.V`; nothing if the path is a single name.
    pub fn qualifier(&self) -> Option<PathPart> {
        let mut uppers = self.parts(SyntaxKind::Upper);
        let first = uppers.next();
        uppers.next().and(first)
    }

    /// Whether it is one name alone.
    pub fn is_single(&self) -> bool {
        tokens(self).count() == 1
    }

    /// The last name: a variant, or a type that is built.
    pub fn last(&self) -> Option<PathPart> {
        self.parts(SyntaxKind::Upper).last()
    }

    fn parts(&self, kind: SyntaxKind) -> impl Iterator<Item = PathPart> + use<> {
        let parts = tokens(self).filter(move |token| token.kind() == kind);
        parts.map(|token| PathPart { text: token.text().to_owned(), span: token.text_range().into() })
    }
}

/// The text of an optional name: what most callers want.
pub fn text_of(name: Option<Name>) -> Option<String> {
    name.map(|name| name.text())
}

/// All names that are declared directly in a node.
pub(super) fn names<A: AstNode>(node: &A) -> impl Iterator<Item = Name> + use<A> {
    children(node)
}
