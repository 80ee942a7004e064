//! Deleting runs with real processes: by command, by time, through kills.

use outlast_tests::process::until;
use outlast_tests::random::{Random, repeats};
use outlast_tests::world::World;
use serde_json::json;

#[test]
fn a_run_is_deleted_by_command_and_the_next_steps_are_named_if_it_cannot_be() {
    let world = World::with_flows();
    let begun = world.host(&["--no-workers", "flows/waiting_1.flow"]);
    world.begin("Waiting", "r", &json!({"name": "r"}));
    world.begin("Waiting", "s", &json!({"name": "s"}));
    let refused = world.run(&["delete", "r"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("has not ended") && refused.stderr.contains("outlast cancel r"),
        "{refused:?}"
    );
    for id in ["r", "s"] {
        assert_eq!(world.run(&["terminate", id]).code, Some(0));
    }
    let deleted = world.run(&["delete", "r", "s", "nobody", "--json"]);
    assert_eq!(deleted.code, Some(2), "{deleted:?}");
    assert!(deleted.stdout.contains("[\"r\",\"s\"]") && deleted.stderr.contains("nobody"), "{deleted:?}");
    assert!(world.run(&["show", "r"]).stderr.contains("there is no run r"));
    let weighed = world.run(&["du"]);
    assert!(weighed.stdout.contains("bytes in 0 runs"), "{weighed:?}");
    // Nobody hosts: the command does it by itself.
    drop(begun);
    let shown = world.json(&["retention", "7d", "--flow", "Waiting", "--json"]);
    assert_eq!(shown, json!({"flows": {"Waiting": "7d"}}));
    assert!(world.run(&["retention"]).stdout.contains("forever"));
    assert_eq!(world.run(&["retention", "1s"]).code, Some(2));
}

/// Invariant: whatever the moment of a kill, a deletion is whole or not begun, and in the end nothing is left but what was not deleted.
#[test]
fn deletions_come_to_their_end_through_kills() {
    let mut random = Random::from_environment(19);
    for round in 0..repeats(6) {
        let world = World::with_flows();
        let mut server = world.host(&["--no-workers", "flows/waiting_1.flow"]);
        let ids: Vec<String> = (0..12).map(|i| format!("r{i}")).collect();
        for id in &ids {
            world.begin("Waiting", id, &json!({"name": "x".repeat(20_000)}));
            let forked =
                world.post(&format!("/v1/runs/{id}/fork"), &json!({"id": format!("{id}-fork"), "at": 1}));
            assert_eq!(forked.status, 201, "{}", forked.body);
            assert_eq!(world.post(&format!("/v1/runs/{id}/terminate"), &json!({})).status, 202);
        }
        let first = std::time::Duration::from_micros(random.below(30_000));
        let words: Vec<&str> = ["delete"].into_iter().chain(ids.iter().map(String::as_str)).collect();
        let deleting = world.start(&words);
        server.work_for(first);
        server.murder();
        drop(deleting);
        let _server = world.host(&["--no-workers"]);
        for id in &ids {
            let ended = world.run(&["delete", id]);
            let gone = ended.stderr.contains("there is no run");
            assert!(ended.code == Some(0) || gone, "round {round}: {ended:?}");
            let fork = world.get(&format!("/v1/runs/{id}-fork"));
            assert_eq!(fork["status"], "waiting", "round {round}: {fork}");
            assert_eq!(world.run(&["terminate", &format!("{id}-fork")]).code, Some(0));
            assert_eq!(world.run(&["delete", &format!("{id}-fork")]).code, Some(0));
        }
        until("all to be taken away", || {
            let weighed = world.json(&["du", "--json"]);
            weighed["items"].as_array().unwrap().is_empty()
        });
        let doctor = world.run(&["doctor"]);
        assert_eq!(doctor.code, Some(0), "round {round}: {doctor:?}");
    }
}
