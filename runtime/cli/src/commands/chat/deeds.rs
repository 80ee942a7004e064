//! What a person does in a conversation: begin, say, answer, stop, take back, close.
//!
//! Leaves what their words mean to `said`, `slash` and `questions`. Invariant: a line is acknowledged only when it is durable; what the
//! run refuses is told, and the caller learns that it was not taken.

use outlast_protocol::requests::{Accepted, Answer, Send, Withdraw};
use outlast_protocol::{ApiError, Code};
use outlast_runtime::client::ClientError;
use outlast_runtime::host::SessionError;
use serde_json::json;

use super::screen::Tone;
use super::talk::Talk;
use super::{mention, transcript};
use crate::commands::act;
use crate::failure::{Exit, Failure};

/// Whether the run took what a person did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It did, and will not forget it.
    Yes,
    /// It did not; the person was told why.
    No,
}

impl Talk {
    /// Says something to the run; the first words start one.
    pub(super) async fn say(&mut self, text: &str) -> Result<Taken, Failure> {
        let Some(run) = self.run_id() else { return self.first_words(text).await };
        let Some(message) = self.voice.say(text, act::fresh_id("m")?) else {
            self.face.print(Tone::Loud, "this flow takes no text; /help shows what else there is")?;
            return Ok(Taken::No);
        };
        let called = self.session.call(async |client| client.message(&run, &message).await).await;
        self.told(called).await
    }

    async fn first_words(&mut self, text: &str) -> Result<Taken, Failure> {
        match self.begin(text).await {
            Ok(()) => Ok(Taken::Yes),
            // They may try other words; what is wrong with the surroundings they cannot mend here.
            Err(failure) if failure.exit() == Exit::Usage && self.run.is_none() => {
                let why = failure.error().map_or_else(String::new, |error| error.message.clone());
                self.face.print(Tone::Loud, &why)?;
                Ok(Taken::No)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Answers a question.
    pub(super) async fn answer(&mut self, answer: &Answer) -> Result<Taken, Failure> {
        let Some(run) = self.run_id() else { return Ok(Taken::No) };
        let called = self.session.call(async |client| client.answer(&run, answer).await).await;
        self.told(called).await
    }

    /// Stops what goes on; returns whether there was something and the run was told.
    pub(super) async fn stop(&mut self) -> Result<bool, Failure> {
        if self.listens() {
            return Ok(false);
        }
        let Some(run) = self.run_id() else { return Ok(false) };
        let Some(stop) = self.voice.stop(act::fresh_id("m")?) else { return Ok(false) };
        match self.session.call(async |client| client.message(&run, &stop).await).await {
            Ok(_) => {
                self.catch_up().await?;
                Ok(true)
            }
            Err(SessionError::Call(ClientError::Refused(_))) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends the message that shortens the conversation; none: the flow takes no such message.
    pub(super) async fn compact(&mut self) -> Result<Option<Taken>, Failure> {
        let Some(run) = self.run_id() else { return Ok(None) };
        let Some(compact) = self.voice.compact(act::fresh_id("m")?) else { return Ok(None) };
        let called = self.session.call(async |client| client.message(&run, &compact).await).await;
        self.told(called).await.map(Some)
    }

    /// Takes the newest message back that the run has not taken yet; returns its text.
    pub(super) async fn take_back(&mut self) -> Result<Option<String>, Failure> {
        let Some(run) = &self.run else { return Ok(None) };
        let Some(message) = run.unread.last() else { return Ok(None) };
        let text = transcript::said(&message["value"]).map(mention::typed);
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        let (run, withdraw) = (run.id.clone(), Withdraw { id });
        match self.session.call(async |client| client.withdraw(&run, &withdraw).await).await {
            Ok(_) => {
                self.catch_up().await?;
                Ok(text)
            }
            // The run took it in this very moment.
            Err(SessionError::Call(ClientError::Refused(_))) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Says that no more messages come.
    pub(super) async fn close(&mut self) -> Result<(), Failure> {
        let Some(run) = self.run_id() else { return Ok(()) };
        let closed = Send { name: "closed".to_owned(), value: json!({}), id: Some("closed".to_owned()) };
        let called = self.session.call(async |client| client.message(&run, &closed).await).await;
        self.told(called).await.map(drop)
    }

    /// Ends the run with its clean-up.
    pub(super) async fn cancel(&mut self) -> Result<(), Failure> {
        let Some(run) = self.run_id() else { return Ok(()) };
        let called = self.session.call(async |client| client.cancel(&run).await).await;
        self.told(called).await.map(drop)
    }

    /// Returns the id of the run that is talked with.
    pub(super) fn run_id(&self) -> Option<String> {
        self.run.as_ref().map(|run| run.id.clone())
    }

    /// Shows a refusal to the person, who may try something else; other failures end the conversation.
    async fn told(&mut self, called: Result<Accepted, SessionError>) -> Result<Taken, Failure> {
        let taken = match called {
            Ok(_) => Taken::Yes,
            Err(SessionError::Call(ClientError::Refused(ApiError { code, message, .. })))
                if code != Code::NotReady && code != Code::Internal =>
            {
                self.face.print(Tone::Loud, &message)?;
                Taken::No
            }
            Err(error) => return Err(error.into()),
        };
        self.catch_up().await?;
        Ok(taken)
    }
}
