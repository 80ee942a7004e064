//! Literals and their values, texts and their pieces.
//!
//! Leaves decimal arithmetic to the checker: numbers with a point are handed on as text. Invariant: a value that
//! does not fit is `None`, never wrapped.

use super::{Ast, AstNode, Expr, SyntaxKind, SyntaxNode, child, tokens};
use crate::syntax::literal;

/// A number, a duration or a word such as `true`.
pub type Literal = Ast<{ SyntaxKind::Literal as u16 }>;
/// A text in quotes.
pub type StringExpr = Ast<{ SyntaxKind::StringExpr as u16 }>;
/// `{expr}` in a text.
pub type Hole = Ast<{ SyntaxKind::Hole as u16 }>;

/// What a literal is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    /// `12_000`; `None` if it is too large for an `i64`.
    Int(Option<i64>),
    /// `0.40`, without underscores.
    Number(String),
    /// `1h30m` in milliseconds; `None` if it is malformed or too large.
    Duration(Option<i64>),
    /// `true`, `false`.
    Bool(bool),
    /// `none`.
    None,
    /// `nothing`.
    Nothing,
}

impl Literal {
    /// What it is.
    pub fn kind(&self) -> Option<LiteralKind> {
        let token = tokens(self).next()?;
        let text = token.text();
        Some(match token.kind() {
            SyntaxKind::Int => LiteralKind::Int(int_value(text)),
            SyntaxKind::Number => LiteralKind::Number(text.replace('_', "")),
            SyntaxKind::Dur => LiteralKind::Duration(literal::duration_ms(text)),
            SyntaxKind::Lower => match text {
                "true" => LiteralKind::Bool(true),
                "false" => LiteralKind::Bool(false),
                "nothing" => LiteralKind::Nothing,
                // `null` and its like were reported and mean `none`.
                _ => LiteralKind::None,
            },
            _ => return None,
        })
    }

    /// The digits of `12_000` or `0.40` without underscores, for values beyond `i64` such as the least one.
    pub fn digits(&self) -> Option<String> {
        let token = tokens(self).next()?;
        matches!(token.kind(), SyntaxKind::Int | SyntaxKind::Number).then(|| token.text().replace('_', ""))
    }
}

/// A literal that is a whole number, where the grammar wants one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IntLiteral(Literal);

impl AstNode for IntLiteral {
    fn cast(node: SyntaxNode) -> Option<Self> {
        let literal = Literal::cast(node)?;
        matches!(literal.kind(), Some(LiteralKind::Int(_))).then_some(Self(literal))
    }

    fn syntax(&self) -> &SyntaxNode {
        self.0.syntax()
    }
}

impl IntLiteral {
    /// The number; `None` if it is too large.
    pub fn value(&self) -> Option<i64> {
        match self.0.kind() {
            Some(LiteralKind::Int(value)) => value,
            Some(_) | None => None,
        }
    }
}

/// A literal that is a duration, where the grammar wants one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DurLiteral(Literal);

impl AstNode for DurLiteral {
    fn cast(node: SyntaxNode) -> Option<Self> {
        let literal = Literal::cast(node)?;
        matches!(literal.kind(), Some(LiteralKind::Duration(_))).then_some(Self(literal))
    }

    fn syntax(&self) -> &SyntaxNode {
        self.0.syntax()
    }
}

impl DurLiteral {
    /// Milliseconds; `None` if it is malformed or too large.
    pub fn ms(&self) -> Option<i64> {
        match self.0.kind() {
            Some(LiteralKind::Duration(ms)) => ms,
            Some(_) | None => None,
        }
    }
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StringPiece {
    /// Characters, with escapes decoded and common indent removed.
    Text(String),
    /// `{expr}`; nothing inside if the text is broken there.
    Hole(Hole),
}

impl StringExpr {
    /// The pieces: no empty texts, no two texts in a row.
    pub fn pieces(&self) -> Vec<StringPiece> {
        let mut parts = Vec::new();
        let mut holes = Vec::new();
        for element in self.syntax().children_with_tokens() {
            match element.kind() {
                SyntaxKind::StringText => parts.push(literal::Part::Raw(element.to_string())),
                SyntaxKind::StringEscape => parts.push(literal::Part::Escape(element.to_string())),
                SyntaxKind::Hole => {
                    parts.push(literal::Part::Hole(holes.len()));
                    holes.extend(element.into_node().and_then(Hole::cast));
                }
                _ => {}
            }
        }
        let pieces = literal::decode(parts, self.is_long());
        pieces
            .into_iter()
            .filter_map(|piece| match piece {
                literal::Piece::Text(text) => Some(StringPiece::Text(text)),
                literal::Piece::Hole(number) => holes.get(number).cloned().map(StringPiece::Hole),
            })
            .collect()
    }

    /// The whole text if it has no holes.
    pub fn plain(&self) -> Option<String> {
        let mut pieces = self.pieces();
        match (pieces.pop(), pieces.is_empty()) {
            (None, _) => Some(String::new()),
            (Some(StringPiece::Text(text)), true) => Some(text),
            (Some(_), _) => None,
        }
    }

    /// Whether it stands in three quotes.
    pub fn is_long(&self) -> bool {
        tokens(self).next().is_some_and(|token| token.text() == "\"\"\"")
    }
}

impl Hole {
    /// The expression.
    pub fn expr(&self) -> Option<Expr> {
        child(self)
    }
}

pub(super) fn int_value(text: &str) -> Option<i64> {
    text.replace('_', "").parse().ok()
}
