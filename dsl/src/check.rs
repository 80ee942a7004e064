//! The checker: from source files to checked flows.
//!
//! Leaves expressions, arrows and effects to `lower`, which checks types on its way. Invariant: the diagnostics come in one order
//! (file, place), each once. Start with [`check`].

pub(crate) mod analyses;
pub(crate) mod catalogues;
pub(crate) mod declare;
pub(crate) mod graph;
pub(crate) mod names;
pub(crate) mod operators;
pub(crate) mod outcomes;
pub(crate) mod signatures;
pub(crate) mod tables;
pub(crate) mod ty;

use std::collections::BTreeMap;

use crate::diag::catalogue::names as codes;
use crate::diag::{Diagnostic, FileId, LineIndex, sort};
use crate::lower::places::{Part, PlaceBook};
use crate::lower::{activities, defs, flows, migrations, tests};
use crate::machine::link::{Program, link};
use crate::machine::{FlowIx, Machine};
use crate::places::Places;
use crate::prelude;
use crate::syntax::ast::AstNode as _;
use crate::syntax::parse;
use declare::{Parsed, Texts};
use tables::{Layer, Tables};

/// The edition that this release knows.
const EDITION: u32 = 1;

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// As people know it.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// What checking found.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The flows of the files in the order of the text; none if there is an error.
    pub flows: Vec<CheckedFlow>,
    /// What is to be said of the files; the number of a file is its position among those given.
    pub diagnostics: Vec<Diagnostic>,
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

/// Returns the files that a source file names with `use tools`, in the order of the text.
#[must_use]
pub fn used_files(source: &SourceFile) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for one in parse(FileId(0), &source.text).file().uses() {
        if let Some(path) = one.path().and_then(|path| path.plain())
            && !all.contains(&path)
        {
            all.push(path);
        }
    }
    all
}

/// Checks source files together; `attachments` holds the texts of the files that they use, by the name written there.
#[must_use]
pub fn check(files: &[SourceFile], attachments: &BTreeMap<String, String>) -> Checked {
    let mut out = Vec::new();
    let parsed = parse_all(files, &mut out);
    // A broken tree has holes, and what follows from them is not worth reading.
    if out.iter().any(Diagnostic::is_error) {
        return finished(Vec::new(), out);
    }
    let mut tables = Tables { library_from: number(files.len()), ..Tables::default() };
    let texts = declare::declare(&parsed, &mut tables, &mut out);
    signatures::fill(&texts, &mut tables, &mut out);
    let mut book = PlaceBook::default();
    let program = lower(&texts, &tables, attachments, &mut book, &mut out);
    if out.iter().any(Diagnostic::is_error) {
        return finished(Vec::new(), out);
    }
    finished(link_all(files, &texts, &tables, &program, &book), out)
}

fn finished(flows: Vec<CheckedFlow>, mut diagnostics: Vec<Diagnostic>) -> Checked {
    sort(&mut diagnostics);
    // What belongs to every variant of a union is looked at once for each of them.
    diagnostics.dedup();
    Checked { flows, diagnostics }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Parses the standard library and the files. The library is declared first but numbered last.
fn parse_all(files: &[SourceFile], out: &mut Vec<Diagnostic>) -> Vec<Parsed> {
    let library = prelude::FILES.iter().enumerate().map(|(at, (_, text))| {
        let file = FileId(number(files.len() + at));
        (file, Layer::Library, *text)
    });
    let own =
        files.iter().enumerate().map(|(at, file)| (FileId(number(at)), Layer::Files, file.text.as_str()));
    let mut all = Vec::new();
    for (file, layer, text) in library.chain(own) {
        let parsed = parse(file, text);
        out.extend_from_slice(parsed.diagnostics());
        let tree = parsed.file();
        if let Some(edition) = tree.edition()
            && edition.number() != Some(i64::from(EDITION))
        {
            let message = "this release does not know that edition";
            let diagnostic = Diagnostic::error(codes::UNKNOWN_EDITION, file, edition.span(), message);
            out.push(diagnostic.expected(format!("`edition {EDITION}`")));
        }
        all.push(Parsed { file, layer, tree });
    }
    all
}

fn lower(
    texts: &Texts,
    tables: &Tables,
    attachments: &BTreeMap<String, String>,
    book: &mut PlaceBook,
    out: &mut Vec<Diagnostic>,
) -> Program {
    let mut program = Program { catalogues: catalogues::read(texts, attachments, out), ..Program::default() };
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
        clean.extend((out.len() == before).then_some(ix));
    }
    migrations::migrations(texts, tables, &mut program, &contexts, book, out);
    for ix in clean {
        analyses::flow(tables, &program, book, ix, out);
    }
    analyses::program(tables, &program, out);
    tests::tests(texts, tables, &contexts, out);
    program
}

fn link_all(
    files: &[SourceFile],
    texts: &Texts,
    tables: &Tables,
    program: &Program,
    book: &PlaceBook,
) -> Vec<CheckedFlow> {
    let sources: Vec<(SourceFile, LineIndex)> =
        files.iter().map(|file| (file.clone(), LineIndex::new(&file.text))).collect();
    let mut all = Vec::new();
    for (at, (file, _)) in texts.flows.iter().enumerate() {
        if tables.layer_of(*file) == Layer::Library {
            continue;
        }
        let machine = link(program, EDITION, FlowIx(number(at)));
        let root = machine.root();
        let (name, version) = (root.name.clone(), root.version);
        let places = places(tables, program, book, &machine, &sources);
        all.push(CheckedFlow { name, version, machine, places });
    }
    all
}

/// The parts of the flows of a machine.
fn places(
    tables: &Tables,
    program: &Program,
    book: &PlaceBook,
    machine: &Machine,
    sources: &[(SourceFile, LineIndex)],
) -> Places {
    let mut entries = Vec::new();
    for (at, signature) in tables.flows.iter().enumerate() {
        if !machine.flows.iter().any(|flow| flow.name == signature.name) {
            continue;
        }
        let states = &program.flows[at].states;
        let name_of = |state: crate::machine::StateIx| states[state.at()].name.clone();
        entries.extend(book.entries_of(FlowIx(number(at)), &signature.name, name_of, sources));
    }
    Places { entries }
}
