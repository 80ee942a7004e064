//! The OpenAPI document and a running server: the same routes, and answers that fit.
//!
//! Leaves requests and their types to `runtime/protocol/tests/openapi.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use outlast_tests::repository;
use outlast_tests::socket::request;
use outlast_tests::world::World;
use serde_json::{Value, json};
use syn::visit::Visit;

const METHODS: [&str; 5] = ["get", "post", "put", "delete", "patch"];

fn document() -> Value {
    let text = std::fs::read_to_string(repository::root().join("runtime/protocol/openapi.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn described(document: &Value) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            found.insert((method.clone(), path.clone()));
        }
    }
    found
}

/// The routes as the router's source names them: `.route("/path", get(…).post(…))`.
#[derive(Default)]
struct Routes(BTreeSet<(String, String)>);

impl<'a> Visit<'a> for Routes {
    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if call.method == "route" {
            let Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. })) = call.args.first()
            else {
                panic!("a route without a plain path");
            };
            let mut methods = Methods::default();
            methods.visit_expr(call.args.last().unwrap());
            assert!(!methods.0.is_empty(), "{} has no method", path.value());
            self.0.extend(methods.0.into_iter().map(|method| (method, path.value())));
        }
        syn::visit::visit_expr_method_call(self, call);
    }
}

#[derive(Default)]
struct Methods(Vec<String>);

impl Methods {
    fn add(&mut self, name: &syn::Ident) {
        let name = name.to_string();
        if METHODS.contains(&name.as_str()) {
            self.0.push(name);
        }
    }
}

impl<'a> Visit<'a> for Methods {
    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        self.add(&call.method);
        self.visit_expr(&call.receiver);
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        if let syn::Expr::Path(function) = &*call.func {
            self.add(&function.path.segments.last().unwrap().ident);
        }
    }
}

#[test]
fn every_route_is_described_and_every_description_is_a_route() {
    let source = std::fs::read_to_string(repository::root().join("runtime/src/http.rs")).unwrap();
    let mut routes = Routes::default();
    routes.visit_file(&syn::parse_file(&source).unwrap());
    assert!(routes.0.len() > 40, "the router is elsewhere: {:?}", routes.0);
    assert_eq!(routes.0, described(&document()));
}

/// Calls a server and checks its answers against the document.
struct Checked<'a> {
    world: &'a World,
    document: Value,
    seen: BTreeSet<(String, String)>,
}

impl Checked<'_> {
    fn call(&mut self, method: &str, route: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let headers: &[&str] = if body.is_some() { &["content-type: application/json"] } else { &[] };
        let body = body.map(Value::to_string).unwrap_or_default();
        let answer =
            request(&self.world.socket(), &method.to_uppercase(), path, headers, body.as_bytes()).unwrap();
        let operation = &self.document["paths"][route][method];
        assert!(operation.is_object(), "{method} {route} is not described");
        let responses = &operation["responses"];
        let status = answer.status.to_string();
        let mut response =
            if responses[&status].is_object() { &responses[&status] } else { &responses["default"] };
        assert!(
            answer.status >= 400 || responses[&status].is_object(),
            "{method} {path}: {status} is not described"
        );
        if let Some(name) = response["$ref"].as_str() {
            response = self.document.pointer(name.trim_start_matches('#')).unwrap();
        }
        let mut schema = response["content"]["application/json"]["schema"].clone();
        assert!(schema.is_object(), "{method} {route}: {status} has no schema");
        schema["components"] = self.document["components"].clone();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        if let Err(error) = validator.validate(&answer.body) {
            panic!("{method} {path}: {} does not fit: {error}", answer.body);
        }
        self.seen.insert((method.to_owned(), route.to_owned()));
        (answer.status, answer.body)
    }

    fn get(&mut self, route: &str, path: &str) -> Value {
        let (status, body) = self.call("get", route, path, None);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    fn post(&mut self, route: &str, path: &str, body: &Value) -> Value {
        let (status, body) = self.call("post", route, path, Some(body));
        assert!(status < 300, "{path}: {status} {body}");
        body
    }
}

#[test]
fn answers_of_a_server_fit_the_document() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/repeatable.flow", "flows/approved_once.flow"]);
    let mut api = Checked { world: &world, document: document(), seen: BTreeSet::new() };
    runs(&mut api);
    let session = worker(&mut api);
    schedules(&mut api);
    rest(&mut api, &world);
    let (status, _) =
        api.call("get", "/v1/workers/control", &format!("/v1/workers/control?session={session}"), None);
    assert_eq!(status, 200);
    let mut missing = described(&api.document);
    missing.retain(|called| {
        !api.seen.contains(called) && !["/v1/runs/{id}/stream", "/metrics"].contains(&called.1.as_str())
    });
    // Its answer is no JSON.
    missing.remove(&("get".to_owned(), "/v1/blobs/{hash}".to_owned()));
    assert!(missing.is_empty(), "not called: {missing:?}");
}

