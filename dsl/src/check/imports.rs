//! Brings the names that files import into their sight, and says which imports nobody needs.
//!
//! Leaves finding the files to `check::load`. Invariant: an import adds a name to its own file and to no other; what an imported
//! declaration needs is found through the declaration, without a name.

use std::collections::{BTreeMap, BTreeSet};

use super::load::{Loaded, Parsed};
use super::tables::{Layer, Shape, Spot, Tables, UpperName};
use crate::diag::catalogue::names;
use crate::diag::{Diagnostic, FileId, Related, TextSpan, closest};
use crate::limits::NAMES_SHOWN_MAX;
use crate::prelude;
use crate::syntax::ast::{self, AstNode as _};
use crate::syntax::kind::SyntaxKind;
use crate::syntax::parse;

/// Brings all imported names into sight; everything is declared by now.
pub(crate) fn bring(loaded: &Loaded, tables: &mut Tables, out: &mut Vec<Diagnostic>) {
    let mut found = Vec::new();
    for parsed in &loaded.parsed {
        for (import, target) in &parsed.imports {
            let Some(target) = *target else { continue };
            for name in import.names() {
                let spot = Spot { file: parsed.file, span: name.span() };
                found.push((name.text(), spot, target));
            }
        }
    }
    // First all are looked up, so that a name which a file imports is not one that it declares.
    let known: Vec<Option<Meaning>> =
        found.iter().map(|(name, _, target)| Meaning::of(tables, Layer::File(*target), name)).collect();
    for ((name, spot, target), meaning) in found.iter().zip(known) {
        match meaning {
            Some(meaning) => take(tables, name, *spot, meaning, out),
            None => out.push(unknown(loaded, name, *spot, *target)),
        }
    }
}

/// What an imported name stands for.
#[derive(Clone, Copy)]
enum Meaning {
    Upper(UpperName),
    Lower(super::tables::LowerName),
    Retry(crate::machine::RetryIx),
}

impl Meaning {
    fn of(tables: &Tables, layer: Layer, name: &str) -> Option<Meaning> {
        let key = (layer, name.to_owned());
        let upper = tables.upper.get(&key).map(|(found, _)| Meaning::Upper(*found));
        let lower = || match tables.lower.get(&key).map(|(found, _)| *found) {
            // A catalogue is a file; who wants it names it.
            Some(super::tables::LowerName::Catalogue(_)) | None => None,
            Some(found) => Some(Meaning::Lower(found)),
        };
        let retry = || tables.retries.get(&key).map(|(found, _)| Meaning::Retry(*found));
        upper.or_else(lower).or_else(retry)
    }
}

fn take(tables: &mut Tables, name: &str, spot: Spot, meaning: Meaning, out: &mut Vec<Diagnostic>) {
    let key = (Layer::File(spot.file), name.to_owned());
    let taken = match meaning {
        Meaning::Upper(_) => tables.upper.get(&key).map(|(_, first)| *first),
        Meaning::Lower(_) => tables.lower.get(&key).map(|(_, first)| *first),
        Meaning::Retry(_) => tables.retries.get(&key).map(|(_, first)| *first),
    };
    if let Some(first) = taken {
        let message = format!("`{name}` has a meaning in this file already");
        let mut diagnostic = Diagnostic::error(names::DUPLICATE, spot.file, spot.span, message)
            .hint("give one of the two another name, or use one of them in a file of its own");
        let message = "from here".to_owned();
        diagnostic.related.push(Related { file: first.file, span: first.span, message });
        return out.push(diagnostic);
    }
    match meaning {
        Meaning::Upper(found) => drop(tables.upper.insert(key, (found, spot))),
        Meaning::Lower(found) => drop(tables.lower.insert(key, (found, spot))),
        Meaning::Retry(found) => drop(tables.retries.insert(key, (found, spot))),
    }
}

