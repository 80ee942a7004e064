//! Pages of the web as a model and a flow get them, from a server of the test's own.

#![expect(clippy::unwrap_used, reason = "a broken test bench should stop the test")]

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::Redirect;
use axum::routing::get;
use outlast_protocol::requests::Permissions;
use outlast_protocol::sandbox::{Network, Sandbox};
use outlast_workers::sdk::{Activity, Secrets, Task, TaskContext};
use outlast_workers::tools::{self, Setting};
use serde_json::{Value as Json, json};

struct Bench {
    _dir: tempfile::TempDir,
    activities: Vec<Arc<dyn Activity>>,
}

fn bench(allow: &[String], sandbox: Sandbox) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let rules = Permissions {
        allow: allow.to_vec(),
        deny: vec!["fetch(*/denied)".to_owned()],
        ..Permissions::default()
    };
    let setting = Setting { directory: dir.path().into(), rules, sandbox, ..Setting::default() };
    Bench { activities: tools::activities(setting).unwrap(), _dir: dir }
}

impl Bench {
    async fn run(&self, name: &str, input: Json) -> Result<Json, String> {
        let activity = self.activities.iter().find(|activity| activity.offer().name == name).unwrap();
        let secrets = Secrets::new(["TOKEN"], &|_| Some("canary-5512".to_owned()));
        let task = TaskContext::alone_with(Task { input, ..Task::default() }, secrets);
        activity.run(task).await.map(|done| done.value).map_err(|failure| failure.to_string())
    }

    /// Calls it as a model does.
    async fn call(&self, url: &str) -> (String, bool) {
        let call = json!({"id": "1", "name": "fetch", "args": {"url": url, "timeout": "2s"}});
        let answer = self.run("tool", json!({"call": {"value": call, "by": ["owner"]}})).await.unwrap();
        (answer["text"].as_str().unwrap().to_owned(), answer["ok"].as_bool().unwrap())
    }
}

async fn server() -> String {
    let html = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    let image = [(header::CONTENT_TYPE, "image/png")];
    let app = Router::new()
        .route("/page", get(move || async move { (html, "<title>T</title><h1>Hi</h1><p>you &amp; I") }))
        .route("/plain", get(|| async { "plain canary-5512" }))
        .route("/image", get(move || async move { (image, vec![0_u8; 1000]) }))
        .route("/gone", get(|| async { (StatusCode::NOT_FOUND, "no such page") }))
        .route("/huge", get(|| async { "a line of text\n".repeat(1 << 20) }))
        .route("/denied", get(|| async { "secret" }))
        .route("/moved", get(|| async { Redirect::to("/plain") }))
        .route("/round", get(|| async { Redirect::to("/round") }))
        .route("/away", get(|| async { Redirect::to("http://169.254.169.254/latest") }))
        .route("/silent", get(std::future::pending::<()>));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

#[tokio::test]
async fn pages_become_text_and_every_fault_becomes_an_answer() {
    let server = server().await;
    let bench = bench(&[format!("fetch({server}/*)")], Sandbox::default());
    for (path, text, fine) in [
        ("page", "T\n\n# Hi\n\nyou & I\n", true),
        ("plain", "plain [secret TOKEN]", true),
        ("moved", "plain [secret TOKEN]", true),
        ("image", "[image/png of 1000 bytes, not shown]", true),
    ] {
        assert_eq!(bench.call(&format!("{server}/{path}")).await, (text.to_owned(), fine), "{path}");
    }
    for (path, told, fine) in [
        ("gone", "HTTP 404 Not Found\nno such page", false),
        ("round", "it redirects more than 5 times", false),
        ("away", "is moved to http://169.254.169.254/latest: fetch that instead", true),
        ("silent", "no whole answer in 2000 ms", false),
        ("huge", "[only the first 8388608 bytes were read]", true),
        ("denied", "denied by the rule fetch(*/denied)", false),
        ("%64enied", "HTTP 404", false),
    ] {
        let (text, ok) = bench.call(&format!("{server}/{path}")).await;
        assert!(text.contains(told) && ok == fine && text.len() < 60_000, "{path}: {}", text.len());
    }
    let refused = bench.run("fetch", json!({"url": format!("{server}/gone")})).await.unwrap_err();
    assert!(refused.starts_with("FetchFailed: cannot fetch http://127.0.0.1:"), "{refused}");
    for (url, told) in [("ftp://x/", "http://"), ("http://no-such-host.invalid/", "cannot fetch")] {
        let (text, ok) = bench.call(url).await;
        assert!(!ok && text.contains(told), "{text}");
    }
}

#[tokio::test]
async fn this_machine_and_its_network_are_asked_only_by_a_rule_that_names_the_host() {
    let server = server().await;
    let port = server.rsplit(':').next().unwrap().to_owned();
    for (allow, through) in [
        (vec![], false),
        (vec!["fetch".to_owned()], false),
        (vec!["fetch(*)".to_owned()], false),
        (vec![format!("fetch(*:{port})")], false),
        (vec![format!("fetch(127.0.0.1:{port})")], true),
    ] {
        let bench = bench(&allow, Sandbox::default());
        for written in [server.clone(), format!("http://0x7f.1:{port}"), format!("http://2130706433:{port}")]
        {
            let (text, ok) = bench.call(&format!("{written}/plain")).await;
            assert_eq!(ok, through, "{allow:?} {written}: {text}");
            assert!(ok || text.contains("127.0.0.1, which is not public; a rule that names it"), "{text}");
        }
        let (text, ok) = bench.call(&format!("http://localhost:{port}/plain")).await;
        assert!(!ok && text.contains("which is not public"), "another name is another host: {text}");
    }
    let none = Sandbox { network: Some(Network::None), ..Sandbox::default() };
    let (text, ok) = bench(&[format!("fetch({server}/*)")], none).call(&format!("{server}/plain")).await;
    assert!(!ok && text.contains("[sandbox] network in outlast.toml is none"), "{text}");
}
