//! The engine as seen by its drivers: every call of the API, over a Unix socket or an http URL.
//!
//! Leaves coming back after the server has gone to its callers, who know which calls may be repeated. Invariant: an answer of the server
//! is told apart from the lack of one: [`ClientError::Unreachable`] says that nothing is known about what became of the request.

pub(crate) mod connect;
mod follow;
mod schedules;
mod tokens;
mod whole;

use std::time::Duration;

use hyper::{Method, StatusCode};
use outlast_dsl::machine::Machine;
use outlast_kernel::Json;
use outlast_kernel::ids::RunId;
use outlast_protocol::audit::AuditRecord;
use outlast_protocol::error::ErrorBody;
use outlast_protocol::requests::{
    Accepted, Answer, Cancel, Deploy, FlowView, List, Release, Send, Settle, Start, Withdraw,
};
use outlast_protocol::run::{OutcomeView, RunView, WaitingFor};
use outlast_protocol::{ApiError, Code};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::limits::{ANSWER_MS_MAX, DOCTOR_MS_MAX, WAIT_MS_MAX};
use crate::rpc::RpcError;
use outlast_protocol::profile::Profile;

pub use connect::{Address, InvalidAddress};
pub use follow::Follow;

/// Why a call gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server answered with an error.
    #[error(transparent)]
    Refused(#[from] ApiError),
    /// The server cannot be reached, or was lost on the way: the request may or may not have been heard.
    #[error("cannot reach the runtime at {address}: {detail}")]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// What failed.
        detail: String,
    },
    /// The server's answer is not what the protocol says.
    #[error("the runtime at {address} gave an answer that cannot be read: {detail}")]
    Garbled {
        /// Where it came from.
        address: String,
        /// What was expected.
        detail: String,
    },
}

/// A run, and whether it was there before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The run.
    #[serde(flatten)]
    pub run: RunView,
    /// Whether an equal request had started it before.
    #[serde(default)]
    pub existing: bool,
}

/// Where a run stands, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultView {
    /// The run.
    pub id: String,
    /// `running`, `waiting`, `blocked` or `ended`.
    pub status: String,
    /// Only when ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeView>,
    /// Why it does not move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
}

/// Which runs are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only this status.
    pub status: Option<String>,
    /// Only this flow.
    pub flow: Option<String>,
    /// Only this profile.
    pub profile: Option<String>,
    /// The cursor of the page before.
    pub cursor: Option<String>,
    /// At most this many.
    pub limit: Option<usize>,
}

/// Calls the API of one server. Cheap to clone; holds no connection.
#[derive(Clone, Debug)]
pub struct Client {
    address: Address,
    token: Option<String>,
}

type Called<T> = Result<T, ClientError>;

impl Client {
    /// Makes a client; nothing is sent yet.
    #[must_use]
    pub fn new(address: Address, token: Option<String>) -> Client {
        Client { address, token }
    }

