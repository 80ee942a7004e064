//! Any bytes: the parser keeps every byte and never panics.
//!
//! Leaves what is accepted to the language cases. Invariant: the tree's text is the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_dsl::diag::{Colour, FileId, Sources, json, render};
use outlast_dsl::syntax::parse;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let parse = parse(FileId(0), &text);
    assert!(parse.syntax().text() == text.as_ref(), "the tree lost something");
    let mut sources = Sources::default();
    sources.add("any.flow", text.as_ref());
    for diagnostic in parse.diagnostics() {
        let _ = render(diagnostic, &sources, Colour::Never);
    }
    let _ = json(parse.diagnostics(), &sources);
});
