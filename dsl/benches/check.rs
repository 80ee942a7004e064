//! How long checking takes, against reading only: files of many flows, and one flow of many states.
//!
//! Run with `cargo bench -p outlast-dsl --bench check`. Promise: 2,000 lines in less than 50 ms, and time linear in the lines.

#![expect(clippy::print_stdout, reason = "a benchmark is read on the terminal")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use outlast_dsl::diag::FileId;
use outlast_dsl::syntax::parse;
use outlast_dsl::{SourceFile, check};

/// Milliseconds that 2,000 lines may take.
const PROMISE_MS: f64 = 50.0;

/// A file of flows of `states` states each, of the kinds that people write.
fn text(flows: usize, states: usize) -> String {
    let mut out = String::from(
        "error Busy { retry_after: duration }\nretry Gently { on Busy, timeout up to 5 attempts wait 1s doubling to 1m hint retry_after }\n\
         activity work(what: text, n: int) -> text raises Busy within 1m in all 1h retry Gently effect idempotent\n\n",
    );
    for flow in 0..flows {
        let _ = writeln!(out, "flow F{flow}(n: int = 0) -> text emits text {{");
        let _ = writeln!(
            out,
            "  message Stop now\n  data seen: list<text> = []\n  limit visits(S0) <= 50 + n else -> end \"too often\""
        );
        let _ = writeln!(
            out,
            "  on Stop -> end \"stopped\"\n  on problem as p  emit p.text -> end p.text\n  start S0\n"
        );
        for state in 0..states {
            let _ = writeln!(
                out,
                "  state S{state} {{\n    do work(\"step {state}: {{size(seen)}}\", {state}) as said"
            );
            let _ = writeln!(out, "    on ok if contains(said, \"again\")  set seen += [said] -> S0");
            let next = if state + 1 == states {
                "end join(seen, \", \")".to_owned()
            } else {
                format!("S{}", state + 1)
            };
            let _ = writeln!(out, "    on ok  set seen += [first_n(said, 100)]  emit said -> {next}\n  }}");
        }
        let _ = writeln!(out, "}}\n");
    }
    out
}

fn least(mut work: impl FnMut()) -> Duration {
    let times = (0..10).map(|_| {
        let begin = Instant::now();
        work();
        begin.elapsed()
    });
    times.min().unwrap_or_default()
}

fn main() {
    println!(
        "{:>6} {:>7} {:>8} {:>10} {:>10} {:>10}",
        "flows", "states", "lines", "read ms", "check ms", "us a line"
    );
    for (flows, states) in [(5, 20), (19, 20), (75, 20), (1, 100), (1, 400), (1, 1_000), (1, 4_000)] {
        let text = text(flows, states);
        let lines = text.lines().count();
        let files = [SourceFile { name: "bench.flow".to_owned(), text }];
        let found = check(&files, &BTreeMap::new());
        assert!(found.diagnostics.is_empty(), "{:?}", found.diagnostics.first());
        let read = least(|| drop(parse(FileId(0), &files[0].text))).as_secs_f64() * 1e3;
        let all = least(|| drop(check(&files, &BTreeMap::new()))).as_secs_f64() * 1e3;
        let promise = if lines < 2_500 && lines > 1_500 {
            format!("  (promise: {PROMISE_MS} ms)")
        } else {
            String::new()
        };
        println!(
            "{flows:>6} {states:>7} {lines:>8} {read:>10.2} {all:>10.2} {:>10.2}{promise}",
            all * 1e3 / lines as f64
        );
    }
}
