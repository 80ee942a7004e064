//! What the fuzzer found once, and texts that it came to by chance: each holds for all that is promised of any text.
//!
//! Leaves finding more to `tests/fuzz`. Invariant: a finding is a file of `tests/fuzz/cases/text` and stays there.

mod fuzzed;

use std::fs;
use std::path::Path;

#[test]
fn every_text_that_was_fuzzed_keeps_what_is_promised_of_any_text() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/cases/text");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no texts were kept");
    for file in files {
        println!("{}", file.display());
        let bytes = fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        fuzzed::parses(&text);
        fuzzed::checks(&text);
        fuzzed::formats(&text);
    }
}
