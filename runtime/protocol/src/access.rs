//! Access tokens: what lets a caller on TCP in, and what it may do then.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kind of call that a token may allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look at runs, flows and schedules.
    Read,
    /// Start runs.
    Start,
    /// Send messages, and pull them back.
    Send,
    /// Answer questions.
    Answer,
    /// Cancel, terminate, fork, settle, release, migrate and export runs.
    Control,
    /// Deploy flows, keep schedules.
    Deploy,
    /// What workers call, and nothing else.
    Work,
    /// All of these, and tokens.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Scope; 8] = [
        Scope::Read,
        Scope::Start,
        Scope::Send,
        Scope::Answer,
        Scope::Control,
        Scope::Deploy,
        Scope::Work,
        Scope::Admin,
    ];

    /// Returns its name on every surface.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Start => "start",
            Scope::Send => "send",
            Scope::Answer => "answer",
            Scope::Control => "control",
            Scope::Deploy => "deploy",
            Scope::Work => "work",
            Scope::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Says why text is not a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`read`, `start`, `send`, `answer`, `control`, `deploy`, `work` or `admin` is expected")]
pub struct InvalidScope;

impl FromStr for Scope {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Scope, InvalidScope> {
        Scope::ALL.into_iter().find(|scope| scope.name() == text).ok_or(InvalidScope)
    }
}

/// `POST /v1/tokens`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Who has it: what it does is recorded as `token:NAME`. A name is given once.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// The flows whose runs it may know of; all if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
    /// The roles in which it may answer, `*` for all; scope `answer` needs one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// How long it holds; until it is revoked if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A token without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenView {
    /// Its id.
    pub id: String,
    /// Who has it.
    pub name: String,
    /// `active`, `expired` or `revoked`.
    pub status: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// The flows whose runs it may know of; empty: all.
    pub flows: Vec<String>,
    /// The roles in which it may answer.
    pub roles: Vec<String>,
    /// When it was made.
    pub created_at: String,
    /// By whom.
    pub created_by: String,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

/// A token as it is shown once, to whoever made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeToken {
    /// What is known of it later, too.
    #[serde(flatten)]
    pub view: TokenView,
    /// The secret, to be sent as `Authorization: Bearer TOKEN`.
    pub token: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for scope in Scope::ALL {
            assert_eq!(scope.name().parse(), Ok(scope));
            assert_eq!(serde_json::to_value(scope).ok(), Some(scope.name().into()));
            assert!(InvalidScope.to_string().contains(&format!("`{scope}`")), "{scope}");
        }
        assert_eq!("Read".parse::<Scope>(), Err(InvalidScope));
    }
}
