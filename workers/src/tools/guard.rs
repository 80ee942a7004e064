//! Watches over one command so that nothing of it outlives it, or its worker.
//!
//! The guard is a small process between the worker and the command. It adopts whatever the command leaves behind (a child
//! subreaper), so not even a double fork escapes it, and its standard input is a socket to the worker: when that closes, because
//! the attempt is stopped or the worker was killed, everything below the guard is ended, politely first. When the command exits,
//! what it left running is ended too. The first word on the socket names the command's process group, so that the worker can end
//! it if the guard itself is killed; the last word says how it went.
//!
//! Before a command may stand what it is confined to (see [`super::confine`]). The process that becomes the command confines itself; the
//! guard stays outside, where nothing of the command reaches it, and looks after the memory of all together.
//!
//! Leaves time limits and output to the worker; the output goes past the guard. Invariant: the guard exits last, or without a last
//! word.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait,
};
use serde::{Deserialize, Serialize};

use super::confine::Confinement;
use crate::limits::{KILL_EVERY, KILL_MAX, MCP_LEAVE, MEMORY_LOOK_EVERY, SERVER_PIECE_BYTES, TERM_GRACE};

/// The subcommand by which the tool worker calls the guard.
pub const SUBCOMMAND: &str = "guard";

/// Before a program: it is a server, to which the guard passes on what comes on its own standard input.
pub(crate) const SERVER: &str = "--server";

/// The confinement on standard input is tried out, and what cannot be enforced is written as JSON.
pub(super) const TRY: &str = "--try";

/// Before a confinement, behind which stands the command that is held to it.
pub(super) const CONFINED: &str = "--confined";

/// Before a command: it waits for a byte on its standard input.
const WHEN_TOLD: &str = "--when-told";

/// That the command is about to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FirstWord {
    /// Its process group.
    pub(crate) group: i32,
}

/// How the command went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWord {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How many processes it left running, which were ended.
    pub ended: usize,
    /// Processes that could not be ended.
    pub left: Vec<String>,
    /// Why it could not be started.
    pub error: Option<String>,
    /// All together used more memory than they may, and were ended.
    #[serde(default)]
    pub over_memory: bool,
}

/// A program, and what it is confined to.
struct Program {
    name: OsString,
    confinement: Option<Confinement>,
}

impl Program {
    /// Reads what stands before the program's arguments, and the confinement from standard input if there is one.
    fn read(first: OsString, args: &mut impl Iterator<Item = OsString>) -> Option<Program> {
        if first != CONFINED {
            return Some(Program { name: first, confinement: None });
        }
        Some(Program { name: args.next()?, confinement: Some(read_confinement()?) })
    }

    /// The same as arguments.
    fn written(&self) -> Vec<OsString> {
        let before = self.confinement.iter().map(|_| OsString::from(CONFINED));
        before.chain([self.name.clone()]).collect()
    }
}

/// Writes a confinement as a guard reads it from its standard input: as a line. As an argument it would stand in every list of processes,
/// and there is little room for arguments.
pub(super) fn written(confinement: &Confinement) -> Vec<u8> {
    let mut text = serde_json::to_vec(confinement).unwrap_or_default();
    text.push(b'\n');
    text
}

fn read_confinement() -> Option<Confinement> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// Runs the command given by `args` under guard.
#[must_use]
pub fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(program) = args.next() else { return ExitCode::from(2) };
    if program == WHEN_TOLD {
        return run_when_told(args);
    }
    if program == SERVER {
        return run_server(args);
    }
    if program == TRY {
        return try_out();
    }
    let Some(program) = Program::read(program, &mut args) else { return ExitCode::from(2) };
    let lifeline = match std::io::stdin().as_fd().try_clone_to_owned() {
        Ok(stdin) => UnixStream::from(stdin),
        Err(_) => return ExitCode::from(2),
    };
    let word = watch(&program, args, &lifeline);
    say(&lifeline, &word);
    ExitCode::SUCCESS
}

/// Runs a server until its input closes, or the worker's end of it does; exits as it did.
///
/// The input is passed on instead of given away, because its end is how the guard learns that the worker is gone. The server shares
/// the guard's process group, so that the worker can end it if the guard itself is killed.
fn run_server(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(program) = args.next() else { return ExitCode::from(2) };
    let unwatched = set_child_subreaper(Some(getpid())).is_err();
    let child = Command::new(&program).args(args).stdin(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            // Standard error is the server's, so whoever started it sees this.
            let _nobody = writeln!(std::io::stderr(), "cannot run {}: {error}", program.display());
            return ExitCode::from(127);
        }
    };
    if unwatched {
        let _nobody = writeln!(std::io::stderr(), "processes that leave their parents cannot be watched");
    }
    let (Some(main), Some(stdin)) = (Pid::from_raw(child.id().cast_signed()), child.stdin.take()) else {
        return ExitCode::from(2);
    };
    std::thread::spawn(move || pass_on(stdin));
    let (code, signal) = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => break how(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break (None, None),
        }
    };
    end_all();
    let number = code.or(signal.map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(number).unwrap_or(u8::MAX))
}

