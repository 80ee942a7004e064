//! Logins at services that want one (OAuth 2.1, as the protocol's chapter on authorization has it).
//!
//! A person logs in once ([`begin`]); the worker uses what came of it, and renews it ([`Login`]). Discovery, registration and the
//! exchanges are the library's. Leaves the file to [`stored`] and the requests to the server to [`Authorized`]. Invariant: a token goes
//! to the address that it was given for and to the authorization server that gave it, and to nobody else; tokens are hidden before
//! they are used; of all workers that share a login one renews it at a time, and the others take what came of that.

mod authorized;
mod browser;
mod http;
mod logout;
mod stored;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use tokio::sync::Mutex;

pub use browser::UnderWay;
pub use logout::AtService;

pub(super) use authorized::Authorized;
pub(super) use browser::begin;
pub(super) use logout::end_all;

use super::config::{ClientEntry, Reach, ServerConfig};
use crate::sdk::{Mask, error_chain};
use http::Requests;
use stored::{Kept, Stored};

/// Where logins are kept, and what hides their tokens. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Logins {
    directory: Option<PathBuf>,
    mask: Mask,
}

impl Logins {
    /// Those of a data directory.
    #[must_use]
    pub fn of(data: &Path) -> Logins {
        Logins { directory: Some(data.join("logins")), mask: Mask::default() }
    }

    /// The same, hidden by a mask that other things use too.
    #[must_use]
    pub fn hidden_by(self, mask: &Mask) -> Logins {
        Logins { mask: mask.clone(), ..self }
    }

    /// The directory of their files, which no tool reads.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Hides their tokens in the log of this process.
    pub fn hide_in_log(&self) {
        self.mask.hide_in_log();
    }
}

/// What a person types to log in.
pub(super) fn command(server: &str) -> String {
    format!("outlast tools login {server}")
}

/// Why there is no token to use.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NoToken {
    /// A person has to log in.
    LogIn(String),
    /// It may go well another time.
    Other(String),
}

impl From<NoToken> for AuthError {
    fn from(error: NoToken) -> AuthError {
        match error {
            NoToken::LogIn(why) => AuthError::AuthorizationFailed(why),
            NoToken::Other(why) => AuthError::TokenRefreshFailed(why),
        }
    }
}

/// What a person has to be told if an error of the library says that they must log in; none if it says something else.
pub(super) fn wanted(server: &str, error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        let why = match inner.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::AuthRequired(_)) => Some("it wants a login".to_owned()),
            Some(StreamableHttpError::Auth(AuthError::AuthorizationFailed(why))) => Some(why.clone()),
            Some(StreamableHttpError::InsufficientScope(wanted)) => Some(match &wanted.required_scope {
                Some(scope) => format!(
                    "the login does not reach as far as this: name the scope {scope:?} in `oauth.scopes` of its entry"
                ),
                None => "the login does not reach as far as this".to_owned(),
            }),
            Some(_) | None => None,
        };
        if let Some(why) = why {
            return Some(format!("{why}; run: {}", command(server)));
        }
        cause = inner.source();
    }
    None
}

/// The login at one service, as a worker uses it.
#[derive(Clone, Debug)]
pub(super) struct Login {
    url: String,
    client: ClientEntry,
    stored: Stored,
    mask: Mask,
    /// One of this process renews it.
    renewing: Arc<Mutex<()>>,
}

impl Login {
    /// That of a server; none if it is a program, or has credentials in its entry.
    pub(super) fn of(config: &ServerConfig, logins: &Logins) -> Option<Login> {
        let Reach::Http { url, headers, client } = &config.reach else { return None };
        let own = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let directory = logins.directory.as_deref().filter(|_| !own)?;
        if let Some(secret) = &client.secret {
            logins.mask.learn(&hidden_as(&config.name), secret);
        }
        Some(Login {
            url: url.clone(),
            client: client.clone(),
            stored: Stored::new(directory, &config.name, url, &logins.mask),
            mask: logins.mask.clone(),
            renewing: Arc::default(),
        })
    }

