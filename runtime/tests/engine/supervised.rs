//! Workers under supervision, with real processes: one that is stopped is replaced when its lease ends.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use outlast_protocol::profile::{Model, Profile};
use outlast_protocol::requests::Permissions;
use outlast_protocol::worker::{Offer, Register};
use outlast_runtime::supervisor::{Setup, Supervisor};
use serde_json::json;
use tempfile::TempDir;

use super::world::{Worker, World, in_time, start};

const TOOL: &str = r#"
edition 1
activity look(x: int) -> int within 1h in all 2h queue "tool" effect pure
flow Tool(x: int) -> int version 1 {
  start Work
  state Work { do look(x) as y   on ok -> end y   on problem -> end 0 }
}
"#;

/// Writes down its process id and its boot id, and does nothing more.
const SCRIPT: &str = "#!/bin/sh\nfor boot; do :; done\necho \"$$ $boot\" >> started\nexec sleep 600\n";

/// A worker process that the script stands for.
#[derive(Clone, Debug, PartialEq)]
struct Started {
    pid: u32,
    boot: String,
}

/// The processes that were started in a directory. They end with it.
struct Place(TempDir);

impl Place {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn started(&self) -> Vec<Started> {
        let text = std::fs::read_to_string(self.path().join("started")).unwrap_or_default();
        let read = |line: &str| {
            let (pid, boot) = line.split_once(' ')?;
            Some(Started { pid: pid.parse().ok()?, boot: boot.to_owned() })
        };
        text.lines().filter_map(read).collect()
    }

    /// Waits until so many were started.
    async fn until_started(&self, count: usize) -> Vec<Started> {
        let mut look = tokio::time::interval(Duration::from_millis(2));
        let looking = async {
            while self.started().len() < count {
                look.tick().await;
            }
        };
        in_time("a worker", looking).await;
        self.started()
    }

    fn script(&self) -> PathBuf {
        let path = self.path().join("worker.sh");
        std::fs::write(&path, SCRIPT).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for started in self.started() {
            signal(started.pid, "KILL");
        }
    }
}

fn signal(pid: u32, name: &str) {
    let _gone = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).output();
}

/// Waits until a process is in a state.
async fn until_state(pid: u32, wanted: Option<char>) {
    let mut look = tokio::time::interval(Duration::from_millis(2));
    let looking = async {
        while state(pid) != wanted {
            look.tick().await;
        }
    };
    in_time("the state of a process", looking).await;
}

/// The letter of a process's state; none if it is gone.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[tokio::test]
async fn a_worker_that_is_stopped_is_ended_and_replaced_when_its_lease_ends() {
    let place = Place(TempDir::new().unwrap());
    let world = World::new().await;
    world.deploy(TOOL).await;
    let model = Model::Scripted { script: "[]".into(), script_name: "none".into() };
    let (permissions, environment, sandbox) =
        (Permissions::default(), Default::default(), Default::default());
    let directory = place.path().to_path_buf();
    let profile = Profile { directory, model, permissions, environment, sandbox, servers: None };
    world.engine.put_profile(&profile.name(), profile.record()).await.unwrap();
    let setup = Setup {
        program: place.script(),
        socket: place.path().join("socket"),
        logs: place.path().join("log"),
    };
    let _supervisor = Supervisor::start(world.engine.clone(), setup);
    let mut tool = start("r", "Tool", json!({ "x": 1 }));
    tool.profile = Some(profile.name());
    world.engine.start(tool, "test").await.unwrap();
    let first = place.until_started(1).await.remove(0);
    let register = |started: &Started| Register {
        worker: "tool".into(),
        boot: started.boot.clone(),
        queues: vec!["tool".into()],
        profile: Some(profile.name()),
        concurrency: 1,
        activities: vec![Offer { name: "look".into(), ..Offer::default() }],
        holding: Vec::new(),
        pid: None,
    };
    let session = world.engine.register(register(&first)).await.unwrap().session;
    let worker = Worker { engine: world.engine.clone(), session };
    let task = worker.task().await;
    signal(first.pid, "STOP");
    until_state(first.pid, Some('T')).await;
    world.advance(29_999).await;
    assert_eq!(state(first.pid), Some('T'), "its lease has not ended");
    assert_eq!(place.started(), std::slice::from_ref(&first));
    world.advance(1).await;
    let second = place.until_started(2).await.remove(1);
    assert_ne!(first.boot, second.boot);
    until_state(first.pid, None).await;
    let session = world.engine.register(register(&second)).await.unwrap().session;
    let worker = Worker { engine: world.engine.clone(), session };
    let again = worker.task().await;
    assert_eq!((again.key.as_str(), again.attempt), (task.key.as_str(), 2));
    worker.done(&again, json!(2)).await;
    assert_eq!(world.value("r").await, json!(2));
}