/// Passes standard input on to a server, and ends the server some time after the end of it.
fn pass_on(server: std::process::ChildStdin) {
    let mut to = Some(server);
    let mut piece = vec![0; SERVER_PIECE_BYTES];
    let mut from = std::io::stdin().lock();
    while let Ok(length) = from.read(&mut piece)
        && length > 0
    {
        // A server that reads no more may still write; the worker decides when it is over.
        let written = to.as_mut().map(|to| to.write_all(&piece[..length]));
        if matches!(written, Some(Err(_))) {
            to = None;
        }
    }
    drop(to);
    std::thread::sleep(MCP_LEAVE);
    end_all();
}

/// Confines this process, and writes what could not be enforced.
fn try_out() -> ExitCode {
    let Some(confinement) = read_confinement() else { return ExitCode::from(2) };
    let said = serde_json::to_string(&confinement.apply()).unwrap_or_default();
    match writeln!(std::io::stdout(), "{said}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Becomes the command as soon as the guard says so; ends if the guard is killed before.
fn run_when_told(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let told = std::io::stdin().read_exact(&mut [0]).is_ok();
    let program = args.next().filter(|_| told).and_then(|first| Program::read(first, &mut args));
    let Some(Program { name, confinement }) = program else { return ExitCode::from(2) };
    // Standard error is the command's, so whoever called it sees this.
    let complain = |why: &dyn std::fmt::Display| {
        let _nobody = writeln!(std::io::stderr(), "cannot run {}: {why}", name.display());
    };
    if let Some(confinement) = confinement {
        let missing = confinement.apply();
        if confinement.required && !missing.is_empty() {
            complain(&format!("it cannot be held to {}", missing.join("; ")));
            return ExitCode::from(126);
        }
    }
    let error = Command::new(&name).args(args).stdin(Stdio::null()).exec();
    complain(&error);
    ExitCode::from(127)
}

/// Says something to the worker, on a line of its own.
fn say(mut lifeline: &UnixStream, word: &impl Serialize) {
    let mut text = serde_json::to_vec(word).unwrap_or_default();
    text.push(b'\n');
    // The worker may be gone; then nobody wants to know.
    let _gone = lifeline.write_all(&text);
}

/// Reads what a guard said: the command's process group, and the last word if there was one.
#[must_use]
pub fn heard(said: &[u8]) -> (Option<Pid>, Option<LastWord>) {
    let mut lines = said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).peekable();
    let first = lines.peek().and_then(|line| serde_json::from_slice::<FirstWord>(line).ok());
    if first.is_some() {
        lines.next();
    }
    let last = lines.next().and_then(|line| serde_json::from_slice(line).ok());
    (first.and_then(|word| Pid::from_raw(word.group)), last)
}

fn watch(program: &Program, args: impl Iterator<Item = OsString>, lifeline: &UnixStream) -> LastWord {
    let failed = |text: String| LastWord { error: Some(text), ..LastWord::default() };
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        tracing::warn!(%error, "processes that leave their parents cannot be watched");
    }
    // It must not run before the worker knows its group, so it begins as this program and waits.
    let mut command = Command::new("/proc/self/exe");
    command.args([SUBCOMMAND, WHEN_TOLD]).args(program.written()).args(args);
    command.stdin(Stdio::piped()).process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return failed(format!("cannot run {}: {error}", program.name.display())),
    };
    let Some(main) = Pid::from_raw(child.id().cast_signed()) else {
        return failed("no process id".to_owned());
    };
    say(lifeline, &FirstWord { group: main.as_raw_nonzero().get() });
    if let Some(mut stdin) = child.stdin.take() {
        let confinement = program.confinement.as_ref().map(written).unwrap_or_default();
        // If it is gone already, its status says so.
        let _gone = stdin.write_all(b"\n").and_then(|()| stdin.write_all(&confinement));
    }
    if let Ok(lifeline) = lifeline.try_clone() {
        std::thread::spawn(move || end_when_closed(lifeline));
    }
    let over_memory = Arc::new(AtomicBool::new(false));
    if let Some(most) = program.confinement.as_ref().map(|confinement| confinement.memory_bytes) {
        let over_memory = over_memory.clone();
        std::thread::spawn(move || end_when_over(most, &over_memory));
    }
    let mut word = LastWord::default();
    // Reaps whatever ends until the command itself does.
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => {
                (word.code, word.signal) = how(status);
                break;
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                word.error = Some(error.to_string());
                break;
            }
        }
    }
    word.ended = descendants().len();
    if word.ended > 0 {
        end_all();
        word.left = descendants().into_values().collect();
    }
    word.over_memory = over_memory.load(Ordering::Acquire);
    word
}

