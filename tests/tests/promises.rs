//! The lists of promises against the tests that hold them.
//!
//! Leaves the promises to those tests. Invariant: every promise has a test that exists.

use std::fs;
use std::path::Path;

use outlast_tests::repository::root;

/// The promises of a page by their numbers: the text that names their tests.
fn promises(page: &str) -> Vec<(u32, String)> {
    let text = fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        Some((cells.first()?.parse().ok()?, (*cells.last()?).to_owned()))
    });
    rows.collect()
}

#[test]
fn each_promise_names_tests_that_exist() {
    let all = [promises("runtime/kernel/README.md"), promises("runtime/PROMISES.md")].concat();
    let numbers: Vec<u32> = all.iter().map(|(number, _)| *number).collect();
    // 28 is about a store that does not exist yet.
    assert_eq!(numbers, (1..=33).filter(|number| *number != 28).collect::<Vec<_>>());
    for (number, tests) in all {
        let (mut text, mut named) = (String::new(), 0);
        for word in tests.split('`').skip(1).step_by(2) {
            if Path::new(word).extension().is_some_and(|found| found == "rs") {
                text =
                    fs::read_to_string(root().join(word)).unwrap_or_else(|error| panic!("{word}: {error}"));
            } else {
                assert!(text.contains(&format!("fn {word}(")), "promise {number}: there is no test {word}");
                named += 1;
            }
        }
        assert!(named > 0, "promise {number} names no test");
    }
}
