//! What the pictures of a machine look like, and that no machine breaks them.
//!
//! Leaves the drawing's geometry to the unit tests of the layout. `UPDATE_GOLDEN=1` writes the golden files anew.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "graph/machines.rs"]
mod machines;
#[path = "graph/xml.rs"]
mod xml;

use std::collections::BTreeMap;
use std::path::Path;

use machines::{flow, local, machine, on, state, text, to};
use outlast_dsl::SourceFile;
use outlast_dsl::diag::Diagnostic;
use outlast_dsl::graph::{Format, Live, render};
use outlast_dsl::machine::{
    ActivityIx, Bind, Cond, EachBody, Effect, Expr, FlowIx, Goal, Join, Literal, Machine, Outcome, Parallel,
    Region, Slot, Spawn, Then, TimerArrow, TimerKind, TypeIx, Wait,
};

const FORMATS: [(Format, &str); 4] =
    [(Format::Mermaid, "mmd"), (Format::Ascii, "txt"), (Format::Svg, "svg"), (Format::Dot, "dot")];

/// Returns the machine of the first flow of a text.
fn checked(text: &str) -> Machine {
    let file = SourceFile { name: "test.flow".to_owned(), text: text.to_owned() };
    let tools = include_str!("../../examples/dev.tools.json");
    let checked =
        outlast_dsl::check(&[file], &BTreeMap::from([("dev.tools.json".to_owned(), tools.to_owned())]));
    let errors: Vec<&Diagnostic> = checked.diagnostics.iter().filter(|one| one.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    checked.flows.into_iter().next().unwrap().machine
}

fn agent() -> Machine {
    checked(include_str!("../../examples/agent.flow"))
}

fn live() -> Live {
    let visited = ["Think", "Idle", "Think", "Act", "Act/OneTool.Gate", "Act/OneTool.Approve"];
    Live { state: Some("Act/OneTool.Approve".to_owned()), visited: visited.map(str::to_owned).to_vec() }
}

/// Outside quotes there are only ids, attributes and signs of the language.
fn dot_is_well_formed(text: &str) {
    let (mut inside, mut escaped, mut depth) = (false, false, 0_i32);
    for c in text.chars() {
        match (inside, escaped, c) {
            (true, true, _) => escaped = false,
            (true, false, '\\') => escaped = true,
            (_, _, '"') => inside = !inside,
            (true, ..) => assert_ne!(c, '\n', "a text goes on over the line: {text}"),
            (false, _, '{') => depth += 1,
            (false, _, '}') => depth -= 1,
            (false, ..) => {
                let is_known = c.is_ascii_alphanumeric() || c.is_whitespace() || "_->[]=,;.".contains(c);
                assert!(is_known, "{c:?} outside quotes: {text}");
            }
        }
    }
    assert!(!inside && depth == 0, "something is left open: {text}");
}

/// Renders in all formats and checks what must hold for every machine.
fn check(machine: &Machine, live: Option<&Live>) -> [String; 4] {
    FORMATS.map(|(format, name)| {
        let first = render(machine, format, live);
        assert_eq!(first, render(machine, format, live), "{name}: not the same twice");
        match format {
            Format::Svg => xml::check(&first).unwrap(),
            Format::Ascii => {
                for line in first.lines() {
                    assert!(line.chars().count() <= 100, "too wide: {line}");
                }
            }
            Format::Dot => dot_is_well_formed(&first),
            Format::Mermaid => {
                let raw = first.chars().find(|c| "<'&`%".contains(*c));
                assert_eq!(raw, None, "mermaid: {first}");
            }
        }
        first
    })
}

#[test]
fn pictures_are_those_of_the_golden_files() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/graph");
    let tour = checked(include_str!("graph/tour.flow"));
    let trip = checked(include_str!("graph/trip.flow"));
    for (name, machine, live) in [
        ("agent", agent(), None),
        ("live", agent(), Some(live())),
        ("tour", tour, None),
        ("trip", trip, None),
    ] {
        for ((_, extension), found) in FORMATS.iter().zip(check(&machine, live.as_ref())) {
            let path = dir.join(format!("{name}.{extension}"));
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                std::fs::write(&path, &found).unwrap();
            }
            let golden = std::fs::read_to_string(&path).unwrap();
            assert!(golden == found, "{} differs; found:\n{found}", path.display());
        }
    }
}