/// Looks at the memory of all descendants together, and ends everything when they use more than they may. Each by itself is held to it by
/// the kernel.
fn end_when_over(most: u64, over_memory: &AtomicBool) {
    loop {
        std::thread::sleep(MEMORY_LOOK_EVERY);
        let used: u64 = descendants().into_keys().map(memory_of).sum();
        if used > most {
            over_memory.store(true, Ordering::Release);
            end_all();
        }
    }
}

/// The memory that is a process's own, in bytes.
fn memory_of(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}

fn how(status: WaitStatus) -> (Option<i32>, Option<i32>) {
    (status.exit_status(), status.terminating_signal())
}

/// Waits until the worker closes the line, then ends everything; the main thread sees the command exit.
fn end_when_closed(mut lifeline: UnixStream) {
    let mut byte = [0];
    while lifeline.read(&mut byte).is_ok_and(|length| length > 0) {}
    end_all();
}

/// Ends all descendants: asks first, then kills until none is left or none can be.
fn end_all() {
    let started = Instant::now();
    signal_all(Signal::TERM);
    loop {
        if descendants().is_empty() || started.elapsed() > TERM_GRACE + KILL_MAX {
            return;
        }
        if started.elapsed() >= TERM_GRACE {
            signal_all(Signal::KILL);
        }
        std::thread::sleep(KILL_EVERY);
    }
}

fn signal_all(signal: Signal) {
    for pid in descendants().into_keys() {
        if let Some(pid) = Pid::from_raw(pid) {
            // It may have ended by itself meanwhile.
            let _gone = kill_process(pid, signal);
        }
    }
}

/// All processes below this one that have not ended, with their names.
fn descendants() -> BTreeMap<i32, String> {
    let mut parents: BTreeMap<i32, (i32, String)> = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        if let Some((name, state, parent)) = parse_stat(&String::from_utf8_lossy(&stat))
            && state != 'Z'
        {
            parents.insert(pid, (parent, format!("{pid} ({name})")));
        }
    }
    let own = getpid().as_raw_nonzero().get();
    let is_below = |pid: i32| {
        let mut now = pid;
        // No chain is longer than there are processes.
        for _ in 0..parents.len() {
            match parents.get(&now) {
                Some((parent, _)) if *parent == own => return true,
                Some((parent, _)) => now = *parent,
                None => return false,
            }
        }
        false
    };
    parents.iter().filter(|(pid, _)| is_below(**pid)).map(|(pid, (_, name))| (*pid, name.clone())).collect()
}

/// Name, state and parent. The name stands in brackets and may contain anything, brackets too.
fn parse_stat(stat: &str) -> Option<(String, char, i32)> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let mut fields = stat.get(close + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((stat.get(open + 1..close)?.to_owned(), state, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_and_spaces_do_not_confuse() {
        let found = parse_stat("77 (a) b (c)) S 12 77 77 0").unwrap();
        assert_eq!(found, ("a) b (c)".to_owned(), 'S', 12));
        assert_eq!(parse_stat("rubbish"), None);
    }

    #[test]
    fn what_a_guard_said_is_understood_however_far_it_came() {
        let group = Pid::from_raw(7);
        let last = LastWord { code: Some(3), ..LastWord::default() };
        let text = serde_json::to_string(&last).unwrap();
        let first = r#"{"group":7}"#;
        for (said, expected) in [
            (String::new(), (None, None)),
            (format!("{first}\n"), (group, None)),
            (format!("{first}\n{}", &text[..9]), (group, None)),
            (format!("{first}\n{text}\n"), (group, Some(last.clone()))),
            (format!("{text}\n"), (None, Some(last))),
        ] {
            assert_eq!(heard(said.as_bytes()), expected, "{said}");
        }
    }

    #[test]
    fn this_process_has_children_when_it_starts_one() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(descendants().contains_key(&child.id().cast_signed()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
