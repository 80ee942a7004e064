//! Logging out: the service is told that a login has ended (RFC 7009), and what is kept of it here is removed, whatever the service says.
//!
//! Leaves finding the authorization server to its parent. Invariant: after it nothing of the login is here any more; a token is sent
//! only to the authorization server that gave it.

use std::sync::Arc;

use super::stored::{self, Kept, Stored};
use super::{Login, Logins, NoToken, hidden_as};
use crate::limits::LOGOUT_PATIENCE;
use crate::mcp::config::ClientEntry;

/// What became of a login at the service. Here it is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtService {
    /// The service has ended it.
    Ended,
    /// The service names no way to end it.
    NoWay,
    /// It could not be ended, and why.
    Failed(String),
}

/// Ends all logins at servers of this name. `secret` is that of the client, if the server's entry has one.
///
/// # Errors
/// If a file cannot be removed.
pub(in crate::mcp) async fn end_all(
    server: &str,
    logins: &Logins,
    secret: Option<String>,
) -> Result<Vec<AtService>, String> {
    if let Some(secret) = &secret {
        logins.mask.learn(&hidden_as(server), secret);
    }
    let mut all = Vec::new();
    for path in stored::files_of(logins.directory(), server)? {
        // Until the file is gone nobody renews what it holds.
        let mut lock = None;
        let told = match Stored::of_file(&path, server, &logins.mask) {
            None => AtService::Failed("what is kept of it cannot be read".to_owned()),
            Some(stored) => {
                let client = ClientEntry { secret: secret.clone(), ..ClientEntry::default() };
                let url = stored.url().to_owned();
                let login =
                    Login { url, client, stored, mask: logins.mask.clone(), renewing: Arc::default() };
                lock = tokio::time::timeout(LOGOUT_PATIENCE, login.stored.lock()).await.ok();
                login.end().await
            }
        };
        if stored::remove(&path)? {
            all.push(told);
        }
        drop(lock);
    }
    Ok(all)
}

impl Login {
    /// Tells the service that the login has ended.
    async fn end(&self) -> AtService {
        let kept = match self.stored.read() {
            Ok(Some(kept)) => kept,
            Ok(None) => return AtService::NoWay,
            Err(why) => return AtService::Failed(why),
        };
        match self.revoke(&kept).await {
            Ok(told) => told,
            Err(NoToken::LogIn(why) | NoToken::Other(why)) => AtService::Failed(why),
        }
    }

    async fn revoke(&self, kept: &Kept) -> Result<AtService, NoToken> {
        let (_, found) = self.found(kept).await?;
        let Some(at) = found.additional_fields.get("revocation_endpoint").and_then(|at| at.as_str()) else {
            return Ok(AtService::NoWay);
        };
        let secret = self.secret(kept);
        // With the refresh token ends what it could renew; the access token by itself may live on for its hour.
        let tokens = [("refresh_token", kept.refresh_token()), ("access_token", kept.token())];
        let mut ended = false;
        for (kind, token) in tokens.into_iter().filter_map(|(kind, token)| Some((kind, token?))) {
            let mut fields = vec![("token", token.as_str()), ("token_type_hint", kind)];
            let client = (kept.client_id(), secret.as_deref());
            if secret.is_none() {
                fields.push(("client_id", kept.client_id()));
            }
            match self.requests().map_err(NoToken::Other)?.post(at, &fields, client).await {
                Ok(()) => ended = true,
                // It need not be able to end every kind of token.
                Err(why) if ended && why.contains("unsupported_token_type") => {}
                Err(why) => return Err(NoToken::Other(self.mask.text(why))),
            }
        }
        Ok(AtService::Ended)
    }
}
