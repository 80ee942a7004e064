//! Single calls: answers of every kind, silence, death, questions, progress, tasks.

use std::time::Duration;

use outlast_workers::sdk::{StoppedWhy, TaskContext};
use serde_json::json;

use crate::bench::{PATIENCE, bench, bench_of, lives, scripted, task_of};

#[tokio::test]
async fn every_kind_of_answer_is_told() {
    let bench = bench_of(&json!({}));
    for (tool, args, text, ok) in [
        ("echo", json!({"text": "日本 👩‍👩‍👧"}), "日本 👩‍👩‍👧", true),
        ("fail", json!({}), "it did not work", false),
        ("refuse", json!({}), "these arguments are no good (error -32602)", false),
        ("image", json!({}), "[image image/png, about 9 bytes, not shown]", true),
        ("hologram", json!({}), r#"{"depth":3,"type":"hologram"}"#, true),
    ] {
        assert_eq!(bench.call(&format!("s__{tool}"), args).await, (text.to_owned(), ok), "{tool}");
    }
    let huge = bench.text("s__huge", json!({"bytes": 2 << 20})).await;
    assert!(huge.len() < 100_000 && huge.contains("bytes left out"), "{}", huge.len());
    // Case LIM-04: what is longer than any message may be ends its call, and the connection goes on.
    let (text, ok) = bench.call("s__huge", json!({"bytes": 17 << 20})).await;
    assert!(!ok && text.contains("longer than"), "{text}");
    assert_eq!(bench.text("s__echo", json!({"text": "still there"})).await, "still there");
}

#[tokio::test]
async fn a_server_sees_the_key_of_the_call_and_no_variable_that_is_not_its_own() {
    let script = json!({});
    let mut entry = scripted(&script);
    entry["env"] = json!({"OWN": "mine"});
    let bench = bench(&[("s", entry)]);
    let meta: serde_json::Value = serde_json::from_str(&bench.text("s__meta", json!({})).await).unwrap();
    assert_eq!((&meta["outlast/idempotency-key"], &meta["outlast/attempt"]), (&json!("r1/4.0"), &json!(1)));
    let environment = bench.text("s__env", json!({})).await;
    assert!(environment.contains("OWN=mine") && environment.contains("PATH="), "{environment}");
    assert!(!environment.contains("CARGO"), "{environment}");
}

/// Case MCP-01: a call whose server died ends at once: repeated if its class allows it, else in doubt.
#[tokio::test]
async fn the_death_of_a_server_ends_its_calls_at_once_and_the_next_call_works() {
    let bench = bench_of(&json!({}));
    let (text, ok) = bench.call("s__crash_pure", json!({})).await;
    assert!(!ok && text.contains("exited with code 3") && text.contains("a bug has been met"), "{text}");
    assert_eq!(bench.lines("ledger.jsonl").len(), 2, "it was repeated once");
    for line in bench.lines("ledger.jsonl") {
        assert_eq!(line["key"], "r1/4.0");
    }
    let until_ready = async {
        while bench.try_call("s__echo", json!({})).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, until_ready).await.expect("the waits between starts are bounded");
    // Nobody answers for a call of class `once`.
    let task = TaskContext::alone(task_of("s__crash", &json!({}), "once"));
    let running = tokio::spawn({
        let (tool, task) = (bench.tool(), task.clone());
        async move { tool.run(task).await }
    });
    assert_eq!(task.cancelled().await, StoppedWhy::BrokenOff);
    running.abort();
    assert_eq!(bench.lines("ledger.jsonl").len(), 3, "it was not repeated");
}

/// Case MCP-03: a call that is never answered holds up no other, and answers are told apart by their ids alone.
#[tokio::test]
async fn calls_do_not_wait_for_each_other() {
    let bench = bench_of(&json!({}));
    let silent = TaskContext::alone(task_of("s__hang", &json!({}), "pure"));
    let hanging = tokio::spawn({
        let (tool, silent) = (bench.tool(), silent.clone());
        async move { tool.run(silent).await }
    });
    bench.write("a.Before.gate", "");
    let late = bench.call("s__late", json!({"name": "a"}));
    let early = async {
        bench.appears("a.Before.reached").await;
        let text = bench.text("s__echo", json!({"text": "early"})).await;
        bench.remove("a.Before.gate");
        text
    };
    let ((late, _), early) = tokio::join!(late, early);
    assert_eq!((late.as_str(), early.as_str()), ("late a", "early"));
    silent.stop(StoppedWhy::Cancelled);
    assert!(tokio::time::timeout(PATIENCE, hanging).await.unwrap().unwrap().is_err());
    // Case MCP-08: the server is told.
    bench.until("the notice", || bench.lines("cancelled.jsonl").len() == 1).await;
    assert_eq!(bench.lines("cancelled.jsonl")[0]["reason"], "the call was cancelled");
}

/// Case MCP-03: an answer that comes after its limit, and answers to what nobody asked, are nobody's; what comes after them is taken for what
/// it is, and other servers hear nothing of it.
#[tokio::test]
async fn late_answers_and_answers_to_nobody_poison_no_other_call() {
    let poison = json!({"content": [{"type": "text", "text": "poison"}]});
    let stray =
        |id: serde_json::Value| format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": poison}));
    let noise = [json!(987_654), json!("nobody"), json!(-1), json!(null)].map(stray).concat();
    let mut entry = scripted(&json!({"noise": noise}));
    entry["timeout"] = json!("1s");
    let bench = bench(&[("s", entry), ("other", scripted(&json!({})))]);
    bench.write("a.Before.gate", "");
    let (text, ok) = bench.call("s__late", json!({"name": "a"})).await;
    assert!(!ok && text.contains("longer than 1s"), "{text}");
    for number in 0..10 {
        if number == 2 {
            // Now it is answered.
            bench.remove("a.Before.gate");
        }
        let said = number.to_string();
        assert_eq!(bench.text("s__echo", json!({ "text": said })).await, said);
        assert_eq!(bench.text("other__echo", json!({ "text": said })).await, said);
    }
}

/// Case MCP-08: the limit of a server's entry holds whatever progress it tells.
#[tokio::test]
async fn a_call_that_takes_too_long_is_given_up_and_the_server_is_told() {
    let mut entry = scripted(&json!({}));
    entry["timeout"] = json!("50ms");
    let bench = bench(&[("s", entry)]);
    for tool in ["s__hang", "s__endless_progress"] {
        let (text, ok) = bench.call(tool, json!({})).await;
        assert!(!ok && text.contains("longer than 50ms"), "{text}");
    }
    bench.until("the notices", || bench.lines("cancelled.jsonl").len() == 2).await;
    let task = TaskContext::alone(task_of("s__hang_once", &json!({}), "once"));
    let running = tokio::spawn({
        let (tool, task) = (bench.tool(), task.clone());
        async move { tool.run(task).await }
    });
    assert_eq!(task.cancelled().await, StoppedWhy::BrokenOff, "nobody knows how far it came");
    running.abort();
}

/// Case LIM-04: errors and questions are as long as a server likes, and a call's text is not.
#[tokio::test]
async fn errors_and_questions_of_a_server_are_bounded() {
    let bench = bench_of(&json!({}));
    let (text, ok) = bench.call("s__refuse", json!({"bytes": 4 << 20})).await;
    assert!(!ok && text.len() < 100_000, "{}", text.len());
    assert!(text.starts_with("these arguments are no goodrrr"), "{}", &text[..100]);
    for (bytes, times) in [(4 << 20, 1), (1_000, 200)] {
        let text = bench.text("s__ask", json!({"bytes": bytes, "times": times})).await;
        assert!(text.contains("Which account?") && text.len() < 20_000, "{}", text.len());
    }
}

#[tokio::test]
async fn progress_is_shown_to_whoever_watches() {
    let bench = bench_of(&json!({}));
    let task = TaskContext::alone(task_of("s__progress", &json!({}), "pure"));
    assert_eq!(bench.run(task.clone()).await.unwrap(), ("done".to_owned(), true));
    assert!(task.unsent().contains("step 1"), "{}", task.unsent());
    // Case LIM-04: one long message leaves room for the next.
    let task = TaskContext::alone(task_of("s__progress", &json!({"bytes": 1 << 20}), "pure"));
    assert!(bench.run(task.clone()).await.is_ok());
    assert!(task.unsent().contains("step 2") && task.unsent().len() < 10_000, "{}", task.unsent().len());
}

/// Case MCP-09: whatever a server asks for is answered at once.
#[tokio::test]
async fn what_a_server_asks_is_answered_or_refused() {
    let bench = bench_of(&json!({}));
    assert_eq!(bench.text("s__sample", json!({})).await, "[-32601,-32601]");
    assert!(bench.text("s__roots", json!({})).await.contains("roots"));
    let asked = bench.text("s__ask", json!({})).await;
    assert!(asked.contains(r#""action":"cancel""#), "{asked}");
    assert!(asked.contains(r#"Which account? (account: "string")"#) && asked.contains("_answers"), "{asked}");
    let answered = bench.text("s__ask", json!({"_answers": {"account": "savings"}})).await;
    assert!(answered.contains(r#""action":"accept""#) && answered.contains("savings"), "{answered}");
    assert!(!answered.contains("_answers"), "{answered}");
}

/// A page is a question of its own kind: shown with its address, answered without content, never opened by this program.
#[tokio::test]
async fn a_page_that_a_server_wants_opened_is_asked_for_with_its_address() {
    let bench = bench_of(&json!({}));
    let url = "https://accounts.example/login?for=outlast";
    let asked = bench.text("s__visit", json!({"url": url})).await;
    assert!(asked.contains(r#""action":"cancel""#), "{asked}");
    assert!(asked.contains(&format!("open a page at accounts.example yourself: <{url}>")), "{asked}");
    for (opened, action) in [(true, "accept"), (false, "decline")] {
        let call =
            TaskContext::alone(task_of("s__visit", &json!({"url": url, "_answers": {url: opened}}), "pure"));
        let (text, ok) = bench.run(call).await.unwrap();
        assert!(ok && text.starts_with(&json!({"action": action}).to_string()), "{text}");
    }
    let other = json!({"url": "https://accounts.example/other", "_answers": {url: true}});
    let asked = bench.text("s__visit", other).await;
    assert!(asked.contains("<https://accounts.example/other>"), "an answer holds for one address: {asked}");
}

#[tokio::test]
async fn an_address_that_is_no_page_is_refused_to_the_server_and_told() {
    let bench = bench_of(&json!({}));
    for (needed, url) in
        [(false, "file:///etc/passwd"), (true, "file:///etc/passwd"), (false, "https://a@b.example")]
    {
        let (text, ok) = bench.call("s__visit", json!({"url": url, "needed": needed})).await;
        assert!(
            !ok && text.contains("a page that nobody is shown: its address") && text.contains(url),
            "{text}"
        );
        assert_eq!(text.contains("-32602"), !needed, "a question is answered with an error: {text}");
    }
}

/// The error -32042 of a server: its pages are asked for, and the call is made again.
#[tokio::test]
async fn a_call_that_needs_a_page_first_asks_for_it() {
    let bench = bench_of(&json!({}));
    let url = "http://127.0.0.1:9/login";
    let (text, _) = bench.call("s__visit", json!({"url": url, "needed": true})).await;
    assert!(
        text.contains("log in first")
            && text.contains(&format!("open a page at 127.0.0.1:9 yourself: <{url}>")),
        "{text}"
    );
    let (text, _) =
        bench.call("s__visit", json!({"url": url, "needed": true, "_answers": {url: true}})).await;
    assert!(text.contains("it asks again after an answer"), "{text}");
    let (text, ok) =
        bench.call("s__visit", json!({"url": url, "needed": true, "_answers": {url: false}})).await;
    assert!(!ok && !text.contains("open a page"), "who said no is not asked again: {text}");
    bench.write("visited", "");
    assert_eq!(bench.text("s__visit", json!({"url": url, "needed": true})).await, "welcome back");
}

/// Case BAT-04: a server that ends neither with its input nor with SIGTERM, and what it started, are gone with the worker.
#[tokio::test]
async fn nothing_of_a_stubborn_server_outlives_its_worker() {
    let script = json!({"stubborn": true}).to_string();
    let command = format!("trap '' TERM; echo $$ > server.pid; exec {} '{script}'", crate::bench::SERVER);
    let bench = bench(&[("s", json!({"command": "sh", "args": ["-c", command]}))]);
    bench.text("s__echo", json!({})).await;
    let pids: Vec<i64> = ["server.pid", "stubborn.pid"]
        .map(|file| std::fs::read_to_string(bench.path().join(file)).unwrap().trim().parse().unwrap())
        .into();
    assert!(pids.iter().all(|pid| lives(*pid)));
    let crate::bench::Bench { dir, activities } = bench;
    drop(activities);
    let gone = async {
        let mut look = tokio::time::interval(Duration::from_millis(2));
        while pids.iter().any(|pid| lives(*pid)) {
            look.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("they are ended in time");
    drop(dir);
}