    /// Returns the figures of the server and its engine.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn status(&self) -> Called<Json> {
        self.get("/v1/status".to_owned()).await
    }

    /// Has the whole store read, and returns what was found.
    ///
    /// # Errors
    /// [`Code::Forbidden`] unless the server is called through its owner's socket.
    pub async fn doctor(&self) -> Called<Json> {
        let patience = Duration::from_millis(DOCTOR_MS_MAX);
        self.call::<(), _>(Method::GET, "/v1/doctor".to_owned(), None, patience).await
    }

    /// Deploys flows.
    ///
    /// # Errors
    /// [`Code::Invalid`] with the first diagnostics if the text is refused.
    pub async fn deploy(&self, request: &Deploy) -> Called<Vec<FlowView>> {
        #[derive(Deserialize)]
        struct Deployed {
            flows: Vec<FlowView>,
        }
        let deployed: Deployed = self.post("/v1/flows".to_owned(), request).await?;
        Ok(deployed.flows)
    }

    /// Returns the deployed flows.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn flows(&self) -> Called<List<FlowView>> {
        self.get("/v1/flows".to_owned()).await
    }

    /// Returns a flow as a run pins it, by its hash.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn machine(&self, hash: &str) -> Called<Machine> {
        self.get(format!("/v1/machines/{}", encode(hash))).await
    }

    /// Keeps an environment profile and returns its name.
    ///
    /// # Errors
    /// [`Code::Forbidden`] unless the server is called through its owner's socket.
    pub async fn put_profile(&self, profile: &Profile) -> Called<String> {
        #[derive(Deserialize)]
        struct Kept {
            name: String,
        }
        let kept: Kept = self.post("/v1/profiles".to_owned(), profile).await?;
        Ok(kept.name)
    }

    /// Returns an environment profile.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Forbidden`].
    pub async fn profile(&self, name: &str) -> Called<Profile> {
        self.get(format!("/v1/profiles/{}", encode(name))).await
    }

    /// Starts a run, or finds the one that an equal request started.
    ///
    /// # Errors
    /// [`Code::Invalid`], [`Code::NotFound`] (flow), [`Code::Conflict`].
    pub async fn start(&self, request: &Start) -> Called<Started> {
        self.post("/v1/runs".to_owned(), request).await
    }

    /// Returns runs, newest first.
    ///
    /// # Errors
    /// [`Code::Invalid`], [`Code::InvalidCursor`].
    pub async fn runs(&self, wanted: &Wanted) -> Called<List<RunView>> {
        let limit = wanted.limit.map(|limit| limit.to_string());
        let query = query(&[
            ("status", wanted.status.as_deref()),
            ("flow", wanted.flow.as_deref()),
            ("profile", wanted.profile.as_deref()),
            ("cursor", wanted.cursor.as_deref()),
            ("limit", limit.as_deref()),
        ]);
        self.get(format!("/v1/runs{query}")).await
    }

    /// Returns a run.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn run(&self, run: &str) -> Called<RunView> {
        self.get(path(run, "")?).await
    }

    /// Returns where a run stands, when it has ended, when only people can move it, or after `wait` (cut to what the server grants).
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn result(&self, run: &str, wait: Duration) -> Called<ResultView> {
        let wait = wait.min(Duration::from_millis(WAIT_MS_MAX));
        let path = format!("{}?wait={}ms", path(run, "/result")?, wait.as_millis());
        let patience = wait + Duration::from_millis(ANSWER_MS_MAX);
        self.call::<(), _>(Method::GET, path, None, patience).await
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`], [`Code::RunEnded`], [`Code::NotListening`], [`Code::MailboxFull`].
    pub async fn message(&self, run: &str, request: &Send) -> Called<Accepted> {
        self.post(path(run, "/messages")?, request).await
    }

    /// Pulls an unread message back.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn withdraw(&self, run: &str, request: &Withdraw) -> Called<Accepted> {
        self.post(path(run, "/withdraw")?, request).await
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`], [`Code::AlreadyDecided`], [`Code::Conflict`], [`Code::Forbidden`].
    pub async fn answer(&self, run: &str, request: &Answer) -> Called<Accepted> {
        self.post(path(run, "/answers")?, request).await
    }

    /// Stops a run with its clean-up.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::AlreadyEnding`], [`Code::RunEnded`].
    pub async fn cancel(&self, run: &str) -> Called<Accepted> {
        self.post(path(run, "/cancel")?, &json!({})).await
    }

    /// Asks a run to end with its clean-up, and says why in a word that its history keeps.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::AlreadyEnding`], [`Code::RunEnded`], [`Code::Invalid`] (the word).
    pub async fn cancel_because(&self, run: &str, why: &str) -> Called<Accepted> {
        self.post(path(run, "/cancel")?, &Cancel { why: Some(why.to_owned()) }).await
    }

    /// Stops a run at once.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::RunEnded`].
    pub async fn terminate(&self, run: &str) -> Called<Accepted> {
        self.post(path(run, "/terminate")?, &json!({})).await
    }

    /// Settles an operation in doubt.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`].
    pub async fn settle(&self, run: &str, request: &Settle) -> Called<Accepted> {
        self.post(path(run, "/settle")?, request).await
    }

    /// Gives a held operation fresh attempts.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn release(&self, run: &str, request: &Release) -> Called<Accepted> {
        self.post(path(run, "/release")?, request).await
    }

    /// Returns the paths of the states that a run entered, oldest first.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn way(&self, run: &str) -> Called<List<String>> {
        self.get(path(run, "/way")?).await
    }

    /// Returns events after `after`, at most `limit`.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn events(&self, run: &str, after: u64, limit: usize) -> Called<List<Json>> {
        self.get(format!("{}?after={after}&limit={limit}", path(run, "/events")?)).await
    }

    /// Returns what events after `after` say about who did what, from at most `limit` events.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn audit(&self, run: &str, after: u64, limit: usize) -> Called<List<AuditRecord>> {
        self.get(format!("{}?after={after}&limit={limit}", path(run, "/audit")?)).await
    }

    /// Makes a JSON-RPC request, which must have an id, and returns what it is answered.
    ///
    /// # Errors
    /// As every call; a server that is not ready is an error of the call, so that it can be made elsewhere.
    pub async fn rpc(&self, request: &Json) -> Called<Result<Json, RpcError>> {
        let patience = Duration::from_millis(WAIT_MS_MAX + ANSWER_MS_MAX);
        let path = "/v1/rpc".to_owned();
        let answer: Json = self.call(Method::POST, path, Some(request), patience).await?;
        let result = RpcError::read(answer).map_err(|detail| self.garbled(detail))?;
        if let Err(error) = &result
            && let Some(refused) = error.api_error().filter(|refused| refused.code == Code::NotReady)
        {
            return Err(refused.into());
        }
        Ok(result)
    }

    /// Follows a run from the frame after `last_event_id` on, or from its beginning.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::InvalidCursor`].
    pub async fn follow(&self, run: &str, last_event_id: Option<&str>) -> Called<Follow> {
        let request = self.request(Method::GET, &path(run, "/stream")?, None)?;
        let request = match last_event_id {
            None => request,
            Some(id) => with_header(request, "last-event-id", id)?,
        };
        let opened = connect::send(&self.address, request);
        let response = self.within(Duration::from_millis(ANSWER_MS_MAX), opened).await??;
        if response.status() == StatusCode::OK {
            return Ok(Follow::new(response.into_body(), self.address.to_string()));
        }
        let status = response.status();
        let bytes = connect::read(&self.address, response.into_body()).await?;
        Err(self.refusal(status, &bytes))
    }

    async fn get<T: DeserializeOwned>(&self, path: String) -> Called<T> {
        self.call::<(), T>(Method::GET, path, None, Duration::from_millis(ANSWER_MS_MAX)).await
    }

    async fn post<B: Serialize + Sync, T: DeserializeOwned>(&self, path: String, body: &B) -> Called<T> {
        self.call(Method::POST, path, Some(body), Duration::from_millis(ANSWER_MS_MAX)).await
    }

    async fn call<B: Serialize + Sync, T: DeserializeOwned>(
        &self,
        method: Method,
        path: String,
        body: Option<&B>,
        patience: Duration,
    ) -> Called<T> {
        let body = body.map(serde_json::to_vec).transpose().map_err(|error| self.garbled(error))?;
        let bytes = self.call_raw(method, path, body, patience).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.garbled(error))
    }

    async fn call_raw(
        &self,
        method: Method,
        path: String,
        body: Option<Vec<u8>>,
        patience: Duration,
    ) -> Called<Vec<u8>> {
        let request = self.request(method, &path, body)?;
        let answer = async {
            let response = connect::send(&self.address, request).await?;
            let status = response.status();
            Ok::<_, ClientError>((status, connect::read(&self.address, response.into_body()).await?))
        };
        let (status, bytes) = self.within(patience, answer).await??;
        if !status.is_success() {
            return Err(self.refusal(status, &bytes));
        }
        Ok(bytes.into())
    }

    fn request(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Called<connect::Request> {
        let request = connect::request(&self.address, method, path, body).map_err(|e| self.garbled(e))?;
        match &self.token {
            None => Ok(request),
            Some(token) => with_header(request, "authorization", &format!("Bearer {token}")),
        }
    }

    async fn within<F: Future>(&self, patience: Duration, answer: F) -> Called<F::Output> {
        let late = |_| ClientError::Unreachable {
            address: self.address.to_string(),
            detail: format!("no answer within {} s", patience.as_secs()),
        };
        tokio::time::timeout(patience, answer).await.map_err(late)
    }

    fn refusal(&self, status: StatusCode, bytes: &[u8]) -> ClientError {
        match serde_json::from_slice::<ErrorBody>(bytes) {
            Ok(body) => ClientError::Refused(body.error),
            Err(error) => self.garbled(format!("status {status}, {error}")),
        }
    }

    fn garbled(&self, detail: impl ToString) -> ClientError {
        ClientError::Garbled { address: self.address.to_string(), detail: detail.to_string() }
    }
}

