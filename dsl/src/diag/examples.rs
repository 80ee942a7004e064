//! For every code a text that is refused with it and one that is not.
//!
//! Leaves titles and explanations to the catalogue. The texts stand in `examples/*.md`, one file for each area: a heading `## F0101`, a
//! block `wrong`, a block `right`. Invariant (a test compiles all of them): a wrong text yields its code and no other, a right one
//! yields nothing; `dev.tools.json` of the examples is at hand. `<U+202E>` stands for that character, which no file may hold.

use super::Code;

/// One file of examples for each area of the catalogue.
const AREAS: &[&str] = &[
    include_str!("examples/syntax.md"),
    include_str!("examples/names.md"),
    include_str!("examples/types.md"),
    include_str!("examples/flows.md"),
    include_str!("examples/effects.md"),
    include_str!("examples/deadlines.md"),
    include_str!("examples/beside.md"),
    include_str!("examples/tests.md"),
];

/// A text with one mistake, and the same without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// What is refused.
    pub wrong: &'static str,
    /// What is not.
    pub right: &'static str,
}

/// The example of a code; none if its wrong text would be too long to read.
pub fn example(code: Code) -> Option<Example> {
    let heading = format!("## {code}\n");
    AREAS.iter().find_map(|area| {
        let (_, rest) = area.split_once(&heading)?;
        let section = rest.split_once("\n## ").map_or(rest, |(section, _)| section);
        Some(Example { wrong: block(section, "```wrong\n")?, right: block(section, "```right\n")? })
    })
}

/// The text between an opening fence and the next closing one.
fn block<'t>(section: &'t str, fence: &str) -> Option<&'t str> {
    let (_, rest) = section.split_once(fence)?;
    rest.split_once("```").map(|(body, _)| body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::catalogue::{entries, names, syntax, tests};

    #[test]
    fn every_code_has_an_example_that_fits_on_a_page() {
        // What is too deep or too long does not fit, and a schema that says too much stands in a file of its own;
        // a test fails when it runs.
        let excepted = |code: Code| {
            [syntax::TOO_DEEP, syntax::TOO_LONG, names::TOOL_TYPE, tests::FAILED].contains(&code)
        };
        for entry in entries().filter(|entry| !excepted(entry.code)) {
            assert!(example(entry.code).is_some(), "write an example for {} into diag/examples", entry.code);
        }
    }

    #[test]
    fn a_wrong_text_is_its_own_and_a_code_without_one_has_none() {
        let found = example(syntax::NULL).map(|example| (example.wrong, example.right));
        assert_eq!(found, Some(("fn nobody() -> text? = null\n", "fn nobody() -> text? = none\n")));
        assert_eq!(example(syntax::TOO_LONG), None);
    }
}
