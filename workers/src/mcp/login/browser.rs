//! Logging in: a person opens an address, and the browser brings the code to this machine.
//!
//! Leaves discovery, registration and the exchange to the library. Invariant: a code is taken only with the state that this very login
//! gave out, and only once; what the browser is shown says nothing of the tokens.

use reqwest::Url;
use rmcp::transport::auth::{AuthError, AuthorizationManager, OAuthClientConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::super::config::ServerConfig;
use super::stored::Stored;
use super::{Login, Logins, http, manager};
use crate::limits::{CALLBACK_BYTES_MAX, CALLBACK_PATIENCE, LOGIN_PATIENCE};
use crate::sdk::{Mask, error_chain};
use crate::tools::quote;

/// Where the browser brings the code.
const PATH: &str = "/callback";
/// As what this program registers itself.
const NAME: &str = "Outlast";
/// Characters of an authorization server's word that are passed on.
const SAID_CHARS_MAX: usize = 300;

/// A login that waits for a person.
#[must_use = "nobody is logged in until it is finished"]
pub struct UnderWay {
    manager: AuthorizationManager,
    listener: TcpListener,
    address: Url,
    state: String,
    mask: Mask,
}

impl std::fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UnderWay")
    }
}

/// Begins a login: finds the authorization server, makes this program known to it, and listens for the code.
pub(in crate::mcp) async fn begin(config: &ServerConfig, logins: &Logins) -> Result<UnderWay, String> {
    let Some(login) = Login::of(config, logins) else {
        return Err(
            "it takes no login: it is a program, or its entry has an `Authorization` header".to_owned()
        );
    };
    let failed = |error: AuthError| said(&login.mask, &error);
    let challenge = challenge(&login.url).await?;
    let mut manager = manager(login.requests()?, &login.url).await.map_err(failed)?;
    let found = manager.resolve_metadata_from_challenge(challenge.header.as_deref()).await.map_err(failed)?;
    if !found.source.is_discovered() {
        return Err(challenge.without_authorization_server());
    }
    manager.set_metadata(found.metadata);
    let port = login.client.callback_port;
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await
        .map_err(|error| format!("cannot listen on port {port} of this machine: {error}"))?;
    let own = listener.local_addr().map_err(|error| error.to_string())?;
    let redirect = format!("http://{own}{PATH}");
    let scopes = match login.client.scopes.as_slice() {
        [] => manager.select_initial_scopes(&[]).await,
        some => some.to_vec(),
    };
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let secret = match &login.client.id {
        Some(id) => {
            let mut client = OAuthClientConfig::new(id, redirect);
            if let Some(secret) = &login.client.secret {
                client = client.with_client_secret(secret);
            }
            manager.configure_client(client).map_err(failed)?;
            None
        }
        None => {
            let registered = manager.register_client(NAME, &redirect, &scopes).await;
            let client = registered.map_err(|error| {
                let why = failed(error);
                format!("this program cannot register there ({why}); get a client id and write it as `oauth.clientId` into its entry")
            })?;
            client.client_secret
        }
    };
    login.stored.make_place()?;
    manager.set_credential_store(Stored::clone(&login.stored).with_secret(secret));
    let address = manager.get_authorization_url(&scopes).await.map_err(failed)?;
    let address = Url::parse(&address).map_err(|error| error.to_string())?;
    let state = parameter(&address, "state").ok_or("the address to open has no state")?;
    Ok(UnderWay { manager, listener, address, state, mask: login.mask.clone() })
}

impl UnderWay {
    /// The address that a person has to open.
    #[must_use]
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    /// Waits for the code and fetches the tokens with it.
    ///
    /// # Errors
    /// Why nobody is logged in: consent was denied, nobody came in time, or the code is not taken.
    pub async fn finish(self) -> Result<(), String> {
        let waited = tokio::time::timeout(LOGIN_PATIENCE, self.wait()).await;
        waited.unwrap_or_else(|_| {
            Err(format!("nobody logged in within {} minutes", LOGIN_PATIENCE.as_secs() / 60))
        })
    }

