//! The shell tool: runs one command and takes in its output.
//!
//! Leaves ending processes to the guard, as long as that lives. Invariant: the attempt's hold is kept until the command and all it
//! started are gone; the end of the command, not the end of its output, is the end of the call; a command whose end nobody saw is
//! never answered for; no variable of the worker's environment but those listed here, and those that the profile names, reaches a
//! command.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::oneshot;

use super::confine::Confinement;
use super::guard::{self, CONFINED, LastWord, SUBCOMMAND};
use super::output::{Capture, Captured, Reader, decode, whole_chars};
use super::sandbox::Confined;
use super::{ToolError, Toolbox};
use crate::limits::{GUARD_WORD_MAX, KILL_EVERY, KILL_MAX, SHELL_MARGIN, SHELL_TIMEOUT, TERM_GRACE};
use crate::sdk::{TaskContext, duration_text};

/// The variables that commands and servers get from the worker's environment.
const ALLOWED: [&str; 6] = ["PATH", "HOME", "LANG", "TERM", "USER", "TMPDIR"];

/// How a command ended, and what it said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommandEnd {
    pub(crate) how: How,
    pub(crate) text: String,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Exited(i32),
    Signalled(i32),
    TimedOut(Duration),
}

/// How a command ended, with its output as it was taken in.
struct Heard {
    how: How,
    output: Captured,
    notes: Vec<String>,
}

/// Runs a command to its end, or to the end of its time.
///
/// When this future is dropped, the command is ended too, and the attempt's hold lasts until it is.
pub(crate) async fn run(
    toolbox: &Toolbox,
    task: &TaskContext,
    command: &str,
    timeout: Option<Duration>,
    reader: Reader,
) -> Result<CommandEnd, ToolError> {
    let remaining = task.remaining().map(|left| left.saturating_sub(SHELL_MARGIN));
    let timeout = timeout.unwrap_or(SHELL_TIMEOUT).min(remaining.unwrap_or(Duration::MAX));
    let confinement = toolbox.sandbox.confinement(toolbox.jail.root());
    let confinement = confinement.map_err(|why| ToolError::new("Unconfined", format!("not run: {why}")))?;
    let running = start(toolbox, task, command, confinement.as_ref()).map_err(|error| cannot_run(&error))?;
    // Dropping `_keep` tells the watcher that nobody waits any more.
    let (_keep, dropped) = oneshot::channel();
    let (hold, context) = (task.hold(), task.clone());
    let watch = async move {
        let end = running.watch(&context, timeout, reader, dropped).await;
        drop(hold);
        end
    };
    match tokio::spawn(watch).await {
        Ok(Ok(Some(heard))) => {
            let mut text = heard.output.kept(task).await;
            for note in heard.notes {
                text = with_note(text, &note);
            }
            Ok(CommandEnd { how: heard.how, text }.explained(&toolbox.sandbox))
        }
        Ok(Ok(None)) => task.break_off().await,
        Ok(Err(error)) => Err(cannot_run(&error)),
        Err(error) => Err(cannot_run(&io::Error::other(error))),
    }
}

fn cannot_run(error: &io::Error) -> ToolError {
    ToolError::new("CommandError", format!("cannot run the command: {error}"))
}

/// A command under way.
struct Running {
    child: Child,
    group: Option<Pid>,
    output: pipe::Receiver,
    /// The line to the guard; without one the process group is all there is.
    lifeline: Option<UnixStream>,
}

fn start(
    toolbox: &Toolbox,
    task: &TaskContext,
    command: &str,
    confinement: Option<&Confinement>,
) -> io::Result<Running> {
    let (ours, theirs) = io::pipe()?;
    let mut builder = match &toolbox.guard {
        Some(guard) => {
            let mut builder = Command::new(guard);
            builder.arg(SUBCOMMAND);
            builder.args(confinement.map(|_| CONFINED));
            builder.arg("/bin/sh");
            builder
        }
        None => Command::new("/bin/sh"),
    };
    builder.arg("-c").arg(command).current_dir(toolbox.jail.root()).process_group(0);
    bare_environment(&mut builder, toolbox.jail.root());
    let more = toolbox.environment.variables.iter();
    builder.envs(more.filter_map(|name| Some((name, std::env::var_os(name)?))));
    builder.env("OUTLAST_RUN", task.run()).env("OUTLAST_OP", task.op());
    builder.env("OUTLAST_ATTEMPT", task.attempt().to_string()).env("OUTLAST_IDEMPOTENCY_KEY", task.key());
    // One pipe for both, so that the order of what is written is kept.
    builder.stdout(theirs.try_clone()?).stderr(theirs);
    let lifeline = if toolbox.guard.is_some() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        builder.stdin(OwnedFd::from(theirs));
        Some(ours)
    } else {
        builder.stdin(Stdio::null());
        None
    };
    let mut builder = tokio::process::Command::from(builder);
    // A guard must not be killed: it ends by itself, last, when its line closes.
    let child = builder.kill_on_drop(lifeline.is_none()).spawn()?;
    let lifeline = lifeline.map(|lifeline| hold(lifeline, confinement)).transpose()?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    Ok(Running { child, group, output: pipe::Receiver::from_owned_fd(ours.into())?, lifeline })
}

