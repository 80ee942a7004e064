//! Whole programs of the kind that people write: they check, their machines are sound, and they can be drawn.
//!
//! Leaves running them to the kernel's tests. Invariant: every file of `programs/` is looked at.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use outlast_dsl::diag::{Colour, Sources, render};
use outlast_dsl::machine::Machine;
use outlast_dsl::{CheckedFlow, SourceFile, check};

/// Compiles one program; returns what is said of it too.
fn compile(path: &Path) -> (Vec<CheckedFlow>, String) {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let source = SourceFile { name: name.clone(), text: text.clone() };
    let checked = check(&[source], &BTreeMap::new());
    let mut sources = Sources::default();
    sources.add(&name, &text);
    let errors = checked.diagnostics.iter().filter(|one| one.is_error());
    let shown: String = errors.map(|one| render(one, &sources, Colour::Never)).collect();
    (checked.flows, shown)
}

fn programs() -> Vec<CheckedFlow> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    let (flows, said): (Vec<_>, Vec<_>) = files.iter().map(|file| compile(file)).unzip();
    assert!(said.iter().all(String::is_empty), "{}", said.concat());
    flows.into_iter().flatten().collect()
}

#[test]
fn programs_check_and_their_machines_are_sound() {
    for flow in programs() {
        assert_eq!(flow.machine.first_bad_index(), None, "{}", flow.name);
        let read = Machine::decode(&flow.machine.encode());
        assert_eq!(read.as_ref(), Ok(&flow.machine), "{}", flow.name);
    }
}

#[test]
fn a_spawned_run_has_the_machine_that_its_flow_has_alone() {
    let all = programs();
    let alone = |name: &str| all.iter().find(|flow| flow.name == name).map(|flow| &flow.machine);
    for flow in &all {
        for (at, inner) in flow.machine.flows.iter().enumerate() {
            let ix = outlast_dsl::machine::FlowIx(u32::try_from(at).unwrap_or(u32::MAX));
            let rooted = flow.machine.rooted_at(ix);
            assert_eq!(Some(&rooted), alone(&inner.name), "{} in {}", inner.name, flow.name);
        }
    }
}