    /// The token to use now; none if nobody has logged in.
    async fn token(&self) -> Result<Option<String>, NoToken> {
        let Some(kept) = self.stored.read().map_err(NoToken::Other)? else { return Ok(None) };
        let Some(token) = kept.token() else { return Ok(None) };
        if !kept.is_stale() {
            return Ok(Some(token));
        }
        match self.renewed(&token).await {
            Ok(fresh) => Ok(Some(fresh)),
            // It may be good for some seconds yet.
            Err(NoToken::Other(_)) if !kept.is_over() => Ok(Some(token)),
            Err(error) => Err(error),
        }
    }

    /// The token to use instead of one that the server does not take, or that has ended.
    async fn renewed(&self, old: &str) -> Result<String, NoToken> {
        let (login, old) = (self.clone(), old.to_owned());
        // A new token must reach the disk even if nobody waits for it any more: the old one is worth nothing by then.
        let renewing = tokio::spawn(async move {
            let _one_here = login.renewing.lock().await;
            let _one_anywhere = login.stored.lock().await.map_err(NoToken::Other)?;
            login.renew(&old).await
        });
        renewing.await.unwrap_or_else(|error| Err(NoToken::Other(error.to_string())))
    }

    async fn renew(&self, old: &str) -> Result<String, NoToken> {
        let gone = || NoToken::LogIn("it wants a login".to_owned());
        let kept = self.stored.read().map_err(NoToken::Other)?.ok_or_else(gone)?;
        if let Some(token) = kept.token().filter(|token| token != old && !kept.is_stale()) {
            return Ok(token);
        }
        if kept.refresh_token().is_none() {
            return Err(NoToken::LogIn("its login has ended".to_owned()));
        }
        let manager = self.manager(&kept).await?;
        match manager.refresh_token().await {
            Ok(_) => {}
            Err(AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired) => {
                return Err(NoToken::LogIn("it does not renew its login any more".to_owned()));
            }
            Err(error) => return Err(NoToken::Other(self.failed("its login cannot be renewed now", &error))),
        }
        let kept = self.stored.read().map_err(NoToken::Other)?.ok_or_else(gone)?;
        kept.token().ok_or_else(gone)
    }

    /// Prepares to renew a login, at the authorization server that gave it.
    async fn manager(&self, kept: &Kept) -> Result<AuthorizationManager, NoToken> {
        let (mut manager, found) = self.found(kept).await?;
        manager.set_metadata(found);
        let mut client = OAuthClientConfig::new(kept.client_id(), self.url.clone());
        if let Some(secret) = &self.secret(kept) {
            client = client.with_client_secret(secret);
        }
        manager.configure_client(client).map_err(|error| self.not_found(&error))?;
        manager.set_credential_store(self.stored.clone().with_secret(kept.client_secret.clone()));
        Ok(manager)
    }

    /// Finds the authorization server that gave a login.
    async fn found(&self, kept: &Kept) -> Result<(AuthorizationManager, AuthorizationMetadata), NoToken> {
        let failed = |error: AuthError| self.not_found(&error);
        let manager = manager(self.requests().map_err(NoToken::Other)?, &self.url).await.map_err(failed)?;
        let found = manager.resolve_metadata().await.map_err(failed)?;
        if !found.source.is_discovered() {
            return Err(NoToken::Other("it names no authorization server any more".to_owned()));
        }
        if kept.issuer() != found.metadata.issuer.as_deref() {
            return Err(NoToken::LogIn("its authorization server is another one now".to_owned()));
        }
        Ok((manager, found.metadata))
    }

    /// The client's secret: the entry's, or the one that was given when this program registered itself.
    fn secret(&self, kept: &Kept) -> Option<String> {
        self.client.secret.clone().or_else(|| kept.client_secret.clone())
    }

    /// The way to the authorization server; what it gives out is hidden before anybody has it.
    fn requests(&self) -> Result<Requests, String> {
        Requests::new(&self.url, self.stored.shown_as(), &self.mask)
    }

    fn not_found(&self, error: &AuthError) -> NoToken {
        NoToken::Other(self.failed("its authorization server cannot be found now", error))
    }

    fn failed(&self, what: &str, error: &AuthError) -> String {
        self.mask.text(format!("{what}: {}", error_chain(error)))
    }
}

/// As what tokens are shown where they stood.
fn hidden_as(server: &str) -> String {
    format!("login of {server}")
}

async fn manager(requests: Requests, url: &str) -> Result<AuthorizationManager, AuthError> {
    AuthorizationManager::new_with_oauth_http_client(url, Arc::new(requests)).await
}