/// Tells a guard what its command is confined to; returns the line that it listens to from then on.
fn hold(
    mut lifeline: std::os::unix::net::UnixStream,
    confinement: Option<&Confinement>,
) -> io::Result<UnixStream> {
    if let Some(confinement) = confinement {
        // The guard reads it at once; if it is gone, its end says so.
        let _gone = lifeline.write_all(&guard::written(confinement));
    }
    lifeline.set_nonblocking(true)?;
    UnixStream::from_std(lifeline)
}

/// Gives a command or a server the variables that it may have of the worker's, and no other.
pub(crate) fn bare_environment(command: &mut Command, directory: &Path) {
    command.env_clear().env("PWD", directory);
    command.envs(ALLOWED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
}

impl Running {
    /// Returns how the command ended; none if its guard did not live to see it.
    async fn watch(
        mut self,
        task: &TaskContext,
        timeout: Duration,
        reader: Reader,
        mut dropped: oneshot::Receiver<()>,
    ) -> io::Result<Option<Heard>> {
        let started = Instant::now();
        let mut output =
            Output { capture: Capture::new(reader, task.mask()), open: true, unshown: Vec::new() };
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let (status, timed_out) = loop {
            tokio::select! {
                status = self.child.wait() => break (Some(status?), false),
                read = output.read(&self.output, task), if output.open => read?,
                () = &mut deadline => break (self.end(&mut output, task).await?, true),
                _ = &mut dropped => break (self.end(&mut output, task).await?, true),
            }
        };
        // Whatever shared the command's group goes with it, also where there is no guard.
        self.signal_group(Signal::KILL);
        output.rest(&self.output, task);
        let guarded = self.lifeline.is_some();
        let (command, word) = self.heard().await;
        if guarded && word.is_none() {
            tracing::error!(
                ?status,
                "the guard of a command was killed from outside: the command is ended, and nobody knows how far it came"
            );
            end_group(command).await;
            return Ok(None);
        }
        let how = if timed_out { How::TimedOut(started.elapsed()) } else { how(status, word.as_ref()) };
        if let Some(error) = word.as_ref().and_then(|word| word.error.clone()) {
            return Err(io::Error::other(error));
        }
        let mut notes = Vec::new();
        if word.as_ref().is_some_and(|word| word.over_memory) {
            let note = "[it used more memory than it may, and was ended with all that it had started]";
            notes.push(note.to_owned());
        }
        notes.extend(word.and_then(|word| left_note(&word)));
        Ok(Some(Heard { how, output: output.capture.finish(), notes }))
    }

    /// Ends the command, taking in what it still says.
    async fn end(&mut self, output: &mut Output, task: &TaskContext) -> io::Result<Option<ExitStatus>> {
        match &mut self.lifeline {
            Some(lifeline) => tokio::io::AsyncWriteExt::shutdown(lifeline).await?,
            None => self.signal_group(Signal::TERM),
        }
        let patience = match self.lifeline {
            Some(_) => (TERM_GRACE + KILL_MAX) * 2,
            None => TERM_GRACE,
        };
        let deadline = tokio::time::sleep(patience);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                status = self.child.wait() => return Ok(Some(status?)),
                read = output.read(&self.output, task), if output.open => read?,
                () = &mut deadline => break,
            }
        }
        self.signal_group(Signal::KILL);
        match tokio::time::timeout(KILL_MAX, self.child.wait()).await {
            Ok(status) => Ok(Some(status?)),
            // It cannot be killed now; what it may still do is said by the doubt that the report raises.
            Err(_) => Ok(None),
        }
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Usually nobody is left in it.
            let _gone = kill_process_group(group, signal);
        }
    }

    /// Hears what the guard said: the command's group, and its last word.
    async fn heard(&mut self) -> (Option<Pid>, Option<LastWord>) {
        let Some(lifeline) = &mut self.lifeline else { return (None, None) };
        let mut said = Vec::new();
        let mut lifeline = lifeline.take(GUARD_WORD_MAX as u64);
        // What could not be heard was not said.
        let _late = tokio::time::timeout(TERM_GRACE, lifeline.read_to_end(&mut said)).await;
        guard::heard(&said)
    }
}

