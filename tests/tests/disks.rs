//! Disks that are full, that cannot be written, and stores that are copied while they are written to, through the whole binary.
//!
//! Small disks are mounted, which takes root; elsewhere those tests say that they are skipped. Leaves exact points of failure to the tests of the
//! store and of the engine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_tests::ledger::Gate;
use outlast_tests::process::until;
use outlast_tests::random::{is_whole, repeats};
use outlast_tests::socket::request;
use outlast_tests::world::World;
use serde_json::json;

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// A disk of 300 MB at the place of a world's data.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(world: &World) -> Option<SmallDisk> {
        let place = world.data();
        std::fs::create_dir_all(&place).unwrap();
        let mounted = succeeds("mount", &["-t", "tmpfs", "-o", "size=300m", "outlast-test", place.to_str()?]);
        if !mounted {
            println!("skipped: a small disk cannot be mounted here; that takes root");
        }
        mounted.then_some(SmallDisk(place))
    }

    /// Takes all its room but a megabyte.
    fn fill(&self) {
        let file = self.0.join("filling");
        let all = format!("dd if=/dev/zero of='{0}' bs=1M; truncate -s -1M '{0}'", file.display());
        assert!(succeeds("sh", &["-c", &all]));
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("filling")).unwrap();
    }

    fn turn(&self, how: &str) {
        assert!(succeeds("mount", &["-o", &format!("remount,{how}"), self.0.to_str().unwrap()]), "{how}");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _gone = succeeds("umount", &["-l", self.0.to_str().unwrap()]);
    }
}

/// Case STO-04: the disk is full while a result is on its way. Every driver says so, nothing new begins, and with room again the same
/// process takes the result; a process that is started on the full disk shows what there is.
#[test]
fn a_full_disk_is_told_by_every_driver_and_delays_what_is_on_its_way() {
    let world = World::with_flows();
    let Some(disk) = SmallDisk::mount(&world) else { return };
    let mut server = world.host(&["--no-workers", "flows/repeatable.flow", "flows/held_once.flow"]);
    let _worker = world.worker("w", 2);
    for (run, flow) in [("a", "Repeatable"), ("b", "HeldOnce")] {
        world.close(run, Gate::After);
        world.begin(flow, run, &json!({"name": run}));
        world.reached(run, Gate::After);
    }
    disk.fill();
    world.open("a", Gate::After);
    let input = json!({"name": "c"}).to_string();
    let run =
        world.run(&["run", "flows/repeatable.flow", "--id", "c", "--input", &input, "--timeout", "20s"]);
    assert!(run.code != Some(0) && run.stderr.contains("make room"), "{run:?}");
    world.write("in.jsonl", &format!("{input}\n"));
    let batch =
        ["batch", "flows/repeatable.flow", "--inputs", "in.jsonl", "--out", "out.jsonl", "--timeout", "20s"];
    let batch = world.run(&batch);
    assert!(batch.code != Some(0) && batch.stderr.contains("make room"), "{batch:?}");
    let mut rpc = world.start(&["rpc"]);
    let start = json!({"jsonrpc": "2.0", "id": 1, "method": "runs.start",
        "params": {"flow": "Repeatable", "id": "c", "input": {"name": "c"}}});
    rpc.say(&start.to_string());
    let refused = rpc.line("the refusal", |line| line.contains("\"error\""));
    assert!(refused.contains("disk_full"), "{refused}");
    drop(rpc);
    assert_eq!(world.lines("c").len(), 0, "no step whose start could not be recorded");
    for run in ["a", "b"] {
        assert_ne!(world.get(&format!("/v1/runs/{run}"))["status"], "ended", "{run}");
    }
    disk.free();
    assert_eq!(world.outcome("a")["kind"], "done", "without a restart");
    assert_eq!(world.lines("a").len(), 1);
    // The same with a restart on the full disk.
    disk.fill();
    server.murder();
    let _server = world.host(&["--no-workers"]);
    assert_eq!(world.get("/v1/runs/a")["status"], "ended");
    world.open("b", Gate::After);
    disk.free();
    assert_eq!(world.outcome("b")["kind"], "done");
    assert_eq!(world.lines("b").len(), 1, "the worker lived on, and its result counts");
    assert_eq!(world.run(&["doctor"]).code, Some(0));
}

