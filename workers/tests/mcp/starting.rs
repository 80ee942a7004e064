//! Servers that start late, wrongly or not at all, and noise.

use outlast_workers::sdk::TaskContext;
use serde_json::json;

use crate::bench::{bench, bench_of, lives, scripted, task_of};

/// Case MCP-04: what is no message is skipped, however it comes.
#[tokio::test]
async fn noise_costs_nothing() {
    for script in [
        json!({"banner": "Welcome!\n\n\r\n{\"level\":\"info\"}\n[1]\n{\"half\":\n"}),
        json!({"noise": "working 10%\rworking 20%\r\n{\"level\":\"debug\",\"id\":1,\"result\":{}}\n"}),
        json!({"banner": "\n", "rubbish": 20 << 20, "noise": "\n"}),
        json!({"flood": 8 << 20}),
    ] {
        let bench = bench_of(&script);
        assert_eq!(bench.text("s__echo", json!({"text": "hello"})).await, "hello", "{script}");
    }
}

/// Case MCP-04: half a line that runs into an answer spoils that answer: its server fails in time, clearly, and alone.
#[tokio::test]
async fn half_a_line_costs_its_own_server_only() {
    let half = |script| {
        let mut entry = scripted(&script);
        entry["startTimeout"] = json!("1s");
        entry["timeout"] = json!("1s");
        entry
    };
    let bench = bench(&[
        ("half", half(json!({"banner": "half a line, and then "}))),
        ("long", half(json!({"rubbish": 5 << 20}))),
        ("good", scripted(&json!({}))),
    ]);
    for server in ["half", "long"] {
        let (bad, good) = (format!("{server}__echo"), json!({"text": "good"}));
        let (failed, good) = tokio::join!(bench.try_call(&bad, json!({})), bench.text("good__echo", good));
        let failure = failed.unwrap_err();
        assert_eq!((failure.kind.as_str(), good.as_str()), ("ServerUnavailable", "good"));
        assert!(
            failure.text.starts_with(&format!("MCP server {server}: it was not ready after 1 s")),
            "{failure}"
        );
    }
}

/// Case MCP-12: a server that does not come up says how it ended and what it said last; others are not touched.
#[tokio::test]
async fn a_server_that_does_not_start_is_named_with_its_end() {
    for (entry, why) in [
        (json!({"command": "no-such-program"}), "cannot run no-such-program"),
        (scripted(&json!({"exit": 1})), "exited with code 1; it said: cannot find libfancy.so"),
        (scripted(&json!({"exit": 0})), "exited with code 0"),
        (json!({"command": "sh", "args": ["-c", "kill -9 $$"]}), "ended by signal 9"),
        (json!({"command": "${NO_SUCH_VARIABLE}"}), "NO_SUCH_VARIABLE is not set"),
        (json!({"url": "http://127.0.0.1:1/mcp"}), "cannot be reached"),
    ] {
        let bench = bench(&[("bad", entry.clone()), ("good", scripted(&json!({})))]);
        let failure = bench.try_call("bad__echo", json!({})).await.unwrap_err();
        assert_eq!((failure.kind.as_str(), failure.retryable), ("ServerUnavailable", true), "{entry}");
        assert!(
            failure.text.starts_with("MCP server bad: ") && failure.text.contains(why),
            "{entry}: {}",
            failure.text
        );
        assert_eq!(failure.fields["server"], "bad");
        assert!(bench.tools("bad").await.unwrap_err().contains(why), "{entry}");
        assert_eq!(bench.text("good__echo", json!({"text": "good"})).await, "good");
    }
}

