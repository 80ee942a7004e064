//! Whole programs from text to their end: regions, reminders, questions to several roles, fan-outs that have had enough.
//!
//! Leaves what they look like to the language's tests, where the programs stand. Invariant: every test ends with a fold that gives
//! the same bytes.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::Run;
use outlast_dsl::machine::Machine;
use outlast_dsl::{SourceFile, check};
use outlast_kernel::event::Choice;
use outlast_kernel::ids::OpId;
use outlast_kernel::input::Input;
use serde_json::{Value as Json, json};

const MINUTE: u64 = 60_000;

/// Returns the machine of one flow of a program.
fn program(file: &str, flow: &str) -> Machine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dsl/tests/programs").join(file);
    let text = std::fs::read_to_string(&path).expect("a program");
    let checked = check(&[SourceFile { name: file.to_owned(), text }], &BTreeMap::new());
    let found = checked.flows.into_iter().find(|one| one.name == flow);
    found.unwrap_or_else(|| panic!("{flow}: {:?}", checked.diagnostics)).machine
}

/// The only question of a run.
#[track_caller]
fn question(run: &Run) -> OpId {
    match run.questions().as_slice() {
        [(id, _)] => *id,
        all => panic!("{} questions", all.len()),
    }
}

fn answer(question: OpId, choice: Choice, role: &str, by: &str, value: Option<Json>) -> Input {
    Input::Answer {
        question: Some(question),
        choice,
        value,
        note: String::new(),
        by: by.to_owned(),
        role: Some(role.to_owned()),
        shown: None,
    }
}

/// Reports what one of several open activities of a name gave, chosen by a part of its input.
#[track_caller]
fn done_for(run: &mut Run, name: &str, key: &str, wanted: &str, value: Json) {
    let fits = |input: &Json| input[key] == json!(wanted);
    let found = run.activities().into_iter().find(|(_, op)| op.activity == name && fits(&op.input));
    let op = found.map(|(id, _)| id).unwrap_or_else(|| panic!("no open {name} of {wanted}"));
    run.done_op(op, value);
}

fn incident() -> Run {
    let input = json!({"what": "mail is slow", "severity": {"type": "Major", "systems": ["mx1", "mx2"]}});
    Run::start(program("incident.flow", "Incident"), input)
}

#[test]
fn an_incident_gathers_in_regions_and_acts_when_both_roles_agree() {
    let mut run = incident();
    assert_eq!(run.state.path(), "Gather");
    // Two snapshots, a diagnosis, a question and a message are waited for side by side; reminders go out beside them.
    assert_eq!(run.activities().len(), 3);
    run.advance(10 * MINUTE + 1);
    assert_eq!(run.emits, [json!("still gathering")]);
    assert_eq!(run.op("page").1.input["role"], json!("oncall"));
    run.done("page", json!(null));
    run.done("diagnose", json!({"id": "d", "what": "the queue is full"}));
    done_for(&mut run, "snapshot", "system", "mx2", json!("mx2 at noon"));
    done_for(&mut run, "snapshot", "system", "mx1", json!("mx1 at noon"));
    run.say("Update", json!({"text": "customers wait"}));
    run.must(answer(question(&run), Choice::Answer, "oncall", "ann", Some(json!("mail team"))));
    assert_eq!(run.state.path(), "Decide");
    let asked = run.op("diagnose").1.input["what"].clone();
    assert_eq!(asked, json!("mail is slow: the queue is full; customers wait; mx1 at noon; mx2 at noon"));

    run.done("diagnose", json!({"id": "a", "what": "empty the queue"}));
    run.must(answer(question(&run), Choice::Approve, "oncall", "ann", None));
    run.must(answer(question(&run), Choice::Approve, "owner", "bob", None));
    run.advance(15 * MINUTE + 1);
    assert_eq!(run.activities().len(), 2, "both roles are reminded");
    run.must(answer(question(&run), Choice::Approve, "owner", "eve", None));
    assert_eq!(run.op("act").1.input["action"]["value"]["what"], json!("empty the queue"));
    run.done("act", json!("emptied"));
    run.say("Resolved", json!({"by": "ann"}));
    // What was opened beside is waited for before the run is over.
    assert!(run.state.outcome().is_none());
    while let Some((op, _)) = run.activities().first().map(|(op, work)| (*op, work.activity.clone())) {
        run.done_op(op, json!(null));
    }
    assert_eq!(run.result()["by"], json!("ann"));
    assert_eq!(run.result()["log"].as_array().map(Vec::len), Some(5));
    run.must_be_sound();
}

#[test]
fn regions_that_fail_or_time_out_yield_what_their_arrows_say() {
    let mut run = incident();
    run.failed("diagnose", "failed");
    done_for(&mut run, "snapshot", "system", "mx1", json!("mx1 at noon"));
    run.advance(15 * MINUTE + 1);
    assert_eq!(run.state.path(), "Gather", "one snapshot is still awaited");
    run.advance(16 * MINUTE);
    let asked = run.op("diagnose").1.input["what"].clone();
    assert_eq!(asked, json!("mail is slow: no diagnosis: no; ; mx1 at noon"));
    run.must_be_sound();
}

fn research(answers: &[(&str, usize)]) -> Run {
    let mut run = Run::start(program("research.flow", "Research"), json!({"question": "why", "enough": 2}));
    let sources: Vec<&str> = answers.iter().map(|(source, _)| *source).collect();
    run.done("plan", json!(sources));
    for (source, found) in answers {
        let is_open = run.activities().iter().any(|(_, op)| op.input["source"] == json!(source));
        if is_open {
            let finding = |n| json!({"source": source, "claim": format!("{source} {n}"), "score": n});
            done_for(&mut run, "search", "source", source, (1..=*found).map(finding).collect());
        }
    }
    run
}

#[test]
fn a_fan_out_that_has_had_enough_starts_nothing_new_and_lets_the_rest_end() {
    let mut run = research(&[("a", 2), ("b", 1), ("c", 0), ("d", 0), ("e", 1), ("f", 1)]);
    // Two good ones were enough: `e` was open by then and ended, `f` never started; `c` and `d` ask once more in other words.
    let again: Vec<Json> = run.activities().iter().map(|(_, op)| op.input["source"].clone()).collect();
    assert_eq!(again, [json!("c"), json!("d")]);
    run.advance(5 * MINUTE + 1);
    assert_eq!(run.emits, [json!("asking 6 sources"), json!("3 of 6 so far")]);
    done_for(&mut run, "search", "source", "d", json!([{"source": "d", "claim": "d 1", "score": 0}]));
    done_for(&mut run, "search", "source", "c", json!([]));
    assert_eq!(run.state.path(), "Pick");
    assert_eq!(run.questions()[0].1.text, "Write about 4 findings? 1 sources gave none.");
    run.must(answer(question(&run), Choice::Answer, "editor", "ann", Some(json!(2))));
    let findings = run.op("write_up").1.input["findings"].clone();
    assert_eq!(findings.as_array().map(Vec::len), Some(2));
    run.done("write_up", json!("because"));
    assert_eq!(run.result(), json!({"type": "Report", "text": "because", "sources": 2}));
    run.must_be_sound();
}

#[test]
fn a_fan_out_that_finds_nothing_says_so() {
    let mut run = research(&[("a", 0), ("b", 0)]);
    for source in ["a", "b"] {
        done_for(&mut run, "search", "source", source, json!([]));
    }
    assert_eq!(run.result(), json!({"type": "Nothing"}));
    run.must_be_sound();
}