/// Case STO-05: a directory that cannot be written is refused with one clear line and a code of its own, and every byte stays; when it can be
/// written again, everything is there.
#[test]
fn a_directory_that_cannot_be_written_is_refused_with_one_line() {
    let world = World::with_flows();
    let Some(disk) = SmallDisk::mount(&world) else { return };
    let mut server = world.host(&["--no-workers", "flows/waiting_1.flow"]);
    world.begin("Waiting", "r", &json!({"name": "r"}));
    server.murder();
    disk.turn("ro");
    for arguments in [
        &["serve", "--no-workers"][..],
        &["run", "--id", "r", "--timeout", "1s"],
        &["runs"],
        &["send", "r", "Go", "{}"],
    ] {
        let end = world.run(arguments);
        assert!(end.code.is_some_and(|code| code != 0 && code != 101), "{arguments:?}: {end:?}");
        assert!(end.stderr.contains(world.data().to_str().unwrap()), "{arguments:?}: {end:?}");
        assert!(
            end.stderr.trim().lines().count() <= 2 && !end.stderr.contains("panicked"),
            "{arguments:?}: {end:?}"
        );
    }
    disk.turn("rw");
    let _server = world.host(&["--no-workers"]);
    let _worker = world.worker("w", 1);
    assert_eq!(world.run(&["send", "r", "Go", "{}"]).code, Some(0));
    assert_eq!(world.outcome("r")["value"], "old");
}

/// Case STO-09: what `cp -r` makes of a store amid work opens as a beginning of its histories or is refused with a word, the same each time; a
/// backup that is made amid it always opens. As a whole: 20 copies.
#[test]
fn a_raw_copy_amid_work_opens_consistently_or_is_refused() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/desk.flow"]);
    for run in ["r0", "r1", "r2"] {
        world.begin("Desk", run, &json!({"topic": "t"}));
    }
    let (socket, stop) = (world.socket(), AtomicBool::new(false));
    let copies = repeats(if is_whole() { 20 } else { 4 });
    std::thread::scope(|scope| {
        for run in ["r0", "r1", "r2"] {
            let (socket, stop) = (&socket, &stop);
            scope.spawn(move || {
                let text = "x".repeat(2_000);
                let said = json!({"type": "Say", "value": {"text": text}}).to_string();
                let headers = ["content-type: application/json"];
                while !stop.load(Ordering::Relaxed) {
                    let _said = request(
                        socket,
                        "POST",
                        &format!("/v1/runs/{run}/messages"),
                        &headers,
                        said.as_bytes(),
                    );
                }
            });
        }
        for copy in 0..copies {
            let (raw, backup) = (format!("raw-{copy}"), format!("backup-{copy}"));
            let events = world.get("/v1/runs/r0")["events"].as_u64().unwrap();
            until("more work", || world.get("/v1/runs/r0")["events"].as_u64() > Some(events + 5));
            assert!(succeeds(
                "cp",
                &["-r", world.data().to_str().unwrap(), world.work().join(&raw).to_str().unwrap()]
            ));
            let made = world.run(&["backup", &backup]);
            assert_eq!(made.code, Some(0), "{made:?}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    let whole = ["r0", "r1", "r2"].map(|run| world.history(run));
    for copy in 0..copies {
        for name in [format!("raw-{copy}"), format!("backup-{copy}")] {
            let found = [0, 1].map(|_| opened(&world, &name));
            assert_eq!(found[0], found[1], "{name}: the same each time");
            assert!(name.starts_with("raw") || found[0].is_some(), "{name}: a backup opens");
            for (part, whole) in found[0].iter().flatten().zip(&whole) {
                // Of a long history the first page is compared.
                let part = &part[..part.len().min(whole.len())];
                assert!(!part.is_empty() && whole.starts_with(part), "{name} has another history");
            }
        }
    }
}

/// The histories in a copy of a store; none if it is refused, which takes a word and no panic.
fn opened(world: &World, name: &str) -> Option<Vec<Vec<serde_json::Value>>> {
    let looked = world.run(&["doctor", "--data", name]);
    assert!(!looked.stderr.contains("panicked") && looked.code != Some(101), "{name}: {looked:?}");
    if looked.code != Some(0) {
        let words = format!("{}{}", looked.stdout, looked.stderr);
        assert!(
            words.contains("damaged") || words.contains("lost") || words.contains("missing"),
            "{name}: {words}"
        );
        return None;
    }
    let events = |run: &&str| {
        let listed = world.json(&["events", run, "--json", "--data", name]);
        let mut items = listed["items"].as_array().unwrap().clone();
        items.retain(|event| event["kind"] != "emit");
        items
    };
    Some(["r0", "r1", "r2"].iter().map(events).collect())
}
