//! A world of its own for one test: a working directory, a data directory, and the binary in them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::http::Api;
use crate::process::{Finished, Process};
use crate::repository;

/// A directory to work in, with a store of its own. Dropping it ends the processes that belong to it.
#[derive(Debug)]
pub struct World {
    dir: TempDir,
    variables: Vec<(String, String)>,
}

/// Which process of a world is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Whoever hosts the engine.
    Runtime,
    /// The model worker.
    Model,
    /// The tool worker.
    Tool,
}

impl World {
    /// Makes an empty world.
    ///
    /// # Panics
    /// If the temporary directory cannot be made.
    #[must_use]
    pub fn new() -> World {
        let world = World {
            dir: tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary directory: {error}")),
            variables: Vec::new(),
        };
        for folder in ["work", "home"] {
            std::fs::create_dir_all(world.dir.path().join(folder)).unwrap_or_else(|error| panic!("{error}"));
        }
        world
    }

    /// Makes a world whose working directory holds the examples.
    ///
    /// # Panics
    /// If they cannot be copied.
    #[must_use]
    pub fn with_examples() -> World {
        let world = World::new();
        copy(&repository::root().join("examples"), &world.work().join("examples"));
        world
    }

    /// Makes a world whose working directory holds the flows of the tests, in `flows`.
    ///
    /// # Panics
    /// If they cannot be copied.
    #[must_use]
    pub fn with_flows() -> World {
        let world = World::new();
        copy(&repository::root().join("tests/flows"), &world.work().join("flows"));
        world
    }

    /// Gives all commands of this world an environment variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> World {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the working directory.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Returns the data directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Returns the runtime's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.data().join("socket")
    }

    /// Returns a file of the working directory as text; empty if there is none.
    #[must_use]
    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    /// Writes a file of the working directory.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.work().join(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Returns the command for the binary with these arguments: nothing of the tester's environment but PATH.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary("outlast"));
        command.args(arguments).current_dir(self.work()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.dir.path().join("home")).env("OUTLAST_DATA", self.data());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the binary.
    #[must_use]
    pub fn start(&self, arguments: &[&str]) -> Process {
        Process::start(&mut self.command(arguments))
    }

    /// Starts `serve` on the socket alone with these further arguments, and waits until it is ready.
    #[must_use]
    pub fn host(&self, arguments: &[&str]) -> Process {
        let mut server = self.start(&[&["serve", "--json"], arguments].concat());
        let _ready = server.line("the address", |line| line.contains("\"socket\""));
        server
    }

    /// Starts a test worker, which runs so many attempts at once. It ends when the process is dropped.
    #[must_use]
    pub fn worker(&self, name: &str, concurrency: u32) -> Process {
        let mut command = Command::new(binary("outlast-test-worker"));
        command.arg(self.work()).arg(format!("unix:{}", self.socket().display()));
        command.args([name, &concurrency.to_string()]).current_dir(self.work());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        Process::start(&mut command)
    }

    /// Runs the binary to its end, with closed input.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Finished {
        self.start(arguments).finish()
    }

    /// Runs the binary to its end and reads its output as one JSON value.
    ///
    /// # Panics
    /// If it is no JSON.
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let finished = self.run(arguments);
        serde_json::from_str(&finished.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error} in {finished:?}"))
    }

    /// Starts `serve` on a free port with these further arguments, and waits until it listens.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn serve(&self, arguments: &[&str]) -> (Process, Api) {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        let mut process = self.start(&all);
        let line = process.line("its address", |line| line.contains("listening on "));
        let api = Api::at(line.trim_start_matches("listening on "));
        (process, api)
    }

    /// Returns the processes of this world in a role: those whose command line or environment names its data directory.
    #[must_use]
    pub fn pids(&self, role: Role) -> Vec<u32> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if self.role(&entry.path()) == Some(role) {
                found.push(pid);
            }
        }
        found
    }

    /// Kills all processes of a role with signal 9.
    pub fn kill(&self, role: Role) {
        for pid in self.pids(role) {
            let _gone = Command::new("kill").args(["-9", &pid.to_string()]).output();
        }
    }

    fn role(&self, process: &Path) -> Option<Role> {
        let read =
            |name: &str| std::fs::read(process.join(name)).map(|b| String::from_utf8_lossy(&b).into_owned());
        let (line, environment) = (read("cmdline").ok()?, read("environ").ok()?);
        let data = self.data().display().to_string();
        let words: Vec<&str> = line.split('\0').collect();
        let ours = words.first().is_some_and(|word| word.ends_with("outlast"));
        if !ours || !(line.contains(&data) || environment.contains(&data)) {
            return None;
        }
        let worker = words.iter().position(|word| *word == "worker").and_then(|at| words.get(at + 1));
        match worker {
            Some(&"model") => Some(Role::Model),
            Some(&"tool") => Some(Role::Tool),
            Some(_) => None,
            None => Some(Role::Runtime),
        }
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for role in [Role::Runtime, Role::Model, Role::Tool] {
            self.kill(role);
        }
    }
}

/// Returns a binary of the workspace; `tests/run` builds them before the tests.
///
/// # Panics
/// If it was not built.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap_or_else(|error| panic!("no path of this test: {error}"));
    let found = here.ancestors().map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("no `{name}` beside {}; run tests/run, which builds it", here.display()))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    for entry in std::fs::read_dir(from).into_iter().flatten().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target)
                .unwrap_or_else(|error| panic!("{}: {error}", target.display()));
        }
    }
}
