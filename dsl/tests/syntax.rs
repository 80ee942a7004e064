//! The language cases of `cases/syntax/*.md`, and what holds for every text.
//!
//! A case is a heading, a `flow` block, and, if the text is refused, a `diagnostics` block with one line
//! `CODE line:column part of the message` for each diagnostic in order. Each line of a `tree` block stands
//! somewhere in the tree, written as `Kind(parts)`. The cases are the specification of the
//! syntax; other properties stand below. Invariant: every case is checked for losslessness too.

mod markdown;

use std::fs;
use std::path::{Path, PathBuf};

use outlast_dsl::diag::catalogue;
use outlast_dsl::diag::{FileId, LineIndex};
use outlast_dsl::syntax::kind::SyntaxNode;
use outlast_dsl::syntax::parse;

use markdown::blocks;

struct Case {
    name: String,
    flow: String,
    diagnostics: Vec<String>,
    tree: Vec<String>,
}

fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (name, kind, body) in blocks(text) {
        let lines = || body.lines().map(str::to_owned).collect();
        match (kind.as_str(), cases.last_mut()) {
            ("flow", _) => cases.push(Case { name, flow: body, diagnostics: Vec::new(), tree: Vec::new() }),
            ("diagnostics", Some(case)) => case.diagnostics = lines(),
            ("tree", Some(case)) => case.tree = lines(),
            (kind, _) => panic!("{name}: a block `{kind}` does not belong here"),
        }
    }
    cases
}

/// The tree on one line, without trivia.
fn shape(node: &SyntaxNode) -> String {
    let parts: Vec<String> = node
        .children_with_tokens()
        .filter(|element| !element.kind().is_trivia())
        .map(|element| element.as_node().map_or_else(|| element.to_string(), shape))
        .collect();
    format!("{:?}({})", node.kind(), parts.join(" "))
}

/// Parses and says how the case fails, if it does.
fn check(case: &Case) -> Result<(), String> {
    let parse = parse(FileId(0), &case.flow);
    if parse.syntax().text() != case.flow.as_str() {
        return Err("the tree does not hold the text".to_owned());
    }
    let shape = shape(&parse.syntax());
    if let Some(missing) = case.tree.iter().find(|part| !shape.contains(part.as_str())) {
        return Err(format!("no `{missing}` in\n{shape}"));
    }
    let lines = LineIndex::new(&case.flow);
    let found: Vec<String> = parse
        .diagnostics()
        .iter()
        .map(|diagnostic| {
            let at = lines.position(diagnostic.span.start, &case.flow);
            format!("{} {}:{} {}", diagnostic.code, at.line, at.column, diagnostic.message)
        })
        .collect();
    let fits = found.len() == case.diagnostics.len()
        && found.iter().zip(&case.diagnostics).all(|(found, wanted)| {
            let (place, part) =
                wanted.match_indices(' ').nth(1).map_or((wanted.as_str(), ""), |(at, _)| wanted.split_at(at));
            found.starts_with(&format!("{place} ")) && found.contains(part.trim())
        });
    if fits { Ok(()) } else { Err(format!("expected {:#?}\nfound {found:#?}", case.diagnostics)) }
}

fn all_cases() -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/syntax");
    let read = |path| {
        fs::read_to_string::<PathBuf>(path).unwrap_or_else(|error| panic!("cannot read the cases: {error}"))
    };
    let folder = fs::read_dir(&folder).unwrap_or_else(|error| panic!("cannot find the cases: {error}"));
    let mut files: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let name = file.display().to_string();
        all.extend(cases(&read(file)).into_iter().map(|case| (name.clone(), case)));
    }
    all
}

#[test]
fn the_cases_of_the_syntax_hold() {
    let cases = all_cases();
    assert!(!cases.is_empty(), "no case was found");
    let failed =
        |(file, case): &(String, Case)| check(case).err().map(|why| format!("{file}: {}\n{why}", case.name));
    let failures: Vec<String> = cases.iter().filter_map(failed).collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases fail\n\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n\n")
    );
}

#[test]
fn every_code_of_the_syntax_has_a_case() {
    let shown: Vec<String> = all_cases().into_iter().flat_map(|(_, case)| case.diagnostics).collect();
    for entry in catalogue::syntax::ENTRIES {
        // A file beyond the limit is too long for a case; a test of its own refuses one.
        let has_case = entry.code == catalogue::syntax::TOO_LONG
            || shown.iter().any(|line| line.starts_with(&entry.code.to_string()));
        assert!(has_case, "no case shows {}: {}", entry.code, entry.title);
    }
}

#[test]
fn safe_fixes_remove_their_diagnostic() {
    for (file, case) in all_cases() {
        for diagnostic in parse(FileId(0), &case.flow).diagnostics() {
            let Some(fix) = diagnostic.fix.as_ref().filter(|fix| fix.safe) else { continue };
            let mut fixed = case.flow.clone();
            fixed.replace_range(fix.span.start as usize..fix.span.end as usize, &fix.replacement);
            let left = parse(FileId(0), &fixed);
            let again = left.diagnostics().iter().filter(|other| other.code == diagnostic.code).count();
            let before =
                case.diagnostics.iter().filter(|line| line.starts_with(&diagnostic.code.to_string())).count();
            assert!(again < before, "{file}: {}: {diagnostic:?} stays in\n{fixed}", case.name);
        }
    }
}
