//! Access tokens that the store keeps: made, looked up, revoked.
//!
//! Leaves what a token allows to `access`. Invariant: a secret is told once and kept nowhere, only its hash; a token that was told of is
//! on disk, and one whose revocation was told of is refused from then on, also after a crash.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use outlast_kernel::ids::{Millis, RunId};
use outlast_kernel::text::time_text;
use outlast_protocol::access::{MadeToken, NewToken, Scope, TokenView};
use outlast_protocol::requests::List;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Put, Store, Table};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, watch};

use super::core::Core;
use super::{Engine, errors};
use crate::access::EVERY_ROLE;
use crate::duration;
use crate::limits::{ACCESS_ITEMS_MAX, ACCESS_NAME_CHARS_MAX, ACCESS_TOKENS_MAX, QUOTED_CHARS};

/// What every secret begins with, so that it is known for what it is wherever it turns up.
const PREFIX: &str = "outlast_";

/// A token as the store has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    id: String,
    name: String,
    /// BLAKE3 of the secret, in hex. The secret is 256 random bits, so nothing slower is needed.
    hash: String,
    scopes: Vec<Scope>,
    flows: Vec<String>,
    roles: Vec<String>,
    created_at: Millis,
    created_by: String,
    expires_at: Option<Millis>,
    revoked_at: Option<Millis>,
}

/// A token, without its secret.
#[derive(Debug)]
pub(crate) struct Key {
    /// As it was made: `revoked_at` stands in `revoked`.
    record: Record,
    revoked: watch::Sender<Option<Millis>>,
}

/// All tokens of a store.
pub(crate) struct Keyring {
    keys: RwLock<Keys>,
    /// Held while a token is made or revoked: two may not take one name.
    changing: Mutex<()>,
}

#[derive(Default)]
struct Keys {
    by_hash: HashMap<String, Arc<Key>>,
    by_id: BTreeMap<String, Arc<Key>>,
}

impl Keys {
    fn insert(&mut self, record: Record) -> Arc<Key> {
        let key = Arc::new(Key { revoked: watch::Sender::new(record.revoked_at), record });
        self.by_hash.insert(key.record.hash.clone(), Arc::clone(&key));
        self.by_id.insert(key.record.id.clone(), Arc::clone(&key));
        key
    }
}

impl Keyring {
    /// Reads the tokens of a store.
    ///
    /// # Errors
    /// [`Code::Internal`] if one cannot be read: what it says may be that it is revoked.
    pub(crate) fn open(store: &dyn Store) -> Result<Keyring, ApiError> {
        let mut keys = Keys::default();
        for (id, bytes) in store.list(Table::Token).map_err(|e| errors::store(&e))? {
            let broken = |e| {
                let id = String::from_utf8_lossy(&id);
                ApiError::new(Code::Internal, format!("access token {id} cannot be read: {e}"))
            };
            keys.insert(serde_json::from_slice(&bytes).map_err(broken)?);
        }
        Ok(Keyring { keys: RwLock::new(keys), changing: Mutex::default() })
    }

    fn find(&self, secret: &str) -> Option<Arc<Key>> {
        if !secret.starts_with(PREFIX) {
            return None;
        }
        // What is looked up is a hash: how long it takes tells nothing about any secret.
        let hash = blake3::hash(secret.as_bytes()).to_hex();
        self.keys.read().unwrap_or_else(PoisonError::into_inner).by_hash.get(hash.as_str()).cloned()
    }

    fn all(&self) -> Vec<Arc<Key>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).by_id.values().cloned().collect()
    }
}

impl Key {
    /// Returns who has it.
    pub(crate) fn name(&self) -> &str {
        &self.record.name
    }

    /// Returns what it allows.
    pub(crate) fn scopes(&self) -> &[Scope] {
        &self.record.scopes
    }

    /// Returns the flows that it is limited to; none: it is not.
    pub(crate) fn flows(&self) -> Option<&[String]> {
        (!self.record.flows.is_empty()).then_some(&self.record.flows)
    }

