//! Expressions.
//!
//! Leaves types and names to the checker. Invariant: parentheses are nodes, so the tree is the text's.

use super::{
    Ast, AstNode, Cond, Guard, Literal, Name, NameRef, Pattern, StringExpr, SyntaxKind, SyntaxNode, TypePath,
    child, child_after, child_after_kind, child_before_kind, children, names, nth_child, token, tokens,
};
use crate::diag::TextSpan;

/// `if c then a else b`.
pub type IfExpr = Ast<{ SyntaxKind::IfExpr as u16 }>;
/// `match v { … }`.
pub type MatchExpr = Ast<{ SyntaxKind::MatchExpr as u16 }>;
/// `A { x } => e`.
pub type MatchArm = Ast<{ SyntaxKind::MatchArm as u16 }>;
/// `a + b`.
pub type Binary = Ast<{ SyntaxKind::Binary as u16 }>;
/// `-a`, `not a`.
pub type Unary = Ast<{ SyntaxKind::Unary as u16 }>;
/// `v is A { x }`.
pub type IsExpr = Ast<{ SyntaxKind::IsExpr as u16 }>;
/// `v.field`, `dev.allow(x)`.
pub type FieldExpr = Ast<{ SyntaxKind::FieldExpr as u16 }>;
/// `v[i]`.
pub type IndexExpr = Ast<{ SyntaxKind::IndexExpr as u16 }>;
/// `x`.
pub type NameExpr = Ast<{ SyntaxKind::NameExpr as u16 }>;
/// `f(…)`.
pub type Call = Ast<{ SyntaxKind::Call as u16 }>;
/// `T.V { a: e }`, or a bare `T`, as in `T.schema`.
pub type Construct = Ast<{ SyntaxKind::Construct as u16 }>;
/// `{ a: e, b }`.
pub type InitList = Ast<{ SyntaxKind::InitList as u16 }>;
/// `a: e` or `b`.
pub type Init = Ast<{ SyntaxKind::Init as u16 }>;
/// `[a, b]` or `[e for x in xs]`.
pub type List = Ast<{ SyntaxKind::List as u16 }>;
/// `map { k: v }` or `map { k: v for x in xs }`.
pub type Map = Ast<{ SyntaxKind::Map as u16 }>;
/// `k: v`.
pub type MapEntry = Ast<{ SyntaxKind::MapEntry as u16 }>;
/// `for x, y in xs if c`.
pub type ForIn = Ast<{ SyntaxKind::ForIn as u16 }>;
/// `(e)`.
pub type Paren = Ast<{ SyntaxKind::Paren as u16 }>;
/// `(a, name: b)` or `(e for x in xs)`.
pub type ArgList = Ast<{ SyntaxKind::ArgList as u16 }>;
/// `a` or `name: b`.
pub type Arg = Ast<{ SyntaxKind::Arg as u16 }>;

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is documented at its type")]
pub enum Expr {
    If(IfExpr),
    Match(MatchExpr),
    Binary(Binary),
    Unary(Unary),
    Is(IsExpr),
    Field(FieldExpr),
    Index(IndexExpr),
    Name(NameExpr),
    Call(Call),
    Construct(Construct),
    List(List),
    Map(Map),
    Paren(Paren),
    Literal(Literal),
    String(StringExpr),
}

impl AstNode for Expr {
    fn cast(node: SyntaxNode) -> Option<Self> {
        match node.kind() {
            SyntaxKind::IfExpr => IfExpr::cast(node).map(Self::If),
            SyntaxKind::MatchExpr => MatchExpr::cast(node).map(Self::Match),
            SyntaxKind::Binary => Binary::cast(node).map(Self::Binary),
            SyntaxKind::Unary => Unary::cast(node).map(Self::Unary),
            SyntaxKind::IsExpr => IsExpr::cast(node).map(Self::Is),
            SyntaxKind::FieldExpr => FieldExpr::cast(node).map(Self::Field),
            SyntaxKind::IndexExpr => IndexExpr::cast(node).map(Self::Index),
            SyntaxKind::NameExpr => NameExpr::cast(node).map(Self::Name),
            SyntaxKind::Call => Call::cast(node).map(Self::Call),
            SyntaxKind::Construct => Construct::cast(node).map(Self::Construct),
            SyntaxKind::List => List::cast(node).map(Self::List),
            SyntaxKind::Map => Map::cast(node).map(Self::Map),
            SyntaxKind::Paren => Paren::cast(node).map(Self::Paren),
            SyntaxKind::Literal => Literal::cast(node).map(Self::Literal),
            SyntaxKind::StringExpr => StringExpr::cast(node).map(Self::String),
            _ => None,
        }
    }

