//! Files and declarations.
//!
//! Leaves activities, flows and tests to their files. Invariant: declarations come in the order of the text.

use super::{
    Activity, Assign, Ast, AstNode, Expr, Field, FieldList, Flow, Name, NameRef, Param, ParamList, Place,
    RetryDecl, SetAct, StringExpr, SyntaxKind, SyntaxNode, Test, Type, Variant, child, children, has_word,
    token,
};

/// A whole file.
pub type File = Ast<{ SyntaxKind::File as u16 }>;
/// `edition 1`.
pub type Edition = Ast<{ SyntaxKind::Edition as u16 }>;
/// `use tools "dev.tools.json" as dev`.
pub type Use = Ast<{ SyntaxKind::Use as u16 }>;
/// `use "refunds.flow" { Refund, refund_card }` or `use std "agents" { Agent }`.
pub type Import = Ast<{ SyntaxKind::Import as u16 }>;
/// `type T { … }` or `type T = A | B`.
pub type TypeDecl = Ast<{ SyntaxKind::TypeDecl as u16 }>;
/// `error E { … }`.
pub type ErrorDecl = Ast<{ SyntaxKind::ErrorDecl as u16 }>;
/// `fn f(…) -> T = e`.
pub type FnDecl = Ast<{ SyntaxKind::FnDecl as u16 }>;
/// `migrate Flow.Old(…) set … -> New(…)`.
pub type Migrate = Ast<{ SyntaxKind::Migrate as u16 }>;

/// A declaration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Decl {
    /// `type`.
    Type(TypeDecl),
    /// `error`.
    Error(ErrorDecl),
    /// `retry`.
    Retry(RetryDecl),
    /// `activity`.
    Activity(Activity),
    /// `fn`.
    Fn(FnDecl),
    /// `flow` and `saga flow`.
    Flow(Flow),
    /// `migrate`.
    Migrate(Migrate),
    /// `test`.
    Test(Test),
}

impl AstNode for Decl {
    fn cast(node: SyntaxNode) -> Option<Self> {
        match node.kind() {
            SyntaxKind::TypeDecl => TypeDecl::cast(node).map(Self::Type),
            SyntaxKind::ErrorDecl => ErrorDecl::cast(node).map(Self::Error),
            SyntaxKind::RetryDecl => RetryDecl::cast(node).map(Self::Retry),
            SyntaxKind::Activity => Activity::cast(node).map(Self::Activity),
            SyntaxKind::FnDecl => FnDecl::cast(node).map(Self::Fn),
            SyntaxKind::Flow => Flow::cast(node).map(Self::Flow),
            SyntaxKind::Migrate => Migrate::cast(node).map(Self::Migrate),
            SyntaxKind::Test => Test::cast(node).map(Self::Test),
            _ => None,
        }
    }

    fn syntax(&self) -> &SyntaxNode {
        match self {
            Self::Type(node) => node.syntax(),
            Self::Error(node) => node.syntax(),
            Self::Retry(node) => node.syntax(),
            Self::Activity(node) => node.syntax(),
            Self::Fn(node) => node.syntax(),
            Self::Flow(node) => node.syntax(),
            Self::Migrate(node) => node.syntax(),
            Self::Test(node) => node.syntax(),
        }
    }
}

impl File {
    /// `edition 1`.
    pub fn edition(&self) -> Option<Edition> {
        child(self)
    }

    /// The catalogues.
    pub fn uses(&self) -> impl Iterator<Item = Use> + use<> {
        children(self)
    }

    /// What is used of other files.
    pub fn imports(&self) -> impl Iterator<Item = Import> + use<> {
        children(self)
    }

    /// The declarations.
    pub fn decls(&self) -> impl Iterator<Item = Decl> + use<> {
        children(self)
    }
}

impl Edition {
    /// The number; `None` if it is no `i64`.
    pub fn number(&self) -> Option<i64> {
        token(self, SyntaxKind::Int).and_then(|token| super::literals::int_value(token.text()))
    }
}

impl Use {
    /// The file of the catalogue.
    pub fn path(&self) -> Option<StringExpr> {
        child(self)
    }

    /// The name in this file.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }
}

impl Import {
    /// Whether it names a part of the standard library and not a file.
    pub fn is_std(&self) -> bool {
        has_word(self, "std")
    }

    /// The file or the part of the standard library.
    pub fn path(&self) -> Option<StringExpr> {
        child(self)
    }

    /// The names that are brought in.
    pub fn names(&self) -> impl Iterator<Item = NameRef> + use<> {
        children(self)
    }
}

impl TypeDecl {
    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// Whether it is `type T = …`, a union, and not a record.
    pub fn is_union(&self) -> bool {
        token(self, SyntaxKind::Eq).is_some()
    }

    /// The fields of a record, or those after `with` that all variants share.
    pub fn field_list(&self) -> Option<FieldList> {
        child(self)
    }

    /// The fields of a record, or those after `with` that all variants share.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<> {
        self.field_list().into_iter().flat_map(|list| list.fields())
    }

    /// The variants of a union.
    pub fn variants(&self) -> impl Iterator<Item = Variant> + use<> {
        children(self)
    }
}

impl ErrorDecl {
    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// The fields; none without braces.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<> {
        child::<FieldList>(self).into_iter().flat_map(|list| list.fields())
    }
}

impl FnDecl {
    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// The parameters.
    pub fn params(&self) -> impl Iterator<Item = Param> + use<> {
        child::<ParamList>(self).into_iter().flat_map(|list| list.params())
    }

    /// The type of the result.
    pub fn result(&self) -> Option<Type> {
        child(self)
    }

    /// The expression.
    pub fn body(&self) -> Option<Expr> {
        child(self)
    }
}

impl Migrate {
    /// The state of the older version: its flow if that is written, its name, and its step if it is one.
    pub fn from(&self) -> impl Iterator<Item = NameRef> + use<> {
        children(self)
    }

    /// What is taken from the older version.
    pub fn params(&self) -> impl Iterator<Item = Param> + use<> {
        child::<ParamList>(self).into_iter().flat_map(|list| list.params())
    }

    /// Data that gets another value.
    pub fn assigns(&self) -> impl Iterator<Item = Assign> + use<> {
        child::<SetAct>(self).into_iter().flat_map(|set| set.assigns())
    }

    /// The state of the new version.
    pub fn to(&self) -> Option<Place> {
        child(self)
    }
}
