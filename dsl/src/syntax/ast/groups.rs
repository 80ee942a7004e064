//! Effects that hold others, and those that wait.
//!
//! Leaves how results are typed to the checker. Invariant: members come in the order of the text.

use super::{
    Ast, Binding, Bound, Effect, Expr, Guard, IntLiteral, Name, NameRef, Outcomes, SyntaxKind, Type, child,
    child_after, children, has_word, names, nth_child, tokens,
};

/// `steps { a = do … }`.
pub type Steps = Ast<{ SyntaxKind::Steps as u16 }>;
/// `a = do …`.
pub type StepBind = Ast<{ SyntaxKind::StepBind as u16 }>;
/// `each x in xs at most n … { … }`.
pub type Each = Ast<{ SyntaxKind::Each as u16 }>;
/// `parallel { … } join …`.
pub type Parallel = Ast<{ SyntaxKind::Parallel as u16 }>;
/// `name: do …` of a `parallel`.
pub type Region = Ast<{ SyntaxKind::Region as u16 }>;
/// `on X yield v`.
pub type Yield = Ast<{ SyntaxKind::Yield as u16 }>;
/// `await M, closed within D`.
pub type Await = Ast<{ SyntaxKind::Await as u16 }>;
/// What is awaited.
pub type AwaitedNode = Ast<{ SyntaxKind::Awaited as u16 }>;
/// `ask "…" show v to "owner" within D`.
pub type Ask = Ast<{ SyntaxKind::Ask as u16 }>;
/// `show v editable`.
pub type Show = Ast<{ SyntaxKind::Show as u16 }>;
/// `2 of "role"`.
pub type Who = Ast<{ SyntaxKind::Who as u16 }>;

impl Steps {
    /// The steps.
    pub fn steps(&self) -> impl Iterator<Item = StepBind> + use<> {
        children(self)
    }
}

impl StepBind {
    /// The name of the result.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// `do` or `run`.
    pub fn effect(&self) -> Option<Effect> {
        child(self)
    }
}

impl Each {
    /// The item.
    pub fn item(&self) -> Option<Name> {
        names(self).next()
    }

    /// The second name: the position, or the value of a map.
    pub fn second(&self) -> Option<Name> {
        names(self).nth(1)
    }

    /// The list.
    pub fn over(&self) -> Option<Expr> {
        child_after(self, "in")
    }

    /// How many at a time.
    pub fn at_most(&self) -> Option<Expr> {
        child_after(self, "most")
    }

    /// The condition after the first `until`.
    pub fn until(&self) -> Option<Expr> {
        child_after(self, "until")
    }

    /// Whether open members end after `until` holds.
    pub fn is_draining(&self) -> bool {
        has_word(self, "draining")
    }

    /// Whether errors do not close the group.
    pub fn keeps_going(&self) -> bool {
        has_word(self, "keep")
    }

    /// The deadline of the group.
    pub fn bound(&self) -> Option<Bound> {
        child(self)
    }

    /// The results after `as`.
    pub fn binding(&self) -> Option<Name> {
        child::<Binding>(self).and_then(|binding| binding.name())
    }

    /// The effect for each item.
    pub fn effect(&self) -> Option<Effect> {
        child(self)
    }

    /// What members give.
    pub fn yields(&self) -> impl Iterator<Item = Yield> + use<> {
        children(self)
    }
}

/// When a `parallel` is met.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Join {
    /// All regions.
    All,
    /// The first.
    Any,
    /// So many.
    Count(IntLiteral),
    /// That region.
    Region(NameRef),
}

impl Parallel {
    /// The regions.
    pub fn regions(&self) -> impl Iterator<Item = Region> + use<> {
        children(self)
    }

    /// What stands after `join`.
    pub fn join(&self) -> Option<Join> {
        if has_word(self, "all") {
            Some(Join::All)
        } else if has_word(self, "any") {
            Some(Join::Any)
        } else {
            child(self).map(Join::Count).or_else(|| child(self).map(Join::Region))
        }
    }

    /// The deadline of the group.
    pub fn bound(&self) -> Option<Bound> {
        child(self)
    }
}

impl Region {
    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// The effect.
    pub fn effect(&self) -> Option<Effect> {
        child(self)
    }

    /// What it gives.
    pub fn yields(&self) -> impl Iterator<Item = Yield> + use<> {
        children(self)
    }
}

impl Yield {
    /// The outcomes.
    pub fn outcomes(&self) -> Option<Outcomes> {
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

/// What is awaited.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Awaited {
    /// A message.
    Message(NameRef),
    /// The end of the mailbox.
    Closed,
    /// The end of a spawned run.
    Ended(Option<Expr>),
}

impl Await {
    /// What is awaited.
    pub fn awaited(&self) -> impl Iterator<Item = AwaitedNode> + use<> {
        children(self)
    }

    /// The bound.
    pub fn bound(&self) -> Option<Bound> {
        child(self)
    }
}

impl AwaitedNode {
    /// Which it is; nothing if the text does not say.
    pub fn awaited(&self) -> Option<Awaited> {
        if has_word(self, "closed") {
            Some(Awaited::Closed)
        } else if has_word(self, "ended") {
            Some(Awaited::Ended(child(self)))
        } else {
            child(self).map(Awaited::Message)
        }
    }
}

impl Ask {
    /// The question.
    pub fn question(&self) -> Option<Expr> {
        // With no question, the first expression would be another part's; those stand in nodes of their own.
        nth_child(self, 0)
    }

    /// What is shown.
    pub fn show(&self) -> Option<Show> {
        child(self)
    }

    /// The type of the answer after `for`.
    pub fn answer(&self) -> Option<Type> {
        child(self)
    }

    /// Who is asked.
    pub fn who(&self) -> impl Iterator<Item = Who> + use<> {
        children(self)
    }

    /// The bound.
    pub fn bound(&self) -> Option<Bound> {
        child(self)
    }
}

impl Show {
    /// The value.
    pub fn value(&self) -> Option<Expr> {
        child(self)
    }

    /// Whether the one who answers may change it.
    pub fn is_editable(&self) -> bool {
        has_word(self, "editable")
    }
}

impl Who {
    /// How many of the role; nothing means one.
    pub fn count(&self) -> Option<IntLiteral> {
        if tokens(self).any(|token| token.text() == "of") { child(self) } else { None }
    }

    /// The role.
    pub fn role(&self) -> Option<Expr> {
        if has_word(self, "of") { child_after(self, "of") } else { child(self) }
    }
}