    /// Returns the roles in which it may answer.
    pub(crate) fn roles(&self) -> &[String] {
        &self.record.roles
    }

    fn has_expired(&self, now: Millis) -> bool {
        self.record.expires_at.is_some_and(|at| at <= now)
    }

    /// Refuses a token that holds no more, and says why: only who has it gets to hear that.
    fn demand_valid(&self, now: Millis) -> Result<(), ApiError> {
        let ended = |how: &str, at: Millis| {
            let message = format!("the token {} {how} at {}", self.record.name, time_text(at));
            Err(ApiError::new(Code::Unauthorized, message).hint("ask for another one: outlast token add"))
        };
        match (*self.revoked.borrow(), self.record.expires_at) {
            (Some(at), _) => ended("was revoked", at),
            (None, Some(at)) if at <= now => ended("expired", at),
            (None, Some(_) | None) => Ok(()),
        }
    }

    fn view(&self, now: Millis) -> TokenView {
        let revoked_at = *self.revoked.borrow();
        let status = match revoked_at {
            Some(_) => "revoked",
            None if self.has_expired(now) => "expired",
            None => "active",
        };
        let record = self.record.clone();
        TokenView {
            id: record.id,
            name: record.name,
            status: status.to_owned(),
            scopes: record.scopes,
            flows: record.flows,
            roles: record.roles,
            created_at: time_text(record.created_at),
            created_by: record.created_by,
            expires_at: record.expires_at.map(time_text),
            revoked_at: revoked_at.map(time_text),
        }
    }
}

impl Engine {
    /// Makes a token. Its secret is in the answer and nowhere else.
    ///
    /// # Errors
    /// [`Code::Invalid`], [`Code::Conflict`] (the name), [`Code::DiskFull`].
    pub async fn add_token(&self, request: NewToken, by: &str) -> Result<MadeToken, ApiError> {
        let (core, by) = (Arc::clone(&self.core), by.to_owned());
        to_the_end(async move { add(&core, request, by).await }).await
    }

    /// Returns all tokens, oldest first, without their secrets.
    #[must_use]
    pub fn tokens(&self) -> List<TokenView> {
        let now = self.core.ctx.clock.now();
        let items = self.core.ctx.keyring.all().iter().map(|key| key.view(now)).collect();
        List { items, next: None }
    }

    /// Revokes the token with an id or a name, for good. Again: nothing changes.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::DiskFull`]: then it is refused all the same, but only by this process.
    pub async fn revoke_token(&self, which: &str) -> Result<TokenView, ApiError> {
        let (core, which) = (Arc::clone(&self.core), which.to_owned());
        to_the_end(async move { revoke(&core, &which).await }).await
    }

    /// Returns the token of a secret; none if there is none.
    ///
    /// # Errors
    /// [`Code::Unauthorized`] if it has expired or was revoked.
    pub(crate) fn key(&self, secret: &str) -> Result<Option<Arc<Key>>, ApiError> {
        let Some(key) = self.core.ctx.keyring.find(secret) else { return Ok(None) };
        key.demand_valid(self.core.ctx.clock.now())?;
        Ok(Some(key))
    }

