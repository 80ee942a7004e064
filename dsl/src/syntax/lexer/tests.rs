//! What the lexer makes of single pieces of text.

use proptest::prelude::*;

use super::*;

/// Kinds without white space, and codes, of `text`; also checks what holds for every text.
fn check(text: &str, kinds: &[SyntaxKind], codes: &[Code]) {
    let lexed = lex(FileId(0), text);
    covers(text, &lexed);
    let found: Vec<_> =
        lexed.tokens.iter().map(|t| t.kind).filter(|k| *k != SyntaxKind::Whitespace).collect();
    assert_eq!(found, kinds, "{text:?}");
    let found: Vec<_> = lexed.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(found, codes, "{text:?}");
}

fn covers(text: &str, lexed: &Lexed) {
    let joined: String = lexed.tokens.iter().map(|token| token.span().of(text)).collect();
    assert_eq!(joined, text);
    assert!(is_balanced(&lexed.tokens), "{text:?}");
    for diagnostic in &lexed.diagnostics {
        let range = diagnostic.span.start as usize..diagnostic.span.end as usize;
        assert!(text.get(range).is_some(), "{diagnostic:?}");
    }
}

fn is_balanced(tokens: &[Token]) -> bool {
    let mut open = Vec::new();
    let balanced = tokens.iter().all(|token| match token.kind {
        SyntaxKind::StringOpen | SyntaxKind::HoleOpen => {
            open.push(token.kind);
            true
        }
        SyntaxKind::StringClose => open.pop() == Some(SyntaxKind::StringOpen),
        SyntaxKind::HoleClose => open.pop() == Some(SyntaxKind::HoleOpen),
        _ => true,
    });
    balanced && open.is_empty()
}

#[test]
fn words_and_numbers() {
    use SyntaxKind::{Dot, Dur, Int, Lower, Number, Upper};
    check("flow Agent", &[Lower, Upper], &[]);
    check("12_000 0.40 90s 1h30m 250ms", &[Int, Number, Dur, Dur, Dur], &[]);
    check("1. x", &[Int, Dot, Lower], &[]);
    for bad in ["1_", "1__0", "30m1h", "1h1h", "5x", "1s_", "1.5h", "1e5", "1.5e5", "0x1F"] {
        let lexed = lex(FileId(0), bad);
        assert_eq!((lexed.tokens.len(), lexed.diagnostics.len()), (1, 1), "{bad}");
        assert_eq!(lexed.diagnostics[0].code, code::BAD_NUMBER, "{bad}");
    }
    check("toolCall", &[Lower], &[code::BAD_NAME]);
    check("Tool_call", &[Upper], &[code::BAD_NAME]);
    check("café", &[Lower], &[code::BAD_NAME]);
}

#[test]
fn texts_with_holes() {
    use SyntaxKind::{
        HoleClose, HoleOpen, LBrace, Lower, RBrace, StringClose, StringEscape, StringOpen, StringText,
    };
    check("\"a\"", &[StringOpen, StringText, StringClose], &[]);
    check("\"{a}\"", &[StringOpen, HoleOpen, Lower, HoleClose, StringClose], &[]);
    check("\"{map {}}\"", &[StringOpen, HoleOpen, Lower, LBrace, RBrace, HoleClose, StringClose], &[]);
    let nested =
        [StringOpen, HoleOpen, StringOpen, HoleOpen, Lower, HoleClose, StringClose, HoleClose, StringClose];
    check("\"{\"{a}\"}\"", &nested, &[]);
    check("\"\\u{1F600}\\n\"", &[StringOpen, StringEscape, StringEscape, StringClose], &[]);
    check("\"\\q\"", &[StringOpen, StringEscape, StringClose], &[code::BAD_ESCAPE]);
    check("\"\\u{110000}\"", &[StringOpen, StringEscape, StringClose], &[code::BAD_ESCAPE]);
    let long =
        [StringOpen, StringText, StringText, StringText, HoleOpen, Lower, HoleClose, StringText, StringClose];
    check("\"\"\"\n a \"\" {b}\n\"\"\"", &long, &[]);
}

#[test]
fn what_is_left_open_ends_with_its_line() {
    use SyntaxKind::{HoleClose, HoleOpen, Lower, StringClose, StringOpen, StringText};
    check("\"a\nb", &[StringOpen, StringText, StringClose, Lower], &[code::UNTERMINATED_TEXT]);
    let hole = [StringOpen, StringText, HoleOpen, Lower, HoleClose, StringClose, Lower];
    check("\"a {b\nc", &hole, &[code::UNTERMINATED_HOLE]);
    let text_in_hole =
        [StringOpen, StringText, HoleOpen, Lower, StringOpen, StringClose, HoleClose, StringClose, Lower];
    check("\"a {b\"\nc", &text_in_hole, &[code::UNTERMINATED_HOLE]);
    let in_long = [StringOpen, HoleOpen, HoleClose, StringText, StringClose, Lower];
    check("\"\"\"{\n}\"\"\" c", &in_long, &[code::UNTERMINATED_HOLE]);
    check(
        "\"\"\"a {b\"\"\" c",
        &[StringOpen, StringText, HoleOpen, Lower, HoleClose, StringClose, Lower],
        &[code::UNTERMINATED_HOLE],
    );
    check("\"\"\"a", &[StringOpen, StringText, StringClose], &[code::UNTERMINATED_TEXT]);
}

#[test]
fn habits_and_marks() {
    use SyntaxKind::{
        Comment, Doc, EqEq, HoleClose, HoleOpen, Lower, StringClose, StringOpen, StringText, Unknown,
    };
    check("a; b", &[Lower, Unknown, Lower], &[code::SEMICOLON]);
    check("'a'", &[StringOpen, StringText, StringClose], &[code::SINGLE_QUOTES]);
    check("don't", &[Lower, Unknown, Lower], &[code::BAD_CHARACTER]);
    check("a === b", &[Lower, EqEq, Lower], &[code::TRIPLE_EQUALS]);
    check("# x\n/* y */ z", &[Comment, Comment, Lower], &[code::FOREIGN_COMMENT, code::FOREIGN_COMMENT]);
    check("/// d\n//// c\n// c", &[Doc, Comment, Comment], &[]);
    check("// \u{202e}x", &[Comment], &[code::BIDI_CONTROL]);
    check("\u{202e}x", &[Unknown, Lower], &[code::BIDI_CONTROL]);
    check("\u{feff}a", &[Lower], &[]);
    check("@@ a", &[Unknown, Lower], &[code::BAD_CHARACTER]);
    let hole = [StringOpen, StringText, HoleOpen, Lower, HoleClose, StringClose];
    check("\"${x}\"", &hole, &[code::DOLLAR_HOLE]);
}

proptest! {
    #[test]
    fn any_text_is_covered(text in "(\\PC|[\"{}\\\\\n\r$'/*u])*") {
        covers(&text, &lex(FileId(0), &text));
    }
}
