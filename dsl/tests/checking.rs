//! The checker from outside: the example, the standard library.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod markdown;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use outlast_dsl::diag::{Colour, LineIndex, Sources, catalogue, render};
use outlast_dsl::machine::Machine;
use outlast_dsl::{Checked, SourceFile, check, gather, used_files};
use proptest::prelude::*;

use markdown::blocks;

fn example() -> (SourceFile, BTreeMap<String, String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let text = fs::read_to_string(folder.join("agent.flow")).unwrap();
    let tools = fs::read_to_string(folder.join("dev.tools.json")).unwrap();
    let source = SourceFile { name: "agent.flow".to_owned(), text };
    (source, BTreeMap::from([("dev.tools.json".to_owned(), tools)]))
}

fn shown(files: &[SourceFile], checked: &Checked) -> String {
    let mut sources = Sources::default();
    for file in files {
        sources.add(&file.name, &file.text);
    }
    checked.diagnostics.iter().map(|one| render(one, &sources, Colour::Never)).collect()
}

#[test]
fn the_example_checks() {
    let (source, tools) = example();
    let files = [source];
    let checked = check(&files, &tools);
    assert!(checked.diagnostics.is_empty(), "{}", shown(&files, &checked));
    let names: Vec<&str> = checked.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["Agent", "OneTool"]);
    for flow in &checked.flows {
        assert_eq!(flow.machine.first_bad_index(), None);
    }
}

#[test]
fn nothing_is_to_be_said_of_any_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "flow") {
            continue;
        }
        let name = path.display().to_string();
        let source = SourceFile { name, text: fs::read_to_string(&path).unwrap() };
        let files = [source];
        let attachments = gather(&files, |used| fs::read_to_string(used).ok());
        let checked = check(&files, &attachments);
        assert!(checked.diagnostics.is_empty(), "{}", shown(&files, &checked));
    }
}

#[test]
fn the_machine_of_the_example_is_the_golden_one() {
    let (source, tools) = example();
    let checked = check(&[source], &tools);
    let agent = &checked.flows[0];
    let mut text = serde_json::to_string_pretty(&agent.machine).unwrap();
    text.push_str(&format!("\nhash {}\n", agent.machine.hash()));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/agent.machine.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "the machine has changed; look at the difference after `UPDATE_GOLDEN=1 cargo nextest run -p outlast-dsl`"
    );
}

/// One case of `cases/check/*.md`.
struct Case {
    name: String,
    flow: String,
    /// The other files that it uses.
    others: BTreeMap<String, String>,
    diagnostics: Vec<String>,
}

fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (name, kind, body) in blocks(text) {
        match (kind.as_str(), cases.last_mut()) {
            ("flow", _) => {
                cases.push(Case { name, flow: body, others: BTreeMap::new(), diagnostics: Vec::new() });
            }
            ("diagnostics", Some(case)) => case.diagnostics = body.lines().map(str::to_owned).collect(),
            (file, Some(case)) if file.starts_with("file ") => {
                case.others.insert(file["file ".len()..].to_owned(), body);
            }
            (kind, _) => panic!("{name}: a block `{kind}` does not belong here"),
        }
    }
    cases
}

/// Says how a case of the file with the text `about` fails, if it does.
fn failure(case: &Case, about: &str, tools: &BTreeMap<String, String>) -> Option<String> {
    let files = [SourceFile { name: "case.flow".to_owned(), text: case.flow.clone() }];
    let mut used = tools.clone();
    used.extend(case.others.clone());
    let checked = check(&files, &used);
    let found: Vec<String> = checked
        .diagnostics
        .iter()
        // Cases are about one thing: a warning counts in the files that are about it.
        .filter(|one| one.is_error() || about.contains(&format!("{} ", one.code)))
        .map(|one| {
            let file = &checked.files[one.file.0 as usize];
            let at = LineIndex::new(&file.text).position(one.span.start, &file.text);
            let name = if one.file.0 == 0 { String::new() } else { format!("{}: ", file.name) };
            format!("{name}{} {}:{} {}", one.code, at.line, at.column, one.message)
        })
        .collect();
    let in_order = found.len() == case.diagnostics.len()
        && found.iter().zip(&case.diagnostics).all(|(found, wanted)| found.starts_with(wanted.as_str()));
    let bad = checked.flows.iter().find_map(|flow| flow.machine.first_bad_index());
    match bad {
        None if in_order => None,
        None => Some(format!("expected {:#?}\nfound {found:#?}", case.diagnostics)),
        Some(bad) => Some(format!("bad index: {bad}")),
    }
}