    /// Waits until a token holds no more, and returns why.
    pub(crate) async fn key_ended(&self, key: &Key) -> ApiError {
        let clock = &self.core.ctx.clock;
        let expired = async {
            match key.record.expires_at {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let mut revoked = key.revoked.subscribe();
        tokio::select! {
            () = expired => {}
            _ = revoked.wait_for(Option::is_some) => {}
        }
        let now = key.record.expires_at.map_or(clock.now(), |at| clock.now().max(at));
        match key.demand_valid(now) {
            Err(why) => why,
            // The keyring went away with its engine.
            Ok(()) => errors::stopping(),
        }
    }
}

/// Does something whether its caller waits for it or not: what is on disk must be in memory, too.
async fn to_the_end<T: Send + 'static>(
    what: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::spawn(what).await.unwrap_or_else(|_| Err(errors::stopping()))
}

async fn add(core: &Core, request: NewToken, by: String) -> Result<MadeToken, ApiError> {
    check(&request)?;
    let ctx = &core.ctx;
    let _one = ctx.keyring.changing.lock().await;
    let now = ctx.clock.now();
    let keys = ctx.keyring.all();
    if keys
        .iter()
        .any(|key| key.record.name.eq_ignore_ascii_case(&request.name) || key.record.id == request.name)
    {
        let message = format!("there is a token {}, or was", request.name);
        let hint = "give another name: histories name who did something, so each name is given once";
        return Err(ApiError::new(Code::Conflict, message).at("name").hint(hint));
    }
    if keys.len() >= ACCESS_TOKENS_MAX {
        return Err(ApiError::new(Code::Overloaded, format!("there are {ACCESS_TOKENS_MAX} tokens")));
    }
    let secret = secret(&ctx.random.bytes());
    let record = Record {
        id: ctx.random.id(now),
        name: request.name,
        hash: blake3::hash(secret.as_bytes()).to_hex().to_string(),
        scopes: sorted(request.scopes),
        flows: sorted(request.flows),
        roles: sorted(request.roles),
        created_at: now,
        created_by: by,
        expires_at: request.expires.as_deref().map(|text| expiry(text, now)).transpose()?,
        revoked_at: None,
    };
    keep(core, &record).await?;
    let key = ctx.keyring.keys.write().unwrap_or_else(PoisonError::into_inner).insert(record);
    Ok(MadeToken { view: key.view(now), token: secret })
}

async fn revoke(core: &Core, which: &str) -> Result<TokenView, ApiError> {
    let ctx = &core.ctx;
    let _one = ctx.keyring.changing.lock().await;
    let keys = ctx.keyring.all();
    let named = |key: &&Arc<Key>| key.record.name == which;
    let found = keys.iter().find(|key| key.record.id == which).or_else(|| keys.iter().find(named));
    let Some(key) = found else {
        let which: String = which.chars().take(QUOTED_CHARS).collect();
        return Err(ApiError::new(Code::NotFound, format!("there is no token {which:?}")));
    };
    let now = ctx.clock.now();
    let at = (*key.revoked.borrow()).unwrap_or(now);
    let kept = keep(core, &Record { revoked_at: Some(at), ..key.record.clone() }).await;
    // Also if it could not be kept: better refused until the next start than not at all.
    key.revoked.send_replace(Some(at));
    kept.map_err(|error| match error.code {
        Code::DiskFull => {
            error.hint("until the server stops the token is refused; make room and revoke it again")
        }
        _ => error,
    })?;
    Ok(key.view(now))
}

async fn keep(core: &Core, record: &Record) -> Result<(), ApiError> {
    let value = serde_json::to_vec(record).map_err(|e| ApiError::new(Code::Internal, e.to_string()))?;
    let put = Put { table: Table::Token, key: record.id.as_bytes().to_vec(), value: Some(value) };
    core.ctx.committer.put(vec![put]).await.map_err(|refused| errors::refused(&refused))
}

fn secret(bytes: &[u8; 32]) -> String {
    format!("{PREFIX}{}", blake3::Hash::from_bytes(*bytes).to_hex())
}

fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items.dedup();
    items
}

fn expiry(text: &str, now: Millis) -> Result<Millis, ApiError> {
    let invalid = |message: String| ApiError::new(Code::Invalid, message).at("expires");
    let holds = duration::parse(text).map_err(|error| invalid(error.to_string()))?;
    if holds.is_zero() {
        return Err(invalid("a token that expires at once is no token".to_owned()));
    }
    Ok(now.plus(u64::try_from(holds.as_millis()).unwrap_or(u64::MAX)))
}

