//! Worker processes: starting them, finding those that a former runtime started, ending them.
//!
//! A worker's command line names the socket, its profile and its boot id, so a survivor is recognised by it and nothing has to be
//! remembered on disk. Invariant: a signal goes only to a process that we started or recognised.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};

use super::{Kind, Setup};
use crate::limits::{WORKER_LOG_BYTES_MAX, WORKER_LOOK_MS};

/// A worker process, by what is needed to speak of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) boot: String,
}

/// A worker that a former runtime left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Survivor {
    pub(super) process: Process,
    pub(super) kind: Kind,
    pub(super) profile: String,
}

/// A worker in charge.
#[derive(Debug)]
pub(super) enum Running {
    /// Our own child.
    Child(Process, Child),
    /// A child of a runtime that is gone.
    Survivor(Process),
}

impl Running {
    pub(super) fn process(&self) -> &Process {
        match self {
            Running::Child(process, _) | Running::Survivor(process) => process,
        }
    }

    /// Waits for its end and says how it came.
    pub(super) async fn ended(self) -> String {
        match self {
            Running::Child(_, mut child) => match child.wait().await {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            },
            Running::Survivor(process) => {
                while process.lives() {
                    tokio::time::sleep(Duration::from_millis(WORKER_LOOK_MS)).await;
                }
                "it had outlived its runtime".to_owned()
            }
        }
    }
}

impl Process {
    /// Asks it to end.
    pub(super) fn terminate(&self) {
        if let Some(pid) = self.id() {
            let _gone = rustix::process::kill_process(pid, Signal::TERM);
        }
    }

    /// Ends it, and whatever it started and left in its group.
    pub(super) fn kill(&self) {
        if let Some(pid) = self.id() {
            let _gone = rustix::process::kill_process_group(pid, Signal::KILL);
        }
    }

    /// Waits for its end, until a moment.
    pub(super) async fn ended_by(&self, end: Instant) {
        while self.lives() && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(WORKER_LOOK_MS)).await;
        }
    }

    /// Whether it runs; a zombie does not.
    fn lives(&self) -> bool {
        let Some(pid) = self.id() else { return false };
        match fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
            // The state stands after the name, which is in parentheses and may hold any character.
            Ok(stat) => !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')),
            Err(_) => !Path::new("/proc/self").exists() && rustix::process::test_kill_process(pid).is_ok(),
        }
    }

    fn id(&self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }
}

/// Starts a worker in a process group of its own, so that what the terminal sends to the runtime does not reach it.
pub(super) fn start(setup: &Setup, profile: &str, kind: Kind, directory: &Path) -> io::Result<Running> {
    let boot = crate::fresh::id()?;
    let log = log(setup, profile, kind)?;
    let child = Command::new(&setup.program)
        .args(["worker", kind.name(), "--connect", &connect(setup), "--supervised"])
        .args(["--profile", profile, "--boot", &boot])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
    Ok(Running::Child(Process { pid, boot }, child))
}

fn connect(setup: &Setup) -> String {
    format!("unix:{}", setup.socket.display())
}

/// Opens a worker's log: one file for each post, begun anew when it has grown too long.
fn log(setup: &Setup, profile: &str, kind: Kind) -> io::Result<File> {
    fs::create_dir_all(&setup.logs)?;
    let path = setup.logs.join(format!("{}-{profile}.log", kind.name()));
    let long = fs::metadata(&path).is_ok_and(|meta| meta.len() > WORKER_LOG_BYTES_MAX);
    if long {
        fs::remove_file(&path)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

/// Returns the workers of this socket that run already. Without `/proc` there are none to be found: a second worker then starts
/// beside the first, which does no harm.
pub(super) fn survivors(setup: &Setup) -> Vec<Survivor> {
    let connect = connect(setup);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(line) = fs::read(entry.path().join("cmdline")) else { continue };
        let words: Vec<&str> =
            line.split(|byte| *byte == 0).filter_map(|w| std::str::from_utf8(w).ok()).collect();
        found.extend(recognise(pid, &words, &connect));
    }
    found
}

/// Returns the worker that a command line is, if it is one of the runtime at `connect`.
fn recognise(pid: i32, words: &[&str], connect: &str) -> Option<Survivor> {
    let value = |flag: &str| words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1));
    let kind = value("worker").and_then(|name| Kind::named(name))?;
    let ours = value("--connect").is_some_and(|at| *at == connect) && words.contains(&"--supervised");
    let (profile, boot) = (value("--profile")?, value("--boot")?);
    let process = Process { pid, boot: (*boot).to_owned() };
    ours.then(|| Survivor { process, kind, profile: (*profile).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_supervised_workers_of_the_same_socket_are_recognised() {
        let line = "outlast worker tool --connect unix:/d/socket --supervised --profile p --boot b";
        let survivor = Survivor {
            process: Process { pid: 7, boot: "b".to_owned() },
            kind: Kind::Tool,
            profile: "p".to_owned(),
        };
        for (line, expected) in [
            (line.to_owned(), Some(survivor)),
            (line.replace("/d/", "/e/"), None),
            (line.replace("--supervised ", ""), None),
            (line.replace("tool", "gpu"), None),
            (line.replace(" --boot b", ""), None),
            ("outlast run a.flow".to_owned(), None),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(recognise(7, &words, "unix:/d/socket"), expected, "{line}");
        }
    }

    #[test]
    fn this_process_lives_and_no_process_does_not() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(Process { pid, boot: String::new() }.lives());
        assert!(!Process { pid: 0, boot: String::new() }.lives());
    }
}
