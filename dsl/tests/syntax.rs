//! The language cases of `cases/syntax/*.md`, and what holds for every text.
//!
//! A case is a heading, a `flow` block, and, if the text is refused, a `diagnostics` block with one line
//! `CODE line:column part of the message` for each diagnostic in order. The cases are the specification of the
//! syntax; other properties stand below. Invariant: every case is checked for losslessness too.

use std::fs;
use std::path::Path;

use outlast_dsl::diag::{FileId, LineIndex};
use outlast_dsl::syntax::parse;

struct Case {
    name: String,
    flow: String,
    diagnostics: Vec<String>,
}

fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut heading = String::new();
    let mut block: Option<(String, String)> = None;
    for line in text.lines() {
        if line == "```" && block.is_some() {
            let (kind, body) = block.take().unwrap_or_default();
            match (kind.as_str(), cases.last_mut()) {
                ("flow", _) => {
                    cases.push(Case { name: heading.clone(), flow: body, diagnostics: Vec::new() });
                }
                ("diagnostics", Some(case)) => case.diagnostics = body.lines().map(str::to_owned).collect(),
                (kind, _) => panic!("{heading}: a block `{kind}` does not belong here"),
            }
        } else if let Some((_, body)) = &mut block {
            body.push_str(line);
            body.push('\n');
        } else if let Some(kind) = line.strip_prefix("```") {
            block = Some((kind.to_owned(), String::new()));
        } else if let Some(name) = line.strip_prefix("## ") {
            heading = name.to_owned();
        }
    }
    cases
}

/// Parses and says how the case fails, if it does.
fn check(case: &Case) -> Result<(), String> {
    let parse = parse(FileId(0), &case.flow);
    if parse.syntax().text() != case.flow.as_str() {
        return Err("the tree does not hold the text".to_owned());
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

#[test]
fn the_cases_of_the_syntax_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/syntax");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut failures = Vec::new();
    let mut count = 0;
    for file in &files {
        for case in cases(&fs::read_to_string(file).unwrap()) {
            count += 1;
            if let Err(why) = check(&case) {
                failures.push(format!("{}: {}\n{why}", file.display(), case.name));
            }
        }
    }
    assert!(count > 0, "no case was found in {}", folder.display());
    assert!(failures.is_empty(), "{} of {count} cases fail\n\n{}", failures.len(), failures.join("\n\n"));
}
