//! Arrows, outcomes, guards, acts, arms, goals, patterns.
//!
//! Leaves what an outcome is to the checker. Invariant: acts come in the order of the text.

use super::{
    ArgList, Ast, AstNode, Binding, Do, Expr, Name, NameRef, PlaceNode, SyntaxKind, SyntaxNode, TypePath,
    child, children, has_word, names, nth_child, token,
};
use crate::diag::TextSpan;

/// `on … -> …`.
pub type OnArrow = Ast<{ SyntaxKind::OnArrow as u16 }>;
/// `after D -> …`, `at T -> …`, `every D -> …`.
pub type TimerArrow = Ast<{ SyntaxKind::TimerArrow as u16 }>;
/// `ok, timeout { field }`.
pub type Outcomes = Ast<{ SyntaxKind::Outcomes as u16 }>;
/// `ok`, `RateLimited`, `region.ok`.
pub type OutcomeName = Ast<{ SyntaxKind::OutcomeName as u16 }>;
/// `if cond`.
pub type Guard = Ast<{ SyntaxKind::Guard as u16 }>;
/// An expression and `as name`.
pub type Cond = Ast<{ SyntaxKind::Cond as u16 }>;
/// `{ Variant -> … }`.
pub type Arms = Ast<{ SyntaxKind::Arms as u16 }>;
/// `Variant { field } if cond … -> …`.
pub type Arm = Ast<{ SyntaxKind::Arm as u16 }>;
/// `set a = e, b += e`.
pub type SetAct = Ast<{ SyntaxKind::SetAct as u16 }>;
/// `a += e`.
pub type Assign = Ast<{ SyntaxKind::Assign as u16 }>;
/// `discard M, N`.
pub type Discard = Ast<{ SyntaxKind::Discard as u16 }>;
/// `settle d as e`.
pub type Settle = Ast<{ SyntaxKind::Settle as u16 }>;
/// `also do a(…)`.
pub type AlsoDo = Ast<{ SyntaxKind::AlsoDo as u16 }>;
/// `emit e`.
pub type Emit = Ast<{ SyntaxKind::Emit as u16 }>;
/// `-> …`.
pub type Goal = Ast<{ SyntaxKind::Goal as u16 }>;
/// `T.V { a, b: c }`.
pub type Pattern = Ast<{ SyntaxKind::Pattern as u16 }>;
/// `{ a, b: c }`.
pub type FieldPatList = Ast<{ SyntaxKind::FieldPatList as u16 }>;
/// `a` or `b: c`.
pub type FieldBind = Ast<{ SyntaxKind::FieldBind as u16 }>;
/// `S(…)`, a state that is entered.
pub type Place = PlaceNode;

/// An arrow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Arrow {
    /// `on`.
    On(OnArrow),
    /// `after`, `at`, `every`.
    Timer(TimerArrow),
}

impl AstNode for Arrow {
    fn cast(node: SyntaxNode) -> Option<Self> {
        match node.kind() {
            SyntaxKind::OnArrow => OnArrow::cast(node).map(Self::On),
            SyntaxKind::TimerArrow => TimerArrow::cast(node).map(Self::Timer),
            _ => None,
        }
    }

    fn syntax(&self) -> &SyntaxNode {
        match self {
            Self::On(node) => node.syntax(),
            Self::Timer(node) => node.syntax(),
        }
    }
}

impl Arrow {
    /// The outcomes of an `on` arrow.
    pub fn outcomes(&self) -> Option<Outcomes> {
        match self {
            Self::On(arrow) => child(arrow),
            Self::Timer(_) => None,
        }
    }

    /// The guard of an `on` arrow.
    pub fn guard(&self) -> Option<Guard> {
        child(self)
    }

    /// What it does.
    pub fn acts(&self) -> Acts {
        Acts::of(self)
    }

    /// Where it goes, unless it has arms.
    pub fn goal(&self) -> Option<Goal> {
        child(self)
    }

    /// Where each variant of the result goes.
    pub fn arms(&self) -> Option<Arms> {
        child(self)
    }
}

