//! The file of a login: who the client is there, and the tokens.
//!
//! One file for each server and address, readable by its owner only. Leaves when to renew to its parent. Invariant: the file is
//! replaced as a whole, and on disk before a new token is used; what is read from it or written into it is hidden first; a file of
//! another address is never read.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{command, hidden_as};
use crate::Json;
use crate::limits::TOKEN_MARGIN_S;
use crate::sdk::Mask;

/// How the names of these files end.
const ENDING: &str = "json";
/// Characters of the address's hash in a file's name.
const HASH_CHARS: usize = 16;

/// The place of one login.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    path: PathBuf,
    server: String,
    url: String,
    /// What the authorization server gave a client that registered itself.
    secret: Option<String>,
    mask: Mask,
}

/// What the file holds.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    server: String,
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    credentials: StoredCredentials,
}

impl Kept {
    pub(super) fn client_id(&self) -> &str {
        &self.credentials.client_id
    }

    pub(super) fn issuer(&self) -> Option<&str> {
        self.credentials.issuer.as_deref()
    }

    pub(super) fn token(&self) -> Option<String> {
        self.field("access_token")?.as_str().map(str::to_owned)
    }

    pub(super) fn refresh_token(&self) -> Option<String> {
        self.field("refresh_token")?.as_str().map(str::to_owned)
    }

    /// Whether the token is too near its end to be used for a request.
    pub(super) fn is_stale(&self) -> bool {
        self.left_s().is_some_and(|(left, life)| left < TOKEN_MARGIN_S.min(life / 2).max(1))
    }

    pub(super) fn is_over(&self) -> bool {
        self.left_s().is_some_and(|(left, _)| left == 0)
    }

    /// How long the token is good yet, and how long it was from the beginning, in seconds; none if nobody said.
    fn left_s(&self) -> Option<(u64, u64)> {
        let life = self.field("expires_in")?.as_u64()?;
        let since = self.credentials.token_received_at?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Some((life.saturating_sub(now.saturating_sub(since)), life))
    }

    /// A field of the server's answer. The library's own way to it needs another crate's name.
    fn field(&self, name: &str) -> Option<Json> {
        let answer = serde_json::to_value(self.credentials.token_response.as_ref()?).ok()?;
        answer.get(name).filter(|field| !field.is_null()).cloned()
    }
}

impl Stored {
    pub(super) fn new(directory: &Path, server: &str, url: &str, mask: &Mask) -> Stored {
        let hash = blake3::hash(url.as_bytes()).to_hex();
        let path = directory.join(format!("{server}-{}.{ENDING}", &hash[..HASH_CHARS]));
        Stored { path, server: server.to_owned(), url: url.to_owned(), secret: None, mask: mask.clone() }
    }

    /// The login that a file of this server holds; none if it holds none.
    pub(super) fn of_file(path: &Path, server: &str, mask: &Mask) -> Option<Stored> {
        let kept: Kept = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
        let stored = Stored::new(path.parent()?, server, &kept.url, mask);
        (stored.path == path).then_some(stored)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// As what its tokens are shown where they stood.
    pub(super) fn shown_as(&self) -> String {
        hidden_as(&self.server)
    }

    pub(super) fn with_secret(self, secret: Option<String>) -> Stored {
        Stored { secret, ..self }
    }

    /// Reads it; none if nobody has logged in.
    pub(super) fn read(&self) -> Result<Option<Kept>, String> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", self.path.display())),
        };
        // Where the text is wrong is told without the text.
        let kept: Kept = serde_json::from_str(&text).map_err(|error| {
            let (line, path) = (error.line(), self.path.display());
            format!("{path}: it is no login (line {line}); run: {}", command(&self.server))
        })?;
        if kept.url != self.url {
            return Ok(None);
        }
        self.hide(&kept);
        Ok(Some(kept))
    }

    /// Waits until nobody else renews this login, and keeps others from it until the file is dropped.
    pub(super) async fn lock(&self) -> Result<File, String> {
        let path = self.path.with_extension("lock");
        let locked = tokio::task::spawn_blocking(move || -> std::io::Result<File> {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        });
        let said = |error: std::io::Error| format!("{}: it cannot be locked: {error}", self.path.display());
        locked.await.map_err(|error| error.to_string())?.map_err(said)
    }

    /// Makes the directory, for its owner only.
    pub(super) fn make_place(&self) -> Result<(), String> {
        let Some(directory) = self.path.parent() else { return Ok(()) };
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| format!("{}: {error}", directory.display()))
    }

    fn write(&self, kept: &Kept) -> std::io::Result<()> {
        let text = serde_json::to_string_pretty(kept).map_err(std::io::Error::other)?;
        let fresh = self.path.with_extension(format!("{}.tmp", std::process::id()));
        let _left = std::fs::remove_file(&fresh);
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&fresh, &self.path)
        })();
        if written.is_err() {
            let _left = std::fs::remove_file(&fresh);
        }
        written?;
        match self.path.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }

    fn hide(&self, kept: &Kept) {
        let answer = ["access_token", "refresh_token", "id_token"].map(|name| kept.field(name));
        let answer = answer.iter().flatten().filter_map(Json::as_str);
        for value in answer.chain(kept.client_secret.as_deref()) {
            self.mask.learn(&hidden_as(&self.server), value);
        }
    }
}

#[async_trait::async_trait]
impl CredentialStore for Stored {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let kept = self.read().map_err(AuthError::CredentialStoreError)?;
        Ok(kept.map(|kept| kept.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let client_secret = self.secret.clone();
        let kept = Kept { server: self.server.clone(), url: self.url.clone(), client_secret, credentials };
        self.hide(&kept);
        let failed = |error: std::io::Error| {
            AuthError::CredentialStoreError(format!("{}: {error}", self.path.display()))
        };
        self.write(&kept).map_err(failed)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        remove(&self.path).map(drop).map_err(AuthError::CredentialStoreError)
    }
}

/// The files of all logins at servers of this name.
pub(super) fn files_of(directory: Option<&Path>, server: &str) -> Result<Vec<PathBuf>, String> {
    let Some(directory) = directory else { return Ok(Vec::new()) };
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let is_login = path.extension().is_some_and(|ending| ending == ENDING);
        if is_login && name.rsplit_once('-').is_some_and(|(of, _)| of == server) {
            files.push(path);
        }
    }
    Ok(files)
}

/// Removes a file. Tells whether it was there.
pub(super) fn remove(path: &Path) -> Result<bool, String> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}
