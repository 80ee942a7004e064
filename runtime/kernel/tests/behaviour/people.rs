//! Questions, answers and permissions.

use crate::common::Run;
use crate::common::machines::{agent, quorum};
use outlast_kernel::event::{Choice, Config, EventKind};
use outlast_kernel::input::{Input, Refusal};
use serde_json::json;

#[test]
fn an_agent_asks_before_it_runs_a_tool() {
    let mut run = Run::start(agent(), json!({"task": "tidy up"}));
    let call = json!({"id": "1", "name": "shell", "args": {"command": "rm -rf build"}});
    let read = json!({"id": "2", "name": "read", "args": {"path": "x"}});
    run.done("model", json!({"type": "Tools", "calls": [call, read]}));
    assert_eq!(run.state.path(), "Act");
    assert_eq!(run.questions().len(), 1);
    run.done("tool", json!("text of x"));
    run.must(Run::answer(Choice::Approve, "ann"));
    run.begin("tool");
    run.done("tool", json!("gone"));
    assert_eq!(run.op("model").1.input, json!({"log": ["tidy up", "reply", "gone", "text of x"]}));
    run.done("model", json!({"type": "Text", "text": "done"}));
    assert_eq!((run.state.path().as_str(), run.emits.clone()), ("Idle", vec![json!("done")]));
}

#[test]
fn a_quorum_needs_everyone_and_an_edit_starts_it_anew() {
    let mut run = Run::start(quorum(None), json!({}));
    let with = |by: &str, role: Option<&str>, value: Option<serde_json::Value>| match Run::answer(
        Choice::Approve,
        by,
    ) {
        Input::Answer { question, choice, note, by, shown, .. } => {
            Input::Answer { question, choice, value, note, by, role: role.map(str::to_owned), shown }
        }
        other => other,
    };
    run.must(with("ann", Some("owner"), None));
    assert_eq!(run.give(&with("ann", Some("owner"), None)), Err(Refusal::Repeated));
    assert!(matches!(run.give(&with("eve", Some("guest"), None)), Err(Refusal::WrongRole { .. })));
    assert!(matches!(run.give(&with("bob", None, Some(json!("x")))), Err(Refusal::Invalid { .. })));
    let shown = run.questions()[0].1.shown.clone();
    run.must(with("bob", Some("owner"), Some(json!(6))));
    assert_ne!(run.questions()[0].1.shown, shown);
    assert_eq!(run.questions()[0].1.agreed, vec![("bob".to_owned(), "owner".to_owned())]);
    run.must(with("ann", None, None));
    assert_eq!(run.give(&with("ann", None, None)), Err(Refusal::Repeated), "it takes no second role");
    run.must(with("cid", None, None));
    assert_eq!(run.result(), json!({"value": 6, "by": ["bob", "ann", "cid"]}));
}

#[test]
fn the_first_answer_wins_and_later_ones_hear_of_it() {
    let mut run = Run::start(agent(), json!({"task": "t"}));
    let call = |id: &str| json!({"id": id, "name": "shell", "args": {"command": "ls"}});
    run.done("model", json!({"type": "Tools", "calls": [call("1"), call("2")]}));
    let questions: Vec<_> = run.questions().iter().map(|(id, _)| *id).collect();
    assert!(
        matches!(run.give(&Run::answer(Choice::Approve, "ann")), Err(Refusal::WhichQuestion { open }) if open == questions)
    );
    let named = |by: &str, shown: Option<String>| Input::Answer {
        question: Some(questions[0]),
        choice: Choice::Reject,
        value: None,
        note: "no".to_owned(),
        by: by.to_owned(),
        role: None,
        shown,
    };
    assert!(matches!(run.give(&named("ann", Some("0".repeat(64)))), Err(Refusal::ShownDiffers { .. })));
    run.must(named("ann", None));
    let how = "rejected by ann".to_owned();
    assert_eq!(run.give(&named("bob", None)), Err(Refusal::AlreadyDecided { op: questions[0], how }));
    run.must(Run::answer(Choice::Approve, "cid"));
    let late = run.give(&Run::answer(Choice::Reject, "bob"));
    assert!(matches!(late, Err(Refusal::AlreadyDecided { op, .. }) if op == questions[1]), "{late:?}");
}

#[test]
fn an_answer_to_a_typed_question_fits_its_type() {
    let mut run = Run::start(quorum(Some(outlast_dsl::machine::Type::Int)), json!({}));
    assert_eq!(run.questions()[0].1.wanted, Some(json!({"type": "integer"})));
    let answer = |value| match Run::answer(Choice::Answer, "ann") {
        Input::Answer { question, choice, note, by, role, shown, .. } => {
            Input::Answer { question, choice, value: Some(value), note, by, role, shown }
        }
        other => other,
    };
    assert!(run.give(&answer(json!("five"))).is_err());
    run.must(answer(json!(5)));
    assert_eq!(run.result(), json!({"value": 5, "by": "ann"}));
}

#[test]
fn policy_decides_which_tools_need_a_person() {
    let asked = |config: Config| {
        let mut run = Run::start_with(agent(), json!({"task": "t"}), config);
        let call = json!({"id": "1", "name": "shell", "args": {"command": "git status"}});
        run.done("model", json!({"type": "Tools", "calls": [call]}));
        run.questions().len()
    };
    let patterns = |pattern: &str| vec![pattern.to_owned()];
    let allow = Config { allow: patterns("shell(git *)").into(), ..Config::default() };
    assert_eq!(asked(Config::default()), 1);
    assert_eq!(asked(allow.clone()), 0);
    assert_eq!(asked(Config { deny: patterns("shell").into(), ..allow.clone() }), 1);
    assert_eq!(asked(Config { ask: patterns("shell(*)").into(), ..allow }), 1);
    assert_eq!(asked(Config { grants: patterns("shell(git status)"), ..Config::default() }), 0);
}

#[test]
fn rules_that_deny_answer_in_place_of_a_person() {
    let answered = |config: Config, name: &str| {
        let mut run = Run::start_with(agent(), json!({"task": "t"}), config);
        let call = json!({"id": "1", "name": name, "args": {"command": "rm -rf build", "path": "x"}});
        run.done("model", json!({"type": "Tools", "calls": [call]}));
        match run.state.refused_by_rule() {
            Some(EventKind::Answered { op, choice, note, by, .. }) => {
                assert_eq!((op, choice, by.as_str()), (run.questions()[0].0, Choice::Reject, "policy"));
                Some(note)
            }
            None => None,
            Some(other) => panic!("{other:?} is no answer"),
        }
    };
    let deny = |rule: &str| Config { deny: vec![rule.to_owned()].into(), ..Config::default() };
    assert_eq!(answered(Config::default(), "shell"), None);
    assert_eq!(answered(deny("read"), "shell"), None, "a person decides");
    assert_eq!(answered(deny("shell(rm *)"), "shell").unwrap(), "denied by the rule shell(rm *)");
    assert_eq!(answered(deny("@once"), "shell").unwrap(), "denied by the rule @once");
    assert_eq!(answered(deny("@once"), "read"), None, "it needs no question");
    let mut run = Run::start_with(agent(), json!({"task": "t"}), deny("shell"));
    let call = json!({"id": "1", "name": "shell", "args": {"command": "ls"}});
    run.done("model", json!({"type": "Tools", "calls": [call]}));
    assert!(matches!(run.give(&Run::answer(Choice::Approve, "ann")), Err(Refusal::Invalid { .. })));
    let nobody = Config { deny_asks: true, ..Config::default() };
    assert!(answered(nobody, "shell").unwrap().contains("nobody is asked"));
}
