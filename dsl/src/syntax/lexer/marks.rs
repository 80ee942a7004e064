//! Characters that are refused wherever they stand: those that reorder what a reader sees.
//!
//! Leaves other characters to the lexer. Invariant: looks at every byte once.

use super::Token;
use crate::diag::catalogue::syntax as code;
use crate::diag::{Diagnostic, FileId, TextSpan, is_bidi_control};
use crate::limits::DIAGNOSTICS_MAX;
use crate::syntax::kind::SyntaxKind;

/// Reports every bidirectional control character of `text`.
pub(super) fn check(file: FileId, text: &str, tokens: &[Token], diagnostics: &mut Vec<Diagnostic>) {
    // Most sources are ASCII; none of these characters is.
    if text.is_ascii() {
        return;
    }
    for token in tokens {
        for (at, c) in token.span().of(text).char_indices().filter(|(_, c)| is_bidi_control(*c)) {
            if diagnostics.len() >= DIAGNOSTICS_MAX {
                return;
            }
            let start = token.start + super::offset(at);
            let span = TextSpan::new(start, start + super::offset(c.len_utf8()));
            diagnostics.push(describe(file, span, c, token.kind));
        }
    }
}

fn describe(file: FileId, span: TextSpan, c: char, within: SyntaxKind) -> Diagnostic {
    let number = u32::from(c);
    let message = format!("U+{number:04X} reorders the text that follows it");
    let diagnostic = Diagnostic::error(code::BIDI_CONTROL, file, span, message);
    if within == SyntaxKind::StringText {
        diagnostic.hint("write it as an escape").fix(span, format!("\\u{{{number:X}}}"))
    } else {
        diagnostic.hint("remove it").unsure_fix(span, "")
    }
}
