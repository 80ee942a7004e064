//! The repository's own flows, from text to their end: the checker and the kernel agree on what a machine means.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::Run;
use outlast_dsl::{CheckedFlow, SourceFile, check, used_files};
use outlast_kernel::event::{Choice, LostWhy};
use outlast_kernel::operation::{OperationKind, Outcome};
use serde_json::{Value as Json, json};

fn compile(file: &str) -> Vec<CheckedFlow> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let read = |name: &str| std::fs::read_to_string(examples.join(name)).expect("an example");
    let source = SourceFile { name: file.to_owned(), text: read(file) };
    let used: BTreeMap<_, _> =
        used_files(&source).into_iter().map(|name| (name.clone(), read(&name))).collect();
    let checked = check(&[source], &used);
    assert!(!checked.flows.is_empty(), "{:?}", checked.diagnostics);
    checked.flows
}

fn agent() -> Run {
    let flows = compile("agent.flow");
    let agent = flows.into_iter().find(|flow| flow.name == "Agent").expect("an agent");
    Run::start(agent.machine, json!({"task": "tidy up"}))
}

fn says(text: &str) -> Json {
    json!({"type": "Text", "message": {"role": "assistant", "text": text}, "text": text})
}

fn calls(calls: Json) -> Json {
    json!({"type": "Tools", "message": {"role": "assistant", "text": ""}, "calls": calls})
}

#[test]
fn the_built_in_agent_works_with_tools_people_and_messages() {
    let mut run = agent();
    assert_eq!(run.op("model").1.input["messages"][0]["text"], json!("tidy up"));
    assert!(run.op("model").1.input["schemas"].as_array().is_some_and(|schemas| !schemas.is_empty()));
    run.done("model", calls(json!([{"id": "1", "name": "shell", "args": {"command": "rm -rf build"}}])));
    run.done("tool_look", json!({"directory": "/work"}));
    let asked = run.questions()[0].1.clone();
    assert_eq!((asked.text.as_str(), &asked.show["seen"]["directory"]), ("Run shell?", &json!("/work")));
    run.must(Run::answer(Choice::Reject, "ann"));
    assert_eq!(run.op("model").1.input["messages"][2]["text"], json!("refused"));
    run.done("model", says("left alone"));
    assert_eq!((run.state.path().as_str(), run.emits.clone()), ("Idle", vec![json!("left alone")]));
    run.say("Stop", json!({}));
    run.say("Say", json!({"text": "thanks"}));
    run.done("model", says("welcome"));
    run.must(outlast_kernel::input::Input::Close);
    assert_eq!(run.result(), json!({"type": "Answered", "text": "welcome"}));
    assert_eq!(run.state.audit(), Ok(()));
}

#[test]
fn the_built_in_agent_survives_a_lost_tool_and_a_stop() {
    let mut run = agent();
    let call = |id: &str| json!({"id": id, "name": "shell", "args": {"command": "make"}});
    run.done("model", calls(json!([call("1"), call("2")])));
    for _ in 0..2 {
        let look = run.activities()[0].0;
        run.answer_op(look, common::done(json!({})));
    }
    for _ in 0..2 {
        let (question, _) = run.questions()[0];
        let answer = match Run::answer(Choice::Approve, "ann") {
            outlast_kernel::input::Input::Answer { choice, value, note, by, role, shown, .. } => {
                outlast_kernel::input::Input::Answer {
                    question: Some(question),
                    choice,
                    value,
                    note,
                    by,
                    role,
                    shown,
                }
            }
            other => other,
        };
        run.must(answer);
    }
    let tool = run.activities()[0].0;
    let attempt = outlast_kernel::ids::Attempt(1);
    run.must(outlast_kernel::input::Input::Begin { op: tool, attempt, worker: "w".to_owned() });
    run.must(outlast_kernel::input::Input::Lost { op: tool, attempt, why: LostWhy::WorkerGone });
    run.done("tool_effect", json!({"type": "CannotTell"}));
    run.say("Stop", json!({}));
    run.say("Say", json!({"text": "go on"}));
    let messages = run.op("model").1.input["messages"].clone();
    let texts: Vec<_> = messages.as_array().unwrap().iter().map(|message| message["text"].clone()).collect();
    assert_eq!(
        texts[2..],
        [json!("failed: whether it happened is unknown"), json!("not started"), json!("go on")]
    );
}

#[test]
fn a_typed_call_of_a_tool_leaves_out_what_is_not_given() {
    let text = "use tools \"dev.tools.json\" as dev
        activity send(call: ToolCall, all: json) -> text within 1m effect pure
        flow F(path: text) -> int {
          start A
          state A { do send(dev.call(\"1\", Read { path, limit: 3 }), json(dev.Grep { pattern: \"x\", glob: \"*\" })) as said
            on ok -> end (if dev.Read.from(json(dev.Read { path: said, offset: 7 })) as read then read.offset ?? 0 else 0)
            on problem -> end 0 }
        }";
    let source = SourceFile { name: "x.flow".to_owned(), text: text.to_owned() };
    let tools = include_str!("../../../examples/dev.tools.json").to_owned();
    let checked = check(&[source], &BTreeMap::from([("dev.tools.json".to_owned(), tools)]));
    let flow = checked.flows.into_iter().next().unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    let mut run = Run::start(flow.machine, json!({"path": "a.txt"}));
    let input = run.op("send").1.input;
    let args = json!({"path": "a.txt", "limit": 3});
    let call = json!({"id": "1", "name": "read", "args": args, "seen": null});
    assert_eq!(input, json!({"call": call, "all": {"pattern": "x", "glob": "*"}}));
    run.done("send", json!("b.txt"));
    assert_eq!(run.result(), json!(7));
}

/// Every example comes to some end or rest whatever happens first, and its history folds to the same bytes.
#[test]
fn every_example_folds_to_the_same_state_when_everything_fails() {
    for file in ["agent.flow", "deploy.flow", "report.flow"] {
        for flow in compile(file) {
            let names: Vec<_> = flow.machine.root().params.iter().map(|param| param.name.clone()).collect();
            let input: Json = Json::Object(names.into_iter().map(|name| (name, json!("x"))).collect());
            let Ok(input) = outlast_kernel::check_input(&flow.machine, input) else { continue };
            let mut run = Run::start(flow.machine, input);
            for _ in 0..30 {
                let open = run.activities().first().map(|(id, work)| (*id, (*work).clone()));
                let question = run
                    .state
                    .operations()
                    .find(|op| matches!(op.kind, OperationKind::Question(_)))
                    .map(|op| op.id);
                match (open, question) {
                    (Some((_, work)), _)
                        if run.activities().iter().filter(|(_, op)| op.activity == work.activity).count()
                            == 1 =>
                    {
                        run.now = run.now.plus(600_000);
                        let number = run.history.len();
                        if run
                            .state
                            .operation(run.op(&work.activity).0)
                            .is_some_and(|op| op.due > Some(run.now))
                        {
                            run.failed(
                                &work.activity,
                                if number.is_multiple_of(2) { "timeout" } else { "failed" },
                            );
                        }
                        run.advance(0);
                    }
                    _ => run.advance(86_400_000),
                }
                assert_eq!(run.state.audit(), Ok(()), "{file}");
                assert_eq!(run.state.blocked(), None, "{file}");
                if run.state.outcome().is_some() {
                    break;
                }
            }
            assert_eq!(common::bytes(&run.refold()), common::bytes(&run.state));
            println!(
                "{file} {}: {:?} at {}",
                flow.name,
                run.state.outcome().map(|o: &Outcome| format!("{o:?}")),
                run.state.path()
            );
        }
    }
}
