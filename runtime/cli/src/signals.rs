//! Signals that ask a driver to leave. The run stays: a signal to a driver is no event of a run.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Exit, Failure};

/// Waits for the signals that ask for the end.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// What a signal says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    /// To leave, with this exit.
    Leave(Exit),
    /// That the terminal has gone, or, to a server, that its files were changed.
    HangUp,
}

fn exit(kind: SignalKind) -> Exit {
    Exit::Signal(u8::try_from(kind.as_raw_value()).unwrap_or_default())
}

impl Signals {
    /// Listens from now on.
    pub(crate) fn new() -> Result<Signals, Failure> {
        let listen = |kind| {
            let cannot = |error| Failure::new(Exit::Failed, format!("cannot listen for signals: {error}"));
            signal(kind).map_err(cannot)
        };
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Returns how to exit once a signal arrived.
    pub(crate) async fn next(&mut self) -> Exit {
        match self.heard().await {
            Heard::Leave(exit) => exit,
            Heard::HangUp => exit(SignalKind::hangup()),
        }
    }

    /// Returns what a signal said once one arrived.
    pub(crate) async fn heard(&mut self) -> Heard {
        tokio::select! {
            _ = self.interrupt.recv() => Heard::Leave(exit(SignalKind::interrupt())),
            _ = self.terminate.recv() => Heard::Leave(exit(SignalKind::terminate())),
            _ = self.hang_up.recv() => Heard::HangUp,
        }
    }
}