/// The word of a timer arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimerWord {
    /// Once, that long after the state was entered.
    After,
    /// Once, at that time.
    At,
    /// Again and again.
    Every,
}

impl TimerArrow {
    /// Which timer.
    pub fn word(&self) -> TimerWord {
        if has_word(self, "every") {
            TimerWord::Every
        } else if has_word(self, "at") {
            TimerWord::At
        } else {
            TimerWord::After
        }
    }

    /// The duration or time.
    pub fn when(&self) -> Option<Expr> {
        child(self)
    }
}

impl Outcomes {
    /// The names.
    pub fn names(&self) -> impl Iterator<Item = OutcomeName> + use<> {
        children(self)
    }

    /// `{ field, … }`.
    pub fn fields(&self) -> Option<FieldPatList> {
        child(self)
    }

    /// The variable after `as`.
    pub fn binding(&self) -> Option<Name> {
        child::<Binding>(self).and_then(|binding| binding.name())
    }
}

impl OutcomeName {
    /// What stands before the dot: a region or a catalogue.
    pub fn qualifier(&self) -> Option<NameRef> {
        token(self, SyntaxKind::Dot).and_then(|_| child(self))
    }

    /// The outcome: `ok`, `timeout`, an error, a message.
    pub fn name(&self) -> Option<NameRef> {
        nth_child(self, usize::from(token(self, SyntaxKind::Dot).is_some()))
    }
}

impl Guard {
    /// The condition.
    pub fn cond(&self) -> Option<Cond> {
        child(self)
    }
}

impl Cond {
    /// The expression.
    pub fn expr(&self) -> Option<Expr> {
        child(self)
    }

    /// The variable after `as`: the value of an option that is there.
    pub fn binding(&self) -> Option<Name> {
        child::<Binding>(self).and_then(|binding| binding.name())
    }
}

impl Arms {
    /// The arms.
    pub fn arms(&self) -> impl Iterator<Item = Arm> + use<> {
        children(self)
    }
}

impl Arm {
    /// The variant.
    pub fn pattern(&self) -> Option<Pattern> {
        child(self)
    }

    /// The guard.
    pub fn guard(&self) -> Option<Guard> {
        child(self)
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

/// What an arrow, an arm, a branch or a limit does before it goes: a view over its parent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acts(SyntaxNode);

/// One act.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// `set`.
    Set(SetAct),
    /// `discard`.
    Discard(Discard),
    /// `settle`.
    Settle(Settle),
    /// `also do`.
    AlsoDo(AlsoDo),
    /// `emit`.
    Emit(Emit),
}

impl AstNode for Act {
    fn cast(node: SyntaxNode) -> Option<Self> {
        match node.kind() {
            SyntaxKind::SetAct => SetAct::cast(node).map(Self::Set),
            SyntaxKind::Discard => Discard::cast(node).map(Self::Discard),
            SyntaxKind::Settle => Settle::cast(node).map(Self::Settle),
            SyntaxKind::AlsoDo => AlsoDo::cast(node).map(Self::AlsoDo),
            SyntaxKind::Emit => Emit::cast(node).map(Self::Emit),
            _ => None,
        }
    }

    fn syntax(&self) -> &SyntaxNode {
        match self {
            Self::Set(node) => node.syntax(),
            Self::Discard(node) => node.syntax(),
            Self::Settle(node) => node.syntax(),
            Self::AlsoDo(node) => node.syntax(),
            Self::Emit(node) => node.syntax(),
        }
    }
}

impl Acts {
    pub(super) fn of(parent: &impl AstNode) -> Self {
        Self(parent.syntax().clone())
    }

    /// All acts.
    pub fn iter(&self) -> impl Iterator<Item = Act> + use<> {
        self.0.children().filter_map(Act::cast)
    }

    /// The assignments of `set`.
    pub fn assigns(&self) -> impl Iterator<Item = Assign> + use<> {
        self.of_kind::<SetAct>().flat_map(|set| set.assigns())
    }

    /// The messages of `discard`.
    pub fn discards(&self) -> impl Iterator<Item = NameRef> + use<> {
        self.of_kind::<Discard>().flat_map(|discard| discard.messages())
    }