#[test]
fn the_cases_of_the_checker_hold() {
    let (_, tools) = example();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/check");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut failures = String::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for case in cases(&text) {
            if let Some(why) = failure(&case, &text, &tools) {
                failures.push_str(&format!("\n{}: {}\n{why}\n", file.display(), case.name));
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn every_code_of_the_checker_has_a_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/check");
    let mut all = String::new();
    for entry in fs::read_dir(&folder).unwrap() {
        all.push_str(&fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let codes = catalogue::entries().map(|entry| entry.code.to_string());
    // What a test comes to when it runs is no matter of the checker.
    let ran = catalogue::tests::FAILED.to_string();
    let bare: Vec<String> = codes
        .filter(|code| code.as_str() >= "F0200" && *code != ran && !all.contains(&format!("\n{code} ")))
        .collect();
    assert!(bare.is_empty(), "no case shows {bare:?}");
}

#[test]
fn layout_comments_and_tests_do_not_change_the_hash() {
    let (source, tools) = example();
    let hash = |text: &str| {
        let file = SourceFile { name: "x.flow".to_owned(), text: text.to_owned() };
        check(&[file], &tools).flows[0].machine.hash()
    };
    let usual = hash(&source.text);
    let without_tests = source.text.split("\ntest ").next().unwrap().to_owned();
    let commented = source.text.replace('\n', "\n  // a remark\n\n");
    let used_too = format!("{}\nfn unused() -> int = 1\ntype Unused {{ a: int }}\n", source.text);
    assert_eq!(hash(&without_tests), usual, "tests");
    assert_eq!(hash(&commented), usual, "comments and layout");
    assert_eq!(hash(&used_too), usual, "what the flow does not reach");
    assert_ne!(hash(&source.text.replace("5.00", "6.00")), usual, "a limit");
}

#[test]
fn the_machine_reads_back_and_its_places_have_lines() {
    let (source, tools) = example();
    let text = source.text.clone();
    let checked = check(&[source], &tools);
    for flow in &checked.flows {
        let bytes = flow.machine.encode();
        assert_eq!(Machine::decode(&bytes).unwrap(), flow.machine);
    }
    let places = &checked.flows[0].places;
    let line = places.find("OneTool", Some("Run"), "arrow 2").unwrap();
    assert!(line.snippet.starts_with("on unknown, problem as p"), "{line:?}");
    assert_eq!(text.lines().nth(line.line as usize - 1).unwrap().trim(), line.snippet);
    for (state, part, start) in [
        (Some("Think"), "effect", "do model"),
        (None, "data messages", "data"),
        (None, "limit 2", "limit cost"),
    ] {
        assert!(places.find("Agent", state, part).unwrap().snippet.starts_with(start), "{state:?} {part}");
    }
}

#[test]
fn used_files_are_those_of_the_text() {
    assert_eq!(used_files(&example().0), ["dev.tools.json"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Tokens that are dropped, doubled, swapped or replaced: any text is checked without a panic.
    #[test]
    fn no_text_makes_the_checker_panic(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..5_u8), 1..6)) {
        let (source, tools) = example();
        let mut words = pieces(&source.text);
        for (at, other, kind) in edits {
            let (at, other) = (at.index(words.len()), other.index(words.len()));
            match kind {
                0 => drop(words.remove(at)),
                1 => words.insert(at, words[other].clone()),
                2 => words.swap(at, other),
                3 => words[at] = words[other].clone(),
                _ => words[at] = ["none", "1", "\"x\"", "-> stay", "{", "if", "Text", "ok"][other % 8].to_owned(),
            }
        }
        let file = SourceFile { name: "x.flow".to_owned(), text: words.concat() };
        let checked = check(std::slice::from_ref(&file), &tools);
        prop_assert!(checked.diagnostics.iter().all(|one| one.span.end as usize <= file.text.len() && one.file.0 == 0), "{}", shown(std::slice::from_ref(&file), &checked));
        for flow in &checked.flows {
            prop_assert_eq!(flow.machine.first_bad_index(), None);
        }
    }
}

/// Words, spaces and signs: what an edit takes as a whole.
fn pieces(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for c in text.chars() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        match all.last_mut() {
            Some(last) if is_word(c) && last.ends_with(is_word) => last.push(c),
            Some(_) | None => all.push(c.to_string()),
        }
    }
    all
}

#[test]
fn steps_become_the_states_that_a_person_would_write() {
    let declarations = "activity a(x: int) -> int within 1m effect pure\nactivity b(x: int, y: int) -> int within 1m effect pure\n";
    let sugar = "flow F(n: int) -> int { start S(n, 2) state S(m: int, k: int) {
        steps { one = do a(m) two = do a(one) three = do b(two, k) }
        on ok -> end three on problem -> end 0 } }";
    let by_hand = "flow F(n: int) -> int { start Sone(n, 2)
        state Sone(m: int, k: int) { do a(m) as one on ok -> Stwo(k, one) on problem -> end 0 }
        state Stwo(k: int, one: int) { do a(one) as two on ok -> Sthree(k, two) on problem -> end 0 }
        state Sthree(k: int, two: int) { do b(two, k) as three on ok -> end three on problem -> end 0 } }";
    let machine = |text: &str| {
        let file = SourceFile { name: "x.flow".to_owned(), text: format!("{declarations}{text}") };
        let checked = check(std::slice::from_ref(&file), &BTreeMap::new());
        assert!(checked.diagnostics.is_empty(), "{}", shown(&[file], &checked));
        String::from_utf8(checked.flows[0].machine.encode()).unwrap()
    };
    let named_alike =
        machine(sugar).replace("S.one", "Sone").replace("S.two", "Stwo").replace("S.three", "Sthree");
    assert_eq!(named_alike, machine(by_hand));
}
