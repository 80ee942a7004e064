//! Who is let in: the owner through the socket's file mode, local programs through loopback, everybody else with a token; and whether
//! they may make the call.
//!
//! A web page in the user's browser can reach loopback too, so `Host` must be a loopback name (a page of another name that resolves to
//! loopback is refused) and `Origin`, which browsers always send with a cross-site request, must be that of the server itself.
//! Invariant: nothing of a request is used before its sender and the scope of its route were looked at, and no request outlives its
//! token for long.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use outlast_protocol::{ApiError, Code};

use super::{App, Fault, needs};
use crate::access::{Caller, Need};
use crate::limits::ACCESS_GRACE_MS;

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

/// Which tokens a listener on TCP takes. With neither it takes callers of this machine without one.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// This one, which allows everything.
    pub token: Option<Token>,
    /// Those of the store, each with its own rights.
    pub stored: bool,
}

impl Admission {
    /// Whether a token is demanded at all.
    #[must_use]
    pub fn demands_token(&self) -> bool {
        self.stored || self.token.is_some()
    }
}

/// Who is let in by a listener.
#[derive(Clone, Debug)]
pub(super) enum Access {
    /// Who can open the socket's file: its owner.
    Owner,
    /// Programs on this machine.
    Loopback,
    /// Who has a token.
    Token(Admission),
}

/// Lets a request through, or refuses it before anything of it is used.
pub(super) async fn check(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    if let Some(refusal) = ambiguous(request.headers()) {
        return refusal;
    }
    let path = request.extensions().get::<MatchedPath>().cloned();
    let need = path.as_ref().and_then(|path| needs::need(request.method(), path.as_str()));
    let caller = match admit(&app, &request, need) {
        Ok(caller) => Arc::new(caller),
        Err(error) => return Fault::from(error).into_response(),
    };
    let mut response = match need.map(|need| caller.demand(need)) {
        Some(Ok(())) => {
            request.extensions_mut().insert(Arc::clone(&caller));
            answer(&app, &caller, next.run(request)).await
        }
        Some(Err(error)) => Fault::from(error).into_response(),
        // Also a route that the table does not have: whatever it does, nobody may.
        None => nowhere(&request, path.as_ref().map_or("", MatchedPath::as_str)),
    };
    response.extensions_mut().insert(caller);
    response
}

/// Refuses a request that names two hosts: which one a proxy on the way has looked at is not known, and RFC 9112 demands 400.
fn ambiguous(headers: &HeaderMap) -> Option<Response> {
    let count = headers.get_all(header::HOST).iter().count();
    if count < 2 {
        return None;
    }
    let message = format!("one `Host` header is expected, not {count}");
    let mut response = Fault::from(ApiError::new(Code::Invalid, message)).into_response();
    *response.status_mut() = StatusCode::BAD_REQUEST;
    Some(response)
}

/// Answers a request that has no route; `path` is what the router knows of it.
fn nowhere(request: &Request, path: &str) -> Response {
    let methods = needs::methods(path).join(", ");
    let Some(allow) = HeaderValue::from_str(&methods).ok().filter(|_| !methods.is_empty()) else {
        return Fault::from(super::nowhere(request)).into_response();
    };
    let what = format!("{} {} is not done here", request.method(), request.uri().path());
    let error = ApiError::new(Code::MethodNotAllowed, what).hint(format!("it takes {methods}"));
    let mut response = Fault::from(error).into_response();
    response.headers_mut().insert(header::ALLOW, allow);
    response
}

/// Waits for an answer for as long as its caller's token holds.
async fn answer(app: &App, caller: &Caller, answered: impl Future<Output = Response>) -> Response {
    let Caller::Token(key) = caller else { return answered.await };
    tokio::pin!(answered);
    let ended = app.served.engine.key_ended(key);
    let why = tokio::select! {
        biased;
        answer = &mut answered => return answer,
        why = ended => why,
    };
    // What does not wait comes to its end; what waits for something has waited long enough.
    match tokio::time::timeout(Duration::from_millis(ACCESS_GRACE_MS), answered).await {
        Ok(answer) => answer,
        Err(_) => Fault::from(why).into_response(),
    }
}

/// Finds out who sent a request.
fn admit(app: &App, request: &Request, need: Option<Need>) -> Result<Caller, ApiError> {
    match &app.access {
        Access::Owner => Ok(Caller::Owner),
        Access::Loopback => {
            demand_host(request)?;
            demand_origin(request)?;
            Ok(Caller::Loopback)
        }
        Access::Token(admission) => {
            demand_origin(request)?;
            if need == Some(Need::Nothing) {
                Ok(Caller::Nobody)
            } else {
                known(app, admission, request.headers())
            }
        }
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

/// Returns who has the token that was sent.
fn known(app: &App, admission: &Admission, headers: &HeaderMap) -> Result<Caller, ApiError> {
    if let Some(sent) = bearer(headers) {
        let hash = blake3::hash(sent.as_bytes());
        if admission.token.as_ref().is_some_and(|token| token.0 == hash) {
            return Ok(Caller::Environment);
        }
        if admission.stored
            && let Some(key) = app.served.engine.key(sent)?
        {
            return Ok(Caller::Token(key));
        }
    }
    let error = ApiError::new(Code::Unauthorized, "a valid token is required");
    Err(error.hint("send it as `Authorization: Bearer TOKEN`"))
}

/// Returns the token that was sent. Two are none: nobody knows which one a proxy on the way has looked at.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (sent.next(), sent.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
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
