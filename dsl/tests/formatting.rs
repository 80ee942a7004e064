//! The formatter from outside: its cases, the files of this repository, and what holds for every text.
//!
//! A case of `cases/format/*.md` is a heading, a `flow` block and the `formatted` block that it becomes. `UPDATE_GOLDEN=1` writes what
//! should be formatted. Invariant: whatever is formatted here is also formatted twice.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod markdown;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use outlast_dsl::diag::FileId;
use outlast_dsl::limits::{FORMAT_COLUMNS_MAX, SOURCE_BYTES_MAX};
use outlast_dsl::syntax::kind::SyntaxKind;
use outlast_dsl::syntax::parse;
use outlast_dsl::{FormatError, SourceFile, check, format};
use proptest::prelude::*;

use markdown::blocks;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn updates() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

fn tools() -> BTreeMap<String, String> {
    let tools = fs::read_to_string(root().join("../examples/dev.tools.json")).unwrap();
    BTreeMap::from([("dev.tools.json".to_owned(), tools)])
}

fn files_of(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    files.sort();
    files
}

/// The flows of this repository.
fn flow_files() -> Vec<PathBuf> {
    let folders = [
        "../examples",
        "../examples/flows",
        "../tests/flows",
        "src/prelude",
        "src/std",
        "tests/graph",
        "tests/programs",
    ];
    folders.iter().flat_map(|folder| files_of(folder, "flow")).collect()
}

/// All texts without syntax errors among the language cases.
static ACCEPTED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let folders = ["tests/cases/syntax", "tests/cases/check", "tests/cases/format"];
    let files = folders.iter().flat_map(|folder| files_of(folder, "md"));
    let blocks = files.flat_map(|file| blocks(&fs::read_to_string(file).unwrap()));
    let flows = blocks.filter(|(_, kind, _)| kind == "flow").map(|(_, _, text)| text);
    let mut all: Vec<String> = flows.filter(|text| is_well_formed(text)).collect();
    all.extend(flow_files().iter().map(|file| fs::read_to_string(file).unwrap()));
    all
});

fn is_well_formed(text: &str) -> bool {
    parse(FileId(0), text).diagnostics().iter().all(|one| !one.is_error())
}

fn formatted(text: &str) -> String {
    let once = format(FileId(0), text).unwrap_or_else(|error| panic!("{error:?} in\n{text}"));
    let twice = format(FileId(0), &once).unwrap_or_else(|error| panic!("{error:?} in\n{once}"));
    assert_eq!(twice, once, "formatting this twice changes it:\n{text}");
    assert!(
        once.lines().all(|line| line.contains('"') || line.trim_end() == line),
        "spaces at an end:\n{once}"
    );
    once
}

/// What the layout must keep: the tokens without commas, and the comments.
fn kept(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut tokens, mut comments) = (Vec::new(), Vec::new());
    let tree = parse(FileId(0), text).syntax();
    for token in tree.descendants_with_tokens().filter_map(|element| element.into_token()) {
        match token.kind() {
            SyntaxKind::Whitespace | SyntaxKind::Comma | SyntaxKind::Pipe => {}
            SyntaxKind::Comment | SyntaxKind::Doc => comments.push(token.text().trim_end().to_owned()),
            // Only the lines of a text end within a token.
            _ => tokens.push(token.text().replace("\r\n", "\n")),
        }
    }
    (tokens, comments)
}

/// The hashes of the machines of a text.
fn hashes(text: &str, tools: &BTreeMap<String, String>) -> Vec<String> {
    let file = SourceFile { name: "x.flow".to_owned(), text: text.to_owned() };
    check(&[file], tools).flows.iter().map(|flow| flow.machine.hash().to_string()).collect()
}

#[test]
fn the_cases_of_the_formatter_hold() {
    let (mut failures, mut count) = (String::new(), 0);
    for path in files_of("tests/cases/format", "md") {
        let text = fs::read_to_string(&path).unwrap();
        let mut updated = text.clone();
        for pair in blocks(&text).chunks(2) {
            let [(name, flow, before), (_, kind, after)] = pair else {
                panic!("{}: a block alone", path.display())
            };
            assert_eq!((flow.as_str(), kind.as_str()), ("flow", "formatted"), "{name}");
            count += 1;
            let found = formatted(before);
            if found != *after {
                let _ = writeln!(failures, "{name}:\n{found}instead of\n{after}");
                let old = format!("```flow\n{before}```\n\n```formatted\n{after}```\n");
                assert!(updated.contains(&old), "{name}: one empty line between the blocks");
                updated =
                    updated.replacen(&old, &format!("```flow\n{before}```\n\n```formatted\n{found}```\n"), 1);
            }
        }
        if updates() {
            fs::write(&path, updated).unwrap();
        }
    }
    assert!(failures.is_empty() || updates(), "{failures}");
    assert!(count >= 50, "only {count} cases");
}

#[test]
fn the_files_of_this_repository_are_formatted() {
    let mut differ = Vec::new();
    for path in flow_files() {
        let text = fs::read_to_string(&path).unwrap();
        let found = formatted(&text);
        if found != text {
            differ.push(path.display().to_string());
            if updates() {
                fs::write(&path, found).unwrap();
            }
        }
    }
    assert!(differ.is_empty() || updates(), "not formatted: {differ:?}");
}