    async fn wait(&self) -> Result<(), String> {
        loop {
            let (mut browser, _) = self.listener.accept().await.map_err(|error| error.to_string())?;
            let Ok(Some(asked)) = tokio::time::timeout(CALLBACK_PATIENCE, request(&mut browser)).await else {
                continue;
            };
            if asked.path() != PATH {
                show(&mut browser, "404 Not Found", "There is nothing here.").await;
            } else if parameter(&asked, "state").as_deref() != Some(self.state.as_str()) {
                show(
                    &mut browser,
                    "400 Bad Request",
                    "This belongs to another login. Open the newest address.",
                )
                .await;
            } else {
                let ended = self.take(&asked).await;
                let (status, text) = match &ended {
                    Ok(()) => ("200 OK", "You are logged in. You can close this page.".to_owned()),
                    Err(why) => ("400 Bad Request", format!("You are not logged in: {why}.")),
                };
                show(&mut browser, status, &text).await;
                return ended;
            }
        }
    }

    async fn take(&self, asked: &Url) -> Result<(), String> {
        if let Some(error) = parameter(asked, "error") {
            let why = if error == "access_denied" { "consent was denied".to_owned() } else { error };
            let more =
                parameter(asked, "error_description").map(|text| format!(" ({text})")).unwrap_or_default();
            return Err(quote(&format!("{why}{more}"), SAID_CHARS_MAX));
        }
        let code = parameter(asked, "code").ok_or("the browser brought no code")?;
        self.mask.learn("code", &code);
        let issuer = parameter(asked, "iss");
        let exchanged =
            self.manager.exchange_code_for_token_with_issuer(&code, &self.state, issuer.as_deref());
        exchanged.await.map(drop).map_err(|error| said(&self.mask, &error))
    }
}

/// What a service says to somebody without a login.
struct Challenge {
    status: reqwest::StatusCode,
    header: Option<String>,
}

impl Challenge {
    fn without_authorization_server(&self) -> String {
        match self.status.as_u16() {
            200..300 => "it wants no login".to_owned(),
            401 => "it wants credentials, but names no authorization server to log in at; \
                    if you have a token, write it as an `Authorization` header into its entry"
                .to_owned(),
            other => format!("it answers {other} and names no authorization server"),
        }
    }
}

async fn challenge(url: &str) -> Result<Challenge, String> {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "outlast", "version": env!("CARGO_PKG_VERSION")},
    }});
    let client = http::client(reqwest::redirect::Policy::none())?;
    let asked = client
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(hello.to_string());
    let answer = asked
        .send()
        .await
        .map_err(|error| format!("it cannot be reached: {}", error_chain(&error.without_url())))?;
    let header = answer.headers().get("www-authenticate").and_then(|value| value.to_str().ok());
    Ok(Challenge { status: answer.status(), header: header.map(str::to_owned) })
}

/// Reads what a browser asks for; none if it is no request.
async fn request(browser: &mut TcpStream) -> Option<Url> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > CALLBACK_BYTES_MAX || browser.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    let (Some("GET"), Some(target)) = (words.next(), words.next()) else { return None };
    Url::parse("http://127.0.0.1").ok()?.join(target).ok()
}

/// Shows a page; a browser that is gone needs none.
async fn show(browser: &mut TcpStream, status: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let page = format!("<!doctype html><meta charset=utf-8><title>Outlast</title><p>{text}</p>\n");
    let head = "content-type: text/html; charset=utf-8\r\ncache-control: no-store\r\nconnection: close";
    let answer = format!("HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {}\r\n\r\n{page}", page.len());
    if browser.write_all(answer.as_bytes()).await.is_err() || browser.shutdown().await.is_err() {
        tracing::debug!("the browser did not wait for its page");
    }
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}

fn said(mask: &Mask, error: &AuthError) -> String {
    quote(&mask.text(error_chain(error)), SAID_CHARS_MAX)
}
