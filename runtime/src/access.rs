//! Who calls, and what they may do: the one place where rights are decided.
//!
//! Leaves finding out who calls to `http`, and tokens to the engine's keyring. Invariant: what a caller may not know of looks to them as if
//! it were not there.

use std::sync::Arc;

use outlast_protocol::access::Scope;
use outlast_protocol::{ApiError, Code};

use crate::engine::Key;
use crate::limits::QUOTED_CHARS;

/// What a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: everybody may know.
    Nothing,
    /// Any valid token.
    Token,
    /// What each call within it needs.
    Each,
    /// This scope.
    Scope(Scope),
    /// The owner of the data directory: it reaches beyond runs, to the disk and the directories of this machine.
    Owner,
}

/// Who calls.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// Who can open the socket's file: the owner of the data directory.
    Owner,
    /// A program on this machine, on a listener that asks for no token.
    Loopback,
    /// Who knows the token of the server's environment.
    Environment,
    /// Who has a token of the store.
    Token(Arc<Key>),
    /// Who was not asked: what they call needs nothing.
    Nobody,
}

/// Stands for all roles.
pub(crate) const EVERY_ROLE: &str = "*";

impl Caller {
    /// Returns the name under which what they do is recorded.
    pub(crate) fn by(&self) -> String {
        match self {
            Caller::Owner => "local".to_owned(),
            Caller::Loopback => "loopback".to_owned(),
            Caller::Environment => "token".to_owned(),
            Caller::Token(key) => format!("token:{}", key.name()),
            Caller::Nobody => "nobody".to_owned(),
        }
    }

    /// Refuses a call that they may not make, and says what it takes.
    ///
    /// # Errors
    /// [`Code::Forbidden`].
    pub(crate) fn demand(&self, need: Need) -> Result<(), ApiError> {
        let refuse = |message: &str, hint: &str| Err(ApiError::new(Code::Forbidden, message).hint(hint));
        match (self, need) {
            (Caller::Owner, _) | (_, Need::Nothing) => Ok(()),
            (Caller::Nobody, Need::Token | Need::Each | Need::Scope(_) | Need::Owner) => {
                refuse("nobody is known to call this", "send a token")
            }
            (_, Need::Token | Need::Each) => Ok(()),
            (_, Need::Owner) => refuse(
                "this is for the owner's socket only",
                "call it on the machine, with `outlast` or on the socket",
            ),
            (Caller::Environment, Need::Scope(_)) => Ok(()),
            (Caller::Loopback, Need::Scope(Scope::Admin)) => {
                refuse("the scope `admin` is needed", "use the owner's socket or a token with this scope")
            }
            (Caller::Loopback, Need::Scope(_)) => Ok(()),
            (Caller::Token(key), Need::Scope(scope)) if has(key, scope) => Ok(()),
            (Caller::Token(key), Need::Scope(scope)) => {
                let scopes: Vec<String> = key.scopes().iter().map(|scope| format!("`{scope}`")).collect();
                let message = format!(
                    "the scope `{scope}` is needed; the token {} has {}",
                    key.name(),
                    scopes.join(", ")
                );
                refuse(&message, &format!("ask for a token with --scope {scope}"))
            }
        }
    }

    /// Returns the flows whose runs they may know of; none: all.
    pub(crate) fn flows(&self) -> Option<&[String]> {
        match self {
            Caller::Owner | Caller::Loopback | Caller::Environment => None,
            Caller::Nobody => Some(&[]),
            Caller::Token(key) => key.flows(),
        }
    }

    /// Whether they may know of a flow and its runs.
    pub(crate) fn sees(&self, flow: &str) -> bool {
        self.flows().is_none_or(|flows| flows.iter().any(|known| known == flow))
    }

    /// Whether they may answer whatever is asked of anybody: then also in advance, by allowing tools.
    ///
    /// # Errors
    /// [`Code::Forbidden`].
    pub(crate) fn demand_every_role(&self) -> Result<(), ApiError> {
        self.demand(Need::Scope(Scope::Answer))?;
        match self {
            Caller::Token(key) if !has(key, Scope::Admin) && !has_every_role(key) => {
                let message = format!(
                    "allowing tools answers for everybody; the token {} has not every role",
                    key.name()
                );
                Err(ApiError::new(Code::Forbidden, message)
                    .hint("ask for a token with --scope answer --role '*'"))
            }
            Caller::Owner | Caller::Loopback | Caller::Environment | Caller::Token(_) | Caller::Nobody => {
                Ok(())
            }
        }
    }

    /// Settles in which role they answer.
    ///
    /// # Errors
    /// [`Code::Forbidden`] for a role that they do not have; [`Code::Invalid`] if they have several and name none.
    pub(crate) fn in_role(&self, role: Option<String>) -> Result<Option<String>, ApiError> {
        let Caller::Token(key) = self else { return Ok(role) };
        if has(key, Scope::Admin) || has_every_role(key) {
            return Ok(role);
        }
        let all = key.roles().join(", ");
        let refuse = |code, message: String| Err(ApiError::new(code, message).at("role"));
        match (role, key.roles()) {
            (Some(role), roles) if roles.contains(&role) => Ok(Some(role)),
            (Some(role), _) => {
                let role: String = role.chars().take(QUOTED_CHARS).collect();
                refuse(
                    Code::Forbidden,
                    format!("the token {} has not the role {role:?}, but {all}", key.name()),
                )
            }
            (None, [only]) => Ok(Some(only.clone())),
            (None, _) => refuse(Code::Invalid, format!("name the role; the token {} has {all}", key.name())),
        }
    }
}

fn has_every_role(key: &Key) -> bool {
    key.roles().iter().any(|role| role == EVERY_ROLE)
}

fn has(key: &Key, scope: Scope) -> bool {
    key.scopes().iter().any(|known| *known == scope || *known == Scope::Admin)
}