fn unknown(loaded: &Loaded, name: &str, spot: Spot, target: FileId) -> Diagnostic {
    let file = &loaded.files[target.0 as usize].name;
    let message = format!("`{file}` declares no `{name}`");
    let diagnostic = Diagnostic::error(names::UNKNOWN_IMPORT, spot.file, spot.span, message);
    // The other file may itself have it from elsewhere.
    let elsewhere = loaded
        .parsed
        .iter()
        .find(|parsed| matches!(parsed.layer, Layer::File(_)) && declares(&parsed.tree, name));
    if let Some(parsed) = elsewhere {
        let file = &loaded.files[parsed.file.0 as usize].name;
        return diagnostic.hint(format!("it is declared in `{file}`"));
    }
    let parsed = loaded.parsed.iter().find(|parsed| parsed.file == target);
    let declared = parsed.into_iter().flat_map(|parsed| parsed.tree.decls());
    let all: Vec<String> = declared.filter_map(|decl| name_of(&decl)).map(|name| name.text()).collect();
    match closest(name, all.iter().map(String::as_str)) {
        Some(near) => diagnostic.hint(format!("did you mean `{near}`?")).unsure_fix(spot.span, near),
        None if all.is_empty() => diagnostic,
        None => {
            let shown: Vec<String> =
                all.iter().take(NAMES_SHOWN_MAX).map(|name| format!("`{name}`")).collect();
            let more = if all.len() > NAMES_SHOWN_MAX { ", …" } else { "" };
            diagnostic.expected(format!("one of {}{more}", shown.join(", ")))
        }
    }
}

/// Whether a file itself declares a name.
fn declares(tree: &ast::File, name: &str) -> bool {
    tree.decls().any(|decl| name_of(&decl).is_some_and(|declared| declared.text() == name))
}

fn name_of(decl: &ast::Decl) -> Option<ast::Name> {
    match decl {
        ast::Decl::Type(decl) => decl.name(),
        ast::Decl::Error(decl) => decl.name(),
        ast::Decl::Retry(decl) => decl.name(),
        ast::Decl::Activity(decl) => decl.name(),
        ast::Decl::Fn(decl) => decl.name(),
        ast::Decl::Flow(decl) => decl.name(),
        ast::Decl::Migrate(_) | ast::Decl::Test(_) => None,
    }
}

/// Warns of names that are imported and stand nowhere else in their file.
pub(crate) fn unused(loaded: &Loaded, tables: &Tables, out: &mut Vec<Diagnostic>) {
    for parsed in &loaded.parsed {
        if parsed.imports.is_empty() {
            continue;
        }
        let words = words(parsed);
        for (import, _) in &parsed.imports {
            let all: Vec<ast::NameRef> = import.names().collect();
            let idle: Vec<&ast::NameRef> = all
                .iter()
                .filter(|name| is_taken(tables, parsed, name))
                .filter(|name| !is_used(tables, parsed, &name.text(), &words))
                .collect();
            for name in &idle {
                let message = format!("`{}` is imported and not used", name.text());
                let diagnostic = Diagnostic::warning(names::UNUSED_IMPORT, parsed.file, name.span(), message);
                let whole = if idle.len() == all.len() { import.span() } else { with_comma(name) };
                out.push(diagnostic.fix(whole, ""));
            }
        }
    }
}

/// Whether it is this import that gave the name its meaning.
fn is_taken(tables: &Tables, parsed: &Parsed, name: &ast::NameRef) -> bool {
    let key = (parsed.layer, name.text());
    let spot = Spot { file: parsed.file, span: name.span() };
    let upper = tables.upper.get(&key).map(|(_, spot)| *spot);
    let lower = tables.lower.get(&key).map(|(_, spot)| *spot);
    let retry = tables.retries.get(&key).map(|(_, spot)| *spot);
    [upper, lower, retry].contains(&Some(spot))
}

