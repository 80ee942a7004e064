//! The checker: from source files to checked flows.
//!
//! Leaves expressions, arrows and effects to `lower`, which checks types on its way. Invariant: the diagnostics come in one order
//! (file, place), each once. Start with [`check`].

pub(crate) mod analyses;
pub(crate) mod catalogues;
mod damage;
pub(crate) mod declare;
pub(crate) mod graph;
pub(crate) mod imports;
pub(crate) mod load;
pub(crate) mod names;
pub(crate) mod notes;
pub(crate) mod operators;
pub(crate) mod outcomes;
pub(crate) mod signatures;
pub(crate) mod tables;
pub(crate) mod tool_types;
pub(crate) mod ty;

use std::collections::{BTreeMap, BTreeSet};

use crate::diag::catalogue::names as codes;
use crate::diag::{Diagnostic, LineIndex, Related, Severity, sort};
use crate::files::SourceFile;
use crate::lower::places::{Part, PlaceBook};
use crate::lower::{activities, defs, flows, migrations, tests};
use crate::machine::link::{Program, link};
use crate::machine::{Catalogue, FlowIx, Machine};
use crate::places::Places;
use crate::syntax::ast::AstNode as _;
use crate::test_case::TestCase;
use damage::Damage;
use declare::Texts;
use load::{EDITION, Loaded, load};
use notes::Notes;
use tables::{Spot, Tables};

/// What checking found.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The flows of the given files in the order of the text, not those of files that they use; none if there is an error.
    pub flows: Vec<CheckedFlow>,
    /// All files but the prelude: those that were given, then those that they use.
    pub files: Vec<SourceFile>,
    /// What is to be said; the number of a file is its position in `files`.
    pub diagnostics: Vec<Diagnostic>,
    /// The tests of the given files in the order of the text; none if there is an error.
    pub tests: Vec<TestCase>,
}

/// A flow that is ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedFlow {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// The machine whose root it is, with what it reaches and nothing else.
    pub machine: Machine,
    /// Where the parts of the machine stand.
    pub places: Places,
}

/// Checks source files together; `attachments` holds the texts of the files that they use, by their paths (see
/// [`gather`](crate::gather)).
#[must_use]
pub fn check(files: &[SourceFile], attachments: &BTreeMap<String, String>) -> Checked {
    noted(files, attachments, Notes::default()).0
}

/// Checks like [`check`], and gives the declarations with what was noted on the way.
pub(crate) fn noted(
    files: &[SourceFile],
    attachments: &BTreeMap<String, String>,
    notes: Notes,
) -> (Checked, Tables) {
    let mut out = Vec::new();
    let loaded = load(files, attachments, &mut out);
    let mut tables = Tables { library_from: number(loaded.files.len()), notes, ..Tables::default() };
    let damage = Damage::of(&loaded.parsed, &out);
    let of_the_syntax = out.len();
    let texts = declare::declare(&loaded.parsed, &mut tables, &mut out);
    let catalogues = catalogues::read(&texts, &mut out);
    tool_types::declare(&catalogues, &texts.catalogues, &mut tables);
    imports::bring(&loaded, &mut tables, &mut out);
    signatures::fill(&texts, &mut tables, &mut out);
    imports::unused(&loaded, &tables, &mut out);
    let mut book = PlaceBook::default();
    let (program, drafts) = lower(&texts, &tables, catalogues, damage.as_ref(), &mut book, &mut out);
    if let Some(damage) = damage {
        // A broken tree has holes, and what follows from them is not worth reading.
        let rest = out.split_off(of_the_syntax);
        out.extend(rest.into_iter().filter(|one| damage.spares(one)));
    }
    let (mut flows, mut tests) = (Vec::new(), Vec::new());
    if !out.iter().any(Diagnostic::is_error) {
        flows = link_all(&loaded, &texts, &tables, &program, &book, &mut out);
        let given = drafts.into_iter().filter(|draft| (draft.file.0 as usize) < loaded.given);
        tests = given.map(|draft| draft.linked(&program, EDITION)).collect();
    }
    imports::suggest(&loaded, &mut out);
    (finished(flows, tests, loaded, out), tables)
}