/// Case MCP-12: it is tried again, with waits in between in which nothing is started.
#[tokio::test]
async fn a_server_that_does_not_start_is_not_started_by_every_call() {
    let command = "echo x >> starts; exit 7";
    let bench = bench(&[("s", json!({"command": "sh", "args": ["-c", command]}))]);
    for _ in 0..20 {
        bench.try_call("s__echo", json!({})).await.unwrap_err();
    }
    let starts = std::fs::read_to_string(bench.path().join("starts")).unwrap().lines().count();
    assert!((2..=4).contains(&starts), "{starts}");
    let waiting = bench.try_call("s__echo", json!({})).await.unwrap_err();
    assert!(waiting.text.contains("code 7") && waiting.text.contains("tried again in"), "{}", waiting.text);
    assert!(waiting.retry_after.is_some());
    // Who mends its entry need not wait.
    bench.configure(&[("s", scripted(&json!({})))]);
    assert_eq!(bench.text("s__echo", json!({"text": "mended"})).await, "mended");
}

/// Case MCP-10: a start has a limit of its own, and a slow one holds up no other server.
#[tokio::test]
async fn slow_servers_have_a_limit_and_hold_up_nobody() {
    let mut mute = scripted(&json!({"mute": true}));
    mute["startTimeout"] = json!("50ms");
    let slow = scripted(&json!({"wait_while": "closed"}));
    let bench = bench(&[("mute", mute), ("slow", slow), ("good", scripted(&json!({})))]);
    bench.write("closed", "");
    let failure = bench.try_call("mute__echo", json!({})).await.unwrap_err();
    assert!(failure.text.contains("not ready after 0.05 s"), "{}", failure.text);
    // Case MCP-08: a handshake is not cancelled by a notice.
    assert!(bench.lines("cancelled.jsonl").is_empty());
    let slow = bench.text("slow__echo", json!({"text": "slow"}));
    let good = async {
        let text = bench.text("good__echo", json!({"text": "good"})).await;
        bench.remove("closed");
        text
    };
    assert_eq!(tokio::join!(slow, good), ("slow".to_owned(), "good".to_owned()));
}

#[tokio::test]
async fn servers_of_other_versions_are_spoken_to_or_refused() {
    for version in ["2024-11-05", "2025-06-18"] {
        let bench = bench_of(&json!({"version": version}));
        assert_eq!(bench.text("s__echo", json!({"text": version})).await, version);
    }
    // One that knows no handshake is spoken to in the newer way.
    let bench = bench_of(&json!({"modern": true}));
    assert_eq!(bench.text("s__echo", json!({"text": "new"})).await, "new");
    let bench = bench_of(&json!({"version": "1999-01-01"}));
    let failure = bench.try_call("s__echo", json!({})).await.unwrap_err();
    assert!(failure.text.contains("1999-01-01"), "{}", failure.text);
}

#[tokio::test]
async fn a_server_that_is_not_configured_is_named() {
    let bench = bench(&[("there", scripted(&json!({})))]);
    let said = "MCP server missing: .mcp.json does not have it (it has there)";
    // A model that makes up a name is told; what the run's catalogue has is waited for.
    let (text, ok) = bench.call("missing__echo", json!({})).await;
    assert!(!ok && text.ends_with(said), "{text}");
    let mut task = task_of("missing__echo", &json!({}), "pure");
    task.definition = Some("0".repeat(64));
    assert_eq!(bench.run(TaskContext::alone(task)).await.unwrap_err().text, said);
    bench.write(".mcp.json", "{");
    let failure = bench.try_call("there__echo", json!({})).await.unwrap_err();
    assert!(failure.text.contains(".mcp.json: EOF"), "{}", failure.text);
}

#[tokio::test]
async fn a_server_that_is_taken_out_or_disabled_is_ended() {
    for off in [None, Some(json!({"command": "x", "disabled": true}))] {
        let bench = bench_of(&json!({}));
        bench.call("s__note", json!({"name": "n"})).await;
        let pid = bench.lines("ledger.jsonl")[0]["pid"].as_i64().unwrap();
        assert!(lives(pid));
        let servers: Vec<_> = off.clone().map(|entry| ("s", entry)).into_iter().collect();
        bench.configure(&servers);
        let (text, ok) = bench.call("s__echo", json!({})).await;
        let said = if off.is_some() { "is disabled" } else { "does not have it" };
        assert!(!ok && text.contains(said), "{text}");
        bench.until("the end of the server", || !lives(pid)).await;
    }
}