    /// The doubts that are settled.
    pub fn settles(&self) -> impl Iterator<Item = Settle> + use<> {
        self.of_kind()
    }

    /// The activities that are opened beside.
    pub fn also_dos(&self) -> impl Iterator<Item = AlsoDo> + use<> {
        self.of_kind()
    }

    /// What is emitted.
    pub fn emits(&self) -> impl Iterator<Item = Emit> + use<> {
        self.of_kind()
    }

    fn of_kind<N: AstNode>(&self) -> impl Iterator<Item = N> + use<N> {
        self.0.children().filter_map(N::cast)
    }
}

/// How an assignment changes its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AssignOp {
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=`
    Subtract,
}

impl SetAct {
    /// The assignments.
    pub fn assigns(&self) -> impl Iterator<Item = Assign> + use<> {
        children(self)
    }
}

impl Assign {
    /// The data.
    pub fn target(&self) -> Option<NameRef> {
        child(self)
    }

    /// How it changes.
    pub fn op(&self) -> AssignOp {
        if token(self, SyntaxKind::PlusEq).is_some() {
            AssignOp::Add
        } else if token(self, SyntaxKind::MinusEq).is_some() {
            AssignOp::Subtract
        } else {
            AssignOp::Set
        }
    }

    /// The value.
    pub fn value(&self) -> Option<Expr> {
        child(self)
    }
}

impl Discard {
    /// The messages.
    pub fn messages(&self) -> impl Iterator<Item = NameRef> + use<> {
        children(self)
    }
}

impl Settle {
    /// The doubt.
    pub fn doubt(&self) -> Option<NameRef> {
        child(self)
    }

    /// The verdict.
    pub fn verdict(&self) -> Option<Expr> {
        child(self)
    }
}

impl AlsoDo {
    /// The activity.
    pub fn activity(&self) -> Option<NameRef> {
        child(self)
    }

    /// The arguments.
    pub fn args(&self) -> Option<ArgList> {
        child(self)
    }
}

impl Emit {
    /// The value.
    pub fn value(&self) -> Option<Expr> {
        child(self)
    }
}

/// Where an arrow goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// `-> S(…)`.
    State(Place),
    /// `-> stay`.
    Stay(TextSpan),
    /// `-> end v`.
    End(Option<Expr>),
    /// `-> fail E { … }`.
    Fail(Option<Expr>),
}

impl Goal {
    /// The target; nothing if the text does not say.
    pub fn target(&self) -> Option<Target> {
        if has_word(self, "stay") {
            Some(Target::Stay(self.span()))
        } else if has_word(self, "end") {
            Some(Target::End(child(self)))
        } else if has_word(self, "fail") {
            Some(Target::Fail(child(self)))
        } else {
            child(self).map(Target::State)
        }
    }
}

impl PlaceNode {
    /// The state.
    pub fn state(&self) -> Option<NameRef> {
        child(self)
    }

    /// The arguments, if there are parentheses.
    pub fn args(&self) -> Option<ArgList> {
        child(self)
    }
}

impl Pattern {
    /// The variant.
    pub fn path(&self) -> Option<TypePath> {
        child(self)
    }

    /// `{ field, … }`.
    pub fn fields(&self) -> Option<FieldPatList> {
        child(self)
    }
}

impl FieldPatList {
    /// The bindings.
    pub fn binds(&self) -> impl Iterator<Item = FieldBind> + use<> {
        children(self)
    }
}

impl FieldBind {
    /// The field: its text and place.
    pub fn field(&self) -> Option<(String, TextSpan)> {
        let field = child::<NameRef>(self).map(|field| (field.text(), field.span()));
        field.or_else(|| self.name().map(|name| (name.text(), name.span())))
    }

    /// The variable, which has the field's name unless another one is given.
    pub fn name(&self) -> Option<Name> {
        names(self).next()
    }
}

impl Do {
    /// The variable after `as`.
    pub fn binding(&self) -> Option<Name> {
        child::<Binding>(self).and_then(|binding| binding.name())
    }
}
