//! Finds all files of a program: those that were given, those that they use, and the standard library.
//!
//! Leaves names to `check::declare` and `check::imports`. Invariant: the number of a file is its place in [`Loaded::files`]: the
//! given ones first, then what they use; the prelude, which nobody sees as a file, is numbered after all of them.

use std::collections::BTreeMap;

use super::graph;
use super::tables::{Layer, Spot};
use crate::diag::catalogue::names;
use crate::diag::{Diagnostic, FileId, TextSpan, closest};
use crate::files::{PathFault, SourceFile, normal, resolve};
use crate::prelude;
use crate::syntax::ast::{self, AstNode as _};
use crate::syntax::parse;

/// The edition that this release knows.
pub(crate) const EDITION: u32 = 1;

/// A file with its syntax tree and what it uses.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) file: FileId,
    pub(crate) layer: Layer,
    pub(crate) tree: ast::File,
    /// Its imports, each with the file that it names if there is one.
    pub(crate) imports: Vec<(ast::Import, Option<FileId>)>,
    pub(crate) catalogues: Vec<(ast::Use, CatalogueFile)>,
}

/// A file that `use tools` names.
#[derive(Debug)]
pub(crate) struct CatalogueFile {
    /// What tells it from others: two paths that lead to one file are one catalogue.
    pub(crate) key: String,
    pub(crate) text: Option<String>,
}

/// The files of a program.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// By their numbers.
    pub(crate) files: Vec<SourceFile>,
    /// How many of them were given; the others are only used.
    pub(crate) given: usize,
    /// With the prelude, which is declared first.
    pub(crate) parsed: Vec<Parsed>,
}

/// Loads the files that are `given` and all that they use; `attachments` holds the texts of the used ones by their paths.
pub(crate) fn load(
    given: &[SourceFile],
    attachments: &BTreeMap<String, String>,
    out: &mut Vec<Diagnostic>,
) -> Loaded {
    let mut loader = Loader {
        files: given.to_vec(),
        numbers: BTreeMap::new(),
        attachments: attachments.iter().map(|(path, text)| (normal(path), text.as_str())).collect(),
        std_from: Vec::new(),
        out,
    };
    for (at, file) in given.iter().enumerate().rev() {
        loader.numbers.insert(normal(&file.name), id(at));
    }
    let mut own = Vec::new();
    while own.len() < loader.files.len() {
        own.push(loader.file(id(own.len())));
    }
    loader.refuse_rings(&own);
    let mut parsed: Vec<Parsed> = prelude::FILES
        .iter()
        .enumerate()
        .map(|(at, text)| loader.parse(id(own.len() + at), Layer::Library, text))
        .collect();
    parsed.append(&mut own);
    Loaded { files: loader.files, given: given.len(), parsed }
}

struct Loader<'l> {
    files: Vec<SourceFile>,
    numbers: BTreeMap<String, FileId>,
    attachments: BTreeMap<String, &'l str>,
    /// The files that are parts of the standard library.
    std_from: Vec<FileId>,
    out: &'l mut Vec<Diagnostic>,
}

