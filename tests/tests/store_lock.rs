//! One process owns a data directory; others are told who, or work through it.

use outlast_tests::world::World;
use serde_json::json;

/// Case STO-02: a second server is refused and learns who has the directory, whatever name it uses for it.
#[test]
fn a_second_server_is_refused_and_told_who_has_the_directory() {
    let world = World::with_flows();
    let server = world.host(&["--no-workers"]);
    let link = world.work().join("link");
    std::os::unix::fs::symlink(world.data(), &link).unwrap();
    for data in [&world.data(), &link] {
        let second = world.run(&["serve", "--no-workers", "--data", data.to_str().unwrap()]);
        assert_eq!(second.code, Some(75), "{second:?}");
        let (pid, path) = (server.pid().to_string(), data.display().to_string());
        assert!(second.stderr.contains(&pid) && second.stderr.contains(&path), "{pid}, {path}: {second:?}");
    }
}

/// Case STO-02: the same directory at another place of the tree is the same directory.
#[test]
fn a_server_on_a_bind_mount_of_the_directory_is_refused() {
    let world = World::with_flows();
    let server = world.host(&["--no-workers"]);
    let place = world.work().join("elsewhere");
    std::fs::create_dir(&place).unwrap();
    let mount = |arguments: &[&std::ffi::OsStr]| {
        std::process::Command::new("mount")
            .args(arguments)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if !mount(&["--bind".as_ref(), world.data().as_os_str(), place.as_os_str()]) {
        return println!("skipped: nothing can be mounted here; that takes root");
    }
    let second = world.run(&["serve", "--no-workers", "--data", place.to_str().unwrap()]);
    let _gone = std::process::Command::new("umount").arg("-l").arg(&place).output();
    assert_eq!(second.code, Some(75), "{second:?}");
    assert!(second.stderr.contains(&server.pid().to_string()), "{second:?}");
}

/// Case STO-02: other drivers work beside a server, through it, whatever name they use for the directory.
#[test]
fn a_batch_run_beside_a_server_works_through_it() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers"]);
    let _worker = world.worker("w", 1);
    let link = world.work().join("link");
    std::os::unix::fs::symlink(world.data(), &link).unwrap();
    let data = link.to_str().unwrap();
    let input = json!({"name": "a"}).to_string();
    let run = world.run(&["run", "flows/repeatable.flow", "--id", "r", "--input", &input, "--data", data]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.outcome("r")["kind"], "done");
    assert_eq!(world.lines("a").len(), 1);
}

/// Case STO-02: a killed owner leaves nothing to clean up.
#[test]
fn a_killed_owner_blocks_nobody() {
    let world = World::with_flows();
    for _ in 0..3 {
        world.host(&["--no-workers"]).murder();
    }
    let _server = world.host(&["--no-workers"]);
}

/// Case STO-02: it is the lock that counts, not the file.
#[test]
fn a_lock_file_alone_blocks_nobody() {
    let world = World::with_flows();
    world.host(&["--no-workers"]).murder();
    for entry in std::fs::read_dir(world.data()).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if name.contains("lock") {
            std::fs::write(entry.path(), "1\n").unwrap();
        }
    }
    std::fs::write(world.data().join("lock"), "1\n").unwrap();
    let _server = world.host(&["--no-workers"]);
}
