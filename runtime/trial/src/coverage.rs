//! Coverage: which states the tests entered and which arrows they took.
//!
//! An arrow with a block counts as its arms, a `choose` as its branches. Leaves taking arrows to the kernel, which names them as the
//! source map does. Invariant: counts what stands in the files, so the states that one `steps` block is made into count as one, and
//! so does an arrow that they share.

use std::collections::{BTreeMap, BTreeSet};

use outlast_dsl::{CheckedFlow, PlaceEntry, PlaceLine};

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
    /// As they stand in the text.
    arrows: BTreeMap<Written, bool>,
    /// The arrow in the text that an arrow of the machine is made from.
    written: BTreeMap<Place, Written>,
}

/// Where an arrow stands in the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Written {
    file: String,
    line: u32,
    column: u32,
    flow: String,
    state: Option<String>,
    snippet: String,
}

impl Coverage {
    /// Makes the coverage of flows that no test has run.
    pub(crate) fn of(flows: &[CheckedFlow]) -> Coverage {
        let mut coverage = Coverage::default();
        for flow in flows {
            let own = || flow.places.entries.iter().filter(|entry| entry.flow == flow.name);
            let split: BTreeSet<(&Option<String>, &str)> =
                own().filter_map(|entry| Some((&entry.state, arm_of(&entry.part)?))).collect();
            for entry in own() {
                let place = (entry.flow.clone(), entry.state.clone(), entry.part.clone());
                if entry.part == "state" {
                    coverage.states.insert(plain(place), false);
                } else if is_arrow(&entry.part) && !split.contains(&(&entry.state, entry.part.as_str())) {
                    let written = Written::of(entry);
                    coverage.arrows.insert(written.clone(), false);
                    coverage.written.insert(place, written);
                }
            }
        }
        coverage
    }

    /// Adds what a test took.
    pub(crate) fn add(&mut self, taken: &BTreeSet<Place>) {
        for place in taken {
            if let Some(entered) = self.states.get_mut(&plain(place.clone())) {
                *entered = true;
            }
            if let Some(taken) = self.written.get(place).and_then(|written| self.arrows.get_mut(written)) {
                *taken = true;
            }
        }
    }

    /// Adds the coverage of other files.
    pub fn merge(&mut self, other: Coverage) {
        self.states.extend(other.states);
        self.arrows.extend(other.arrows);
        self.written.extend(other.written);
    }

    /// Returns how many states were entered, and how many there are.
    #[must_use]
    pub fn states(&self) -> (usize, usize) {
        (self.states.values().filter(|entered| **entered).count(), self.states.len())
    }

    /// Returns how many arrows were taken, and how many there are.
    #[must_use]
    pub fn arrows(&self) -> (usize, usize) {
        (self.arrows.values().filter(|taken| **taken).count(), self.arrows.len())
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
        let never = self.arrows.iter().filter(|(_, taken)| !**taken).map(|(written, _)| written.clone());
        never.map(Written::untaken).collect()
    }
}

impl Written {
    fn of(entry: &PlaceEntry) -> Written {
        let line = entry.line.clone();
        Written {
            file: line.file,
            line: line.line,
            column: entry.column,
            flow: entry.flow.clone(),
            state: entry.state.as_deref().map(block),
            snippet: line.snippet,
        }
    }

    fn untaken(self) -> Untaken {
        let line = PlaceLine { file: self.file, line: self.line, snippet: self.snippet };
        Untaken { flow: self.flow, state: self.state, line }
    }
}

/// A state that a `steps` block is made into counts as the state that is written.
fn plain((flow, state, part): Place) -> Place {
    let state = state.as_deref().map(block);
    (flow, state, part)
}

/// The written state that a state belongs to.
fn block(state: &str) -> String {
    state.split('.').next().unwrap_or_default().to_owned()
}

/// The arrow whose arm a part is.
fn arm_of(part: &str) -> Option<&str> {
    part.split_once(" arm ").map(|(arrow, _)| arrow)
}

fn is_arrow(part: &str) -> bool {
    ["arrow ", "branch ", "timer ", "limit "].iter().any(|kind| part.starts_with(kind))
}
