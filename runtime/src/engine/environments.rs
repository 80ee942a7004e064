//! Environment profiles, and the rules that they give to runs.
//!
//! Leaves joining rules to the protocol and reading them to the kernel. Invariant: a run's rules are those of the profile as it stands in
//! the store when the run starts; what is remembered of a profile counts as long as its record is the same.

use std::sync::{Mutex, PoisonError};

use outlast_kernel::Json;
use outlast_kernel::event::Config;
use outlast_protocol::requests::Permissions;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Put, Table};

use super::Engine;
use super::core::Core;
use super::errors;

/// The profile with which a run started last: most runs of a host have the same.
#[derive(Default)]
pub(crate) struct LastProfile(Mutex<Option<Known>>);

struct Known {
    record: Vec<u8>,
    rules: Permissions,
    /// What a run without rules of its own gets.
    config: Config,
}

impl Engine {
    /// Keeps an environment profile.
    ///
    /// # Errors
    /// [`Code::Internal`], [`Code::DiskFull`].
    pub async fn put_profile(&self, name: &str, record: Json) -> Result<(), ApiError> {
        if self.profile(name)?.as_ref() == Some(&record) {
            return Ok(());
        }
        let value = serde_json::to_vec(&record).map_err(|e| ApiError::new(Code::Invalid, e.to_string()))?;
        let put = Put { table: Table::Profile, key: name.as_bytes().to_vec(), value: Some(value) };
        self.core.ctx.committer.put(vec![put]).await.map_err(|refused| errors::refused(&refused))
    }

    /// Returns an environment profile.
    ///
    /// # Errors
    /// [`Code::Internal`].
    pub fn profile(&self, name: &str) -> Result<Option<Json>, ApiError> {
        self.core.profile(name)
    }
}

impl Core {
    /// As [`Engine::profile`].
    pub(crate) fn profile(&self, name: &str) -> Result<Option<Json>, ApiError> {
        self.record(name)?.map(|record| read(name, &record)).transpose()
    }

    /// Makes the configuration of a run that starts: its own rules joined with those of the environment, whose deny and ask rules bind
    /// whoever starts it.
    pub(crate) fn configure(&self, profile: String, own: Permissions) -> Result<Config, ApiError> {
        own.check().map_err(|error| ApiError::new(Code::Invalid, error.to_string()).at("permissions"))?;
        let Some(record) = self.record(&profile)? else { return Ok(config_of(profile, own)) };
        let mut last = self.last_profile.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.take().filter(|known| known.config.profile == profile && known.record == record);
        let known = match known {
            Some(known) => known,
            None => {
                let rules = rules_of(&profile, &record)?;
                Known { record, config: config_of(profile.clone(), rules.clone()), rules }
            }
        };
        let config = match own.is_empty() {
            true => known.config.clone(),
            false => config_of(profile, known.rules.clone().and(own)),
        };
        *last = Some(known);
        Ok(config)
    }

    fn record(&self, name: &str) -> Result<Option<Vec<u8>>, ApiError> {
        self.ctx.store.get(Table::Profile, name.as_bytes()).map_err(|e| errors::store(&e))
    }
}

fn read(name: &str, record: &[u8]) -> Result<Json, ApiError> {
    serde_json::from_slice(record)
        .map_err(|e| ApiError::new(Code::Internal, format!("profile {name} cannot be read: {e}")))
}

fn rules_of(profile: &str, record: &[u8]) -> Result<Permissions, ApiError> {
    let Some(rules) = read(profile, record)?.get_mut("permissions").map(Json::take) else {
        return Ok(Permissions::default());
    };
    serde_json::from_value(rules).map_err(|error| {
        ApiError::new(Code::Internal, format!("the permissions of profile {profile}: {error}"))
    })
}

fn config_of(profile: String, rules: Permissions) -> Config {
    let Permissions { deny, ask, allow, deny_asks } = rules;
    Config { profile, deny: deny.into(), ask: ask.into(), allow: allow.into(), grants: Vec::new(), deny_asks }
}
