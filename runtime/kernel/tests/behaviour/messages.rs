//! Messages: accepted once, taken in order.

use crate::common::Run;
use crate::common::machines::{agent, clean_up, fan_out, timers};
use outlast_kernel::ids::Seq;
use outlast_kernel::input::{Input, Refusal};
use serde_json::json;

#[test]
fn messages_are_taken_in_order_when_someone_listens() {
    let mut run = Run::start(agent(), json!({"task": "t"}));
    assert!(run.state.listens("Stop") && !run.state.listens("Say"));
    for text in ["one", "two", "three"] {
        run.say("Say", json!({"text": text}));
    }
    let unread = run.state.unread();
    run.must(Input::Withdraw { id: unread[1].0.clone() });
    run.done("model", json!({"type": "Text", "text": "x"}));
    assert_eq!(run.op("model").1.input["log"], json!(["t", "reply", "one"]));
    run.done("model", json!({"type": "Text", "text": "x"}));
    assert_eq!(run.op("model").1.input["log"], json!(["t", "reply", "one", "reply", "three"]));
    assert!(run.state.unread().is_empty());
}

#[test]
fn messages_are_checked_and_accepted_once() {
    let mut run = Run::start(agent(), json!({"task": "t"}));
    let said = run.message("Say", json!({"text": "hello"}), Some("m1"));
    run.must(said.clone());
    assert_eq!(run.give(&said), Err(Refusal::MessageRepeated { id: "m1".to_owned(), n: Seq(2) }));
    let other = run.message("Say", json!({"text": "bye"}), Some("m1"));
    assert_eq!(run.give(&other), Err(Refusal::MessageConflict { id: "m1".to_owned() }));
    for (name, value, words) in [
        ("Sing", json!({}), "the flow takes no message Sing, but Say, Stop"),
        ("Say", json!({}), "Say: text: text is expected, found nothing"),
        ("Say", json!({"text": 5}), "Say: text: text is expected, found 5"),
        (
            "Say",
            json!({"text": "a", "loud": 1}),
            "Say: no field but text is expected, found the field \"loud\"",
        ),
    ] {
        let input = run.message(name, value, None);
        assert_eq!(run.give(&input), Err(Refusal::Invalid { detail: words.to_owned() }));
    }
    let mut timers = Run::start(timers(), json!({}));
    timers.say("Poke", json!(null));
    run.done("model", json!({"type": "Text", "text": "x"}));
    run.done("model", json!({"type": "Text", "text": "x"}));
    let new = run.message("Say", json!({"text": "hello"}), Some("m2"));
    run.must(Input::Close);
    assert!(matches!(run.give(&new), Err(Refusal::RunEnded { .. })));
    // Who sent it may not have heard that it was accepted.
    assert_eq!(run.give(&said), Err(Refusal::MessageRepeated { id: "m1".to_owned(), n: Seq(2) }));
    assert_eq!(run.give(&other), Err(Refusal::MessageConflict { id: "m1".to_owned() }));
    assert_eq!(run.give(&Input::Close), Ok(()), "it was closed");
}

#[test]
fn a_now_message_that_nobody_takes_is_refused_and_a_full_mailbox_too() {
    let mut run = Run::start(agent(), json!({"task": "t"}));
    for _ in 0..1_000 {
        run.say("Say", json!({"text": "x"}));
    }
    let one_more = run.message("Say", json!({"text": "x"}), None);
    assert_eq!(run.give(&one_more), Err(Refusal::MailboxFull { held: 1_000 }));
    let mut fan = Run::start(fan_out(|_| {}), json!({"xs": []}));
    let stop = fan.message("Stop", json!({}), None);
    assert!(matches!(fan.give(&stop), Err(Refusal::RunEnded { .. })));
    let mut held = Run::start(clean_up(), json!({}));
    let stop = held.message("Stop", json!({}), None);
    assert!(matches!(held.give(&stop), Err(Refusal::Invalid { .. })));
}
