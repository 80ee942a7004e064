//! What holds for every text, however broken: no panic, every byte kept, bounded work and depth.
//!
//! Leaves what is accepted and refused to the language cases. Invariant: work is counted in steps, not measured.

use std::fmt::Write as _;

use outlast_dsl::diag::{Colour, FileId, Sources, json, render};
use outlast_dsl::limits::{DIAGNOSTICS_MAX, NESTING_MAX, SOURCE_BYTES_MAX};
use outlast_dsl::syntax::ast::{Arrow, AstNode, Decl, Effect, Expr, Literal, StringExpr, TypePath};
use outlast_dsl::syntax::kind::SyntaxNode;
use outlast_dsl::syntax::{Parse, parse};
use proptest::prelude::*;
use rowan::WalkEvent;

/// Steps that one byte of text may cost. A token of one byte is looked at about twenty times.
const STEPS_PER_BYTE_MAX: u64 = 80;

const EXAMPLE: &str = include_str!("cases/syntax/example.md");

fn check(text: &str) -> Parse {
    let parse = parse(FileId(0), text);
    assert!(parse.syntax().text() == text, "the tree does not hold the text {text:?}");
    let bound = STEPS_PER_BYTE_MAX * (text.len() as u64 + 16);
    assert!(parse.steps() <= bound, "{} steps for {} bytes", parse.steps(), text.len());
    assert!(parse.diagnostics().len() <= DIAGNOSTICS_MAX + 1, "too many diagnostics");
    let mut sources = Sources::default();
    sources.add("any.flow", text);
    for diagnostic in parse.diagnostics() {
        let range = diagnostic.span.start as usize..diagnostic.span.end as usize;
        assert!(text.get(range).is_some(), "{diagnostic:?} in {text:?}");
        if let Some(fix) = &diagnostic.fix {
            assert!(text.get(fix.span.start as usize..fix.span.end as usize).is_some(), "{diagnostic:?}");
        }
        let _ = render(diagnostic, &sources, Colour::Never);
    }
    let _ = json(parse.diagnostics(), &sources);
    walk(&parse);
    parse
}

/// Looks at every node through the views that decode something.
fn walk(parse: &Parse) {
    for node in parse.syntax().descendants() {
        if let Some(expr) = Expr::cast(node.clone()) {
            assert!(expr.span().end >= expr.span().start);
            if let Expr::Binary(binary) = &expr {
                let _ = (binary.op(), binary.left(), binary.right());
            }
        }
        if let Some(text) = StringExpr::cast(node.clone()) {
            let _ = text.pieces();
        }
        if let Some(literal) = Literal::cast(node.clone()) {
            let _ = (literal.kind(), literal.digits());
        }
        if let Some(path) = TypePath::cast(node.clone()) {
            assert!(path.last().is_some());
        }
        if let Some(arrow) = Arrow::cast(node.clone()) {
            let _ =
                (arrow.outcomes(), arrow.guard(), arrow.acts().iter().count(), arrow.goal(), arrow.arms());
        }
        let _ = (Effect::cast(node.clone()), Decl::cast(node).and_then(|decl| decl.docs()));
    }
}

fn example() -> &'static str {
    let after = EXAMPLE.split_once("```flow\n").map_or("", |(_, after)| after);
    after.split_once("\n```").map_or(after, |(flow, _)| flow)
}

fn depth(node: &SyntaxNode) -> usize {
    let (mut level, mut deepest) = (0, 0);
    for event in node.preorder() {
        match event {
            WalkEvent::Enter(_) => level += 1,
            WalkEvent::Leave(_) => level -= 1,
        }
        deepest = deepest.max(level);
    }
    deepest
}