fn finished(
    mut flows: Vec<CheckedFlow>,
    mut tests: Vec<TestCase>,
    loaded: Loaded,
    mut diagnostics: Vec<Diagnostic>,
) -> Checked {
    sort(&mut diagnostics);
    // What belongs to every variant of a union is looked at once for each of them.
    diagnostics.dedup();
    // A note is about a thing and not about a place: it is said once in a file.
    let mut noted = BTreeSet::new();
    diagnostics.retain(|one| {
        one.severity != Severity::Note || noted.insert((one.file, one.code, one.message.clone()))
    });
    if diagnostics.iter().any(Diagnostic::is_error) {
        flows.clear();
        tests.clear();
    }
    Checked { flows, files: loaded.files, diagnostics, tests }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn lower(
    texts: &Texts,
    tables: &Tables,
    catalogues: Vec<Catalogue>,
    damage: Option<&Damage>,
    book: &mut PlaceBook,
    out: &mut Vec<Diagnostic>,
) -> (Program, Vec<tests::Draft>) {
    let mut program = Program { catalogues, ..Program::default() };
    defs::types(tables, &mut program, out);
    defs::functions(texts, tables, &mut program, out);
    defs::retries(texts, tables, &mut program, out);
    activities::activities(texts, tables, &mut program, out);
    let (mut clean, mut contexts) = (Vec::new(), Vec::new());
    for (at, flow) in tables.flows.iter().enumerate() {
        let ix = FlowIx(number(at));
        book.add(ix, None, Part::Flow, flow.spot);
        let before = out.len();
        contexts.push(flows::flow(texts, tables, &mut program, ix, book, out));
        let (file, text) = &texts.flows[at];
        let whole = damage.is_none_or(|damage| damage.is_whole(*file, text.span()));
        clean.extend((out.len() == before && whole).then_some(ix));
    }
    migrations::migrations(texts, tables, &mut program, &contexts, book, out);
    analyses::check(texts, tables, &program, book, &clean, out);
    let drafts = tests::tests(texts, tables, &contexts, &mut program, out);
    (program, drafts)
}

/// The machines of the flows of the given files.
fn link_all(
    loaded: &Loaded,
    texts: &Texts,
    tables: &Tables,
    program: &Program,
    book: &PlaceBook,
    out: &mut Vec<Diagnostic>,
) -> Vec<CheckedFlow> {
    let sources: Vec<(SourceFile, LineIndex)> =
        loaded.files.iter().map(|file| (file.clone(), LineIndex::new(&file.text))).collect();
    let mut all = Vec::new();
    for (at, (file, _)) in texts.flows.iter().enumerate() {
        if file.0 as usize >= loaded.given {
            continue;
        }
        let (machine, flows) = link(program, EDITION, FlowIx(number(at)));
        refuse_namesakes(tables, &flows, out);
        let root = machine.root();
        let (name, version) = (root.name.clone(), root.version);
        let places = places(tables, program, book, &flows, &sources);
        all.push(CheckedFlow { name, version, machine, places });
    }
    all
}

/// Reports two flows of one name within one machine: its runs and pictures tell them apart by their names.
fn refuse_namesakes(tables: &Tables, flows: &[FlowIx], out: &mut Vec<Diagnostic>) {
    let mut seen: BTreeMap<&str, Spot> = BTreeMap::new();
    for signature in flows.iter().map(|ix| &tables.flows[ix.at()]) {
        let spot = signature.spot;
        let Some(first) = seen.insert(&signature.name, spot) else { continue };
        let message = format!("another flow `{}` runs beside this one", signature.name);
        let mut diagnostic = Diagnostic::error(codes::DUPLICATE, spot.file, spot.span, message);
        diagnostic = diagnostic.hint("flows that run within one another are told apart by their names");
        let message = "it is declared here".to_owned();
        diagnostic.related.push(Related { file: first.file, span: first.span, message });
        out.push(diagnostic);
    }
}

/// The parts of the flows of a machine.
fn places(
    tables: &Tables,
    program: &Program,
    book: &PlaceBook,
    flows: &[FlowIx],
    sources: &[(SourceFile, LineIndex)],
) -> Places {
    let mut flows = flows.to_vec();
    flows.sort_unstable();
    let mut entries = Vec::new();
    for ix in flows {
        let states = &program.flows[ix.at()].states;
        let name_of = |state: crate::machine::StateIx| states[state.at()].name.clone();
        entries.extend(book.entries_of(ix, &tables.flows[ix.at()].name, name_of, sources));
    }
    Places { entries }
}
