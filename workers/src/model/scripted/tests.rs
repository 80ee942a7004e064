//! Tests of the scripted model.

use outlast_protocol::worker::Task;

use super::*;
use crate::model::conversation::ToolResult;

fn user(text: &str) -> Message {
    Message::of("user", text)
}

fn tool(text: &str) -> Message {
    let result = ToolResult { id: "x".to_owned(), text: text.to_owned(), ok: true };
    Message { parts: vec![Part::ToolAnswer { result }], ..Message::of("tool", text) }
}

fn said() -> Message {
    Message::of("assistant", "…")
}

async fn answer(script: &str, messages: &[Message], attempt: u32) -> Result<Completion, ModelError> {
    let request = Request { activity: "model", messages: messages.to_vec(), tools: Vec::new(), format: None };
    let task = TaskContext::alone(Task { attempt, ..Task::default() });
    Scripted::new(script, Some("test")).unwrap().complete(&request, &task).await
}

#[tokio::test]
async fn the_first_rule_that_fits_answers() {
    let script = r#"{"rules": [
        {"when": {"user_has": "fail", "attempt": 1}, "fail": {"kind": "RateLimited", "text": "slow", "retry_after": "2s"}},
        {"when": {"tool_has": "no"}, "say": "tool said no"},
        {"when": {"user_has": "list", "turn": 0}, "say": "looking",
         "calls": [{"name": "list", "args": {"path": "{first_line}", "deep": [{"x": "{turn}{{}}"}], "n": 1}}]},
        {"when": {"turn_min": 2}, "say": "turn {turn}, file {first_file}"},
        {"when": {"activity": "generate"}, "say": "not for model"},
        {"say": "{words 2}|{last_user}|{last_tool}"}
    ]}"#;
    for (messages, text) in [
        (vec![user("list it\nplease")], "looking"),
        (vec![user("list it"), said(), tool("no")], "tool said no"),
        (vec![user("list it"), said(), tool("no"), user("go on {last_tool}")], "go on|go on {last_tool}|no"),
        (vec![user("list"), said(), said(), tool("d/\nf\n")], "turn 2, file f"),
        (vec![user("fail")], "slow"),
    ] {
        let got = answer(script, &messages, 1).await.map_or_else(|error| error.text, |done| done.text());
        assert_eq!(got, text, "{messages:?}");
    }
    let call = answer(script, &[user("list it\nplease")], 1).await.unwrap().calls()[0].clone();
    assert_eq!(call.args, json!({"path": "list it", "deep": [{"x": "0{}"}], "n": 1}));
    assert_eq!(call.id, "call_1_1");
    assert_eq!(answer(script, &[user("fail")], 2).await.unwrap().text(), "fail|fail|");
}

#[tokio::test]
async fn it_says_that_it_is_scripted_and_streams_all_of_it() {
    let script = r#"{"name": "demo", "rules": [{"say": "日本語 abc", "delay_ms": 4, "pieces": 4}]}"#;
    let request = Request { activity: "model", messages: vec![user("x")], tools: Vec::new(), format: None };
    let task = TaskContext::alone(Task::default());
    let done = Scripted::new(script, None).unwrap().complete(&request, &task).await.unwrap();
    assert_eq!(task.unsent(), "[scripted: demo]\n日本語 abc");
    assert_eq!(done.usage["model"], "scripted:demo");
}

#[test]
fn what_is_wrong_with_a_script_is_said_when_it_is_read() {
    for (script, problem) in [
        ("{", "the script"),
        (r#"{"rules": [{"say": "{nothing}"}]}"#, "no placeholder {nothing}"),
        (r#"{"rules": [{"say": "a } b"}]}"#, "a lone }"),
        (r#"{"rules": [{"say": "a"}, {"when": {"turn": 1}}]}"#, "rule 2 of the script: it has neither"),
        (r#"{"rules": [{"say": "a", "wen": {}}]}"#, "unknown field"),
        (r#"{"rules": [{"fail": {"kind": "Oops"}}]}"#, "no error Oops"),
        (r#"{"rules": [{"calls": [{"name": "x", "args": {"a": "{b}"}}]}]}"#, "no placeholder {b}"),
    ] {
        let found = Scripted::new(script, None).unwrap_err();
        assert!(found.contains(problem), "{script}: {found}");
    }
}

#[tokio::test]
async fn the_built_in_script_walks_through_the_agent() {
    let mut script: Json = serde_json::from_str(crate::model::AGENT_SCRIPT).unwrap();
    for rule in script["rules"].as_array_mut().unwrap() {
        rule["delay_ms"] = 0.into();
    }
    let script = &script.to_string();
    let mut messages = vec![user("What is this project?\nBe brief.")];
    let mut names = Vec::new();
    for (round, result) in ["src/\nREADME.md\n", "Outlast\nA runtime.", "  12 README.md"].iter().enumerate() {
        let done = answer(script, &messages, 1).await.unwrap();
        assert_eq!(done.calls().len(), 1, "round {round}");
        names.push(done.calls()[0].name.clone());
        messages.push(said());
        messages.push(tool(result));
    }
    assert_eq!(names, ["list", "read", "shell"]);
    let last = answer(script, &messages, 1).await.unwrap();
    assert!(last.calls().is_empty());
    assert!(last.text().contains("What is this project?"), "{}", last.text());
    messages.pop();
    messages.push(tool("refused: not now"));
    assert!(answer(script, &messages, 1).await.unwrap().text().contains("refused"), "a refusal is taken up");
}