#[test]
fn deep_nesting_is_refused_and_ends() {
    let opened: &[(&str, &str, &str)] = &[
        ("fn f() -> int = ", "(", ")"),
        ("fn f() -> int = ", "[", "]"),
        ("fn f() -> int = ", "f(", ")"),
        ("fn f() -> int = ", "map { 1: ", "}"),
        ("fn f() -> int = ", "{ 1: ", "}"),
        ("fn f() -> int = ", "A { a: ", "}"),
        ("fn f() -> int = ", "-", ""),
        ("fn f() -> int = ", "not ", ""),
        ("fn f() -> int = ", "!", ""),
        ("fn f() -> int = ", "if a then ", ""),
        ("fn f() -> int = ", "match a { A => ", "}"),
        ("fn f() -> int = ", "match a { A if ", "}"),
        ("fn f() -> int = ", "\"{", "}\""),
        ("fn f() -> int = ", "a ? b : ", ""),
        ("fn f() -> int = ", "a[", "]"),
        ("fn f() -> ", "list<", ">"),
        ("fn f() -> int = x", ".x", ""),
        ("fn f() -> int = x", "[0]", ""),
        ("fn f() -> int = x", " + x", ""),
        ("fn f() -> int = x", " ?? x", ""),
        ("fn f() -> int = x", " or x", ""),
        ("fn f() -> int = x", " is A", ""),
        ("fn f() -> int = x", " == x", ""),
        ("flow A() { state S { ", "each x in xs at most 1 as r { ", "}"),
        ("flow A() { state S { ", "parallel { a: ", "}"),
        ("flow A() { state S { ", "steps { a = ", "}"),
        ("flow A() { state S { on ok ", "{ A ", "}"),
        ("", "flow A() { ", "}"),
        ("", "{", "}"),
        ("", "test \"\" { ", "}"),
        ("flow A() ", "{ state S ", "}"),
    ];
    for (before, open, close) in opened {
        for count in [200, 4 * 1024 / open.len()] {
            let text = format!("{before}{}{}", open.repeat(count), close.repeat(count));
            let unclosed = format!("{before}{}", open.repeat(count));
            for text in [text, unclosed] {
                let parse = check(&text);
                let levels = depth(&parse.syntax());
                assert!(levels < 8 * NESTING_MAX as usize, "{open}: {levels} levels");
            }
        }
    }
}

#[test]
fn sixty_four_kibibytes_of_parentheses_end() {
    let parse = check(&format!("fn f() -> int = {}", "(".repeat(64 * 1024)));
    let codes: Vec<_> = parse.diagnostics().iter().map(|diagnostic| diagnostic.code.to_string()).collect();
    assert_eq!(codes, ["F0112"]);
}

#[test]
fn nesting_at_the_limit_is_accepted() {
    let levels = NESTING_MAX as usize - 1;
    for (open, middle, close) in [("(", "1", ")"), ("[", "", "]"), ("", "1", " + 1")] {
        let text = format!("fn f() -> int = {}{middle}{}\n", open.repeat(levels), close.repeat(levels));
        assert_eq!(check(&text).diagnostics(), [], "{open}{close}");
    }
}

#[test]
fn work_grows_with_the_length_of_the_text() {
    let repeated = [
        "state S { ",
        "on ok ",
        "on ok { A -> end B { ",
        "on ok { A b A b ",
        "-> ",
        "} ",
        ") ",
        "( ",
        "(} ",
        "(] ",
        "\" ",
        "\"{ ",
        "\"\"\"{ \n",
        "' ",
        "/* ",
        "# \n",
        "\\ ",
        "/// d\n",
        "/// d\n\nx ",
        "a.",
        "a b ",
        "a = ",
        "choose if a b ",
        "set a = 1 ",
        "flow A() -> A | ",
        "flow A() -> A {} ",
        "activity a() within 1s ",
        "retry R { on ok ",
        "test \"a\" { expect end ",
        "é",
        "\u{202e}",
        "\n",
        "a,",
        "\"a\"",
        "1h",
        "[a for x in ",
        "each (a, b) in x ",
    ];
    for piece in repeated {
        check(&piece.repeat(16 * 1024 / piece.len()));
    }
    check(&example().repeat(1024 * 1024 / example().len()));
}

#[test]
fn a_text_beyond_the_limit_is_refused_at_once() {
    let parse = parse(FileId(0), &" ".repeat(SOURCE_BYTES_MAX + 1));
    assert_eq!(parse.diagnostics().len(), 1);
    assert_eq!(parse.diagnostics()[0].code.to_string(), "F0113");
}

