//! What a driver without a person does to a run so that it goes on: answers for nobody, no more messages, giving up.
//!
//! Leaves when to do it to `policy`. Invariant: a run that has moved on by itself meanwhile is no error.

use std::path::PathBuf;

use outlast_protocol::requests::{Answer, Send};
use outlast_protocol::{ApiError, Code};
use outlast_runtime::client::ClientError;
use outlast_runtime::host::{Session, SessionError};
use serde_json::json;

use super::policy::OnAsk;
use crate::failure::Failure;
use crate::out;

/// The note of an answer that nobody gave.
pub(crate) const NOBODY: &str = "nobody is there to be asked";

/// Does what the policy says of open questions; returns those that it rejected.
pub(crate) async fn asked(session: &Session, run: &str, on_ask: OnAsk) -> Result<Vec<String>, Failure> {
    match on_ask {
        OnAsk::Wait | OnAsk::Approve => Ok(Vec::new()),
        OnAsk::Deny => reject_all(session, run).await,
        OnAsk::Fail => {
            let cancelled = session.call(async |client| client.cancel(run).await).await;
            if cancelled.is_ok() {
                out::say(&format!("run {run}: a person is asked, and --on-ask fail says to give up"));
            }
            settled(cancelled).map(|()| Vec::new())
        }
    }
}

/// Says which questions were rejected, where the stream of the run is not shown, which tells it as well.
pub(crate) fn tell_rejected(questions: &[String]) {
    for question in questions {
        out::say(&format!("rejected by --on-ask deny: {}", out::tame(question)));
    }
}

/// Says that no more messages come.
pub(crate) async fn close(session: &Session, run: &str) -> Result<(), Failure> {
    let closed = Send { name: "closed".to_owned(), value: json!({}), id: Some("closed".to_owned()) };
    settled(session.call(async |client| client.message(run, &closed).await).await)
}

/// Returns the directory in which a run works, if it is not there.
pub(crate) async fn missing_directory(session: &Session, run: &str) -> Option<PathBuf> {
    let view = session.call(async |client| client.run(run).await).await.ok()?;
    let profile = session.call(async |client| client.profile(&view.profile).await).await.ok()?;
    (!profile.directory.is_dir()).then_some(profile.directory)
}

/// Passes over refusals that say that the run has moved on by itself.
pub(crate) fn settled<T>(called: Result<T, SessionError>) -> Result<(), Failure> {
    match called {
        Ok(_) => Ok(()),
        Err(SessionError::Call(ClientError::Refused(ApiError {
            code:
                Code::RunEnded | Code::AlreadyEnding | Code::AlreadyDecided | Code::NotFound | Code::NotListening,
            ..
        }))) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn reject_all(session: &Session, run: &str) -> Result<Vec<String>, Failure> {
    let mut rejected = Vec::new();
    let view = session.call(async |client| client.run(run).await).await?;
    for question in view.questions {
        let answer = Answer {
            question: Some(question.id),
            choice: "reject".to_owned(),
            note: Some(NOBODY.to_owned()),
            role: question.to.first().cloned(),
            shown: Some(question.shown),
            ..Answer::default()
        };
        settled(session.call(async |client| client.answer(run, &answer).await).await)?;
        rejected.push(question.text);
    }
    Ok(rejected)
}