    fn syntax(&self) -> &SyntaxNode {
        match self {
            Self::If(node) => node.syntax(),
            Self::Match(node) => node.syntax(),
            Self::Binary(node) => node.syntax(),
            Self::Unary(node) => node.syntax(),
            Self::Is(node) => node.syntax(),
            Self::Field(node) => node.syntax(),
            Self::Index(node) => node.syntax(),
            Self::Name(node) => node.syntax(),
            Self::Call(node) => node.syntax(),
            Self::Construct(node) => node.syntax(),
            Self::List(node) => node.syntax(),
            Self::Map(node) => node.syntax(),
            Self::Paren(node) => node.syntax(),
            Self::Literal(node) => node.syntax(),
            Self::String(node) => node.syntax(),
        }
    }
}

impl Expr {
    /// The expression without the parentheses around it.
    pub fn without_parens(self) -> Option<Self> {
        let mut expr = self;
        while let Self::Paren(paren) = &expr {
            expr = paren.inner()?;
        }
        Some(expr)
    }
}

impl IfExpr {
    /// The condition.
    pub fn cond(&self) -> Option<Cond> {
        child(self)
    }

    /// The value if it holds.
    pub fn then(&self) -> Option<Expr> {
        child_after(self, "then")
    }

    /// The value if it does not hold.
    pub fn otherwise(&self) -> Option<Expr> {
        child_after(self, "else")
    }
}

impl MatchExpr {
    /// The value.
    pub fn value(&self) -> Option<Expr> {
        child_before_kind(self, SyntaxKind::LBrace)
    }

    /// The arms.
    pub fn arms(&self) -> impl Iterator<Item = MatchArm> + use<> {
        children(self)
    }
}

impl MatchArm {
    /// The variant.
    pub fn pattern(&self) -> Option<Pattern> {
        child(self)
    }

    /// The guard.
    pub fn guard(&self) -> Option<Guard> {
        child(self)
    }

    /// The value.
    pub fn value(&self) -> Option<Expr> {
        child(self)
    }
}