/// Pieces of the language, some of them broken.
fn token() -> impl Strategy<Value = String> {
    let words = [
        "edition", "use", "tools", "type", "error", "retry", "activity", "fn", "saga", "flow", "migrate",
        "test", "with", "on", "up", "to", "attempts", "wait", "doubling", "hint", "then", "hold", "raises",
        "within", "in", "all", "silent", "costs", "queue", "effect", "pure", "once", "from", "verify",
        "undo", "always", "unknown", "holds", "emits", "version", "message", "now", "data", "limit",
        "visits", "since", "else", "cancel", "start", "state", "was", "do", "as", "run", "spawn", "named",
        "detach", "steps", "each", "at", "most", "until", "draining", "keep", "going", "parallel", "join",
        "any", "yield", "await", "closed", "ended", "ask", "show", "editable", "for", "and", "of", "forever",
        "choose", "if", "after", "every", "set", "discard", "settle", "also", "emit", "stay", "end", "fail",
        "match", "or", "not", "is", "map", "true", "none", "nothing", "null", "stub", "gives", "allow",
        "send", "close", "answer", "by", "advance", "crash", "lose", "worker", "expect", "path", "calls",
        "x", "ok", "_", "A", "Foo", "1", "0.5", "5m", "1.5h", "\"a\"", "\"{x}\"", "\"{", "\"", "\"\"\"",
        "'a'", "{", "}", "(", ")", "[", "]", "<", ">", "<=", ">=", "==", "!=", "=", "+=", "-=", "+", "-",
        "*", "/", "%", "??", "?", "->", "=>", ",", ":", ".", "|", "&&", "||", "!", ";", "#", "// c\n",
        "/// d\n", "\n", "$", "é", "\u{202e}", "\r\n",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_owned)
}

/// The example with some stretches removed, doubled or replaced.
fn mutated() -> impl Strategy<Value = String> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, 0u8..3, token()), 1..6);
    edits.prop_map(|edits| {
        let mut chars: Vec<char> = example().chars().collect();
        for (at, length, what, token) in edits {
            let at = at.index(chars.len().max(1)).min(chars.len());
            let end = (at + length).min(chars.len());
            let stretch: Vec<char> = chars[at..end].to_vec();
            match what {
                0 => drop(chars.splice(at..end, [])),
                1 => drop(chars.splice(at..at, stretch)),
                _ => drop(chars.splice(at..end, token.chars())),
            }
        }
        chars.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_characters(text in "\\PC{0,200}") {
        check(&text);
    }

    #[test]
    fn token_soup(tokens in prop::collection::vec(token(), 0..120), glue in prop::bool::ANY) {
        check(&tokens.join(if glue { "" } else { " " }));
    }

    #[test]
    fn token_soup_in_a_flow(tokens in prop::collection::vec(token(), 0..60)) {
        check(&format!("flow A() {{ state S {{ do a() on ok {}\n", tokens.join(" ")));
    }

    #[test]
    fn token_soup_in_an_expression(tokens in prop::collection::vec(token(), 0..60)) {
        check(&format!("fn f() -> int = {}\n", tokens.join(" ")));
    }

    #[test]
    fn mutations_of_the_example(text in mutated()) {
        check(&text);
    }

    #[test]
    fn one_slip_costs_few_diagnostics(at in any::<prop::sample::Index>(), length in 1usize..4) {
        // Removing a few characters anywhere must not bury the reader.
        let chars: Vec<char> = example().chars().collect();
        let at = at.index(chars.len());
        let kept = chars.iter().enumerate().filter(|(n, _)| !(at..at + length).contains(n)).map(|(_, c)| *c);
        let text: String = kept.collect();
        let found = check(&text).diagnostics().len();
        prop_assert!(found <= 6, "{found} diagnostics\n{}", listed(&text));
    }
}

fn listed(text: &str) -> String {
    let mut sources = Sources::default();
    let file = sources.add("slip.flow", text);
    parse(file, text).diagnostics().iter().fold(String::new(), |mut out, diagnostic| {
        let _ = write!(out, "{}", render(diagnostic, &sources, Colour::Never));
        out
    })
}