impl Loader<'_> {
    fn parse(&mut self, file: FileId, layer: Layer, text: &str) -> Parsed {
        let parsed = parse(file, text);
        self.out.extend_from_slice(parsed.diagnostics());
        let tree = parsed.file();
        if let Some(edition) = tree.edition()
            && edition.number() != Some(i64::from(EDITION))
        {
            let message = "this release does not know that edition";
            let diagnostic = Diagnostic::error(names::UNKNOWN_EDITION, file, edition.span(), message);
            self.out.push(diagnostic.expected(format!("`edition {EDITION}`")));
        }
        Parsed { file, layer, tree, imports: Vec::new(), catalogues: Vec::new() }
    }

    fn file(&mut self, file: FileId) -> Parsed {
        let text = self.files[file.0 as usize].text.clone();
        let mut parsed = self.parse(file, Layer::File(file), &text);
        for import in parsed.tree.imports() {
            let target = self.target(file, &import);
            parsed.imports.push((import, target));
        }
        for one in parsed.tree.uses() {
            let found = self.catalogue(file, &one);
            parsed.catalogues.push((one, found));
        }
        parsed
    }

    /// The file that an import names; reports what cannot be one.
    fn target(&mut self, from: FileId, import: &ast::Import) -> Option<FileId> {
        let path = import.path()?;
        let spot = Spot { file: from, span: path.span() };
        let Some(written) = path.plain() else {
            self.report(spot, "a file is named by a plain text", "a path without `{…}`".to_owned());
            return None;
        };
        if import.is_std() {
            return self.std_part(spot, &written);
        }
        if written.ends_with(".json") {
            let expected = format!("`use tools \"{written}\" as name`");
            self.report(spot, "a JSON file is a tool catalogue", expected);
            return None;
        }
        let key = match resolve(&self.files[from.0 as usize].name, &written) {
            Ok(key) => key,
            Err(fault) => {
                self.report_fault(spot, &written, fault);
                return None;
            }
        };
        let text = self.attachments.get(&key).copied();
        match (self.numbers.get(&key), text) {
            (Some(known), _) => Some(*known),
            (None, Some(text)) => Some(self.add(key, text)),
            (None, None) => {
                let diagnostic = bad(spot, format!("there is no file `{key}`"));
                self.out.push(diagnostic.hint(format!(
                    "paths are relative to the file that they stand in, `{}`",
                    self.files[from.0 as usize].name
                )));
                None
            }
        }
    }

    fn std_part(&mut self, spot: Spot, written: &str) -> Option<FileId> {
        let key = format!("std:{written}");
        if let Some(known) = self.numbers.get(&key) {
            return Some(*known);
        }
        let Some(text) = prelude::part(written) else {
            let names = || prelude::PARTS.iter().map(|(name, _)| *name);
            let diagnostic = bad(spot, format!("the standard library has no part `{written}`"));
            let all: Vec<String> = names().map(|name| format!("\"{name}\"")).collect();
            let diagnostic = diagnostic.expected(all.join(", "));
            self.out.push(match closest(written, names()) {
                Some(near) => diagnostic.unsure_fix(spot.span, format!("\"{near}\"")),
                None => diagnostic,
            });
            return None;
        };
        let added = self.add(key, text);
        self.std_from.push(added);
        Some(added)
    }

    fn add(&mut self, name: String, text: &str) -> FileId {
        let file = id(self.files.len());
        self.numbers.insert(name.clone(), file);
        self.files.push(SourceFile { name, text: text.to_owned() });
        file
    }

    fn catalogue(&mut self, from: FileId, one: &ast::Use) -> CatalogueFile {
        let written = one.path().and_then(|path| path.plain()).unwrap_or_default();
        if self.std_from.contains(&from) {
            let text = prelude::catalogue(&written).map(str::to_owned);
            return CatalogueFile { key: format!("std:{written}"), text };
        }
        match resolve(&self.files[from.0 as usize].name, &written) {
            Ok(key) => {
                let text = self.attachments.get(&key).map(|text| (*text).to_owned());
                CatalogueFile { key, text }
            }
            Err(fault) => {
                let span = one.path().map_or_else(|| one.span(), |path| path.span());
                self.report_fault(Spot { file: from, span }, &written, fault);
                CatalogueFile { key: written, text: Some(r#"{"tools": []}"#.to_owned()) }
            }
        }
    }

    fn report_fault(&mut self, spot: Spot, written: &str, fault: PathFault) {
        let relative = "a path relative to this file, such as `\"lib/refunds.flow\"`".to_owned();
        match fault {
            PathFault::Empty => self.report(spot, "no file is named", relative),
            PathFault::Folder => {
                self.report(spot, &format!("`{written}` names a folder, not a file"), relative);
            }
            PathFault::Absolute => {
                self.report(spot, "a path is relative to the file that it stands in", relative);
            }
            PathFault::Backslash => {
                let diagnostic = bad(spot, "the parts of a path are separated by `/`".to_owned());
                let slashes = written.replace('\\', "/");
                self.out.push(diagnostic.unsure_fix(spot.span, format!("\"{slashes}\"")));
            }
        }
    }

    fn report(&mut self, spot: Spot, message: &str, expected: String) {
        self.out.push(bad(spot, message.to_owned()).expected(expected));
    }

    /// Reports files that use each other in a ring: nobody could say which is to be read first.
    fn refuse_rings(&mut self, own: &[Parsed]) {
        let uses: Vec<Vec<(usize, TextSpan)>> = own
            .iter()
            .map(|parsed| {
                let edges = parsed.imports.iter().filter_map(|(import, target)| {
                    let span = import.path().map_or_else(|| import.span(), |path| path.span());
                    Some(((*target)?.0 as usize, span))
                });
                edges.collect()
            })
            .collect();
        let pairs =
            uses.iter().enumerate().flat_map(|(from, all)| all.iter().map(move |(to, _)| (from, *to)));
        for group in graph::cycles(own.len(), pairs) {
            let (ring, span) = ring(&group, &uses);
            let names: Vec<String> = ring.iter().map(|at| format!("`{}`", self.files[*at].name)).collect();
            let message = format!("files use each other in a ring: {}", names.join(" uses "));
            let diagnostic = Diagnostic::error(names::IMPORT_RING, id(ring[0]), span, message);
            self.out.push(diagnostic.hint("put what both need into a file of its own"));
        }
    }
}

/// A way round within a group of nodes that lie on common cycles, its first node at both ends, and where that one goes on.
fn ring(group: &[usize], uses: &[Vec<(usize, TextSpan)>]) -> (Vec<usize>, TextSpan) {
    let next = |at: usize| uses[at].iter().find(|(to, _)| group.contains(to));
    let mut way = vec![group[0]];
    loop {
        let Some((to, _)) = next(way[way.len() - 1]) else {
            unreachable!("every node of a group has a way to another one of it")
        };
        let seen = way.iter().position(|at| at == to);
        way.push(*to);
        if let Some(first) = seen {
            let way = way.split_off(first);
            let span = next(way[0]).map_or(TextSpan::empty(0), |(_, span)| *span);
            return (way, span);
        }
    }
}

fn bad(spot: Spot, message: String) -> Diagnostic {
    Diagnostic::error(names::BAD_IMPORT, spot.file, spot.span, message)
}

fn id(at: usize) -> FileId {
    FileId(u32::try_from(at).unwrap_or(u32::MAX))
}