#[test]
fn formatting_keeps_tokens_comments_and_machines() {
    let tools = tools();
    for text in &*ACCEPTED {
        let after = formatted(text);
        assert_eq!(kept(&after), kept(text));
        let machines = hashes(text, &tools);
        if !machines.is_empty() {
            assert_eq!(hashes(&after, &tools), machines, "another machine for\n{text}");
        }
    }
}

#[test]
fn lines_are_as_short_as_their_texts_allow() {
    for text in &*ACCEPTED {
        for line in formatted(text).lines() {
            let code = line.split("//").next().unwrap_or_default();
            let is_long = code.chars().count() > FORMAT_COLUMNS_MAX && !code.contains('"');
            assert!(!is_long, "{line}");
        }
    }
}

#[test]
fn broken_texts_are_refused_with_what_is_wrong() {
    let Err(FormatError::Syntax(found)) = format(FileId(0), "flow F( {\n") else {
        panic!("it was formatted")
    };
    assert!(found[0].is_error());
    let deep = "fn f() -> int = ".to_owned() + &"(".repeat(64 * 1024);
    assert!(matches!(format(FileId(0), &deep), Err(FormatError::Syntax(_))));
}

#[test]
fn a_file_as_long_as_it_may_be_is_formatted_line_by_line() {
    let remark = format!("\n//{}", " and so on".repeat(12)).repeat(400);
    let lines = format!("fn f( a:int,b : list<int>)->int=a+sum(x for x in b)// why{remark}\n");
    let wanted = format!("fn f(a: int, b: list<int>) -> int = a + sum(x for x in b) // why{remark}\n");
    let count = SOURCE_BYTES_MAX / lines.len();
    assert_eq!(format(FileId(0), &lines.repeat(count)).unwrap(), wanted.repeat(count));
}

#[test]
fn line_ends_of_other_systems_and_a_byte_order_mark_go_away() {
    assert_eq!(
        formatted("\u{feff}error A\r\n// remark\r\n\r\nerror B\r\n"),
        "error A\n// remark\n\nerror B\n"
    );
    assert_eq!(formatted("error A // one\rerror B"), "error A // one\nerror B\n");
    assert_eq!(
        formatted("fn f() -> text = \"\"\"\r\n  a\r\n  {1}\r\n  \"\"\"\r\n"),
        "fn f() -> text = \"\"\"\n  a\n  {1}\n  \"\"\"\n"
    );
}

#[test]
fn nesting_up_to_the_limit_is_formatted() {
    for (open, close) in [("(", ")"), ("[", "]"), ("size([", "])"), ("if a then 1 else (", ")")] {
        let deep = format!("fn f() -> int = {}1{}\n", open.repeat(60), close.repeat(60));
        formatted(&deep);
    }
}

/// White space and comments between two tokens; `line` says whether a line break may stand there.
fn gap(choice: u8) -> &'static str {
    match choice % 8 {
        0 => "\n",
        1 => "\n\n\n",
        2 => " // a remark\n",
        3 => "\n// a line of its own\n",
        4 => "\n\n/// documentation\n\n",
        5 => "\t",
        6 => "\r\n",
        _ => " ",
    }
}

/// The text with other white space between its tokens, and comments where `choices` says so.
fn scattered(text: &str, choices: &[u8]) -> String {
    let mut out = String::new();
    let tree = parse(FileId(0), text).syntax();
    let mut choices = choices.iter().cycle();
    for token in tree.descendants_with_tokens().filter_map(|element| element.into_token()) {
        let in_text = token.parent_ancestors().any(|node| node.kind() == SyntaxKind::StringExpr);
        if token.kind() == SyntaxKind::Whitespace && !in_text {
            out.push_str(token.text());
            out.push_str(gap(*choices.next().unwrap()));
        } else {
            out.push_str(token.text());
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_layout_and_any_comments_are_kept_and_formatted_once(
        which in any::<prop::sample::Index>(),
        choices in prop::collection::vec(prop_oneof![6 => Just(7_u8), 2 => 0..8_u8], 1..200),
    ) {
        let texts = &*ACCEPTED;
        let text = scattered(&texts[which.index(texts.len())], &choices);
        // White space decides nothing, but words at the beginning of a line may be read as the next part.
        prop_assume!(is_well_formed(&text));
        let after = formatted(&text);
        prop_assert_eq!(kept(&after), kept(&text));
    }

    #[test]
    fn layouts_without_comments_become_the_same(
        which in any::<prop::sample::Index>(),
        choices in prop::collection::vec(prop_oneof![Just(5_u8), Just(7_u8)], 1..50),
    ) {
        let texts = &*ACCEPTED;
        let text = &texts[which.index(texts.len())];
        prop_assert_eq!(formatted(&scattered(text, &choices)), formatted(text));
    }

    #[test]
    fn no_text_makes_the_formatter_panic(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        let texts = &*ACCEPTED;
        let mut chars: Vec<char> = texts[which.index(texts.len())].chars().collect();
        prop_assume!(!chars.is_empty());
        for (at, from) in edits {
            let (at, from) = (at.index(chars.len()), from.index(chars.len()));
            chars[at] = chars[from];
        }
        let text: String = chars.into_iter().collect();
        match format(FileId(0), &text) {
            Ok(_) => drop(formatted(&text)),
            Err(error) => prop_assert!(matches!(error, FormatError::Syntax(_)), "{:?} in {}", error, text),
        }
    }

    #[test]
    fn any_bytes_are_formatted_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = format(FileId(0), &text);
    }
}
