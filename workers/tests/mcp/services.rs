//! Servers over HTTP.

use std::process::{Child, Command};

use outlast_workers::sdk::{StoppedWhy, TaskContext};
use serde_json::json;

use crate::bench::{Bench, PATIENCE, SERVER, bench, task_of};

/// A service in a bench's directory. Dropping it kills it.
pub(crate) struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _gone = self.0.kill().and_then(|()| self.0.wait());
    }
}

pub(crate) async fn service(bench: &Bench, script: serde_json::Value) -> Service {
    let (service, url) = started(bench, script).await;
    bench
        .configure(&[("s", json!({"type": "http", "url": url, "headers": {"Authorization": "Bearer t0p"}}))]);
    service
}

/// Starts a service that no entry names yet; its address.
pub(crate) async fn started(bench: &Bench, mut script: serde_json::Value) -> (Service, String) {
    let _old = std::fs::remove_file(bench.path().join("address"));
    script["http"] = json!("address");
    let child = Command::new(SERVER).arg(script.to_string()).current_dir(bench.path()).spawn().unwrap();
    bench.appears("address").await;
    let url = std::fs::read_to_string(bench.path().join("address")).unwrap();
    (Service(child), url)
}

#[tokio::test]
async fn a_service_is_called_with_the_headers_of_its_entry() {
    let bench = bench(&[]);
    let _service = service(&bench, json!({})).await;
    assert_eq!(bench.text("s__echo", json!({"text": "over HTTP"})).await, "over HTTP");
    let answered = bench.text("s__ask", json!({"_answers": {"account": "savings"}})).await;
    assert!(answered.contains("savings"), "{answered}");
    assert!(bench.lines("requests.jsonl").iter().all(|request| request["token"] == "Bearer t0p"));
}

/// Case MCP-02: a session that is forgotten is made once more, and the call is sent again once; if that does not help, it ends.
#[tokio::test]
async fn a_forgotten_session_is_made_again_once() {
    let bench = bench(&[]);
    let _service = service(&bench, json!({})).await;
    bench.text("s__echo", json!({"text": "before"})).await;
    bench.write("forget", "");
    let both = tokio::join!(
        bench.text("s__echo", json!({"text": "a"})),
        bench.text("s__echo", json!({"text": "b"}))
    );
    assert_eq!(both, ("a".to_owned(), "b".to_owned()));
    let starts =
        |bench: &Bench| bench.lines("requests.jsonl").iter().filter(|r| r["method"] == "initialize").count();
    assert_eq!(starts(&bench), 2);
    assert!(
        bench
            .lines("requests.jsonl")
            .iter()
            .filter(|r| r["method"] == "initialize")
            .all(|r| r["session"].is_null())
    );
}

/// Case MCP-02: a service that knows no session ever is no loop.
#[tokio::test]
async fn a_service_that_forgets_every_session_ends_the_call() {
    let bench = bench(&[]);
    let _service = service(&bench, json!({"forgetful": true})).await;
    let (text, ok) = bench.call("s__echo", json!({})).await;
    assert!(!ok && text.contains("404"), "{text}");
    assert!(bench.lines("requests.jsonl").len() < 30);
}

/// Case MCP-01: a call that was under way when its service died ends, and is not answered for if it is of class `once`.
#[tokio::test]
async fn the_death_of_a_service_ends_its_calls() {
    let bench = bench(&[]);
    for (effect, tool) in [("pure", "s__late"), ("once", "s__note")] {
        let first = service(&bench, json!({})).await;
        bench.write("n.Before.gate", "");
        let task = TaskContext::alone(task_of(tool, &json!({"name": "n"}), effect));
        let running = tokio::spawn({
            let (tool, task) = (bench.tool(), task.clone());
            async move { tool.run(task).await }
        });
        bench.appears("n.Before.reached").await;
        drop(first);
        if effect == "once" {
            let stopped = tokio::time::timeout(PATIENCE, task.cancelled()).await;
            assert_eq!(stopped.unwrap(), StoppedWhy::BrokenOff);
            running.abort();
        } else {
            let ended = tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap();
            // Whether the second try found nobody or lost its connection too, is a matter of moments.
            match ended {
                Ok(done) => assert_eq!(done.value["ok"], false, "{done:?}"),
                Err(failure) => assert_eq!(failure.kind, "ServerUnavailable"),
            }
        }
        bench.remove("n.Before.gate");
        bench.remove("n.Before.reached");
    }
}

/// Case MCP-01: a service that is restarted is connected to again.
#[tokio::test]
async fn a_service_that_comes_back_is_called_again() {
    let bench = bench(&[]);
    let first = service(&bench, json!({})).await;
    assert_eq!(bench.text("s__echo", json!({"text": "one"})).await, "one");
    drop(first);
    let (text, ok) = match bench.try_call("s__echo", json!({})).await {
        Ok(answer) => answer,
        Err(failure) => (failure.text, false),
    };
    assert!(!ok, "{text}");
    let _second = service(&bench, json!({})).await;
    assert_eq!(bench.text("s__echo", json!({"text": "two"})).await, "two");
}

/// An address may hold a secret: errors name the server and not where it is.
#[tokio::test]
async fn the_address_of_a_service_is_not_shown() {
    let bench = bench(&[]);
    for url in
        ["http://127.0.0.1:1/t0p/mcp?key=t0p", "http://me:t0p@127.0.0.1:1?t0p", "http://127.0.0.1:1/a b/t0p"]
    {
        bench.configure(&[("s", json!({"url": url}))]);
        let failure = bench.try_call("s__echo", json!({})).await.unwrap_err();
        assert!(failure.text.contains("cannot be reached"), "{failure}");
        assert!(!failure.text.contains("t0p"), "{failure}");
        assert!(!bench.tools("s").await.unwrap_err().contains("t0p"));
    }
    // Also if it goes away after it was there.
    let first = service(&bench, json!({})).await;
    let address = std::fs::read_to_string(bench.path().join("address")).unwrap();
    bench.configure(&[("s", json!({"url": format!("{address}?key=t0p")}))]);
    assert_eq!(bench.text("s__echo", json!({"text": "here"})).await, "here");
    drop(first);
    let said = match bench.try_call("s__echo", json!({})).await {
        Ok((text, _)) => text,
        Err(failure) => failure.text,
    };
    assert!(!said.contains("t0p"), "{said}");
}