/// All words of a file but those of its imports.
fn words(parsed: &Parsed) -> Vec<String> {
    let tokens = parsed.tree.syntax().descendants_with_tokens().filter_map(|element| element.into_token());
    let words = tokens.filter(|token| {
        let is_name = matches!(token.kind(), SyntaxKind::Lower | SyntaxKind::Upper);
        is_name && !token.parent_ancestors().any(|node| node.kind() == SyntaxKind::Import)
    });
    let mut words: Vec<String> = words.map(|token| token.text().to_owned()).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Whether a name, or a variant that it brings along, stands somewhere.
fn is_used(tables: &Tables, parsed: &Parsed, name: &str, words: &[String]) -> bool {
    let stands = |word: &str| words.binary_search_by(|one| one.as_str().cmp(word)).is_ok();
    if stands(name) {
        return true;
    }
    let types = match tables.upper(parsed.layer, name) {
        Some(UpperName::Type(ix)) => Some(ix),
        Some(UpperName::Flow(_)) | None => None,
    };
    types.is_some_and(|ix| match &tables.types[ix.at()].shape {
        Shape::Union(variants) => variants.iter().any(|variant| stands(&variant.name)),
        Shape::Record(_) | Shape::Error(_) => false,
    })
}

/// A name of a list with the comma and the space behind it, or before it if it is the last.
fn with_comma(name: &ast::NameRef) -> TextSpan {
    let is_filler = |kind: SyntaxKind| kind == SyntaxKind::Comma || kind.is_trivia();
    let mut span = name.span();
    let mut next = name.syntax().next_sibling_or_token();
    let mut comma = false;
    while let Some(element) = next.filter(|element| is_filler(element.kind())) {
        comma |= element.kind() == SyntaxKind::Comma;
        span = TextSpan::new(span.start, TextSpan::from(element.text_range()).end);
        next = element.next_sibling_or_token();
    }
    if comma {
        return span;
    }
    span = name.span();
    let mut previous = name.syntax().prev_sibling_or_token();
    while let Some(element) = previous.filter(|element| is_filler(element.kind())) {
        span = TextSpan::new(TextSpan::from(element.text_range()).start, span.end);
        previous = element.prev_sibling_or_token();
    }
    span
}

/// Adds to each unknown name that another file or the standard library declares where it is, and the import that is missing.
pub(crate) fn suggest(loaded: &Loaded, out: &mut [Diagnostic]) {
    let codes = [names::UNKNOWN_NAME, names::UNKNOWN_TYPE, names::UNKNOWN_ERROR, names::UNKNOWN_DECLARATION];
    // Files that are read once, however many names are looked for in them.
    let mut sources: BTreeMap<usize, Vec<Source>> = BTreeMap::new();
    for diagnostic in out.iter_mut().filter(|one| codes.contains(&one.code)) {
        let at = diagnostic.file.0 as usize;
        if at >= loaded.given {
            continue;
        }
        let word = diagnostic.span.of(&loaded.files[at].text).to_owned();
        let known = sources.entry(at).or_insert_with(|| sources_of(loaded, at));
        let Some(Source { written, .. }) = known.iter().find(|one| one.names.contains(&word)) else {
            continue;
        };
        diagnostic.hint = Some(format!("`{word}` is declared elsewhere: `use {written} {{ {word} }}`"));
        let parsed = loaded.parsed.iter().find(|parsed| parsed.file == diagnostic.file);
        let first = parsed.and_then(|parsed| parsed.tree.decls().next());
        let start = first.map_or(0, |decl| TextSpan::from(decl.syntax().text_range()).start);
        let replacement = format!("use {written} {{ {word} }}\n");
        diagnostic.fix = Some(crate::diag::Fix { span: TextSpan::empty(start), replacement, safe: false });
    }
}

/// Where names can be had from.
struct Source {
    /// What a file writes after `use`.
    written: String,
    names: BTreeSet<String>,
}

/// Where a file can have names from: files that it uses already, then the standard library.
fn sources_of(loaded: &Loaded, from: usize) -> Vec<Source> {
    let names =
        |tree: &ast::File| tree.decls().filter_map(|decl| name_of(&decl)).map(|name| name.text()).collect();
    let own = loaded.parsed.iter().find(|parsed| parsed.file.0 as usize == from);
    let used = own.into_iter().flat_map(|own| &own.imports).filter_map(|(import, target)| {
        let target = loaded.parsed.iter().find(|parsed| Some(parsed.file) == *target)?;
        let std = if import.is_std() { "std " } else { "" };
        Some(Source { written: format!("{std}{}", import.path()?.source()), names: names(&target.tree) })
    });
    let parts = prelude::PARTS.iter().map(|(name, text)| Source {
        written: format!("std \"{name}\""),
        names: names(&parse(FileId(0), text).file()),
    });
    used.chain(parts).collect()
}
