//! The list of promises in the README against the tests that hold them.
//!
//! Leaves the promises to those tests. Invariant: every promise has a test that exists.

use std::fs;
use std::path::Path;

#[test]
fn each_promise_names_tests_that_exist() {
    let readme = include_str!("../README.md");
    let rows = readme.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let number: u32 = cells.first()?.parse().ok()?;
        Some((number, (*cells.last()?).to_owned()))
    });
    let rows: Vec<(u32, String)> = rows.collect();
    assert_eq!(rows.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (1..=15).collect::<Vec<_>>());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (number, tests) in rows {
        let (mut text, mut named) = (String::new(), 0);
        for word in tests.split('`').skip(1).step_by(2) {
            if Path::new(word).extension().is_some_and(|found| found == "rs") {
                text = fs::read_to_string(root.join(word)).unwrap_or_else(|error| panic!("{word}: {error}"));
            } else {
                assert!(text.contains(&format!("fn {word}(")), "promise {number}: there is no test {word}");
                named += 1;
            }
        }
        assert!(named > 0, "promise {number} names no test");
    }
}
