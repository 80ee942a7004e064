//! Notes for editors: the types of expressions and the outcomes of states where they stand, written down while they are lowered.
//!
//! Leaves what is made of them to `editor`. Invariant: nothing is kept unless somebody asked for it, and no result of checking
//! depends on it.

use std::cell::RefCell;

use super::tables::Spot;
use super::ty::Ty;

/// The types of expressions.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// None if nobody asked.
    types: Option<RefCell<Vec<(Spot, Ty)>>>,
    /// Of each state what its effect can lead to, as it is written.
    outcomes: RefCell<Vec<(Spot, Vec<String>)>>,
}

impl Notes {
    /// Notes that are kept.
    pub(crate) fn kept() -> Self {
        Self { types: Some(RefCell::default()), outcomes: RefCell::default() }
    }

    pub(crate) fn add(&self, spot: Spot, ty: &Ty) {
        if let Some(types) = &self.types {
            types.borrow_mut().push((spot, ty.clone()));
        }
    }

    /// Notes what the effect of a state can lead to.
    pub(crate) fn add_outcomes(&self, state: Spot, words: impl FnOnce() -> Vec<String>) {
        if self.types.is_some() {
            self.outcomes.borrow_mut().push((state, words()));
        }
    }

    /// What the effect of the state there can lead to, if that is known.
    pub(crate) fn outcomes(&self, state: Spot) -> Option<Vec<String>> {
        let all = self.outcomes.borrow();
        all.iter().find(|(spot, _)| *spot == state).map(|(_, words)| words.clone())
    }

    /// The type of the narrowest expression for which `fits` holds.
    pub(crate) fn narrowest(&self, fits: impl Fn(Spot) -> bool) -> Option<Ty> {
        let types = self.types.as_ref()?.borrow();
        // An expression that was read several times was read with the best knowledge at the end.
        let found = types.iter().rev().filter(|(spot, ty)| fits(*spot) && !ty.is_unknown());
        found.min_by_key(|(spot, _)| spot.span.end - spot.span.start).map(|(_, ty)| ty.clone())
    }
}
