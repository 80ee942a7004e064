//! A command of the person's own (`!ls`): its output as lines, its end, its interruption.
//!
//! It is no act of the run: nothing of it goes into a history. Invariant: it has no keyboard and never sees the terminal, so it cannot
//! leave one in disorder; what it writes beyond the limits is read and dropped; when it ends, what it started ends.

use std::io::{PipeReader, Read as _};
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::limits::{LINES_MAX, OUTPUT_BYTES_MAX, OUTPUT_LINE_BYTES_MAX, OUTPUT_LINES_MAX};

/// A command that is running. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Running {
    group: Option<Pid>,
    lines: mpsc::Receiver<String>,
    end: JoinHandle<std::io::Result<ExitStatus>>,
    interrupted: bool,
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
    /// Starts a command line with the shell.
    pub(super) fn start(line: &str, directory: &Path) -> std::io::Result<Running> {
        let (reader, writer) = std::io::pipe()?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).current_dir(directory).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn()?;
        // The pipe ends with the last one who can write into it, and that must not be us.
        drop(command);
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let (sender, lines) = mpsc::channel(LINES_MAX);
        std::thread::spawn(move || read(reader, &sender));
        let end = tokio::spawn(async move {
            let status = child.wait().await;
            kill(group, Signal::KILL);
            status
        });
        Ok(Running { group, lines, end, interrupted: false })
    }

    /// Interrupts it as Ctrl-C does; the second time it is killed.
    pub(super) fn interrupt(&mut self) {
        kill(self.group, if self.interrupted { Signal::KILL } else { Signal::INT });
        self.interrupted = true;
    }

    async fn next(&mut self) -> Piece {
        if let Some(line) = self.lines.recv().await {
            return Piece::Line(line);
        }
        Piece::End(match (&mut self.end).await {
            Ok(Ok(status)) => how(status),
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill(self.group, Signal::KILL);
    }
}

/// Returns what comes next of the command, if one is running; after its end there is none.
pub(super) async fn next(running: &mut Option<Running>) -> Piece {
    match running {
        None => std::future::pending().await,
        Some(command) => {
            let piece = command.next().await;
            if matches!(piece, Piece::End(_)) {
                // It has ended by itself: there is nothing left to kill.
                command.group = None;
                *running = None;
            }
            piece
        }
    }
}

fn kill(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        let _gone = kill_process_group(group, signal);
    }
}

fn how(status: ExitStatus) -> Option<String> {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("ended with {code}")),
        (None, Some(signal)) => Some(format!("ended by signal {signal}")),
        (None, None) => Some("ended".to_owned()),
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

    async fn all(line: &str) -> Vec<Piece> {
        let mut running = Some(Running::start(line, Path::new("/")).unwrap());
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
        for (command, times) in [("echo on; sleep 1000", 1), ("trap '' INT; echo on; while :; do :; done", 2)]
        {
            let mut running = Some(Running::start(command, Path::new("/")).unwrap());
            assert_eq!(next(&mut running).await, Piece::Line("on".to_owned()));
            for _ in 0..times {
                running.as_mut().unwrap().interrupt();
            }
            let end = next(&mut running).await;
            assert!(matches!(&end, Piece::End(Some(how)) if how.contains("signal")), "{command}: {end:?}");
        }
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
