//! The Python package: its own tests, run against this build of the binary.
//!
//! Needs `python3`, 3.10 or newer, and nothing beyond its standard library. Leaves what is tested to `workers/python/tests`.

use std::process::Command;

use outlast_tests::{repository, world};

fn suite(module: &str) {
    let package = repository::root().join("workers/python");
    let output = Command::new("python3")
        .args(["-W", "always::ResourceWarning", "-m", "unittest", module])
        .current_dir(package.join("tests"))
        .env("PYTHONPATH", package.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OUTLAST_BIN", world::binary("outlast"))
        .output()
        .unwrap_or_else(|error| {
            panic!("python3 cannot be started ({error}): these tests need Python 3.10 or newer")
        });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{module} failed:\n{said}");
    assert!(said.contains("OK") && !said.contains("skipped"), "{module} left tests out:\n{said}");
    assert!(!said.contains("ResourceWarning"), "{module} leaves things open:\n{said}");
}

#[test]
fn hints_become_schemas_and_values_go_there_and_back() {
    suite("test_schemas");
}

#[test]
fn the_package_is_whole() {
    suite("test_package");
}

#[test]
fn workers_keep_the_protocol_against_a_runtime_that_misbehaves() {
    suite("test_lease");
}

#[test]
fn a_server_that_is_away_is_borne_from_the_first_failure_on() {
    suite("test_patience");
}

#[test]
fn workers_serve_a_real_runtime() {
    suite("test_worker");
}

#[test]
fn kills_of_workers_and_runtimes_cost_nothing_that_was_done() {
    suite("test_kills");
}

#[test]
fn the_client_drives_runs_over_restarts() {
    suite("test_client");
}

#[test]
fn secrets_are_known_to_the_worker_alone() {
    suite("test_secrets");
}