#[test]
fn paths_that_name_nothing_mark_nothing() {
    let paths = ["", "/", "Nowhere", "Act/Nowhere.X", "OneTool.Gate", "//.[", "Act[", "Think/"];
    let visited = paths.map(str::to_owned).to_vec();
    let plain = check(&agent(), None);
    for path in ["", "Nowhere", "x/y", "/OneTool.Gate"] {
        let live = Live { state: Some(path.to_owned()), visited: Vec::new() };
        assert_eq!(check(&agent(), Some(&live)), plain, "{path:?}");
    }
    check(&agent(), Some(&Live { state: None, visited }));
}

#[test]
fn text_from_the_machine_never_becomes_markup() {
    let nasty = [
        "<script>alert(1)</script>",
        "\"quotes\" 'and' `ticks`",
        "a --> b : c; %% d\n[*] --> e",
        "]]> --> <!-- & &amp; #35; }",
        "\u{202E}reversed\u{2066}\u{200B}\u{0}\u{FFFF}",
    ];
    for name in nasty {
        let args = vec![text(name), Expr::Lit(Literal::Json(name.to_owned()))];
        let arrow = on(&[Outcome::Error(TypeIx(0))], Bind::default(), Goal::End(text(name)));
        let mut machine =
            machine(vec![flow(name, &[name], vec![state(name, &[name], do_it(args), vec![arrow])])]);
        machine.types[0].name = name.to_owned();
        machine.activities[0].name = name.to_owned();
        let live = Live { state: Some(name.to_owned()), visited: vec![name.to_owned()] };
        let [mermaid, ascii, svg, dot] = check(&machine, Some(&live));
        assert!(!svg.contains("<script") && !svg.contains("<!--"), "{svg}");
        assert!(!mermaid.contains("--> e") && !mermaid.contains("%%"), "{mermaid}");
        for picture in [&mermaid, &ascii, &svg, &dot] {
            let hidden = |c: char| matches!(c, '\u{202E}' | '\u{2066}' | '\u{200B}' | '\u{0}' | '\u{FFFF}');
            assert!(!picture.contains(hidden), "{picture:?}");
        }
    }
}

#[test]
fn long_names_are_cut_and_stay_valid() {
    for name in ["N".repeat(5_000), "漢".repeat(3_000), "é\u{301}🙂".repeat(900)] {
        let args = vec![text(&name), text(&name), local(9)];
        let mut arrow = on(&[Outcome::Ok, Outcome::Timeout], Bind::default(), to(0, vec![text(&name)]));
        arrow.guard = Some(Cond { test: text(&name), bind: None });
        let machine = machine(vec![flow(&name, &[&name], vec![state(&name, &[], do_it(args), vec![arrow])])]);
        for picture in check(&machine, None) {
            assert!(picture.len() < 20_000, "{} bytes", picture.len());
        }
    }
}

#[test]
fn odd_machines_are_drawn() {
    let empty = || state("Alone", &[], Effect::Wait, Vec::new());
    let no_states = flow("None", &[], Vec::new());
    let mut timers = empty();
    for kind in [TimerKind::After, TimerKind::At, TimerKind::Every] {
        let due = Expr::Lit(Literal::Duration(90_061_001));
        timers.timers.push(TimerArrow { kind, due, acts: Vec::new(), goal: Goal::Stay });
    }
    timers.timers.push(TimerArrow {
        kind: TimerKind::After,
        due: Expr::Lit(Literal::Duration(0)),
        acts: Vec::new(),
        goal: to(0, vec![]),
    });
    let lost = on(&[Outcome::Error(TypeIx(99))], Bind::default(), to(99, vec![]));
    let runs_itself = Effect::Run(FlowIx(0), vec![local(3)], None, Some(Slot(7)));
    let mut no_arms = on(&[], Bind::default(), Goal::Stay);
    no_arms.then = Then::Arms(Vec::new());
    for states in [
        vec![empty()],
        vec![empty(), empty()],
        vec![timers],
        vec![state("Lost", &[], Effect::Do(ActivityIx(99), vec![local(5)], None), vec![lost, no_arms])],
        vec![state("Again", &[], runs_itself, Vec::new())],
        vec![state("Never", &[], Effect::Choose(Vec::new()), Vec::new())],
    ] {
        check(&machine(vec![flow("Odd", &[], states)]), None);
    }
    check(&machine(vec![no_states]), None);
    check(&machine(Vec::new()), None);
}