/// Checks what is asked for, beyond its types.
fn check(request: &NewToken) -> Result<(), ApiError> {
    let invalid = |at: &str, message: String| Err(ApiError::new(Code::Invalid, message).at(at));
    let NewToken { name, scopes, flows, roles, expires: _ } = request;
    if RunId::new(name).is_err() || name.len() > ACCESS_NAME_CHARS_MAX || name.contains('@') {
        let cut: String = name.chars().take(QUOTED_CHARS).collect();
        let expected =
            format!("1 to {ACCESS_NAME_CHARS_MAX} letters, digits, `.`, `_`, `~` or `-` are expected");
        return invalid("name", format!("{cut:?} is no name of a token: {expected}"));
    }
    if scopes.is_empty() {
        return invalid("scopes", "a token needs a scope".to_owned());
    }
    let odd = |text: &String| text.is_empty() || text.chars().count() > ACCESS_NAME_CHARS_MAX;
    for (what, items) in [("flows", flows), ("roles", roles)] {
        if items.len() > ACCESS_ITEMS_MAX || items.iter().any(odd) {
            let expected =
                format!("at most {ACCESS_ITEMS_MAX} names of 1 to {ACCESS_NAME_CHARS_MAX} characters");
            return invalid(what, format!("{what}: {expected} are expected"));
        }
    }
    let wide = [Scope::Admin, Scope::Work].into_iter().find(|scope| scopes.contains(scope));
    if let Some(scope) = wide.filter(|_| !flows.is_empty()) {
        return invalid("flows", format!("scope `{scope}` is not limited to flows: leave one of them out"));
    }
    let (answers, all) = (scopes.contains(&Scope::Answer), scopes.contains(&Scope::Admin));
    match roles.is_empty() {
        true if answers && !all => {
            invalid("roles", format!("scope `answer` needs a role; `{EVERY_ROLE}` stands for all"))
        }
        false if all => {
            invalid("roles", "scope `admin` is not limited to roles: leave one of them out".to_owned())
        }
        false if !answers => {
            invalid("roles", "roles are for answering: scope `answer` is missing".to_owned())
        }
        true | false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, scopes: &[Scope]) -> NewToken {
        NewToken { name: name.to_owned(), scopes: scopes.to_vec(), ..NewToken::default() }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let read = [Scope::Read];
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let flows =
            |scopes: &[Scope], flows: &[&str]| NewToken { flows: named(flows), ..asked("ci", scopes) };
        let roles =
            |scopes: &[Scope], roles: &[&str]| NewToken { roles: named(roles), ..asked("ci", scopes) };
        for (request, at) in [
            (asked("ci", &read), None),
            (asked("", &read), Some("name")),
            (asked("a b", &read), Some("name")),
            (asked("a@b", &read), Some("name")),
            (asked(&"x".repeat(ACCESS_NAME_CHARS_MAX + 1), &read), Some("name")),
            (asked("ci", &[]), Some("scopes")),
            (flows(&read, &["F"]), None),
            (flows(&read, &[""]), Some("flows")),
            (flows(&read, &["F"; ACCESS_ITEMS_MAX + 1]), Some("flows")),
            (flows(&[Scope::Admin], &["F"]), Some("flows")),
            (flows(&[Scope::Read, Scope::Work], &["F"]), Some("flows")),
            (roles(&read, &["owner"]), Some("roles")),
            (roles(&[Scope::Answer], &["owner"]), None),
            (roles(&[Scope::Answer], &[]), Some("roles")),
            (asked("ci", &[Scope::Answer, Scope::Admin]), None),
            (roles(&[Scope::Answer, Scope::Admin], &["owner"]), Some("roles")),
        ] {
            assert_eq!(check(&request).err().and_then(|error| error.at).as_deref(), at, "{request:?}");
        }
        for text in ["", "30", "0s", "-1d", "forever"] {
            assert_eq!(expiry(text, Millis(0)).unwrap_err().at.as_deref(), Some("expires"), "{text:?}");
        }
        assert_eq!(expiry("1d", Millis(1)), Ok(Millis(86_400_001)));
    }

    #[test]
    fn secrets_say_what_they_are() {
        let secret = secret(&[0xab; 32]);
        assert_eq!(secret, format!("outlast_{}", "ab".repeat(32)));
    }
}