/// Kills a command that has no guard any more, and waits until it is gone.
async fn end_group(group: Option<Pid>) {
    let Some(group) = group else { return };
    let started = Instant::now();
    while started.elapsed() < KILL_MAX && test_kill_process_group(group).is_ok() {
        let _gone = kill_process_group(group, Signal::KILL);
        tokio::time::sleep(KILL_EVERY).await;
    }
}

fn how(status: Option<ExitStatus>, word: Option<&LastWord>) -> How {
    use std::os::unix::process::ExitStatusExt;
    // Under guard the status is the guard's, and its word tells that of the command.
    let (code, signal) = match (word, status) {
        (Some(word), _) => (word.code, word.signal),
        (None, Some(status)) => (status.code(), status.signal()),
        (None, None) => (None, None),
    };
    match (code, signal) {
        (Some(code), _) => How::Exited(code),
        (None, signal) => How::Signalled(signal.unwrap_or(9)),
    }
}

fn with_note(text: String, note: &str) -> String {
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{newline}{note}")
}

fn left_note(word: &LastWord) -> Option<String> {
    match (word.ended, &word.left[..]) {
        (0, _) => None,
        (1, []) => Some("[a process that was left running was ended]".to_owned()),
        (count, []) => Some(format!("[{count} processes that were left running were ended]")),
        (_, left) => Some(format!("[processes that could not be ended: {}]", left.join(", "))),
    }
}

/// What a command says, taken in piece by piece.
struct Output {
    capture: Capture,
    open: bool,
    unshown: Vec<u8>,
}

impl Output {
    async fn read(&mut self, from: &pipe::Receiver, task: &TaskContext) -> io::Result<()> {
        from.readable().await?;
        let mut chunk = [0; 16 << 10];
        match from.try_read(&mut chunk) {
            Ok(length) => self.take(&chunk[..length], task),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes in what is there; does not wait for whoever else holds the pipe.
    fn rest(&mut self, from: &pipe::Receiver, task: &TaskContext) {
        let mut chunk = [0; 16 << 10];
        while let Ok(length) = from.try_read(&mut chunk) {
            self.take(&chunk[..length], task);
            if length == 0 {
                return;
            }
        }
    }

    fn take(&mut self, chunk: &[u8], task: &TaskContext) {
        self.open = !chunk.is_empty();
        self.capture.push(chunk);
        // Shown as it comes, in whole characters.
        self.unshown.extend_from_slice(chunk);
        let whole = if self.open { whole_chars(&self.unshown) } else { self.unshown.len() };
        task.progress(&decode(&self.unshown[..whole]).0);
        self.unshown.drain(..whole);
    }
}

impl CommandEnd {
    /// Says of a command that failed what it was held to, if that may be why.
    fn explained(mut self, sandbox: &Confined) -> CommandEnd {
        if self.how != How::Exited(0)
            && let Some(hint) = sandbox.hint(&self.text)
        {
            self.text = with_note(self.text, &hint);
        }
        self
    }

    /// What a flow gets: the output, or an error that carries it.
    pub(crate) fn for_flow(self) -> Result<String, ToolError> {
        let (kind, code) = match self.how {
            How::Exited(0) => return Ok(self.text),
            How::Exited(code) => ("CommandFailed", Some(code)),
            How::Signalled(_) => ("CommandFailed", None),
            How::TimedOut(_) => ("CommandTimedOut", None),
        };
        let text = format!("{}\n{}", self.said(), self.text.trim_end());
        Err(ToolError { kind, text: text.trim_end().to_owned(), code })
    }

    /// What a model gets: how it ended if not well, and the output.
    pub(crate) fn for_model(self) -> (String, bool) {
        match self.how {
            How::Exited(0) if self.text.trim().is_empty() => ("(no output)".to_owned(), true),
            How::Exited(0) => (self.text, true),
            How::Exited(_) | How::Signalled(_) | How::TimedOut(_) => {
                (format!("{}\n{}", self.said(), self.text).trim_end().to_owned(), false)
            }
        }
    }

    fn said(&self) -> String {
        match self.how {
            How::Exited(code) => format!("exit code {code}"),
            How::Signalled(signal) => format!("ended by signal {signal}"),
            How::TimedOut(after) => {
                let after = Duration::from_millis(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
                format!(
                    "timed out after {} and was ended, with all that it had started",
                    duration_text(after)
                )
            }
        }
    }
}
