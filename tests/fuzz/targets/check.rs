//! Any bytes as text: the checker never panics, and what it accepts is a sound machine.
//!
//! Leaves what must hold to `dsl/tests/fuzzed`, which the ordinary tests use too. Invariant: a finding is a fault of the language.

#![no_main]

#[path = "../../../dsl/tests/fuzzed/mod.rs"]
#[expect(dead_code, reason = "each target uses one of them")]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzed::checks(&String::from_utf8_lossy(data)));
