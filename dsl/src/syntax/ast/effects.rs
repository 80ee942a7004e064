//! Effects: the choice of them, and the single ones.
//!
//! Leaves groups to their file. Invariant: a state's effect is its first child of these kinds.

use super::{
    Acts, ArgList, Arms, Ask, Ast, AstNode, Await, Binding, Cond, Each, Expr, Goal, Name, NameRef, Parallel,
    Steps, SyntaxKind, SyntaxNode, child, child_after, children, has_word,
};

/// `do a(…) as r`.
pub type Do = Ast<{ SyntaxKind::Do as u16 }>;
/// `run F(…) as r`.
pub type Run = Ast<{ SyntaxKind::Run as u16 }>;
/// `spawn F(…) named k cancel as h`.
pub type Spawn = Ast<{ SyntaxKind::Spawn as u16 }>;
/// `choose …`.
pub type Choose = Ast<{ SyntaxKind::Choose as u16 }>;
/// `if cond … -> …` or `else … -> …` of a `choose`.
pub type Branch = Ast<{ SyntaxKind::Branch as u16 }>;
/// `within D`, `within forever` or `until T`.
pub type Bound = Ast<{ SyntaxKind::Bound as u16 }>;

/// An effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// `do`.
    Do(Do),
    /// `run`.
    Run(Run),
    /// `spawn`.
    Spawn(Spawn),
    /// `steps`.
    Steps(Steps),
    /// `each`.
    Each(Each),
    /// `parallel`.
    Parallel(Parallel),
    /// `await`.
    Await(Await),
    /// `ask`.
    Ask(Ask),
    /// `choose`.
    Choose(Choose),
}

impl AstNode for Effect {
    fn cast(node: SyntaxNode) -> Option<Self> {
        match node.kind() {
            SyntaxKind::Do => Do::cast(node).map(Self::Do),
            SyntaxKind::Run => Run::cast(node).map(Self::Run),
            SyntaxKind::Spawn => Spawn::cast(node).map(Self::Spawn),
            SyntaxKind::Steps => Steps::cast(node).map(Self::Steps),
            SyntaxKind::Each => Each::cast(node).map(Self::Each),
            SyntaxKind::Parallel => Parallel::cast(node).map(Self::Parallel),
            SyntaxKind::Await => Await::cast(node).map(Self::Await),
            SyntaxKind::Ask => Ask::cast(node).map(Self::Ask),
            SyntaxKind::Choose => Choose::cast(node).map(Self::Choose),
            _ => None,
        }
    }

    fn syntax(&self) -> &SyntaxNode {
        match self {
            Self::Do(node) => node.syntax(),
            Self::Run(node) => node.syntax(),
            Self::Spawn(node) => node.syntax(),
            Self::Steps(node) => node.syntax(),
            Self::Each(node) => node.syntax(),
            Self::Parallel(node) => node.syntax(),
            Self::Await(node) => node.syntax(),
            Self::Ask(node) => node.syntax(),
            Self::Choose(node) => node.syntax(),
        }
    }
}

impl Do {
    /// The activity.
    pub fn activity(&self) -> Option<NameRef> {
        child(self)
    }

    /// The arguments.
    pub fn args(&self) -> Option<ArgList> {
        child(self)
    }
}

impl Run {
    /// The flow.
    pub fn flow(&self) -> Option<NameRef> {
        child(self)
    }

    /// The arguments.
    pub fn args(&self) -> Option<ArgList> {
        child(self)
    }

    /// The deadline.
    pub fn bound(&self) -> Option<Bound> {
        child(self)
    }

    /// The variable after `as`.
    pub fn binding(&self) -> Option<Name> {
        child::<Binding>(self).and_then(|binding| binding.name())
    }
}

/// What happens to a spawned run when its parent ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClosePolicy {
    /// It is cancelled.
    Cancel,
    /// It goes on.
    Detach,
}

impl Spawn {
    /// The flow.
    pub fn flow(&self) -> Option<NameRef> {
        child(self)
    }

    /// The arguments.
    pub fn args(&self) -> Option<ArgList> {
        child(self)
    }

    /// The id after `named`.
    pub fn id(&self) -> Option<Expr> {
        child(self)
    }

    /// `cancel` or `detach`.
    pub fn policy(&self) -> Option<ClosePolicy> {
        if has_word(self, "cancel") {
            Some(ClosePolicy::Cancel)
        } else if has_word(self, "detach") {
            Some(ClosePolicy::Detach)
        } else {
            None
        }
    }

    /// The handle after `as`.
    pub fn binding(&self) -> Option<Name> {
        child::<Binding>(self).and_then(|binding| binding.name())
    }
}

impl Choose {
    /// The branches of `choose if …`; empty for the other form.
    pub fn branches(&self) -> impl Iterator<Item = Branch> + use<> {
        children(self)
    }

    /// The value of `choose v { … }`.
    pub fn value(&self) -> Option<Expr> {
        child(self)
    }

    /// The arms of `choose v { … }`.
    pub fn arms(&self) -> Option<Arms> {
        child(self)
    }
}

impl Branch {
    /// The condition; nothing for `else`.
    pub fn cond(&self) -> Option<Cond> {
        child(self)
    }

    /// Whether it is `else`.
    pub fn is_else(&self) -> bool {
        has_word(self, "else")
    }

    /// What it does.
    pub fn acts(&self) -> Acts {
        Acts::of(self)
    }

    /// Where it goes.
    pub fn goal(&self) -> Option<Goal> {
        child(self)
    }
}

/// How long something may take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Limitation {
    /// `within D`.
    Within(Option<Expr>),
    /// `within forever`.
    Forever,
    /// `until T`.
    Until(Option<Expr>),
}

impl Bound {
    /// Which bound.
    pub fn limitation(&self) -> Limitation {
        if has_word(self, "forever") {
            Limitation::Forever
        } else if has_word(self, "until") {
            Limitation::Until(child_after(self, "until"))
        } else {
            Limitation::Within(child(self))
        }
    }
}
