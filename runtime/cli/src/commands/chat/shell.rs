//! A command of the person's own (`!ls`): its output as lines, its end, its interruption.
//!
//! It is no act of the run: nothing of it goes into a history. Invariant: it has no keyboard and never sees the terminal, so it cannot
//! leave one in disorder; what it writes beyond the limits is read and dropped; when it, or the conversation, ends in whatever way, what it started ends.

use std::io::{PipeReader, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use outlast_workers::tools::guard::{self, LastWord};
use rustix::process::{Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::limits::{LINES_MAX, OUTPUT_BYTES_MAX, OUTPUT_LINE_BYTES_MAX, OUTPUT_LINES_MAX};

/// A command that is running. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Running {
    lines: mpsc::Receiver<String>,
    /// How often it was to be interrupted.
    interrupts: watch::Sender<usize>,
    end: JoinHandle<std::io::Result<Option<String>>>,
}

/// What comes of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A line of its output.
    Line(String),
    /// It has ended; says how, unless it succeeded.
    End(Option<String>),
}

impl Running {
    /// Starts a command line with the shell, under the guard that tools have (`guard` is the program of it).
    pub(super) fn start(guard: &Path, line: &str, directory: &Path) -> std::io::Result<Running> {
        let (reader, writer) = std::io::pipe()?;
        let (lifeline, theirs) = UnixStream::pair()?;
        lifeline.set_nonblocking(true)?;
        let lifeline = tokio::net::UnixStream::from_std(lifeline)?;
        let mut command = Command::new(guard);
        command.arg(guard::SUBCOMMAND).args(["sh", "-c", line]).current_dir(directory).process_group(0);
        command.stdin(OwnedFd::from(theirs)).stdout(writer.try_clone()?).stderr(writer);
        let child = command.spawn()?;
        // The pipe ends with the last one who can write into it, and that must not be us.
        drop(command);
        let (sender, lines) = mpsc::channel(LINES_MAX);
        std::thread::spawn(move || read(reader, &sender));
        let (interrupts, asked) = watch::channel(0);
        let end = tokio::spawn(attend(child, lifeline, asked));
        Ok(Running { lines, interrupts, end })
    }

    /// Interrupts it as Ctrl-C does; the second time it is killed. If it is only about to start, it is interrupted when it has.
    pub(super) fn interrupt(&self) {
        self.interrupts.send_modify(|times| *times += 1);
    }