#[test]
fn groups_spawned_runs_and_chains_say_what_they_do() {
    let regions = ["fast", "slow"].map(|name| Region {
        name: name.to_owned(),
        result: Slot(1),
        body: EachBody::Run(FlowIx(1), vec![], Some(Wait::Forever), None),
        yields: Vec::new(),
    });
    let parallel = Parallel { regions: regions.to_vec(), join: Join::Region(1), within: None };
    let spawn = Spawn { flow: FlowIx(1), args: Vec::new(), named: None, cancel: true, handle: Some(Slot(0)) };
    let ok = |goal| vec![on(&[Outcome::Ok], Bind::default(), goal)];
    let states = vec![
        state("S.first", &[], do_it(vec![text("1")]), ok(to(1, vec![]))),
        state("S.second", &[], do_it(vec![text("2")]), ok(to(2, vec![]))),
        state("Both", &[], Effect::Parallel(Box::new(parallel)), ok(to(3, vec![]))),
        state("Start", &[], Effect::Spawn(Box::new(spawn)), ok(Goal::Fail(text("x")))),
    ];
    let machine = machine(vec![flow("F", &[], states), flow("G", &[], Vec::new())]);
    let live = Live { state: Some("S.second".to_owned()), visited: vec!["S.first".to_owned()] };
    let [_, ascii, svg, _] = check(&machine, Some(&live));
    for line in [
        "> S      first = do model(\"1\")",
        "       > second = do model(\"2\")",
        "  Both   parallel join slow",
        "           fast: run G() within forever",
        "  Start  spawn G() cancel",
        "    ok -> fail \"x\"",
        "flow G()",
    ] {
        assert!(ascii.lines().any(|found| found == line), "no {line:?} in\n{ascii}");
    }
    assert!(svg.contains("class=\"state live\" data-state=\"S.first S.second\""), "{svg}");
}

#[test]
fn deep_expressions_do_not_exhaust_the_stack() {
    let mut deep = local(0);
    for _ in 0..5_000 {
        deep = Expr::Not(Box::new(deep));
    }
    let machine = machine(vec![flow("Deep", &[], vec![state("S", &[], do_it(vec![deep]), Vec::new())])]);
    check(&machine, None);
    // Dropping it would recurse as deep as it was built.
    std::mem::forget(machine);
}

#[test]
fn two_hundred_states_are_drawn() {
    let chain = |skip: u32| {
        let state = |n: u32| {
            let next = on(&[Outcome::Ok], Bind::default(), to((n + 1) % 200, vec![]));
            let far = on(&[Outcome::Timeout], Bind::default(), to((n * skip + 7) % 200, vec![]));
            let end = on(&[Outcome::Failed], Bind::default(), Goal::End(Expr::Lit(Literal::Nothing)));
            state(&format!("S{n}"), &[], do_it(vec![local(0)]), vec![next, far, end])
        };
        machine(vec![flow("Many", &[], (0..200).map(state).collect())])
    };
    for skip in [1, 3, 17] {
        let [mermaid, ascii, svg, dot] = check(&chain(skip), None);
        for picture in [mermaid, ascii, svg, dot] {
            assert!(picture.contains("S199"));
        }
    }
}

fn do_it(args: Vec<Expr>) -> Effect {
    Effect::Do(ActivityIx(0), args, Some(Slot(0)))
}

/// Programs with every effect that a state can have.
#[test]
fn whole_programs_are_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let file = SourceFile { name: "test.flow".to_owned(), text };
        for flow in outlast_dsl::check(&[file], &BTreeMap::new()).flows {
            check(&flow.machine, None);
        }
    }
}
