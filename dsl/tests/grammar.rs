//! The grammar page against the parser: words, signs, productions.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use outlast_dsl::diag::FileId;
use outlast_dsl::syntax::kind::SyntaxKind;
use outlast_dsl::syntax::{parse, words};

const GRAMMAR: &str = include_str!("../grammar.ebnf");

/// The tokens that productions name.
const TOKENS: &[&str] = &["UNAME", "LNAME", "FIELD", "RNAME", "INT", "NUMBER", "DUR", "STRING"];

/// Words that the parser knows only to report them.
const HABITS: &[&str] = &["_", "default"];

/// The text without comments.
fn productions() -> BTreeMap<String, String> {
    let mut text = String::new();
    let mut rest = GRAMMAR;
    while let Some(open) = rest.find("(*") {
        text.push_str(&rest[..open]);
        rest = rest[open..].split_once("*)").unwrap().1;
    }
    text.push_str(rest);
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match line.split_once("::=") {
            Some((name, right)) => {
                last = name.trim().to_owned();
                let before = all.insert(last.clone(), spaced(right));
                assert_eq!(before, None, "`{last}` is defined twice");
            }
            None => {
                let right = all.get_mut(&last).unwrap();
                *right = spaced(&format!("{right} {line}"));
            }
        }
    }
    all
}

fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The quoted terminals and the names of a right side.
fn parts(right: &str) -> (Vec<String>, Vec<String>) {
    let (mut quoted, mut bare) = (Vec::new(), String::new());
    for (at, piece) in right.split('"').enumerate() {
        if at % 2 == 1 {
            quoted.push(piece.to_owned());
            bare.push(' ');
        } else {
            bare.push_str(piece);
        }
    }
    let names = bare.split(|c: char| !c.is_ascii_alphabetic()).filter(|name| !name.is_empty());
    (quoted, names.map(str::to_owned).collect())
}

fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// The lines of the parser's files without their tests.
fn parser_lines() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/syntax/parser");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = files.map(|path| fs::read_to_string(path).unwrap());
    texts.flat_map(|text| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()).collect()
}

#[test]
fn everything_is_defined_and_reached() {
    let all = productions();
    let mut reached = BTreeSet::from(["file".to_owned()]);
    let mut pending = vec!["file".to_owned()];
    while let Some(name) = pending.pop() {
        let right = all.get(&name).unwrap_or_else(|| panic!("`{name}` is not defined"));
        for name in parts(right).1 {
            if !TOKENS.contains(&name.as_str()) && reached.insert(name.clone()) {
                pending.push(name);
            }
        }
    }
    let idle: Vec<&String> = all.keys().filter(|name| !reached.contains(*name)).collect();
    assert!(idle.is_empty(), "nothing leads to {idle:?}");
}

#[test]
fn the_words_are_those_of_the_parser() {
    let mut known = BTreeSet::new();
    for line in parser_lines().iter().filter(|line| !line.starts_with("//")) {
        known.extend(line.split('"').skip(1).step_by(2).filter(|word| !word.is_empty()).map(str::to_owned));
    }
    let known: BTreeSet<String> =
        known.into_iter().filter(|word| is_word(word) && !HABITS.contains(&word.as_str())).collect();
    let written: BTreeSet<String> =
        productions().values().flat_map(|right| parts(right).0).filter(|word| is_word(word)).collect();
    let missing: Vec<_> = known.difference(&written).collect();
    let unknown: Vec<_> = written.difference(&known).collect();
    assert!(missing.is_empty(), "the parser knows {missing:?}, the grammar does not");
    assert!(unknown.is_empty(), "the grammar knows {unknown:?}, the parser does not");
}

#[test]
fn the_reserved_words_are_those_of_the_lexer() {
    let after = GRAMMAR.split_once("never of fields:").unwrap().1;
    let listed: Vec<&str> = after.split_once('.').unwrap().0.split_whitespace().collect();
    assert_eq!(listed, words::reserved());
}

#[test]
fn the_signs_are_tokens() {
    for sign in productions().values().flat_map(|right| parts(right).0).filter(|text| !is_word(text)) {
        let tree = parse(FileId(0), &sign).syntax();
        let tokens: Vec<_> = tree
            .descendants_with_tokens()
            .filter_map(|element| element.into_token())
            .filter(|token| token.kind() != SyntaxKind::Eof)
            .collect();
        let texts: Vec<&str> = tokens.iter().map(|token| token.text()).collect();
        // A type may end right before `=`, so `>=` is put together by the parser.
        let expected = if sign == ">=" { vec![">", "="] } else { vec![sign.as_str()] };
        assert_eq!(texts, expected);
    }
}

#[test]
fn the_productions_of_the_parser_are_those_of_the_grammar() {
    let all = productions();
    let mut compared = 0;
    for line in parser_lines() {
        let Some(doc) = line.strip_prefix("/// `").filter(|doc| doc.contains("::=")) else { continue };
        // What is shortened there is written out here.
        for production in doc.split('`').filter(|part| part.contains("::=") && !part.contains('…')) {
            let (name, right) = production.split_once("::=").unwrap();
            let (name, right) = (name.trim(), spaced(right));
            assert_eq!(all.get(name), Some(&right), "`{name}` differs");
            compared += 1;
        }
    }
    assert!(compared > 40, "only {compared} productions were found");
}
