//! The session with the runtime, shared by all loops: who may call, and what a failed call means.
//!
//! Leaves registering to its loop. Invariant: one session at a time; whoever finds it broken says so once, and everybody waits for
//! the next one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_protocol::error::Code;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::client::{CallError, Client};
use super::fence::{Fence, boot_ms};
use crate::limits::{CALL_TIMEOUT_MAX, CALL_TIMEOUT_MIN};

/// See the module.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) fence: Fence,
    session: watch::Sender<Option<Arc<str>>>,
    proved: AtomicBool,
}

/// What the caller should do after a call without a result.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The session is gone: wait for the next one.
    Session,
    /// Ask again later.
    Busy,
    /// This very request is refused.
    Refused(String),
}

impl Link {
    pub(crate) fn new(client: Client) -> Link {
        Link {
            client,
            fence: Fence::new(),
            session: watch::Sender::new(None),
            proved: AtomicBool::new(false),
        }
    }

    /// Waits for a session.
    pub(crate) async fn session(&self) -> Arc<str> {
        let mut session = self.session.subscribe();
        loop {
            if let Some(session) = session.borrow_and_update().clone() {
                return session;
            }
            // The sender lives in `self`, so the channel cannot close here.
            if session.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until there is none.
    pub(crate) async fn broken(&self) {
        let mut session = self.session.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _closed = session.wait_for(Option::is_none).await;
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.session.borrow().is_some()
    }

    pub(crate) fn opened(&self, session: &str) {
        self.proved.store(false, Ordering::Release);
        self.session.send_replace(Some(session.into()));
    }

    /// Whether the last session was of any use: if not, the next one waits longer.
    pub(crate) fn was_proved(&self) -> bool {
        self.proved.load(Ordering::Acquire)
    }

    /// Says that a session is of no use any more, if it is still the one.
    pub(crate) fn lost(&self, session: &str) {
        self.session.send_if_modified(|now| {
            let same = now.as_deref() == Some(session);
            if same {
                *now = None;
            }
            same
        });
    }

    /// Does something if a session still stands, and keeps it standing until that is done: what is begun in a session is in hand when the
    /// next one is registered. Tells whether it was done.
    pub(crate) fn lasting(&self, session: &str, act: impl FnOnce()) -> bool {
        // While this is borrowed, nobody can say that the session is lost.
        let now = self.session.borrow();
        let stands = now.as_deref() == Some(session);
        if stands {
            act();
        }
        stands
    }

    /// The time-out of a short call: several must fail before the lease is over.
    pub(crate) fn short(&self) -> Duration {
        Duration::from_millis(self.fence.lease_ms() / 6).clamp(CALL_TIMEOUT_MIN, CALL_TIMEOUT_MAX)
    }

    /// Calls within a session; ends at once when the session breaks.
    pub(crate) async fn post<A: DeserializeOwned>(
        &self,
        session: &str,
        path: &str,
        body: &impl Serialize,
        timeout: Duration,
    ) -> Result<A, Broken> {
        self.judge(session, path, self.client.post(path, body, timeout)).await
    }

    /// As `post`, for the call that is a `GET`.
    pub(crate) async fn get<A: DeserializeOwned>(
        &self,
        session: &str,
        path: &str,
        timeout: Duration,
    ) -> Result<A, Broken> {
        self.judge(session, path, self.client.get(path, timeout)).await
    }

    async fn judge<A>(
        &self,
        session: &str,
        path: &str,
        call: impl Future<Output = Result<A, CallError>>,
    ) -> Result<A, Broken> {
        let sent_ms = boot_ms();
        let result = tokio::select! {
            biased;
            result = call => result,
            () = self.replaced(session) => return Err(Broken::Session),
        };
        match result {
            Ok(answer) => {
                self.proved.store(true, Ordering::Release);
                self.fence.renewed(sent_ms);
                Ok(answer)
            }
            Err(CallError::Unreachable(text)) => {
                self.fence.failed();
                tracing::info!(path, text, "the connection to the runtime is lost");
                self.lost(session);
                Err(Broken::Session)
            }
            Err(CallError::Refused(error)) => {
                self.fence.failed();
                tracing::debug!(path, %error, code = ?error.code, "the runtime refused a call");
                match reaction(error.code) {
                    Reaction::Register => {
                        self.lost(session);
                        Err(Broken::Session)
                    }
                    Reaction::Wait => Err(Broken::Busy),
                    Reaction::GiveUp => Err(Broken::Refused(error.message)),
                }
            }
        }
    }

    async fn replaced(&self, session: &str) {
        let mut watch = self.session.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _closed = watch.wait_for(|now| now.as_deref() != Some(session)).await;
    }
}

/// What a refusal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Register (again): the session is unknown.
    Register,
    /// Ask again later.
    Wait,
    /// The request itself is wrong.
    GiveUp,
}

/// Sorts refusals by what to do.
pub(crate) fn reaction(code: Code) -> Reaction {
    match code {
        Code::NotFound | Code::Superseded | Code::Unauthorized | Code::Conflict => Reaction::Register,
        Code::MailboxFull | Code::Overloaded | Code::NotReady | Code::DiskFull | Code::Internal => {
            Reaction::Wait
        }
        Code::Invalid
        | Code::InvalidCursor
        | Code::Forbidden
        | Code::RunEnded
        | Code::NotListening
        | Code::AlreadyDecided
        | Code::AlreadyEnding
        | Code::TooLarge
        | Code::MethodNotAllowed => Reaction::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_session_that_is_gone_nothing_is_begun() {
        let link = Link::new(Client::new("http://127.0.0.1:1", Default::default()).unwrap());
        let mut begun = Vec::new();
        assert!(!link.lasting("s1", || begun.push(0)), "there is none yet");
        link.opened("s1");
        assert!(link.lasting("s1", || begun.push(1)));
        link.lost("s1");
        assert!(!link.lasting("s1", || begun.push(2)), "lost");
        link.opened("s2");
        assert!(!link.lasting("s1", || begun.push(3)), "another one");
        assert_eq!(begun, [1]);
    }
}