fn runs(api: &mut Checked) {
    let text = std::fs::read_to_string(repository::root().join("tests/flows/held_once.flow")).unwrap();
    api.post("/v1/flows", "/v1/flows", &json!({"files": [{"name": "held_once.flow", "text": text}]}));
    let faulty = json!({"files": [{"name": "a.flow", "text": "edition 1\nflow"}]});
    assert_eq!(api.call("post", "/v1/flows", "/v1/flows", Some(&faulty)).0, 422);
    api.get("/v1/flows", "/v1/flows");
    let start = json!({"flow": "ApprovedOnce", "id": "r", "input": {"name": "a"}});
    for status in [201, 200] {
        assert_eq!(api.call("post", "/v1/runs", "/v1/runs", Some(&start)).0, status);
    }
    api.get("/v1/runs", "/v1/runs?limit=1");
    for what in ["", "/result", "/tree", "/way", "/events", "/usage", "/export"] {
        let shown = api.get(&format!("/v1/runs/{{id}}{what}"), &format!("/v1/runs/r{what}"));
        assert!(shown.is_object());
    }
    api.get("/v1/usage", "/v1/usage");
    for id in ["f", "g"] {
        api.post("/v1/runs/{id}/fork", "/v1/runs/r/fork", &json!({"id": id}));
    }
    api.post("/v1/runs/{id}/cancel", "/v1/runs/f/cancel", &json!({}));
    api.post("/v1/runs/{id}/terminate", "/v1/runs/g/terminate", &json!({}));
    assert_eq!(api.call("delete", "/v1/runs/{id}", "/v1/runs/g", None).0, 200);
    assert_eq!(api.call("delete", "/v1/runs/{id}", "/v1/runs/r", None).0, 409);
    let retention = json!({"keep": "30d", "flows": {"HeldOnce": null}});
    assert_eq!(api.call("put", "/v1/retention", "/v1/retention", Some(&retention)).0, 200);
    assert_eq!(api.get("/v1/retention", "/v1/retention"), retention);
    api.post("/v1/runs/{id}/answers", "/v1/runs/r/answers", &json!({"choice": "approve"}));
    for (what, body) in [
        ("messages", json!({"type": "Say"})),
        ("withdraw", json!({"id": "m"})),
        ("settle", json!({"op": "1.0", "verdict": "fail"})),
        ("release", json!({"op": "1.0"})),
        ("migrate", json!({"machine": "none"})),
        ("compatibility", json!({"machine": "none"})),
    ] {
        let (status, body) =
            api.call("post", &format!("/v1/runs/{{id}}/{what}"), &format!("/v1/runs/r/{what}"), Some(&body));
        assert!((400..500).contains(&status), "{what}: {status} {body}");
    }
}

fn worker(api: &mut Checked) -> String {
    let offer = json!({"worker": "w", "boot": "b", "queues": ["test"], "concurrency": 1, "activities": [{"name": "ledger"}]});
    let session = api.post("/v1/workers/register", "/v1/workers/register", &offer)["session"].clone();
    let poll = json!({"session": session, "max": 1, "wait_ms": 30_000});
    let tasks = api.post("/v1/workers/poll", "/v1/workers/poll", &poll)["tasks"].clone();
    let token = &tasks[0]["token"];
    assert!(token.is_string(), "{tasks}");
    let sign =
        json!({"session": session, "tasks": [{"token": token, "offset": 0, "text": "x", "percent": 1.5}]});
    api.post("/v1/workers/progress", "/v1/workers/progress", &sign);
    let results = json!([{"token": token, "kind": "done", "value": "k"}, {"token": "none", "kind": "done", "value": 1}]);
    let report = json!({"session": session, "results": results});
    api.post("/v1/workers/report", "/v1/workers/report", &report);
    // The hash of the text `"x"`.
    let hash = "52169dd2ef084185bc70d5eb424273244b91850db796a46347ee0fa9fdb235c9";
    let (status, _) = api.call("put", "/v1/blobs/{hash}", &format!("/v1/blobs/{hash}"), Some(&json!("x")));
    assert_eq!(status, 201);
    session.as_str().unwrap().to_owned()
}

fn schedules(api: &mut Checked) {
    let (route, path) = ("/v1/schedules/{name}", "/v1/schedules/nightly");
    let definition =
        json!({"flow": "Repeatable", "input": {"name": "s"}, "cron": ["30 2 * * *"], "catch_up": {"all": 2}});
    for status in [201, 200] {
        assert_eq!(api.call("put", route, path, Some(&definition)).0, status);
    }
    api.get(route, path);
    api.get("/v1/schedules", "/v1/schedules");
    for what in ["pause", "resume", "run-now"] {
        api.post(&format!("{route}/{what}"), &format!("{path}/{what}"), &json!({}));
    }
    assert_eq!(api.call("delete", route, path, None).0, 200);
}

fn rest(api: &mut Checked, world: &World) {
    for path in ["/v1/status", "/v1/doctor", "/health/live", "/health/ready"] {
        api.get(path, path);
    }
    let served = api.get("/v1/openapi.json", "/v1/openapi.json");
    assert!(served == api.document, "the server gives the document of this source");
    let machine = api.get("/v1/flows", "/v1/flows")["items"][0]["machine"].clone();
    api.get("/v1/machines/{hash}", &format!("/v1/machines/{}", machine.as_str().unwrap()));
    let profile = json!({"directory": world.work(), "model": {"kind": "openai", "url": "http://127.0.0.1:1", "name": "m"}});
    let name = api.post("/v1/profiles", "/v1/profiles", &profile)["name"].clone();
    api.get("/v1/profiles/{name}", &format!("/v1/profiles/{}", name.as_str().unwrap()));
    api.get("/v1/runs/{id}/audit", "/v1/runs/r/audit");
    let token = json!({"name": "ci", "scopes": ["read"], "flows": ["Repeatable"], "expires": "1h"});
    api.post("/v1/tokens", "/v1/tokens", &token);
    api.get("/v1/tokens", "/v1/tokens");
    assert_eq!(api.call("delete", "/v1/tokens/{name}", "/v1/tokens/ci", None).0, 200);
    let call = json!([{"jsonrpc": "2.0", "id": 1, "method": "runs.get", "params": {"run": "r"}}, 1]);
    api.post("/v1/rpc", "/v1/rpc", &call);
    api.post("/v1/backup", "/v1/backup", &json!({"directory": world.work().join("backup")}));
    let (status, _) = api.call("post", "/v1/import", "/v1/import", Some(&json!({"records": []})));
    assert_eq!(status, 422);
}
