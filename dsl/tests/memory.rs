//! How much memory reading a source takes: the bound that the limits state.
//!
//! Leaves how long it takes to `syntax_any_text`. Invariant: the only test of its process, since it looks at what the process has taken.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_dsl::diag::FileId;
use outlast_dsl::limits::SOURCE_MEMORY_PER_BYTE_MAX;
use outlast_dsl::syntax::parse;

#[test]
fn memory_is_bounded_by_the_length_of_the_text() {
    let mut trees = Vec::new();
    for piece in
        ["(", "a ", ".", "\"{", "{}", "on ok ", "state S { ", "fn f() -> int = 1\n", "/// d\n", "\u{202e}"]
    {
        let before = peak_bytes();
        let text = piece.repeat(256 * 1024 / piece.len());
        trees.push(parse(FileId(0), &text));
        let taken = peak_bytes() - before;
        assert!(
            taken <= SOURCE_MEMORY_PER_BYTE_MAX * text.len(),
            "{piece}: {taken} bytes for {}",
            text.len()
        );
    }
}

/// The most memory that this process has had so far.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() * 1024
}
