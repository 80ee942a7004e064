//! Access tokens from outside: what each scope opens, what limits to flows and roles hide and refuse, and how long a token holds.
//!
//! What crashes leave of tokens is in `tokens_durable.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::http::{Answer, Api};
use outlast_tests::process::Process;
use outlast_tests::repository;
use outlast_tests::world::World;
use serde_json::{Value, json};

const SCOPES: [&str; 8] = ["read", "start", "send", "answer", "control", "deploy", "work", "admin"];

/// Makes a token and returns its secret.
fn token(world: &World, name: &str, rights: &[&str]) -> String {
    let made = world.json(&[&["token", "add", name, "--json"], rights].concat());
    made["token"].as_str().unwrap_or_else(|| panic!("{name}: {made}")).to_owned()
}

fn served(world: &World) -> (Process, Api) {
    world.serve(&["--tokens", "--no-workers", "flows/desk.flow", "flows/other.flow"])
}

/// The code of a refusal.
fn code(answer: &Answer) -> (u16, String) {
    let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    (answer.status, body["error"]["code"].as_str().unwrap_or_default().to_owned())
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[test]
fn a_token_is_told_once_kept_as_a_hash_listed_and_revoked() {
    let world = World::with_flows();
    let added =
        world.run(&["token", "add", "ci", "--scope", "read,start", "--flow", "Desk", "--expires", "30d"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let secret = added.stdout.trim().to_owned();
    assert!(secret.starts_with("outlast_") && secret.len() == 8 + 64, "{added:?}");
    assert!(added.stderr.contains("read,start flows=Desk") && !added.stderr.contains(&secret), "{added:?}");
    let again = world.run(&["token", "add", "CI", "--scope", "read"]);
    assert!(again.code == Some(2) && again.stderr.contains("each name is given once"), "{again:?}");

    let (_server, api) = served(&world);
    // With a host it goes through its socket.
    let admin = api.with_token(&token(&world, "boss", &["--scope", "admin"]));
    let listed = admin.get("/v1/tokens").json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(listed["items"][0]["scopes"], json!(["read", "start"]));
    let mut made = admin.post("/v1/tokens", &json!({"name": "web", "scopes": ["read"]}));
    assert_eq!((made.status, made.headers["cache-control"].as_str()), (201, "no-store"), "{made:?}");
    assert_eq!(made.json()["created_by"], "token:boss");
    let text = world.run(&["token", "list"]).stdout;
    assert!(text.contains("ci") && text.contains("active") && !text.contains("outlast_"), "{text}");
    let all = format!("{text}{}", world.run(&["token", "list", "--json"]).stdout);
    assert!(!all.contains(&secret) && !all.contains(&secret[8..]), "{all}");

    assert_eq!(api.with_token(&secret).get("/v1/runs").status, 200);
    let id = listed["items"][0]["id"].as_str().unwrap();
    assert_eq!(world.run(&["token", "revoke", id]).code, Some(0));
    made = api.with_token(&secret).get("/v1/runs");
    assert_eq!(code(&made), refused(401, "unauthorized"));
    assert!(made.body.contains("the token ci was revoked at "), "{made:?}");
    assert_eq!(made.headers["www-authenticate"], "Bearer");
    assert_eq!(world.json(&["token", "revoke", "ci", "--json"])["status"], "revoked", "again is the same");
    assert_eq!(world.run(&["token", "revoke", "nobody"]).code, Some(2));
    drop(_server);
    assert!(
        !stored(&world, secret.as_bytes()) && !stored(&world, &secret.as_bytes()[8..]),
        "the store has the secret"
    );
}

/// Whether some file of the data directory has these bytes.
fn stored(world: &World, bytes: &[u8]) -> bool {
    let mut folders = vec![world.data()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read(path).is_ok_and(|all| all.windows(bytes.len()).any(|part| part == bytes))
            {
                return true;
            }
        }
    }
    false
}

#[test]
fn requests_for_tokens_that_do_not_fit_are_refused_by_field() {
    let world = World::with_flows();
    let (_server, api) = served(&world);
    let admin = api.with_token(&token(&world, "boss", &["--scope", "admin"]));
    for (body, at) in [
        (json!({}), None),
        (json!({"name": "a"}), None),
        (json!({"name": "a", "scopes": ["fly"]}), None),
        (json!({"name": "a", "scopes": "read"}), None),
        (json!({"name": 1, "scopes": ["read"]}), None),
        (json!({"name": "a", "scopes": ["read"], "token": "mine"}), None),
        (json!({"name": "a", "scopes": []}), Some("scopes")),
        (json!({"name": "a b", "scopes": ["read"]}), Some("name")),
        (json!({"name": "x".repeat(5_000), "scopes": ["read"]}), Some("name")),
        (json!({"name": "a", "scopes": ["read"], "expires": "tomorrow"}), Some("expires")),
        (json!({"name": "a", "scopes": ["read"], "expires": "0s"}), Some("expires")),
        (json!({"name": "a", "scopes": ["admin"], "flows": ["Desk"]}), Some("flows")),
        (json!({"name": "a", "scopes": ["read"], "roles": ["owner"]}), Some("roles")),
        (json!({"name": "a", "scopes": ["answer"]}), Some("roles")),
    ] {
        let answer = admin.post("/v1/tokens", &body);
        assert_eq!(code(&answer), refused(422, "invalid"), "{body}: {answer:?}");
        assert_eq!(answer.json()["error"]["at"].as_str(), at, "{body}: {answer:?}");
    }
    assert_eq!(admin.get("/v1/tokens").json()["items"].as_array().unwrap().len(), 1);
}

/// Every route with a token of every scope: what is allowed is what the document says, and a refusal names what it takes.
#[test]
fn each_scope_opens_its_own_routes_and_no_others() {
    let world = World::with_flows();
    let (_server, api) = served(&world);
    let callers = SCOPES.map(|scope| {
        let role: &[&str] = if scope == "answer" { &["--role", "*"] } else { &[] };
        (scope, api.with_token(&token(&world, scope, &[&["--scope", scope], role].concat())))
    });
    let text = std::fs::read_to_string(repository::root().join("runtime/protocol/openapi.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let json = [("content-type", "application/json")];
    for (route, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let (method, path) = (method.to_uppercase(), route.replace(['{', '}'], ""));
            // Bytes by their hash are for those who look at runs and for those who work: either scope will do.
            let either = operation["operationId"] == "blob";
            let needed = if either { "work" } else { operation["x-scope"].as_str().unwrap() };
            let stranger = api.send(&method, &path, &json, "{}");
            assert_eq!(stranger.status == 401, needed != "none", "{method} {path} without a token");
            for (scope, caller) in &callers {
                let answer = caller.send(&method, &path, &json, "{}");
                let may = ["any", "each", "none", scope].contains(&needed)
                    || (*scope == "admin" && needed != "owner")
                    || (*scope == "read" && either);
                let what = format!("{method} {path} with `{scope}`: {answer:?}");
                assert_ne!(answer.status, 401, "{what}");
                assert_eq!(answer.status == 403, !may, "{what}");
                assert!(may || needed == "owner" || answer.body.contains(&format!("`{needed}`")), "{what}");
            }
        }
    }
    let methods = document["paths"]["/v1/rpc"]["post"]["x-scopes"].as_object().unwrap();
    for (scope, caller) in &callers {
        let call = |method: &String| json!({"jsonrpc": "2.0", "id": method, "method": method, "params": {"run": "none"}});
        let batch: Vec<Value> = methods.keys().map(call).collect();
        let answers = caller.post("/v1/rpc", &json!(batch)).json();
        for answer in answers.as_array().unwrap() {
            let needed = methods[answer["id"].as_str().unwrap()].as_str().unwrap();
            let forbidden = answer["error"]["data"]["code"] == "forbidden";
            assert_eq!(forbidden, ![needed, "admin"].contains(scope), "{scope}: {answer}");
        }
    }
}

/// Case SEC-08, for runs, flows and schedules beyond a token: they look as if they were not there.
#[test]
fn a_token_of_one_flow_learns_nothing_of_others() {
    let world = World::with_flows();
    let (_server, api) = served(&world);
    for (flow, run) in [("Desk", "d-1"), ("Other", "o-1"), ("Other", "o-2"), ("Desk", "d-2")] {
        world.begin(flow, run, &json!({"topic": "tea"}));
    }
    let all = ["--scope", "read,start,send,answer,control,deploy", "--role", "*", "--flow", "Desk"];
    let api = api.with_token(&token(&world, "desk", &all));
    let json = [("content-type", "application/json")];
    for (method, rest, body) in [
        ("GET", "", ""),
        ("GET", "/result?wait=5m", ""),
        ("GET", "/tree", ""),
        ("GET", "/way", ""),
        ("GET", "/events", ""),
        ("GET", "/stream", ""),
        ("GET", "/usage", ""),
        ("GET", "/export", ""),
        ("POST", "/messages", r#"{"type":"Say"}"#),
        ("POST", "/withdraw", r#"{"id":"m"}"#),
        ("POST", "/answers", r#"{"choice":"approve"}"#),
        ("POST", "/cancel", "{}"),
        ("POST", "/terminate", "{}"),
        ("POST", "/settle", r#"{"op":"1.0","verdict":"fail"}"#),
        ("POST", "/release", r#"{"op":"1.0"}"#),
        ("POST", "/fork", "{}"),
        ("POST", "/migrate", r#"{"machine":"none"}"#),
        ("POST", "/compatibility", r#"{"machine":"none"}"#),
    ] {
        let ask = |run: &str| api.send(method, &format!("/v1/runs/{run}{rest}"), &json, body);
        let (other, none) = (ask("o-1"), ask("none"));
        assert_eq!(code(&other), refused(404, "not_found"), "{method} {rest}: {other:?}");
        assert_eq!(other.body.replace("o-1", "none"), none.body, "{method} {rest}");
    }
    let rpc = |run: &str| {
        api.post("/v1/rpc", &json!({"jsonrpc": "2.0", "id": 1, "method": "runs.get", "params": {"run": run}}))
    };
    assert_eq!(rpc("o-1").body.replace("o-1", "none"), rpc("none").body);
    assert_eq!(world.get("/v1/runs/o-1")["status"], "waiting", "nothing was done to it");
    lists(&api);
    assert!(api.stream("d-1", None).next().is_some(), "its own stream");
    let cursor = api.send("GET", "/v1/runs/d-1/stream", &[("last-event-id", "o-1/1.0")], "");
    assert_eq!(code(&cursor), refused(400, "invalid_cursor"), "{cursor:?}");
    starts(&world, &api);
}

fn lists(api: &Api) {
    let ids = |page: &Value| {
        let items = page["items"].as_array().unwrap().iter();
        items
            .map(|run| run.get("id").or(run.get("run")).unwrap().as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for path in ["/v1/runs?limit=1", "/v1/runs?limit=1&status=waiting", "/v1/runs?flow=Desk", "/v1/usage?"] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = api.get(&format!("{path}{cursor}")).json();
            found.extend(ids(&page));
            let Some(next) = page["next"].as_str() else { break };
            assert!(!next.contains("o-"), "{page}");
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found, ["d-2", "d-1"], "{path}");
    }
    assert!(ids(&api.get("/v1/runs?flow=Other").json()).is_empty());
    assert_eq!(code(&api.get("/v1/runs?cursor=AAAA")), refused(400, "invalid_cursor"));
    let flows = api.get("/v1/flows");
    assert!(flows.body.contains("Desk") && !flows.body.contains("Other"), "{flows:?}");
    let status = api.get("/v1/status").json();
    assert_eq!(status["engine"], json!({"ready": true, "recovering": false}));
}

fn starts(world: &World, api: &Api) {
    let begin = |flow: &str, id: &str| {
        api.post("/v1/runs", &json!({"flow": flow, "id": id, "input": {"topic": "tea"}}))
    };
    assert_eq!(begin("Other", "x").body.replace("Other", "Nope"), begin("Nope", "x").body);
    let taken = begin("Desk", "o-1");
    assert_eq!(code(&taken), refused(409, "conflict"));
    assert!(!taken.body.contains("Other"), "{taken:?}");
    let taken = api.post("/v1/runs/d-1/fork", &json!({"id": "O-1"}));
    assert!(code(&taken) == refused(409, "conflict") && !taken.body.contains("o-1"), "{taken:?}");
    assert_eq!(begin("Desk", "d-3").status, 201);
    let text = world.file("flows/other.flow");
    let other = api.post("/v1/flows", &json!({"files": [{"name": "o.flow", "text": text}]}));
    assert_eq!(code(&other), refused(403, "forbidden"), "{other:?}");
    let put = |name: &str, flow: &str| {
        let body = json!({"flow": flow, "input": {"topic": "tea"}, "cron": ["@daily"]}).to_string();
        api.send("PUT", &format!("/v1/schedules/{name}"), &[("content-type", "application/json")], &body)
    };
    let added = [
        "schedule",
        "add",
        "theirs",
        "flows/other.flow",
        "--cron",
        "@daily",
        "--input",
        "{\"topic\": \"x\"}",
    ];
    assert_eq!(world.run(&added).code, Some(0));
    assert_eq!(
        (put("ours", "Desk").status, put("ours", "Other").status, put("theirs", "Desk").status),
        (201, 404, 409)
    );
    for (method, rest) in
        [("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/run-now")]
    {
        let answer = api.send(
            method,
            &format!("/v1/schedules/theirs{rest}"),
            &[("content-type", "application/json")],
            "",
        );
        assert_eq!(code(&answer), refused(404, "not_found"), "{method} {rest}");
    }
    let listed = api.get("/v1/schedules");
    assert!(listed.body.contains("ours") && !listed.body.contains("theirs"), "{listed:?}");
}

#[test]
fn answers_are_given_in_roles_that_the_token_has() {
    let world = World::with_flows();
    let (_server, api) = served(&world);
    let holder = |name: &str, roles: &[&str]| {
        let roles: Vec<&str> = roles.iter().flat_map(|role| ["--role", role]).collect();
        api.with_token(&token(&world, name, &[&["--scope", "answer"], &roles[..]].concat()))
    };
    let none = world.run(&["token", "add", "x", "--scope", "answer"]);
    assert!(none.code == Some(2) && none.stderr.contains("needs a role"), "{none:?}");
    let (owner, clerk) = (holder("ann", &["owner"]), holder("bob", &["clerk"]));
    let (both, all) = (holder("both", &["owner", "clerk"]), holder("all", &["*"]));
    let answers = "/v1/runs/r/answers";
    let (yes, as_owner) = (json!({"choice": "approve"}), json!({"choice": "approve", "role": "owner"}));
    world.begin("Desk", "r", &json!({"topic": "tea"}));
    assert_eq!(code(&owner.post(answers, &yes)), refused(404, "not_found"));
    let _accepted = world.post("/v1/runs/r/messages", &json!({"type": "closed"}));
    let first = world.questions("r", 1).remove(0)["id"].clone();
    assert_eq!(code(&owner.post(answers, &yes)), refused(403, "forbidden"), "it is for a clerk");
    assert_eq!(clerk.post(answers, &yes).status, 200);
    let decided = json!({"choice": "approve", "question": first});
    let always = json!({"choice": "approve", "always": "shell"});
    for (what, api, body, status, code_) in [
        ("another role", &clerk, &yes, 403, "forbidden"),
        ("the owner's role, by a clerk", &clerk, &as_owner, 403, "forbidden"),
        ("several roles, none named", &both, &yes, 422, "invalid"),
        (
            "a role that is odd",
            &both,
            &json!({"choice": "approve", "role": "x".repeat(5_000)}),
            403,
            "forbidden",
        ),
        ("a role of another type", &both, &json!({"choice": "approve", "role": 1}), 422, "invalid"),
        ("a question that is decided", &owner, &decided, 409, "already_decided"),
        ("a tool allowed for good", &owner, &always, 403, "forbidden"),
    ] {
        let answer = api.post(answers, body);
        assert_eq!(code(&answer), refused(status, code_), "{what}: {answer:?}");
    }
    assert_eq!(owner.post(answers, &yes).status, 200);
    assert_eq!(world.outcome("r")["value"], "closed");
    let answered: Vec<Value> =
        world.history("r").into_iter().filter(|event| event["kind"] == "answered").collect();
    let who = |event: &Value| (event["by"].clone(), event["role"].clone());
    assert_eq!(who(&answered[0]), (json!("token:bob"), json!("clerk")));
    assert_eq!(who(&answered[1]), (json!("token:ann"), json!("owner")));

    world.begin("Desk", "s", &json!({"topic": "tea"}));
    let _accepted = world.post("/v1/runs/s/messages", &json!({"type": "closed"}));
    let _asked = world.questions("s", 1);
    assert_eq!(all.post("/v1/runs/s/answers", &always).status, 200, "every role");
    let _asked = world.questions("s", 1);
    assert_eq!(both.post("/v1/runs/s/answers", &as_owner).status, 200, "one of several roles");
    assert_eq!(world.outcome("s")["value"], "closed");
}

#[test]
fn terms_of_runs_that_reach_further_need_more_than_a_start() {
    let world = World::with_flows();
    let (_server, api) = served(&world);
    let starter = api.with_token(&token(&world, "starter", &["--scope", "start"]));
    let trusted = api.with_token(&token(&world, "trusted", &["--scope", "start,answer", "--role", "*"]));
    let begin = |more: Value| {
        let mut body = json!({"flow": "Desk", "input": {"topic": "tea"}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let allow = begin(json!({"permissions": {"allow": ["shell"]}}));
    assert_eq!(code(&starter.post("/v1/runs", &allow)), refused(403, "forbidden"));
    assert_eq!(trusted.post("/v1/runs", &allow).status, 201);
    assert_eq!(starter.post("/v1/runs", &begin(json!({"permissions": {"deny": ["shell"]}}))).status, 201);
    assert_eq!(code(&trusted.post("/v1/runs", &begin(json!({"profile": "p"})))), refused(403, "forbidden"));
    let run = starter.post("/v1/runs", &begin(json!({"id": "by-token"})));
    assert_eq!(run.status, 201);
    assert_eq!(world.history("by-token")[0]["by"], "token:starter");
}
