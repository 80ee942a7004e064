//! Any bytes as text: the parser keeps every byte and never panics.
//!
//! Leaves what must hold to `dsl/tests/fuzzed`, which the ordinary tests use too. Invariant: a finding is a fault of the language.

#![no_main]

#[path = "../../../dsl/tests/fuzzed/mod.rs"]
#[expect(dead_code, reason = "each target uses one of them")]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::parses(&String::from_utf8_lossy(data)));
