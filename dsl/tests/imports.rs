//! Programs of several files: what is deployed, what the hash counts, what the fixes do.
use std::collections::BTreeMap;

use outlast_dsl::diag::{Colour, Sources, render};
use outlast_dsl::{Checked, SourceFile, check};

const TOOLS: &str = include_str!("../../examples/dev.tools.json");

fn program(main: &str, text: &str, others: &[(&str, &str)]) -> Checked {
    let source = SourceFile { name: main.to_owned(), text: text.to_owned() };
    let others: BTreeMap<String, String> =
        others.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    check(&[source], &others)
}

fn told(checked: &Checked) -> String {
    let mut sources = Sources::default();
    for file in &checked.files {
        sources.add(&file.name, &file.text);
    }
    checked.diagnostics.iter().map(|one| render(one, &sources, Colour::Never)).collect()
}

/// Types, a function, a retry policy, an activity and a flow, with all that they need.
const PARTS: &str = "type Receipt { id: text, lines: list<Line> }
type Line { cents: int }
retry Gently { on failed up to 3 attempts wait 1s }
activity pay(cents: int) -> Receipt within 1m in all 1h retry Gently effect idempotent
fn total(receipt: Receipt) -> int = sum(line.cents for line in receipt.lines)
flow Pay(cents: int) -> int {
  start A
  state A { do pay(cents) as r  on ok -> end total(r)  on problem -> end 0 }
}
";

const MAIN: &str = "flow Order(cents: int) -> int {
  start A
  state A { run Pay(cents) as sum  on ok -> end sum }
}
";

#[test]
fn the_hash_counts_what_is_said_and_not_in_which_file() {
    let whole = program("all.flow", &format!("{PARTS}{MAIN}"), &[]);
    let order = whole.flows.iter().find(|flow| flow.name == "Order").unwrap();
    let (types, rest) = PARTS.split_at(PARTS.find("retry").unwrap());
    let (policy, rest) = rest.split_at(rest.find("activity").unwrap());
    let (activity, rest) = rest.split_at(rest.find("fn ").unwrap());
    let main = format!("use \"lib/flows.flow\" {{ Pay }}\n{MAIN}");
    let split = program(
        "srv/main.flow",
        &main,
        &[
            (
                "srv/lib/flows.flow",
                &format!("use \"../pay.flow\" {{ pay }}\nuse \"types.flow\" {{ Receipt }}\n{rest}"),
            ),
            (
                "srv/pay.flow",
                &format!(
                    "use \"lib/types.flow\" {{ Receipt }}\nuse \"policy.flow\" {{ Gently }}\n{activity}"
                ),
            ),
            ("srv/policy.flow", policy),
            ("srv/lib/types.flow", types),
        ],
    );
    assert!(split.diagnostics.is_empty(), "{}", told(&split));
    let names: Vec<&str> = split.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["Order"], "only the flows of the file that was named");
    assert_eq!(split.flows[0].machine.hash(), order.machine.hash());
    let files: Vec<&str> = split.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        files,
        ["srv/main.flow", "srv/lib/flows.flow", "srv/pay.flow", "srv/lib/types.flow", "srv/policy.flow"]
    );
    let line = split.flows[0].places.find("Pay", Some("A"), "effect").unwrap();
    assert_eq!(
        (line.file.as_str(), line.snippet.starts_with("state A { do pay")),
        ("srv/lib/flows.flow", true)
    );
}

#[test]
fn given_files_that_use_each_other_are_one_program() {
    let file = |name: &str, text: &str| SourceFile { name: name.to_owned(), text: text.to_owned() };
    let files = [file("a.flow", PARTS), file("./b.flow", &format!("use \"a.flow\" {{ Pay }}\n{MAIN}"))];
    let checked = check(&files, &BTreeMap::new());
    assert!(checked.diagnostics.is_empty(), "{}", told(&checked));
    let names: Vec<&str> = checked.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["Pay", "Order"]);
    assert_eq!(checked.files.len(), 2);
}

#[test]
fn a_catalogue_that_two_files_use_is_one() {
    let text = "use tools \"dev.tools.json\" as dev\nuse \"lib/b.flow\" { Allowed }
flow F(call: ToolCall) -> bool {
  start A
  state A { choose if size(dev.schemas) == 0 -> end false else -> B }
  state B { run Allowed(call) as it  on ok -> end it }
}
";
    let other = "use tools \"../dev.tools.json\" as dev
flow Allowed(call: ToolCall) -> bool {
  start A
  state A { choose if dev.allow(call) as ok -> end true else -> end false }
}
";
    let checked = program("a.flow", text, &[("lib/b.flow", other), ("dev.tools.json", TOOLS)]);
    assert!(checked.diagnostics.is_empty(), "{}", told(&checked));
    assert_eq!(checked.flows[0].machine.catalogues.len(), 1);
}

#[test]
fn a_name_that_is_not_there_is_told_what_is() {
    let many: String = (0..20).map(|at| format!("fn f{at}() -> int = {at}\n")).collect();
    for (declares, wanted) in [
        ("fn a() -> int = 1\ntype B { x: int }\n", "expected: one of `a`, `B`\n"),
        (many.as_str(), "`f10`, `f11`, …\n"),
        ("test \"it\" { start F() }\n", ""),
    ] {
        let text = "use \"a.flow\" { nothing_like_it }\nfn g() -> int = nothing_like_it()\n";
        let told = told(&program("main.flow", text, &[("a.flow", declares)]));
        assert!(told.contains("declares no `nothing_like_it`"), "{told}");
        assert_eq!(told.contains("one of"), !wanted.is_empty(), "{told}");
        assert!(told.contains(wanted), "{told}");
    }
}

/// The text after the first fix of each diagnostic, the last in the text first.
fn fixed(text: &str, checked: &Checked) -> String {
    let mut fixes: Vec<_> = checked.diagnostics.iter().filter_map(|one| one.fix.clone()).collect();
    fixes.sort_by_key(|fix| std::cmp::Reverse(fix.span.start));
    fixes.dedup();
    let mut text = text.to_owned();
    for fix in fixes {
        text.replace_range(fix.span.start as usize..fix.span.end as usize, &fix.replacement);
    }
    text
}

#[test]
fn fixes_take_out_what_is_not_used_and_bring_in_what_is_missing() {
    let others = [("a.flow", "fn a() -> int = 1\nfn b() -> int = 2\nfn c() -> int = 3\n")];
    for (text, wanted) in [
        ("use \"a.flow\" { a, b, c }\nfn f() -> int = b()\n", "use \"a.flow\" { b }\nfn f() -> int = b()\n"),
        ("use \"a.flow\" { a, b }\nfn f() -> int = a()\n", "use \"a.flow\" { a }\nfn f() -> int = a()\n"),
        ("use \"a.flow\" { a, b }\nfn f() -> int = 1\n", "\nfn f() -> int = 1\n"),
        (
            "use \"a.flow\" { a }\n/// Doc.\nfn f() -> int = a() + c()\n",
            "use \"a.flow\" { a }\nuse \"a.flow\" { c }\n/// Doc.\nfn f() -> int = a() + c()\n",
        ),
    ] {
        let checked = program("main.flow", text, &others);
        assert!(!checked.diagnostics.is_empty(), "{text}");
        let better = fixed(text, &checked);
        assert_eq!(better, wanted);
        let again = program("main.flow", &better, &others);
        assert!(again.diagnostics.is_empty(), "{better}\n{}", told(&again));
    }
}