/// Returns the path of a run; text that is no run id never becomes one.
fn path(run: &str, rest: &str) -> Called<String> {
    let run = RunId::new(run).map_err(|error| ApiError::new(Code::Invalid, error.to_string()))?;
    Ok(format!("/v1/runs/{run}{rest}"))
}

fn with_header(mut request: connect::Request, name: &'static str, value: &str) -> Called<connect::Request> {
    let fits = hyper::header::HeaderValue::from_str(value);
    let value = fits.map_err(|_| ApiError::new(Code::Invalid, format!("{name}: not a header's value")))?;
    request.headers_mut().insert(name, value);
    Ok(request)
}

fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let mut query = String::new();
    for (name, value) in parameters {
        if let Some(value) = value {
            query.push(if query.is_empty() { '?' } else { '&' });
            query = query + name + "=" + &encode(value);
        }
    }
    query
}

/// Writes text so that it can stand anywhere in a URL.
fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-') {
            encoded.push(char::from(byte));
        } else {
            let _infallible = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_queries_hold_any_text() {
        assert_eq!(query(&[("a", None)]), "");
        assert_eq!(query(&[("a", None), ("b", Some("x y&z=ü"))]), "?b=x%20y%26z%3D%C3%BC");
        assert_eq!(query(&[("a", Some("1")), ("b", Some("2"))]), "?a=1&b=2");
        assert_eq!(path("r-1", "/stream").unwrap(), "/v1/runs/r-1/stream");
        for run in ["", "..", "../x", "a/b", "a b", "ü"] {
            assert!(path(run, "").is_err(), "{run:?}");
        }
    }
}
