//! Coverage: which states the tests entered and which arrows they took.
//!
//! Leaves taking arrows to the kernel, which names them as the source map does. Invariant: counts what stands in the files, so the
//! states that one `steps` block is made into count as one.

use std::collections::{BTreeMap, BTreeSet};

use outlast_dsl::{CheckedFlow, PlaceLine};

use crate::world::Place;

/// An arrow that no test took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untaken {
    /// Its flow.
    pub flow: String,
    /// Its state; none for an arrow or limit of the flow itself.
    pub state: Option<String>,
    /// Where it stands.
    pub line: PlaceLine,
}

/// Which states were entered and which arrows were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    states: BTreeMap<Place, bool>,
    arrows: BTreeMap<Place, (bool, Option<PlaceLine>)>,
    /// The arrows in the order of the text.
    order: Vec<Place>,
}

impl Coverage {
    /// Makes the coverage of flows that no test has run.
    pub(crate) fn of(flows: &[CheckedFlow]) -> Coverage {
        let mut coverage = Coverage::default();
        for flow in flows {
            for entry in flow.places.entries.iter().filter(|entry| entry.flow == flow.name) {
                let place = plain((entry.flow.clone(), entry.state.clone(), entry.part.clone()));
                if entry.part == "state" {
                    coverage.states.insert(place, false);
                } else if is_arrow(&entry.part) && !coverage.arrows.contains_key(&place) {
                    coverage.order.push(place.clone());
                    coverage.arrows.insert(place, (false, Some(entry.line.clone())));
                }
            }
        }
        coverage
    }

    /// Adds what a test took.
    pub(crate) fn add(&mut self, taken: &BTreeSet<Place>) {
        for place in taken {
            let place = plain(place.clone());
            if let Some(entered) = self.states.get_mut(&place) {
                *entered = true;
            }
            if let Some((taken, _)) = self.arrows.get_mut(&place) {
                *taken = true;
            }
        }
    }

    /// Adds the coverage of other files.
    pub fn merge(&mut self, other: Coverage) {
        self.order.extend(other.order);
        self.states.extend(other.states);
        self.arrows.extend(other.arrows);
    }

    /// Returns how many states were entered, and how many there are.
    #[must_use]
    pub fn states(&self) -> (usize, usize) {
        (self.states.values().filter(|entered| **entered).count(), self.states.len())
    }

    /// Returns how many arrows were taken, and how many there are.
    #[must_use]
    pub fn arrows(&self) -> (usize, usize) {
        (self.arrows.values().filter(|(taken, _)| *taken).count(), self.arrows.len())
    }

    /// Returns the arrows that were taken, in percent, rounded down; 100 if there are none.
    #[must_use]
    pub fn percent(&self) -> usize {
        let (taken, all) = self.arrows();
        (taken * 100).checked_div(all).unwrap_or(100)
    }

    /// Returns the arrows that were never taken, in the order of the text.
    #[must_use]
    pub fn untaken(&self) -> Vec<Untaken> {
        let never = |place: &Place| {
            let (taken, line) = self.arrows.get(place)?;
            let (flow, state, _) = place.clone();
            line.clone().filter(|_| !*taken).map(|line| Untaken { flow, state, line })
        };
        let mut untaken: Vec<Untaken> = self.order.iter().filter_map(never).collect();
        untaken.sort_by(|a, b| (&a.line.file, a.line.line).cmp(&(&b.line.file, b.line.line)));
        untaken
    }
}

/// A state that a `steps` block is made into counts as the state that is written.
fn plain((flow, state, part): Place) -> Place {
    let state = state.map(|state| state.split('.').next().unwrap_or_default().to_owned());
    (flow, state, part)
}

fn is_arrow(part: &str) -> bool {
    ["arrow ", "timer ", "limit "].iter().any(|kind| part.starts_with(kind))
}
