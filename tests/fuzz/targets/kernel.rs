//! Any bytes as decisions: they write a program and what happens to its run, and every promise of the kernel holds.
//!
//! Leaves writing and driving to the kernel's random tests (`runtime/kernel/tests/generated`). Invariant: a finding is a fault of the
//! checker or of the kernel, since only programs that pass the checker are run.

#![no_main]

#[path = "../../../runtime/kernel/tests/common/mod.rs"]
mod common;
#[path = "../../../runtime/kernel/tests/generated/driver.rs"]
mod driver;
#[path = "../../../runtime/kernel/tests/generated/fuzzed.rs"]
mod fuzzed;
#[path = "../../../runtime/kernel/tests/generated/generator.rs"]
mod generator;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = fuzzed::lives(data);
});
