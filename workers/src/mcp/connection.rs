//! One connection to a server: from its start to its end.
//!
//! Leaves starting again to the keeper. Invariant: a connection that was made has done its handshake within the limit; when it is
//! dropped, a server that was started for it is ended.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, Peer, RoleClient, RunningService,
    ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::sync::Mutex;

use super::config::{Reach, ServerConfig};
use super::handler::Handler;
use super::listing::{self, Listing};
use super::login::{self, Authorized, Login, Logins};
use super::stdio::{self, Program, Watched};
use crate::limits::{MCP_CONNECT, MCP_LAST_WORDS, MESSAGE_BYTES_MAX, STREAM_TRIES_MAX, STREAM_WAIT};
use crate::sdk::{error_chain, no_roots, with_ring};

/// A connection that can be called through.
#[derive(Debug)]
pub(super) struct Connection {
    service: RunningService<RoleClient, Handler>,
    /// The program, if the server is one.
    watched: Option<Watched>,
    listing: Mutex<Option<Arc<Listing>>>,
    config: ServerConfig,
}

impl Connection {
    /// Makes a connection, and starts the server if it is a program.
    pub(super) async fn open(
        config: &ServerConfig,
        directory: &Path,
        guard: Option<&PathBuf>,
        logins: &Logins,
    ) -> Result<Connection, NotOpen> {
        // A server that knows no handshake says so by an error, and is spoken to in the newer way.
        let newer = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
        match Connection::open_as(config, directory, guard, logins, ClientLifecycleMode::Initialize).await {
            Err(Refused::Handshake(_)) => {
                let opened = Connection::open_as(config, directory, guard, logins, newer).await;
                opened.map_err(Refused::not_open)
            }
            other => other.map_err(Refused::not_open),
        }
    }

