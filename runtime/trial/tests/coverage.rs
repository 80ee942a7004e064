//! Coverage: what counts as an arrow, and which ones are told to be untaken.

use std::collections::BTreeMap;

use outlast_dsl::{SourceFile, check};
use outlast_trial::Coverage;

const FLOW: &str = r#"edition 1
type Found = Many { count: int } | One | None
activity look(x: int) -> Found within 1m effect pure
activity note(x: int) -> int within 1m effect pure
flow F(x: int) -> text {
  start Which
  state Which { choose if x == 0 -> end "zero" if x == 1 -> Look else -> Steps }
  state Look {
    do look(x) as found
    on ok {
      Many { count } if count > 9 -> end "very many"
      Many                        -> end "many"
      One                         -> Told(found)
      None                        -> end "none"
    }
    on failed if x > 1 -> end "later"
    on problem         -> end "problem"
  }
  state Told(found: Found) { choose found {
    One  -> end "one"
    Many -> end "many"
    None -> end "none"
  } }
  state Steps {
    steps { a = do note(x)  b = do note(a) }
    on ok if b > 9 -> end "large"
    on ok -> end "small"
    on problem -> end "problem"
  }
}
"#;

fn coverage(tests: &str) -> Coverage {
    let file = SourceFile { name: "f.flow".to_owned(), text: format!("{FLOW}{tests}") };
    let checked = check(&[file], &BTreeMap::new());
    let errors: Vec<_> = checked.diagnostics.iter().filter(|one| one.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let report = outlast_trial::run(&checked, |_| true);
    assert_eq!(report.failed(), 0, "{:#?}", report.results);
    report.coverage
}

#[track_caller]
fn check_untaken(tests: &str, untaken: &[(&str, u32)]) {
    let coverage = coverage(tests);
    let found = coverage.untaken();
    let found: Vec<_> =
        found.iter().map(|arrow| (arrow.state.as_deref().unwrap_or(""), arrow.line.line)).collect();
    assert_eq!(found, untaken);
    let (taken, all) = coverage.arrows();
    assert_eq!((all - taken, all), (untaken.len(), 16));
}

#[test]
fn branches_arms_and_guarded_arrows_count_each() {
    check_untaken(
        r#"
test "one" { start F(1)  stub look gives One  expect end "one" }
test "zero" { start F(0)  expect end "zero" }
test "small" { start F(5)  stub note gives 1  expect end "small" }
"#,
        &[
            ("Look", 11),
            ("Look", 12),
            ("Look", 14),
            ("Look", 16),
            ("Look", 17),
            ("Told", 21),
            ("Told", 22),
            ("Steps", 26),
            ("Steps", 28),
        ],
    );
}

#[test]
fn what_stands_on_one_line_is_told_apart_and_an_arrow_that_steps_share_counts_once() {
    check_untaken(
        r#"
test "no step" { start F(5)  stub note gives [1, fail "gone"]  expect end "problem" }
"#,
        &[
            ("Which", 7),
            ("Which", 7),
            ("Look", 11),
            ("Look", 12),
            ("Look", 13),
            ("Look", 14),
            ("Look", 16),
            ("Look", 17),
            ("Told", 20),
            ("Told", 21),
            ("Told", 22),
            ("Steps", 26),
            ("Steps", 27),
        ],
    );
}
