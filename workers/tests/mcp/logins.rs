//! Services that want a login, and an authorization server that takes nothing for granted.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use outlast_workers::Json;
use outlast_workers::mcp::AtService;
use serde_json::json;

use crate::bench::{Bench, bench};
use crate::services::{Service, started};

const HOW: &str = "run: outlast tools login s";

/// A bench with a service that wants a login.
async fn wanting(rules: Json) -> (Bench, Service) {
    let bench = bench(&[]);
    let (service, url) = started(&bench, json!({"oauth": rules})).await;
    bench.configure(&[("s", json!({"url": url}))]);
    (bench, service)
}

/// Opens an address as a browser does, without following it: its status line and where it sends the browser.
fn opened(address: &str) -> (String, String) {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut connection = TcpStream::connect(host).unwrap();
    write!(connection, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let location = answer.lines().find_map(|line| line.strip_prefix("location: "));
    (answer.lines().next().unwrap().to_owned(), location.unwrap_or_default().to_owned())
}

/// Logs in as a person would, with whatever `on_the_way` does to the address that brings the code.
async fn logged_in(bench: &Bench, on_the_way: fn(&str)) -> Result<(), String> {
    let under_way = bench.servers(None).log_in("s").await?;
    let address = under_way.address().to_owned();
    let browser = tokio::task::spawn_blocking(move || {
        let (_, back) = opened(&address);
        on_the_way(&back);
        opened(&back)
    });
    let finished = under_way.finish().await;
    browser.await.unwrap();
    finished
}

fn kept(bench: &Bench) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(bench.path().join("logins")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

fn asked(bench: &Bench, what: &str) -> usize {
    bench.lines("oauth.jsonl").iter().filter(|line| line["what"] == what).count()
}

async fn echoes(bench: &Bench, text: &str) {
    assert_eq!(bench.text("s__echo", json!({"text": text})).await, text);
}

#[tokio::test]
async fn a_person_logs_in_and_the_worker_uses_it_at_once() {
    let (bench, _service) = wanting(json!({})).await;
    let failure = bench.try_call("s__echo", json!({})).await.unwrap_err();
    assert_eq!((failure.kind.as_str(), failure.retryable), ("ServerUnavailable", true), "{failure}");
    assert!(failure.text.contains("it wants a login") && failure.text.contains(HOW), "{failure}");
    assert!(bench.tools("s").await.unwrap_err().contains(HOW));
    logged_in(&bench, |_| {}).await.unwrap();
    echoes(&bench, "in").await;
    let files = kept(&bench);
    let mode = std::fs::metadata(&files[0]).unwrap().permissions().mode();
    assert_eq!((files.len(), mode & 0o777), (1, 0o600));
    assert_eq!(bench.lines("oauth.jsonl")[1]["scope"], "notes");
    // No tool reads it.
    let path = files[0].strip_prefix(bench.path()).unwrap().to_str().unwrap().to_owned();
    let (text, ok) = bench.call("read", json!({"path": path})).await;
    assert!(!ok && text.contains("belongs to the runtime"), "{text}");
    let (text, _) = bench.call("grep", json!({"pattern": "access-token"})).await;
    assert!(text.contains("requests.jsonl"), "{text}");
    assert!(!text.contains("logins/"), "{text}");
    // Another address under the same name is another service.
    let url = "http://127.0.0.1:1/mcp";
    bench.configure(&[("s", json!({"url": url}))]);
    assert!(bench.try_call("s__echo", json!({})).await.unwrap_err().text.contains("cannot be reached"));
}

#[tokio::test]
async fn a_login_of_a_known_client_needs_no_registration() {
    let bench = bench(&[]);
    let (_service, url) = started(&bench, json!({"oauth": {"closed": true}})).await;
    bench.configure(&[("s", json!({"url": url}))]);
    let why = logged_in(&bench, |_| {}).await.unwrap_err();
    assert!(why.contains("cannot register") && why.contains("oauth.clientId"), "{why}");
    let client = json!({"clientId": "me", "clientSecret": "hush-hush", "scopes": ["a", "b"]});
    bench.configure(&[("s", json!({"url": url, "oauth": client}))]);
    logged_in(&bench, |_| {}).await.unwrap();
    echoes(&bench, "in").await;
    assert_eq!(bench.lines("oauth.jsonl")[0], json!({"what": "authorize", "scope": "a b", "client": "me"}));
    bench.write("revoke", "");
    echoes(&bench, "renewed").await;
    assert!(!std::fs::read_to_string(&kept(&bench)[0]).unwrap().contains("hush-hush"));
}

#[tokio::test]
async fn tokens_that_end_at_once_are_renewed_before_each_request() {
    let (bench, _service) = wanting(json!({"expires": 0})).await;
    logged_in(&bench, |_| {}).await.unwrap();
    for text in ["one", "two"] {
        echoes(&bench, text).await;
    }
    assert!(asked(&bench, "refresh_token") >= 4);
    let tokens: Vec<String> =
        bench.lines("requests.jsonl").iter().map(|line| line["token"].to_string()).collect();
    let different: std::collections::BTreeSet<&String> = tokens.iter().collect();
    assert_eq!(different.len(), tokens.len());
}

#[tokio::test]
async fn many_calls_of_two_workers_renew_a_revoked_token_once() {
    let (bench, _service) = wanting(json!({})).await;
    logged_in(&bench, |_| {}).await.unwrap();
    let guard = Some(env!("CARGO_BIN_EXE_outlast-guard").into());
    let other = outlast_workers::tools::activities(outlast_workers::tools::Setting {
        directory: bench.path().into(),
        guard,
        logins: outlast_workers::mcp::Logins::of(bench.path()),
        ..outlast_workers::tools::Setting::default()
    });
    let other = other.unwrap().into_iter().find(|activity| activity.offer().name == "tool").unwrap();
    let task = |n: usize| {
        let args = json!({"text": format!("n{n}")});
        outlast_workers::sdk::TaskContext::alone(crate::bench::task_of("s__echo", &args, "pure"))
    };
    echoes(&bench, "one").await;
    other.run(task(0)).await.unwrap();
    bench.write("revoke", "");
    let calls = (0..8).map(|n| {
        let worker = if n % 2 == 0 { bench.tool() } else { other.clone() };
        let task = task(n);
        async move { worker.run(task).await }
    });
    let mut all = tokio::task::JoinSet::new();
    calls.for_each(|call| drop(all.spawn(call)));
    for done in all.join_all().await {
        let value = done.unwrap().value;
        assert_eq!(value["ok"], true, "{value}");
    }
    assert_eq!(asked(&bench, "refresh_token"), 1);
}

#[tokio::test]
async fn a_login_that_is_withdrawn_asks_for_a_new_one() {
    let (bench, _service) = wanting(json!({})).await;
    logged_in(&bench, |_| {}).await.unwrap();
    echoes(&bench, "in").await;
    bench.write("revoke", "");
    bench.write("revoked", "");
    let failure = bench.try_call("s__echo", json!({})).await.unwrap_err();
    assert_eq!(failure.kind, "ServerUnavailable");
    assert!(failure.text.contains("does not renew its login") && failure.text.contains(HOW), "{failure}");
    assert!(!failure.text.contains("token-"), "{failure}");
    bench.remove("revoked");
    logged_in(&bench, |_| {}).await.unwrap();
    echoes(&bench, "in again").await;
    assert_eq!(bench.servers(None).log_out("s").await, Ok(vec![AtService::NoWay]));
    assert!(kept(&bench).is_empty());
    assert!(bench.try_call("s__echo", json!({})).await.unwrap_err().text.contains("it wants a login"));
}

#[tokio::test]
async fn who_logs_out_is_logged_out_here_in_any_case_and_there_if_it_can_be() {
    let unreachable = "its authorization server cannot be found now";
    for (what, ended) in [
        ("", AtService::Ended),
        ("client", AtService::Ended),
        ("unended", AtService::Failed("it answers 503 (temporarily_unavailable)".to_owned())),
        ("gone", AtService::Failed(unreachable.to_owned())),
        ("broken", AtService::Failed("what is kept of it cannot be read".to_owned())),
    ] {
        let bench = bench(&[]);
        let client = what == "client";
        let (service, url) = started(&bench, json!({"oauth": {"ends": true, "closed": client}})).await;
        let oauth = json!({"clientId": "me:", "clientSecret": "hush hush"});
        let entry =
            if client { json!({"url": url.clone(), "oauth": oauth}) } else { json!({"url": url.clone()}) };
        bench.configure(&[("s", entry)]);
        logged_in(&bench, |_| {}).await.unwrap();
        echoes(&bench, "in").await;
        let token = bench.lines("requests.jsonl").pop().unwrap()["token"].as_str().unwrap().to_owned();
        let mut service = Some(service);
        match what {
            "gone" => drop(service.take()),
            "broken" => std::fs::write(&kept(&bench)[0], "{").unwrap(),
            "unended" => bench.write("unended", ""),
            _ => {}
        }
        let told = bench.servers(None).log_out("s").await.unwrap();
        match (&told[..], &ended) {
            ([AtService::Failed(why)], AtService::Failed(wanted)) => {
                assert!(why.starts_with(wanted) && !why.contains("token-"), "{what}: {why}");
            }
            (told, ended) => assert_eq!(told, std::slice::from_ref(ended), "{what}"),
        }
        assert!(kept(&bench).is_empty(), "{what}");
        assert_eq!(bench.servers(None).log_out("s").await, Ok(Vec::new()), "{what}");
        let revoked: Vec<Json> =
            bench.lines("oauth.jsonl").into_iter().filter(|line| line["what"] == "revoke").collect();
        if ended == AtService::Ended {
            assert_eq!([&revoked[0]["kind"], &revoked[1]["kind"]], ["refresh_token", "access_token"]);
            let known = if client { "Basic bWUlM0E6aHVzaCtodXNo" } else { "client-" };
            assert!(revoked[0]["client"].as_str().unwrap().starts_with(known), "{revoked:?}");
            let status = reqwest::Client::new().post(&url).header("authorization", &token).send().await;
            assert_eq!(status.unwrap().status(), 401, "{what}: the token is worth nothing any more");
        }
    }
}

#[tokio::test]
async fn a_code_of_another_login_is_not_taken() {
    let (bench, _service) = wanting(json!({})).await;
    let forged = |back: &str| {
        let (path, _) = back.split_once("&state=").unwrap();
        assert!(opened(&format!("{path}&state=guessed")).0.contains("400"));
        assert!(opened(path).0.contains("400"));
        assert!(opened(&back.replace("/callback", "/elsewhere")).0.contains("404"));
    };
    logged_in(&bench, forged).await.unwrap();
    assert_eq!(asked(&bench, "authorization_code"), 1);
}

#[tokio::test]
async fn denied_consent_logs_nobody_in() {
    let (bench, _service) = wanting(json!({})).await;
    bench.write("deny", "");
    let why = logged_in(&bench, |_| {}).await.unwrap_err();
    assert!(why.contains("consent was denied (not today)"), "{why}");
    assert!(kept(&bench).is_empty());
}

#[tokio::test]
async fn who_cannot_be_logged_in_at_says_why() {
    let (bench, _silent) = wanting(json!({"silent": true})).await;
    let why = logged_in(&bench, |_| {}).await.unwrap_err();
    assert!(why.contains("names no authorization server"), "{why}");
    let (_open, url) = started(&bench, json!({})).await;
    bench.configure(&[
        ("s", json!({"url": url})),
        ("p", json!({"command": "x"})),
        ("h", json!({"url": url, "headers": {"authorization": "x"}})),
    ]);
    for (server, why) in
        [("s", "wants no login"), ("p", "takes no login"), ("h", "takes no login"), ("n", "does not have it")]
    {
        let said = bench.servers(None).log_in(server).await.unwrap_err();
        assert!(said.contains(why) && said.contains(server), "{said}");
    }
}
