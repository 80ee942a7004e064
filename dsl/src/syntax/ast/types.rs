//! Types, fields, parameters, variants.
//!
//! Leaves which names are types to the checker. Invariant: the parts stand in the order of the text.

use super::{Ast, Expr, Name, NameRef, SyntaxKind, child, children, token};

/// `list<T>?`, `dev.Args`.
pub type Type = Ast<{ SyntaxKind::Type as u16 }>;
/// `{ name: type, … }`.
pub type FieldList = Ast<{ SyntaxKind::FieldList as u16 }>;
/// `name: type = default`.
pub type Field = Ast<{ SyntaxKind::Field as u16 }>;
/// `(name: type, …)`.
pub type ParamList = Ast<{ SyntaxKind::ParamList as u16 }>;
/// `name: type = default`.
pub type Param = Ast<{ SyntaxKind::Param as u16 }>;
/// `Name { fields }`.
pub type Variant = Ast<{ SyntaxKind::Variant as u16 }>;

impl Type {
    /// The catalogue `dev` of `dev.Args`.
    pub fn catalogue(&self) -> Option<NameRef> {
        token(self, SyntaxKind::Dot).and_then(|_| child(self))
    }

    /// `int` of `int`, `list` of `list<T>`, `Args` of `dev.Args`.
    pub fn name(&self) -> Option<NameRef> {
        children(self).nth(usize::from(token(self, SyntaxKind::Dot).is_some()))
    }

    /// `T` of `list<T>`.
    pub fn argument(&self) -> Option<Type> {
        child(self)
    }

    /// Whether it ends with `?`.
    pub fn is_optional(&self) -> bool {
        token(self, SyntaxKind::Question).is_some()
    }
}

impl FieldList {
    /// The fields.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<> {
        children(self)
    }
}

impl Field {
    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// The type.
    pub fn ty(&self) -> Option<Type> {
        child(self)
    }

    /// The value if none is given.
    pub fn default(&self) -> Option<Expr> {
        child(self)
    }
}

impl ParamList {
    /// The parameters.
    pub fn params(&self) -> impl Iterator<Item = Param> + use<> {
        children(self)
    }
}

impl Param {
    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// The type.
    pub fn ty(&self) -> Option<Type> {
        child(self)
    }

    /// The value if none is given.
    pub fn default(&self) -> Option<Expr> {
        child(self)
    }
}

impl Variant {
    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// The fields, if it has braces.
    pub fn field_list(&self) -> Option<FieldList> {
        child(self)
    }

    /// The fields; none without braces.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<> {
        self.field_list().into_iter().flat_map(|list| list.fields())
    }
}
