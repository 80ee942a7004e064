//! A process of the binary under test: its lines as they come, its end, its death by `kill -9`.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a test waits for anything before it fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// Waits until a condition holds.
///
/// # Panics
/// If the patience is over before.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::park_timeout(LOOK);
    }
}

/// A running process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
}

/// What a finished process left.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it printed and nobody had read yet.
    pub stdout: String,
    /// What it said on stderr.
    pub stderr: String,
}

impl Process {
    /// Starts a command with its own input, output and error pipes.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Process {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let stderr = child.stderr.take().map(|pipe| std::thread::spawn(move || read_all(pipe)));
        Process { stdin: child.stdin.take(), child, lines, stderr }
    }

    /// Returns its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its input; a process that has gone reads nothing.
    pub fn say(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _gone = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        }
    }

    /// Types keys, without the end of a line.
    pub fn press(&mut self, keys: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _gone = write!(stdin, "{keys}").and_then(|()| stdin.flush());
        }
    }

    /// Closes its input.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Returns the first line that fits, and drops those before it.
    ///
    /// # Panics
    /// If the process ends or the patience is over before.
    pub fn line(&mut self, what: &str, mut fits: impl FnMut(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        let mut seen = String::new();
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if fits(&line) => return line,
                Ok(line) => seen = seen + &line + "\n",
                Err(why) => {
                    self.kill();
                    panic!("no line with {what} ({why}); seen:\n{seen}\nstderr:\n{}", self.finish().stderr);
                }
            }
        }
    }

    /// Lets it work for this long, or until its output ends; returns whether it still works.
    pub fn work_for(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Kills it with signal 9.
    pub fn kill(&mut self) {
        let _gone = self.child.kill();
    }

    /// Sends it a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let _gone = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).output();
    }

    /// Kills it with signal 9 and waits until it is gone.
    pub fn murder(&mut self) {
        self.kill();
        let _status = self.child.wait();
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If the patience is over before.
    #[must_use]
    pub fn finish(&mut self) -> Finished {
        self.hang_up();
        let end = Instant::now() + PATIENCE;
        let mut stdout = String::new();
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => stdout = stdout + &line + "\n",
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.kill();
                    panic!("process {} did not end; stdout:\n{stdout}", self.pid());
                }
            }
        }
        let code = self.child.wait().ok().and_then(|status| status.code());
        let stderr = self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        Finished { code, stdout, stderr }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let _status = self.child.wait();
    }
}

fn read_all(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    let _end = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
