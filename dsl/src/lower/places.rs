//! Notes where the parts of flows stand while they are lowered.
//!
//! Leaves the map that is handed out to `crate::places`. Invariant: a part is named as the kernel names it, by its position in
//! the machine.

use std::collections::BTreeMap;
use std::fmt;

use crate::SourceFile;
use crate::check::tables::Spot;
use crate::diag::LineIndex;
use crate::machine::{FlowIx, StateIx};
use crate::places::{PlaceEntry, PlaceLine};

/// A part of a flow or state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Flow,
    State,
    Effect,
    Start,
    Arrow(usize),
    /// An arm of an arrow: the arrow, the arm.
    Arm(usize, usize),
    /// A branch or an arm of `choose`.
    Branch(usize),
    Timer(usize),
    Limit(usize),
    Data(String),
    Migration(String),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Flow => f.write_str("flow"),
            Part::State => f.write_str("state"),
            Part::Effect => f.write_str("effect"),
            Part::Start => f.write_str("start"),
            Part::Arrow(at) => write!(f, "arrow {at}"),
            Part::Arm(arrow, at) => write!(f, "arrow {arrow} arm {at}"),
            Part::Branch(at) => write!(f, "branch {at}"),
            Part::Timer(at) => write!(f, "timer {at}"),
            Part::Limit(at) => write!(f, "limit {at}"),
            Part::Data(name) => write!(f, "data {name}"),
            Part::Migration(from) => write!(f, "migration {from}"),
        }
    }
}

/// The parts of all flows of a program.
#[derive(Debug, Default)]
pub(crate) struct PlaceBook {
    entries: Vec<(FlowIx, Option<StateIx>, Part, Spot)>,
    /// Which entries belong to a flow or state.
    by_state: BTreeMap<(FlowIx, Option<StateIx>), Vec<usize>>,
}

impl PlaceBook {
    pub(crate) fn add(&mut self, flow: FlowIx, state: Option<StateIx>, part: Part, spot: Spot) {
        self.by_state.entry((flow, state)).or_default().push(self.entries.len());
        self.entries.push((flow, state, part, spot));
    }

    /// Where a part stands.
    pub(crate) fn spot(&self, flow: FlowIx, state: Option<StateIx>, part: &Part) -> Option<Spot> {
        let own = self.by_state.get(&(flow, state))?.iter().map(|at| &self.entries[*at]);
        own.into_iter().find(|(_, _, one, _)| one == part).map(|(.., spot)| *spot)
    }

    /// The parts of one flow; `name_of` gives the names of its states.
    pub(crate) fn entries_of(
        &self,
        flow: FlowIx,
        flow_name: &str,
        name_of: impl Fn(StateIx) -> String,
        sources: &[(SourceFile, LineIndex)],
    ) -> Vec<PlaceEntry> {
        let own = self.entries.iter().filter(|(one, ..)| *one == flow);
        own.filter_map(|(_, state, part, spot)| {
            let (source, lines) = sources.get(spot.file.0 as usize)?;
            let at = lines.position(spot.span.start, &source.text);
            let line = at.line;
            let whole = lines.span_of(line - 1, &source.text).map_or("", |span| span.of(&source.text));
            let snippet = whole.trim().to_owned();
            let line = PlaceLine { file: source.name.clone(), line, snippet };
            Some(PlaceEntry {
                flow: flow_name.to_owned(),
                state: state.map(&name_of),
                part: part.to_string(),
                column: at.column,
                line,
            })
        })
        .collect()
    }
}
