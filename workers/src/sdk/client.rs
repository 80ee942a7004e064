//! Calls to the runtime: JSON over HTTP, over TCP or a Unix socket.
//!
//! Leaves repeating to the loops. Invariant: an answer is either understood, an [`ApiError`] of the runtime, or no answer at all;
//! a proxy's page is no answer.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::error::{ApiError, ErrorBody};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::{ANSWER_BYTES_MAX, SOCKET_PATH_BYTES_MAX};

/// As whom a runtime is called, and how it is known for what it is.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The access token, where one is demanded.
    pub bearer: Option<String>,
    /// A file with the certificates, in PEM, of the only authorities that are trusted; the machine's own if left out.
    pub ca: Option<PathBuf>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bearer = self.bearer.as_ref().map(|_| "…");
        f.debug_struct("Credentials").field("bearer", &bearer).field("ca", &self.ca).finish()
    }
}

/// A connection to one runtime.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    credentials: Credentials,
    /// Kept open as long as the socket is reached through it.
    _directory: Option<Arc<File>>,
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// Nobody answered, or not in our words: connect again.
    #[error("the runtime does not answer: {0}")]
    Unreachable(String),
    /// The runtime said no.
    #[error(transparent)]
    Refused(#[from] ApiError),
}

/// Returns a path that the system takes for a socket: one that is too long leads through its directory, which must stay open then.
fn reachable(path: &Path) -> std::io::Result<(PathBuf, Option<File>)> {
    match (path.parent(), path.file_name()) {
        (Some(directory), Some(name)) if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX => {
            let directory = File::open(directory)?;
            let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name);
            Ok((short, Some(directory)))
        }
        _ => Ok((path.to_path_buf(), None)),
    }
}

impl Client {
    /// Prepares a client for `http://host:port`, `https://…` or `unix:/path`; connects on the first call.
    pub(crate) fn new(address: &str, credentials: Credentials) -> Result<Client, String> {
        let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let mut directory = None;
        let (builder, base) = if let Some(path) = address.strip_prefix("unix:") {
            let (path, through) =
                reachable(Path::new(path)).map_err(|error| format!("{address}: {error}"))?;
            directory = through.map(Arc::new);
            (no_roots(builder).unix_socket(path), "http://localhost".to_owned())
        } else if address.starts_with("http://") {
            (no_roots(builder), address.trim_end_matches('/').to_owned())
        } else if address.starts_with("https://") {
            let builder = match &credentials.ca {
                None => with_ring(builder),
                Some(path) => with_ring(builder).tls_certs_only(authorities(path)?),
            };
            (builder, address.trim_end_matches('/').to_owned())
        } else {
            return Err(format!("{address:?} is neither http://host:port nor unix:/path"));
        };
        let http = builder.build().map_err(|error| error_chain(&error))?;
        Ok(Client { http, base, credentials, _directory: directory })
    }

    pub(crate) async fn post<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        timeout: Duration,
    ) -> Result<A, CallError> {
        let body = serde_json::to_vec(body).map_err(|error| CallError::Unreachable(error.to_string()))?;
        let request = self.http.post(format!("{}{path}", self.base));
        self.send(request.header("content-type", "application/json").body(body), timeout).await
    }

    pub(crate) async fn get<A: DeserializeOwned>(
        &self,
        path: &str,
        timeout: Duration,
    ) -> Result<A, CallError> {
        self.send(self.http.get(format!("{}{path}", self.base)), timeout).await
    }

    /// Prepares to send bytes as they are: they are in memory once, however often they have to be sent.
    pub(crate) fn raw(&self, path: &str, bytes: Vec<u8>) -> reqwest::RequestBuilder {
        self.http.put(format!("{}{path}", self.base)).body(bytes)
    }

    /// Sends what was prepared.
    pub(crate) async fn put_raw(
        &self,
        prepared: &reqwest::RequestBuilder,
        timeout: Duration,
    ) -> Result<(), CallError> {
        let request = prepared.try_clone();
        let request =
            request.ok_or_else(|| CallError::Unreachable("the request cannot be sent again".to_owned()))?;
        self.exchange(request, timeout).await.map(drop)
    }

    /// Fetches bytes as they are.
    pub(crate) async fn get_raw(&self, path: &str, timeout: Duration) -> Result<Vec<u8>, CallError> {
        self.exchange(self.http.get(format!("{}{path}", self.base)), timeout).await
    }

    async fn send<A: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
        timeout: Duration,
    ) -> Result<A, CallError> {
        let body = self.exchange(request, timeout).await?;
        // `progress` answers with nothing.
        let body = if body.is_empty() { b"null".as_slice() } else { &body };
        serde_json::from_slice(body)
            .map_err(|error| CallError::Unreachable(format!("an odd answer: {error}")))
    }

    /// Sends a request, and returns the body of an answer that says yes.
    async fn exchange(
        &self,
        request: reqwest::RequestBuilder,
        timeout: Duration,
    ) -> Result<Vec<u8>, CallError> {
        let request = match &self.credentials.bearer {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let lost = |error: reqwest::Error| CallError::Unreachable(error_chain(&error.without_url()));
        let mut answer = request.timeout(timeout).send().await.map_err(lost)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(lost)? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(CallError::Unreachable("an answer without end".to_owned()));
            }
            body.extend_from_slice(&chunk);
        }
        let status = answer.status();
        if status.is_success() {
            return Ok(body);
        }
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => Err(CallError::Refused(body.error)),
            Err(_) => Err(CallError::Unreachable(format!("it answered {status}"))),
        }
    }
}

/// Reads the certificates of authorities.
fn authorities(path: &Path) -> Result<Vec<reqwest::Certificate>, String> {
    let wrong = |detail: String| format!("{}: certificates in PEM are expected: {detail}", path.display());
    let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let found = reqwest::Certificate::from_pem_bundle(&text).map_err(|error| wrong(error_chain(&error)))?;
    if found.is_empty() { Err(wrong("there is none".to_owned())) } else { Ok(found) }
}

/// An error with its causes, which is where the interesting part is.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// Prepares a client that speaks no TLS: it must work on machines without any certificates.
pub(crate) fn no_roots(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    match rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions() {
        Ok(tls) => builder.tls_backend_preconfigured(
            tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth(),
        ),
        Err(_) => with_ring(builder),
    }
}

/// Prepares a client that trusts what this machine trusts.
pub(crate) fn with_ring(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    // Fails if a provider is installed already, which serves as well.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    builder
}
