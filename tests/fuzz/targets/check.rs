//! Any text: the checker never panics, and what it accepts is a machine that survives its own stored form.
//!
//! Leaves running machines to the kernel's property tests. Invariant: a checked machine has one encoding.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use outlast_dsl::machine::Machine;
use outlast_dsl::{SourceFile, check};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data).into_owned();
    let tools = include_str!("../../../examples/dev.tools.json").to_owned();
    let attachments = BTreeMap::from([("dev.tools.json".to_owned(), tools)]);
    let checked = check(&[SourceFile { name: "any.flow".to_owned(), text }], &attachments);
    for flow in checked.flows {
        let bytes = flow.machine.encode();
        match Machine::decode(&bytes) {
            Ok(again) => assert!(again == flow.machine, "decoding changed {}", flow.name),
            Err(error) => panic!("{} cannot be decoded: {error}", flow.name),
        }
        let _ = outlast_dsl::graph::render(&flow.machine, outlast_dsl::graph::Format::Ascii, None);
    }
});
