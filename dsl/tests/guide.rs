//! The pages about the language: their programs compile, and the reference holds the whole grammar.
//!
//! Leaves the grammar itself to `grammar.rs`. Invariant: a page cannot say what the checker does not. `UPDATE_GOLDEN=1` writes the
//! grammar into the reference anew.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod markdown;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use outlast_dsl::diag::{Colour, Sources, render};
use outlast_dsl::syntax::words;
use outlast_dsl::{SourceFile, check};

use markdown::blocks;

/// The pages whose programs are compiled.
const PAGES: &[&str] = &["README.md", "REFERENCE.md", "COMING_FROM.md", "PROMPT.md"];

/// Bytes that the page for prompts may have. It stands in every prompt that it is used in.
const PROMPT_BYTES_MAX: usize = 10_000;

const GRAMMAR: &str = include_str!("../grammar.ebnf");

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The codes that checking a program gives, and how they read.
fn codes(name: &str, text: &str) -> (Vec<String>, String) {
    let tools = fs::read_to_string(folder().join("../examples/dev.tools.json")).unwrap();
    let files = [SourceFile { name: name.to_owned(), text: text.to_owned() }];
    let checked = check(&files, &BTreeMap::from([("dev.tools.json".to_owned(), tools)]));
    let mut sources = Sources::default();
    sources.add(name, text);
    let shown = checked.diagnostics.iter().map(|one| render(one, &sources, Colour::Never)).collect();
    // A program on a page shows one thing; what else it names may be unused.
    let errors = checked.diagnostics.iter().filter(|one| one.is_error());
    let mut codes: Vec<String> = errors.map(|one| one.code.to_string()).collect();
    codes.dedup();
    (codes, shown)
}

#[test]
fn every_program_of_the_pages_checks_or_is_refused_as_it_says() {
    for name in PAGES {
        let programs = blocks(&page(name)).into_iter().filter(|(_, info, _)| info.starts_with("flow"));
        let mut count = 0;
        for (heading, info, text) in programs {
            let wanted: Vec<String> = info.split_whitespace().skip(1).map(str::to_owned).collect();
            let (found, shown) = codes(name, &text);
            assert_eq!(found, wanted, "{name}, {heading}\n{shown}");
            // Who reads the tour copies its programs, and should not begin with warnings.
            assert!(*name != "README.md" || !wanted.is_empty() || shown.is_empty(), "{heading}\n{shown}");
            count += 1;
        }
        assert!(count > 0, "{name} shows no program");
    }
}

/// The productions as they are written, by name.
fn productions() -> Vec<(String, String)> {
    let mut plain = String::new();
    let mut rest = GRAMMAR;
    while let Some((before, after)) = rest.split_once("(*") {
        plain.push_str(before);
        rest = after.split_once("*)").unwrap().1;
    }
    plain.push_str(rest);
    let mut all: Vec<(String, String)> = Vec::new();
    for line in plain.lines().filter(|line| !line.trim().is_empty()) {
        if let Some((name, _)) = line.split_once("::=") {
            all.push((name.trim().to_owned(), format!("{line}\n")));
        } else {
            let (_, text) = all.last_mut().unwrap();
            text.push_str(&format!("{line}\n"));
        }
    }
    all
}

#[test]
fn the_reference_holds_every_production_once() {
    let all = productions();
    let text = page("REFERENCE.md");
    let mut shown: Vec<String> = Vec::new();
    let mut renewed = text.clone();
    for (heading, info, body) in blocks(&text).into_iter().filter(|(_, info, _)| info.starts_with("ebnf")) {
        let names: Vec<&str> = info.split_whitespace().skip(1).collect();
        let wanted: String = names
            .iter()
            .map(|name| match all.iter().find(|(one, _)| one == name) {
                Some((_, text)) => text.as_str(),
                None => panic!("REFERENCE.md, {heading}: the grammar has no `{name}`"),
            })
            .collect();
        renewed = renewed.replace(&format!("```{info}\n{body}```"), &format!("```{info}\n{wanted}```"));
        shown.extend(names.into_iter().map(str::to_owned));
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(folder().join("REFERENCE.md"), &renewed).unwrap();
    } else {
        assert!(
            renewed == text,
            "the grammar has changed: `UPDATE_GOLDEN=1 cargo nextest run -p outlast-dsl`"
        );
    }
    let mut names: Vec<String> = all.into_iter().map(|(name, _)| name).collect();
    names.sort();
    shown.sort();
    assert_eq!(shown, names, "the reference shows other productions than the grammar has");
}

#[test]
fn the_prompt_is_short_and_leaves_nothing_out() {
    let text = page("PROMPT.md");
    assert!(text.len() <= PROMPT_BYTES_MAX, "the page for prompts has {} bytes", text.len());
    let mut missing: Vec<String> = Vec::new();
    let is_there =
        |word: &str| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|one| one == word);
    for (_, production) in productions() {
        for word in production.split('"').skip(1).step_by(2) {
            let name = word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            if name && !is_there(word) {
                missing.push(word.to_owned());
            }
        }
    }
    missing.extend(words::reserved().iter().filter(|word| !is_there(word)).map(|word| (*word).to_owned()));
    assert!(missing.is_empty(), "PROMPT.md does not say {missing:?}");
}

#[test]
fn links_of_the_pages_lead_somewhere() {
    for name in PAGES {
        for link in page(name).split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(to, _)| to) {
            let file = link.split('#').next().unwrap_or_default();
            if !file.is_empty() && !file.contains("://") {
                assert!(Path::new(&folder().join(file)).exists(), "{name} links to {file}");
            }
        }
    }
}
