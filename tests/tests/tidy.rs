//! How every source file looks: a header, a bounded length, bounded functions, no silenced lints.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::path::Path;

use outlast_tests::repository;
use syn::visit::Visit;

/// Lines of a file before its tests: beyond this, split by concept.
const FILE_LINES_MAX: usize = 500;
/// Lines of code of a function: beyond this, straight work goes into helpers.
const FUNCTION_LINES_MAX: usize = 60;

#[test]
fn every_file_has_a_header_and_bounded_lengths() {
    let mut faults = String::new();
    for path in repository::files("rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(repository::root()).unwrap().display().to_string();
        if !text.starts_with("//! ") {
            writeln!(faults, "{name}: starts without a `//!` header").unwrap();
        }
        let lines = code(&text).lines().count();
        if lines > FILE_LINES_MAX && !is_test(&path) {
            writeln!(faults, "{name}: {lines} lines, {FILE_LINES_MAX} at most").unwrap();
        }
        for (line, function, length) in functions(&text) {
            if length > FUNCTION_LINES_MAX {
                writeln!(
                    faults,
                    "{name}:{line}: fn {function} has {length} lines, {FUNCTION_LINES_MAX} at most"
                )
                .unwrap();
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

#[test]
fn no_lint_is_silenced_without_a_reason_and_nothing_reads_unfinished() {
    let mut faults = String::new();
    // Spelled in pieces, so that this file does not find itself.
    let refused = [
        concat!("#[", "allow("),
        concat!("#![", "allow("),
        concat!("todo", "!("),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ];
    for path in repository::files("rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            for word in refused.iter().filter(|word| line.contains(**word)) {
                writeln!(faults, "{}:{}: {word}", path.display(), number + 1).unwrap();
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// Returns what stands before the file's own tests.
fn code(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests").map_or(text, |at| &text[..at])
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "benches")
        && !path.starts_with(repository::root().join("tests/src"))
}

/// Returns line, name and lines of code of each function.
fn functions(text: &str) -> Vec<(usize, String, usize)> {
    struct Found<'a> {
        lines: Vec<&'a str>,
        functions: Vec<(usize, String, usize)>,
    }
    impl Found<'_> {
        fn add(&mut self, name: &syn::Ident, body: &syn::Block) {
            let (first, last) =
                (body.brace_token.span.open().start().line, body.brace_token.span.close().end().line);
            let is_code = |line: &&&str| !line.trim().is_empty() && !line.trim().starts_with("//");
            let length = self.lines[first - 1..last].iter().filter(is_code).count();
            self.functions.push((first, name.to_string(), length));
        }
    }
    impl<'a> Visit<'a> for Found<'_> {
        fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
            self.add(&item.sig.ident, &item.block);
            syn::visit::visit_item_fn(self, item);
        }
        fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
            self.add(&item.sig.ident, &item.block);
            syn::visit::visit_impl_item_fn(self, item);
        }
    }
    let mut found = Found { lines: text.lines().collect(), functions: Vec::new() };
    found.visit_file(&syn::parse_file(text).unwrap());
    found.functions
}
