//! Activities and retry policies.
//!
//! Leaves which clauses fit together to the checker. Invariant: clauses are found in whatever order they stand.

use super::{
    Ast, AstNode, DurLiteral, IntLiteral, Literal, Name, NameRef, OutcomeName, Param, ParamList, StringExpr,
    SyntaxKind, Type, child, child_after, children, has_word, nth_child,
};
use crate::diag::TextSpan;

/// `activity a(…) -> T raises … within … effect …`.
pub type Activity = Ast<{ SyntaxKind::Activity as u16 }>;
/// `raises E, F`.
pub type Raises = Ast<{ SyntaxKind::Raises as u16 }>;
/// `within D` of an activity.
pub type Within = Ast<{ SyntaxKind::Within as u16 }>;
/// `in all D`.
pub type InAll = Ast<{ SyntaxKind::InAll as u16 }>;
/// `silent D`.
pub type Silent = Ast<{ SyntaxKind::Silent as u16 }>;
/// `retry R` of an activity.
pub type RetryUse = Ast<{ SyntaxKind::RetryUse as u16 }>;
/// `costs <= N`.
pub type Costs = Ast<{ SyntaxKind::Costs as u16 }>;
/// `queue "name"`.
pub type Queue = Ast<{ SyntaxKind::Queue as u16 }>;
/// `effect once verify f`.
pub type EffectClass = Ast<{ SyntaxKind::EffectClass as u16 }>;
/// `undo f always`.
pub type Undo = Ast<{ SyntaxKind::Undo as u16 }>;
/// `unknown holds`.
pub type UnknownHolds = Ast<{ SyntaxKind::UnknownHolds as u16 }>;
/// `retry R { … }`.
pub type RetryDecl = Ast<{ SyntaxKind::RetryDecl as u16 }>;
/// `on E up to n attempts wait D doubling to D hint f`.
pub type RetryRule = Ast<{ SyntaxKind::RetryRule as u16 }>;

/// The word of an effect class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectWord {
    /// Touches nothing.
    Pure,
    /// May run again without harm.
    Idempotent,
    /// Must not run again unseen.
    Once,
    /// As the catalogue says for this call.
    From,
}

impl Activity {
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

    /// The errors after `raises`.
    pub fn raises(&self) -> impl Iterator<Item = NameRef> + use<> {
        child::<Raises>(self).into_iter().flat_map(|clause| clause.errors())
    }

    /// `within D`: one attempt, or everything if there is no `in all`.
    pub fn within(&self) -> Option<DurLiteral> {
        child::<Within>(self).and_then(|clause| child(&clause))
    }

    /// `in all D`.
    pub fn in_all(&self) -> Option<DurLiteral> {
        child::<InAll>(self).and_then(|clause| child(&clause))
    }

    /// `silent D`.
    pub fn silent(&self) -> Option<DurLiteral> {
        child::<Silent>(self).and_then(|clause| child(&clause))
    }

    /// The retry policy.
    pub fn retry(&self) -> Option<NameRef> {
        child::<RetryUse>(self).and_then(|clause| child(&clause))
    }

    /// The number after `costs <=`.
    pub fn costs(&self) -> Option<Literal> {
        child::<Costs>(self).and_then(|clause| child(&clause))
    }

    /// The queue.
    pub fn queue(&self) -> Option<StringExpr> {
        child::<Queue>(self).and_then(|clause| child(&clause))
    }

    /// The effect class.
    pub fn effect(&self) -> Option<EffectClass> {
        child(self)
    }

    /// The undo.
    pub fn undo(&self) -> Option<Undo> {
        child(self)
    }

    /// Where `unknown holds` stands.
    pub fn unknown_holds(&self) -> Option<TextSpan> {
        child::<UnknownHolds>(self).map(|clause| clause.span())
    }
}

impl Raises {
    /// The errors.
    pub fn errors(&self) -> impl Iterator<Item = NameRef> + use<> {
        children(self)
    }
}

impl EffectClass {
    /// The class.
    pub fn word(&self) -> Option<EffectWord> {
        let words = [
            ("pure", EffectWord::Pure),
            ("idempotent", EffectWord::Idempotent),
            ("once", EffectWord::Once),
            ("from", EffectWord::From),
        ];
        words.into_iter().find(|(word, _)| has_word(self, word)).map(|(_, class)| class)
    }

    /// The catalogue after `from`.
    pub fn catalogue(&self) -> Option<NameRef> {
        if has_word(self, "from") { child(self) } else { None }
    }

    /// The activity after `verify`.
    pub fn verify(&self) -> Option<NameRef> {
        child_after(self, "verify")
    }
}

impl Undo {
    /// The activity that undoes.
    pub fn activity(&self) -> Option<NameRef> {
        child(self)
    }

    /// Whether it is undone also after a failure.
    pub fn is_always(&self) -> bool {
        has_word(self, "always")
    }
}

impl RetryDecl {
    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// The rules.
    pub fn rules(&self) -> impl Iterator<Item = RetryRule> + use<> {
        children(self)
    }

    /// Whether it ends with `then hold`.
    pub fn then_hold(&self) -> bool {
        has_word(self, "hold")
    }
}

impl RetryRule {
    /// The outcomes that are tried again.
    pub fn outcomes(&self) -> impl Iterator<Item = OutcomeName> + use<> {
        children(self)
    }

    /// How many attempts in all.
    pub fn attempts(&self) -> Option<IntLiteral> {
        child(self)
    }

    /// The first wait.
    pub fn wait(&self) -> Option<DurLiteral> {
        child_after(self, "wait")
    }

    /// The longest wait, if it doubles.
    pub fn doubling_to(&self) -> Option<DurLiteral> {
        if has_word(self, "doubling") { nth_child(self, 1) } else { None }
    }

    /// The field of the error that holds a wait.
    pub fn hint(&self) -> Option<NameRef> {
        child_after(self, "hint")
    }
}
