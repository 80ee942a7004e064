//! A real pseudo-terminal (of util-linux's `script`) with the binary on it, or with a shell that has job control.
//!
//! Leaves keys and lines to [`Process`]: what the terminal shows comes as its lines. Invariant: nothing of the tester's own terminal is
//! used.

use std::path::PathBuf;
use std::process::Command;

use crate::process::{Process, until};
use crate::world::{Role, World, binary};

/// Escape.
pub const ESC: &str = "\u{1b}";
/// Enter, which ends a line.
pub const ENTER: &str = "\r";
/// Alt and Enter.
pub const ALT_ENTER: &str = "\u{1b}\r";
/// Alt and the upward arrow.
pub const ALT_UP: &str = "\u{1b}[1;3A";
/// Control and c.
pub const CONTROL_C: &str = "\u{3}";
/// Control and z.
pub const CONTROL_Z: &str = "\u{1a}";

impl World {
    /// Starts the binary with a terminal of its own.
    #[must_use]
    pub fn on_a_terminal(&self, arguments: &str) -> Process {
        let program = binary("outlast");
        self.script(&format!("stty cols 120 rows 40 && exec {} {arguments}", program.display()))
    }

    /// Starts a shell with job control on a terminal of its own; `outlast` is the binary there.
    #[must_use]
    pub fn shell(&self) -> Process {
        let mut shell = self.script("stty cols 120 rows 40 && exec bash --norc --noprofile --noediting -i");
        let folder = binary("outlast").parent().map(|folder| folder.display().to_string());
        shell.press(&format!("PATH={}:$PATH; PS1=; echo ready $((40 + 2))\r", folder.unwrap_or_default()));
        let _ready = shell.line("a shell", |line| line.contains("ready 42"));
        shell
    }

    fn script(&self, line: &str) -> Process {
        let plain = self.command(&[]);
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", line, "/dev/null"]);
        script.current_dir(self.work()).env_clear();
        script.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.env("TERM", "xterm");
        Process::start(&mut script)
    }

    /// Waits for the process of this world that is on a terminal, and returns it.
    #[must_use]
    pub fn talker(&self) -> u32 {
        let mut found = None;
        until("a process on a terminal", || {
            found = self.pids(Role::Runtime).into_iter().find(|pid| terminal_of(*pid).is_some());
            found.is_some()
        });
        found.unwrap_or_default()
    }
}

/// Returns the terminal that a process reads, if it is one.
#[must_use]
pub fn terminal_of(pid: u32) -> Option<PathBuf> {
    let input = std::fs::read_link(format!("/proc/{pid}/fd/0")).ok()?;
    input.starts_with("/dev/pts").then_some(input)
}

/// Sends a signal by name, such as `TERM`.
pub fn signal(pid: u32, name: &str) {
    let _gone = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).output();
}