    async fn next(&mut self) -> Piece {
        if let Some(line) = self.lines.recv().await {
            return Piece::Line(line);
        }
        Piece::End(match (&mut self.end).await {
            Ok(Ok(how)) => how,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // With the lifeline gone, the guard ends everything.
        self.end.abort();
    }
}

/// Listens to the guard until it ends, and passes interrupts on to the command; returns how that ended, unless it succeeded.
async fn attend(
    mut guard: Child,
    lifeline: tokio::net::UnixStream,
    mut interrupts: watch::Receiver<usize>,
) -> std::io::Result<Option<String>> {
    let (mut lifeline, mut said) = (BufReader::new(lifeline), Vec::new());
    let mut passed_on = 0;
    loop {
        tokio::select! {
            read = lifeline.read_until(b'\n', &mut said) => if read? == 0 { break },
            Ok(()) = interrupts.changed() => {}
        }
        // The command's process group is known as soon as the guard has told it.
        if let (Some(group), _) = guard::heard(&said) {
            let asked = *interrupts.borrow();
            for time in passed_on..asked {
                let _gone = kill_process_group(group, if time == 0 { Signal::INT } else { Signal::KILL });
            }
            passed_on = asked;
        }
    }
    guard.wait().await?;
    let (_, last) = guard::heard(&said);
    Ok(match last {
        Some(word) => how(word),
        None => Some("was killed with its guard".to_owned()),
    })
}

/// Returns what comes next of the command, if one is running; after its end there is none.
pub(super) async fn next(running: &mut Option<Running>) -> Piece {
    match running {
        None => std::future::pending().await,
        Some(command) => {
            let piece = command.next().await;
            if matches!(piece, Piece::End(_)) {
                *running = None;
            }
            piece
        }
    }
}

fn how(word: LastWord) -> Option<String> {
    match (word.error, word.code, word.signal) {
        (Some(error), _, _) => Some(error),
        (None, Some(0), _) => None,
        (None, Some(code), _) => Some(format!("ended with {code}")),
        (None, None, Some(signal)) => Some(format!("ended by signal {signal}")),
        (None, None, None) => Some("ended".to_owned()),
    }
}

/// Reads to the end on a thread of its own, and sends on what is to be shown.
fn read(mut reader: PipeReader, sender: &mpsc::Sender<String>) {
    let (mut cutter, mut buffer) = (Cutter::default(), [0; 8192]);
    while let Ok(length @ 1..) = reader.read(&mut buffer) {
        for line in cutter.take(&buffer[..length]) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    }
    for line in cutter.end() {
        let _unheard = sender.blocking_send(line);
    }
}

/// Bytes to lines, up to the limits.
#[derive(Debug, Default)]
struct Cutter {
    begun: Vec<u8>,
    lines: usize,
    bytes: usize,
    dropped: usize,
}

impl Cutter {
    fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for byte in bytes {
            if self.lines >= OUTPUT_LINES_MAX || self.bytes >= OUTPUT_BYTES_MAX {
                self.dropped += 1;
                continue;
            }
            self.bytes += 1;
            if *byte != b'\n' {
                self.begun.push(*byte);
            }
            if *byte == b'\n' || self.begun.len() >= OUTPUT_LINE_BYTES_MAX {
                lines.push(self.line());
            }
        }
        lines
    }

    fn line(&mut self) -> String {
        self.lines += 1;
        let line = String::from_utf8_lossy(&self.begun).trim_end_matches('\r').to_owned();
        self.begun.clear();
        line
    }

    fn end(mut self) -> Vec<String> {
        let last = (!self.begun.is_empty()).then(|| self.line());
        let dropped = (self.dropped > 0).then(|| format!("… {} more bytes are not shown", self.dropped));
        last.into_iter().chain(dropped).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guard that was built beside this test.
    fn guard() -> std::path::PathBuf {
        let this = std::env::current_exe().unwrap();
        this.parent().and_then(Path::parent).unwrap().join("outlast-guard")
    }

    async fn all(line: &str) -> Vec<Piece> {
        let mut running = Some(Running::start(&guard(), line, Path::new("/")).unwrap());
        let mut pieces = Vec::new();
        while running.is_some() {
            pieces.push(next(&mut running).await);
        }
        pieces
    }

    #[tokio::test]
    async fn output_comes_as_lines_and_the_end_says_how() {
        let line = |text: &str| Piece::Line(text.to_owned());
        for (command, expected) in [
            ("echo a; echo b >&2; printf c", vec![line("a"), line("b"), line("c"), Piece::End(None)]),
            ("cat; exit 3", vec![Piece::End(Some("ended with 3".to_owned()))]),
            ("kill -9 $$", vec![Piece::End(Some("ended by signal 9".to_owned()))]),
            // What it leaves behind holds nothing up.
            ("sleep 1000 & echo left", vec![line("left"), Piece::End(None)]),
        ] {
            assert_eq!(all(command).await, expected, "{command}");
        }
    }

    #[tokio::test]
    async fn it_is_interrupted_and_then_killed() {
        // Neither starts a program: a shell that is about to (dash, with vfork) loses the signal that comes just then.
        for (command, times) in
            [("echo on; while :; do :; done", 1), ("trap '' INT; echo on; while :; do :; done", 2)]
        {
            let mut running = Some(Running::start(&guard(), command, Path::new("/")).unwrap());
            assert_eq!(next(&mut running).await, Piece::Line("on".to_owned()));
            for _ in 0..times {
                running.as_ref().unwrap().interrupt();
            }
            let end = next(&mut running).await;
            assert!(matches!(&end, Piece::End(Some(how)) if how.contains("signal")), "{command}: {end:?}");
        }
    }

    #[tokio::test]
    async fn what_is_interrupted_before_it_runs_is_not_let_run() {
        let mut running = Some(Running::start(&guard(), "while :; do :; done", Path::new("/")).unwrap());
        running.as_ref().unwrap().interrupt();
        let end = next(&mut running).await;
        assert_eq!(end, Piece::End(Some("ended by signal 2".to_owned())));
    }

    #[test]
    fn output_is_bounded() {
        let mut cutter = Cutter::default();
        let shown = cutter.take(&b"x\n".repeat(OUTPUT_LINES_MAX + 5));
        assert_eq!(
            (shown.len(), cutter.end()),
            (OUTPUT_LINES_MAX, vec!["… 10 more bytes are not shown".to_owned()])
        );
        let mut cutter = Cutter::default();
        let shown = cutter.take(&vec![b'y'; OUTPUT_BYTES_MAX + 1]);
        assert!(shown.iter().all(|line| line.len() == OUTPUT_LINE_BYTES_MAX));
        assert_eq!(shown.len() * OUTPUT_LINE_BYTES_MAX, OUTPUT_BYTES_MAX);
    }
}