    async fn open_as(
        config: &ServerConfig,
        directory: &Path,
        guard: Option<&PathBuf>,
        logins: &Logins,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Connection, Refused> {
        let handler = Handler::default();
        let (started, watched) = match &config.reach {
            Reach::Stdio { command, args, env, directory: own } => {
                let at = own.as_ref().map_or_else(|| directory.to_owned(), |own| directory.join(own));
                let program = Program { command, args, env, directory: &at };
                let (pipes, watched) = stdio::start(program, guard)
                    .map_err(|error| Refused::Other(format!("cannot start {command}: {error}")))?;
                let started =
                    tokio::time::timeout(config.start, handler.serve_with_lifecycle(pipes, lifecycle));
                (started.await, Some(watched))
            }
            Reach::Http { url, headers, .. } => {
                let login = Login::of(config, logins);
                let http = http(url, headers, login).map_err(Refused::Other)?;
                (
                    tokio::time::timeout(config.start, handler.serve_with_lifecycle(http, lifecycle)).await,
                    None,
                )
            }
        };
        let service = match started {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(refused(error, watched.as_ref(), config).await),
            Err(_) => {
                let story = story(watched.as_ref(), Duration::ZERO).await;
                let text = format!("it was not ready after {} s{story}", config.start.as_secs_f32());
                return Err(Refused::Other(text));
            }
        };
        let speaks = service.peer().peer_info().map(|info| info.protocol_version.clone()).unwrap_or_default();
        if !ProtocolVersion::KNOWN_VERSIONS.contains(&speaks) {
            let text = format!("it speaks version {speaks} of the protocol, which is not known here");
            return Err(Refused::Other(config.shown(&text)));
        }
        Ok(Connection { service, watched, listing: Mutex::new(None), config: config.clone() })
    }

    /// Whether it can be called through no more.
    pub(super) fn is_over(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// How it ended, as far as that is known.
    pub(super) async fn story(&self) -> String {
        story(self.watched.as_ref(), MCP_LAST_WORDS).await
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// The server's name.
    pub(super) fn server(&self) -> &str {
        &self.config.name
    }

    pub(super) fn handler(&self) -> &Handler {
        self.service.service()
    }

    /// The server's tools; asked for again when it said that they changed.
    ///
    /// # Errors
    /// Why they cannot be asked for.
    pub(super) async fn listing(&self) -> Result<Arc<Listing>, String> {
        let mut known = self.listing.lock().await;
        if self.handler().take_changed() {
            // It stays forgotten if the new one cannot be had.
            *known = None;
        }
        match known.as_ref() {
            Some(listing) => Ok(listing.clone()),
            None => Ok(known.insert(self.list().await?).clone()),
        }
    }

    /// The server's tools as they are now, for who does not find in the list what should be there: not all servers tell.
    pub(super) async fn listing_now(&self) -> Result<Arc<Listing>, String> {
        let mut known = self.listing.lock().await;
        Ok(known.insert(self.list().await?).clone())
    }

    /// An error of the library for people.
    pub(super) fn text_of(&self, error: &ServiceError) -> String {
        self.shown(&match error {
            ServiceError::McpError(said) => format!("{} (error {})", said.message, said.code.0),
            ServiceError::TransportClosed => "the connection was closed".to_owned(),
            other => error_chain(other),
        })
    }

    /// What a person has to be told if an error says that they must log in.
    pub(super) fn wants_login(&self, error: &ServiceError) -> Option<String> {
        login::wanted(self.server(), error).map(|text| self.shown(&text))
    }

    /// See [`ServerConfig::shown`].
    pub(super) fn shown(&self, text: &str) -> String {
        self.config.shown(text)
    }

    async fn list(&self) -> Result<Arc<Listing>, String> {
        let can = self.peer().peer_info().is_some_and(|info| info.capabilities.tools.is_some());
        let listed = if can {
            let asked = listing::list(self.peer(), &self.config.name);
            match tokio::time::timeout(self.config.start, asked).await {
                Ok(listed) => listed.map_err(|error| self.text_of(&error)),
                Err(_) => Err("it did not list its tools in time".to_owned()),
            }
        } else {
            Ok(Listing::default())
        };
        match listed {
            Ok(listing) => Ok(Arc::new(listing)),
            Err(why) => {
                let story = if self.is_over() { self.story().await } else { String::new() };
                Err(format!("{why}{story}"))
            }
        }
    }
}

/// A connection was not made.
pub(super) struct NotOpen {
    pub(super) why: String,
    /// It takes a person who logs in.
    pub(super) wants_login: bool,
}

/// Why a connection was not made.
enum Refused {
    /// The server answered the handshake with an error.
    Handshake(String),
    Login(String),
    Other(String),
}

impl Refused {
    fn not_open(self) -> NotOpen {
        match self {
            Refused::Handshake(why) | Refused::Other(why) => NotOpen { why, wants_login: false },
            Refused::Login(why) => NotOpen { why, wants_login: true },
        }
    }
}

async fn refused(error: ClientInitializeError, watched: Option<&Watched>, config: &ServerConfig) -> Refused {
    // The library names this cause no source of its error.
    if let ClientInitializeError::TransportError { error, .. } = &error
        && let Some(why) = login::wanted(&config.name, error)
    {
        return Refused::Login(config.shown(&why));
    }
    let said = |message: &str| config.shown(&format!("it refuses the handshake: {message}"));
    match &error {
        ClientInitializeError::JsonRpcError(error)
            if [ErrorCode::METHOD_NOT_FOUND, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION]
                .contains(&error.code) =>
        {
            Refused::Handshake(said(&error.message))
        }
        ClientInitializeError::JsonRpcError(error) => Refused::Other(said(&error.message)),
        ClientInitializeError::ConnectionClosed(_) => {
            let story = story(watched, MCP_LAST_WORDS).await;
            Refused::Other(format!("it ended before it was ready{story}"))
        }
        other => {
            // A program that ends at once may do so before or while it is spoken to.
            let story = story(watched, MCP_LAST_WORDS).await;
            let why = config.shown(&error_chain(other));
            Refused::Other(format!("it cannot be reached: {why}{story}"))
        }
    }
}

async fn story(watched: Option<&Watched>, patience: Duration) -> String {
    match watched {
        Some(watched) => watched.story(patience).await,
        None => String::new(),
    }
}

/// A connection over HTTP: no redirect to elsewhere, the headers of the entry and the token of the login with each call.
fn http(
    url: &str,
    headers: &std::collections::BTreeMap<String, String>,
    login: Option<Login>,
) -> Result<StreamableHttpClientTransport<Authorized>, String> {
    let mut own = HashMap::new();
    for (name, value) in headers {
        let name =
            HeaderName::try_from(name.as_str()).map_err(|_| format!("{name:?} is no header's name"))?;
        let mut value = HeaderValue::try_from(value.as_str())
            .map_err(|_| format!("the header {name} has an odd value"))?;
        value.set_sensitive(true);
        own.insert(name, value);
    }
    let builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(MCP_CONNECT)
        .pool_max_idle_per_host(0);
    let builder = if url.starts_with("https:") { with_ring(builder) } else { no_roots(builder).no_proxy() };
    let client = builder.build().map_err(|error| error_chain(&error))?;
    // A stream that broke off is asked for again a few times; then its call is lost.
    let mut again = ExponentialBackoff::default();
    (again.max_times, again.base_duration) = (Some(STREAM_TRIES_MAX), STREAM_WAIT);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(own)
        .max_sse_event_size(MESSAGE_BYTES_MAX)
        .max_json_response_size(MESSAGE_BYTES_MAX);
    config.retry_config = Arc::new(again);
    Ok(StreamableHttpClientTransport::with_client(Authorized { client, login }, config))
}
