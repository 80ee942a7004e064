//! Which crate may use which: a new edge edits this table on purpose.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use outlast_tests::repository;
use serde_json::Value;

/// The crates' own edges, tests left out.
const EDGES: &[(&str, &[&str])] = &[
    ("outlast-dsl", &[]),
    ("outlast-kernel", &["outlast-dsl"]),
    ("outlast-protocol", &["outlast-kernel"]),
    ("outlast-store", &["outlast-kernel"]),
    ("outlast-runtime", &["outlast-dsl", "outlast-kernel", "outlast-protocol", "outlast-store"]),
    ("outlast-trial", &["outlast-dsl", "outlast-kernel"]),
    ("outlast-workers", &["outlast-protocol"]),
    ("outlast", &["outlast-dsl", "outlast-protocol", "outlast-runtime", "outlast-trial", "outlast-workers"]),
    ("outlast-tests", &["outlast-workers"]),
];

/// Libraries that are named in these crates only.
const OWNED: &[(&str, &[&str])] = &[
    ("fjall", &["outlast-store"]),
    ("rmp-serde", &["outlast-store", "outlast-protocol"]),
    ("petgraph", &["outlast-dsl"]),
    ("rmcp", &["outlast-workers"]),
    ("axum", &["outlast-runtime"]),
];

/// What `dsl`, `kernel` and `trial` reach by no path: clocks, tasks, disks, logs, chance.
const IMPURE: &[&str] =
    &["tokio", "fjall", "tracing", "rand", "getrandom", "rustix", "libc", "reqwest", "axum"];

#[test]
fn crates_depend_on_each_other_as_the_table_says() {
    let found = direct_dependencies();
    let table: BTreeMap<String, BTreeSet<String>> = EDGES
        .iter()
        .map(|(name, edges)| ((*name).to_owned(), edges.iter().map(|edge| (*edge).to_owned()).collect()))
        .collect();
    let own = |edges: &BTreeSet<String>| edges.iter().filter(|e| table.contains_key(*e)).cloned().collect();
    let actual: BTreeMap<String, BTreeSet<String>> =
        found.iter().map(|(name, edges)| (name.clone(), own(edges))).collect();
    assert_eq!(actual, table);
}

#[test]
fn libraries_stay_in_the_crates_that_own_them() {
    for (library, owners) in OWNED {
        for (name, edges) in direct_dependencies() {
            let allowed = owners.contains(&name.as_str());
            assert!(
                allowed || !edges.contains(*library),
                "{name} names {library}, which belongs to {owners:?}"
            );
        }
    }
}

#[test]
fn language_kernel_and_tests_of_flows_are_pure() {
    for name in ["outlast-dsl", "outlast-kernel", "outlast-trial"] {
        let tree = cargo(&[
            "tree",
            "--locked",
            "--package",
            name,
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ]);
        for line in tree.lines() {
            let library = line.split(' ').next().unwrap_or_default();
            assert!(!IMPURE.contains(&library), "{name} reaches {library}");
        }
    }
}

/// Returns each crate's direct dependencies, without those of tests.
fn direct_dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--locked", "--no-deps", "--format-version", "1"]))
            .unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut found = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let dependencies = package["dependencies"].as_array().unwrap();
        let normal = dependencies.iter().filter(|d| d["kind"].is_null()).map(|d| text(&d["name"])).collect();
        found.insert(text(&package["name"]), normal);
    }
    found
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo).args(arguments).current_dir(repository::root()).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
