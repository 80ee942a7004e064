//! Who may call: the owner through the socket's file mode, local programs through loopback, everybody else with the token.
//!
//! A web page in the user's browser can reach loopback too, so `Host` must be a loopback name (a page of another name that resolves to
//! loopback is refused) and `Origin`, which browsers always send with a cross-site request, must be that of the server itself.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use outlast_protocol::{ApiError, Code};

use super::{App, Fault};

/// A bearer token, kept as its hash: it shows up in no dump, and comparing it takes the same time whatever was sent.
#[derive(Clone, Debug)]
pub struct Token(blake3::Hash);

impl Token {
    /// Keeps the hash of a token's text.
    #[must_use]
    pub fn new(text: &str) -> Token {
        Token(blake3::hash(text.as_bytes()))
    }
}

/// Who may call a listener.
#[derive(Clone, Debug)]
pub(super) enum Access {
    /// Who can open the socket's file: its owner.
    Owner,
    /// Programs on this machine.
    Loopback,
    /// Who knows the token.
    Token(Token),
}

impl Access {
    /// Returns the name under which what a caller does is recorded.
    pub(super) fn principal(&self) -> &'static str {
        match self {
            Access::Owner => "local",
            Access::Loopback => "loopback",
            Access::Token(_) => "token",
        }
    }
}

/// Lets a request through, or refuses it before anything of it is used.
pub(super) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let admitted = match &app.access {
        Access::Owner => Ok(()),
        Access::Loopback => demand_host(&request).and_then(|()| demand_origin(&request)),
        Access::Token(token) => demand_origin(&request).and_then(|()| demand_token(&request, token)),
    };
    match admitted {
        Ok(()) => next.run(request).await,
        Err(error) => Fault::from(error).into_response(),
    }
}

fn demand_host(request: &Request) -> Result<(), ApiError> {
    match host(request) {
        Some(host) if is_loopback(host) => Ok(()),
        Some(_) | None => {
            let error = ApiError::new(Code::Forbidden, "this server answers to loopback names only");
            Err(error.hint("use http://127.0.0.1 or http://localhost, or start it with a token"))
        }
    }
}

fn demand_origin(request: &Request) -> Result<(), ApiError> {
    let Some(origin) = request.headers().get(header::ORIGIN) else { return Ok(()) };
    let own = host(request).unwrap_or_default();
    let same = origin.to_str().ok().and_then(|text| text.split_once("://")).is_some_and(|(_, at)| at == own);
    if same { Ok(()) } else { Err(ApiError::new(Code::Forbidden, "requests of other sites are refused")) }
}

fn demand_token(request: &Request, token: &Token) -> Result<(), ApiError> {
    if request.uri().path().starts_with("/health/") {
        return Ok(());
    }
    let sent = bearer(request.headers()).map(Token::new);
    if sent.is_some_and(|sent| sent.0 == token.0) {
        return Ok(());
    }
    let error = ApiError::new(Code::Unauthorized, "a valid token is required");
    Err(error.hint("send it as `Authorization: Bearer TOKEN`"))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Returns the authority that the request was sent to.
fn host(request: &Request) -> Option<&str> {
    let named = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    named.or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str))
}

fn is_loopback(host: &str) -> bool {
    let Some(uri) = host.parse::<Uri>().ok().filter(|_| !host.contains('@')) else { return false };
    matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_loopback() {
        for (host, expected) in [
            ("localhost", true),
            ("localhost:7878", true),
            ("127.0.0.1:1", true),
            ("[::1]:7878", true),
            ("attacker.test", false),
            ("localhost.attacker.test", false),
            ("127.0.0.1.attacker.test:7878", false),
            ("10.0.0.1", false),
            ("", false),
            ("user@localhost", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host:?}");
        }
    }
}