/// An operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum BinaryOp {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
    Coalesce,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    /// The left operand.
    pub fn left(&self) -> Option<Expr> {
        let first = self.syntax().first_child()?;
        Expr::cast(first).filter(|expr| self.op_span().is_none_or(|op| expr.span().end <= op.start))
    }

    /// The right operand.
    pub fn right(&self) -> Option<Expr> {
        let op = self.op_span()?;
        children::<Expr>(self).find(|expr| op.end <= expr.span().start)
    }

    /// The operator; signs used by habit stand for the words that are meant.
    pub fn op(&self) -> Option<BinaryOp> {
        let token = tokens(self).next()?;
        Some(match token.kind() {
            SyntaxKind::PipePipe => BinaryOp::Or,
            SyntaxKind::AmpAmp => BinaryOp::And,
            SyntaxKind::EqEq | SyntaxKind::Eq => BinaryOp::Equal,
            SyntaxKind::NotEq => BinaryOp::NotEqual,
            SyntaxKind::Lt => BinaryOp::Less,
            SyntaxKind::LtEq => BinaryOp::LessEqual,
            SyntaxKind::Gt => BinaryOp::Greater,
            SyntaxKind::GtEq => BinaryOp::GreaterEqual,
            SyntaxKind::Coalesce => BinaryOp::Coalesce,
            SyntaxKind::Plus => BinaryOp::Add,
            SyntaxKind::Minus => BinaryOp::Subtract,
            SyntaxKind::Star => BinaryOp::Multiply,
            SyntaxKind::Slash => BinaryOp::Divide,
            SyntaxKind::Percent => BinaryOp::Remainder,
            SyntaxKind::Lower => match token.text() {
                "or" => BinaryOp::Or,
                "and" => BinaryOp::And,
                "in" => BinaryOp::In,
                "not" => BinaryOp::NotIn,
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Where the operator stands.
    pub fn op_span(&self) -> Option<TextSpan> {
        let spans = tokens(self).map(|token| TextSpan::from(token.text_range()));
        spans.reduce(TextSpan::cover)
    }
}

/// An operator before a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Negate,
    /// `not`
    Not,
}

impl Unary {
    /// The operator.
    pub fn op(&self) -> UnaryOp {
        if token(self, SyntaxKind::Minus).is_some() { UnaryOp::Negate } else { UnaryOp::Not }
    }

    /// The operand.
    pub fn operand(&self) -> Option<Expr> {
        child(self)
    }
}

impl IsExpr {
    /// The value.
    pub fn value(&self) -> Option<Expr> {
        child(self)
    }

    /// The variant.
    pub fn pattern(&self) -> Option<Pattern> {
        child(self)
    }
}

impl FieldExpr {
    /// The value, catalogue or type before the dot.
    pub fn value(&self) -> Option<Expr> {
        child(self)
    }

    /// The field or function after the dot.
    pub fn field(&self) -> Option<NameRef> {
        child(self)
    }

    /// The arguments, if it is a call.
    pub fn args(&self) -> Option<ArgList> {
        child(self)
    }
}

impl IndexExpr {
    /// The list or map.
    pub fn value(&self) -> Option<Expr> {
        child_before_kind(self, SyntaxKind::LBrack)
    }

    /// The position or key.
    pub fn index(&self) -> Option<Expr> {
        child_after_kind(self, SyntaxKind::LBrack)
    }
}

impl NameExpr {
    /// The variable.
    pub fn name(&self) -> Option<NameRef> {
        child(self)
    }
}

impl Call {
    /// The function.
    pub fn function(&self) -> Option<NameRef> {
        child(self)
    }

    /// The arguments.
    pub fn args(&self) -> Option<ArgList> {
        child(self)
    }
}

impl Construct {
    /// The variant or type.
    pub fn path(&self) -> Option<TypePath> {
        child(self)
    }

    /// The fields, if it has braces.
    pub fn init_list(&self) -> Option<InitList> {
        child(self)
    }

    /// The fields; none without braces.
    pub fn inits(&self) -> impl Iterator<Item = Init> + use<> {
        self.init_list().into_iter().flat_map(|list| list.inits())
    }
}

impl InitList {
    /// The fields.
    pub fn inits(&self) -> impl Iterator<Item = Init> + use<> {
        children(self)
    }
}

impl Init {
    /// The field.
    pub fn field(&self) -> Option<NameRef> {
        child(self)
    }

    /// The value; nothing means the variable of the field's name.
    pub fn value(&self) -> Option<Expr> {
        child(self)
    }

    /// Whether it is `a` alone, the variable of that name.
    pub fn is_shorthand(&self) -> bool {
        token(self, SyntaxKind::Colon).is_none() && token(self, SyntaxKind::Eq).is_none()
    }
}

impl List {
    /// The elements; the first is the one of `for`.
    pub fn elements(&self) -> impl Iterator<Item = Expr> + use<> {
        children(self)
    }

    /// `for …`.
    pub fn for_in(&self) -> Option<ForIn> {
        child(self)
    }
}

impl Map {
    /// The entries; the first is the one of `for`.
    pub fn entries(&self) -> impl Iterator<Item = MapEntry> + use<> {
        children(self)
    }

    /// `for …`.
    pub fn for_in(&self) -> Option<ForIn> {
        child(self)
    }
}

impl MapEntry {
    /// The key.
    pub fn key(&self) -> Option<Expr> {
        child_before_kind(self, SyntaxKind::Colon)
    }

    /// The value.
    pub fn value(&self) -> Option<Expr> {
        child_after_kind(self, SyntaxKind::Colon)
    }
}

impl ForIn {
    /// The item.
    pub fn item(&self) -> Option<Name> {
        names(self).next()
    }

    /// The second name: the position, or the value of a map.
    pub fn second(&self) -> Option<Name> {
        names(self).nth(1)
    }

    /// The list or map.
    pub fn over(&self) -> Option<Expr> {
        child_after(self, "in")
    }

    /// The condition.
    pub fn cond(&self) -> Option<Expr> {
        child_after(self, "if")
    }
}

impl Paren {
    /// What stands inside.
    pub fn inner(&self) -> Option<Expr> {
        child(self)
    }
}

impl ArgList {
    /// The arguments; with `for`, the first is what is made of each item.
    pub fn args(&self) -> impl Iterator<Item = Arg> + use<> {
        children(self)
    }

    /// `for …`.
    pub fn for_in(&self) -> Option<ForIn> {
        child(self)
    }
}

impl Arg {
    /// The parameter, if it is named.
    pub fn name(&self) -> Option<NameRef> {
        child(self)
    }

    /// The value.
    pub fn value(&self) -> Option<Expr> {
        nth_child(self, 0)
    }
}
