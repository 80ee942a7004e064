//! Bytes by their hash, with real processes: brought, named, killed, fetched, carried elsewhere.

use outlast_tests::socket::request;
use outlast_tests::world::World;
use serde_json::json;

/// The BLAKE3 hash of the text `"x"`.
const HASH: &str = "52169dd2ef084185bc70d5eb424273244b91850db796a46347ee0fa9fdb235c9";

#[test]
fn what_a_run_names_is_there_after_a_kill_and_goes_along_in_an_export() {
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/waiting_1.flow"]);
    let path = format!("/v1/blobs/{HASH}");
    let put = |body: &[u8]| request(&world.socket(), "PUT", &path, &[], body).unwrap();
    let wrong = put(b"y");
    assert_eq!((wrong.status, &wrong.body["error"]["code"]), (422, &json!("invalid")));
    assert_eq!(put(&vec![0; (32 << 20) + 1]).status, 413);
    assert_eq!((put(b"\"x\"").status, put(b"\"x\"").body), (201, json!({"hash": HASH, "bytes": 3})));
    world.begin("Waiting", "r", &json!({"name": format!("see blob:{HASH}")}));
    assert_eq!(put(b"\"x\"").status, 200, "a run names it now");
    server.murder();
    let fetched = world.run(&["blob", &format!("blob:{HASH}")]);
    assert_eq!((fetched.code, fetched.stdout.trim_end()), (Some(0), "\"x\""), "{fetched:?}");
    let missing = world.run(&["blob", &HASH.replace('5', "6")]);
    assert!(missing.code != Some(0) && missing.stderr.contains("there is no blob"), "{missing:?}");
    assert_eq!(world.run(&["export", "r", "--out", "r.jsonl"]).code, Some(0));
    assert_eq!(world.run(&["import", "r.jsonl", "--data", "there"]).code, Some(0));
    let there = world.run(&["blob", HASH, "--out", "x.txt", "--data", "there"]);
    assert_eq!((there.code, world.file("x.txt").as_str()), (Some(0), "\"x\""), "{there:?}");
    assert_eq!(world.run(&["doctor", "--data", "there"]).code, Some(0));
}

/// A hash is no way around a token's flows: whoever may not know of the runs that name a blob is told what is told of one that is not there.
#[test]
fn a_token_of_some_flows_gets_what_their_runs_name_and_nothing_else() {
    let world = World::with_flows();
    let (_server, api) =
        world.serve(&["--tokens", "--no-workers", "flows/waiting_1.flow", "flows/desk.flow"]);
    let path = format!("/v1/blobs/{HASH}");
    let of = |flow: &str, scope: &str| {
        let name = format!("{flow}-{}", scope.replace(',', "-"));
        let made = world.json(&["token", "add", &name, "--json", "--scope", scope, "--flow", flow]);
        api.with_token(made["token"].as_str().unwrap_or_else(|| panic!("{made}")))
    };
    let brought = request(&world.socket(), "PUT", &path, &[], b"\"x\"").map(|answer| answer.status);
    assert_eq!(brought.ok(), Some(201));
    assert_eq!(of("Waiting", "read").get(&path).status, 404, "no run names it yet");
    world.begin("Waiting", "r", &json!({"name": format!("see blob:{HASH}")}));
    let seen = of("Waiting", "control,read").get(&path);
    assert_eq!((seen.status, seen.body.as_str()), (200, "\"x\""), "{seen:?}");
    let none = HASH.replace('5', "6");
    for scope in ["read", "start,read"] {
        let other = of("Desk", scope);
        let (hidden, missing) = (other.get(&path), other.get(&format!("/v1/blobs/{none}")));
        assert_eq!((hidden.status, missing.status), (404, 404), "{scope}: {hidden:?}");
        assert_eq!(hidden.body.replace(HASH, &none), missing.body, "{scope}");
    }
}
