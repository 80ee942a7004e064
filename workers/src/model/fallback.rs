//! A model that is asked where another one has no answer for now.
//!
//! Leaves retrying to the flow: each model is asked once in an attempt. Invariant: what would be wrong with any model (a bad request, a
//! conversation that is too long, a wrong key, a refusal) is never passed on, and what both took is counted.

use std::sync::Arc;

use rust_decimal::Decimal;

use super::error::{Kind, ModelError};
use super::{Completion, Provider, Request};
use crate::Json;
use crate::sdk::TaskContext;

/// See the module.
pub(super) struct Fallback {
    pub(super) first: Arc<dyn Provider>,
    pub(super) next: Arc<dyn Provider>,
    /// The name of the next one, for people.
    pub(super) name: String,
}

#[async_trait::async_trait]
impl Provider for Fallback {
    async fn complete(&self, request: &Request, task: &TaskContext) -> Result<Completion, ModelError> {
        let error = match self.first.complete(request, task).await {
            Err(error) if passes(error.kind) => error,
            ended => return ended,
        };
        tracing::warn!(error = %error, next = self.name, "a model does not answer; the next one is asked");
        task.progress(&format!("\n[{}: {} is asked]\n", error.kind.name(), self.name));
        match self.next.complete(request, task).await {
            Ok(mut completion) => {
                completion.cost = sum(error.cost, completion.cost);
                count(&mut completion.usage, error.usage.as_ref());
                Ok(completion)
            }
            Err(next) => Err(both(error, next, &self.name)),
        }
    }
}

/// Whether another model may help.
fn passes(kind: Kind) -> bool {
    match kind {
        Kind::RateLimited | Kind::Overloaded | Kind::Timeout | Kind::Cut => true,
        Kind::ContextOverflow | Kind::BadRequest | Kind::Auth | Kind::Refused => false,
    }
}

/// One error of two: that of the first model, which the flow asks again, and the sooner wait.
fn both(first: ModelError, next: ModelError, name: &str) -> ModelError {
    let wait = match (first.retry_after, next.retry_after) {
        (Some(first), Some(next)) => Some(first.min(next)),
        (first, _) => first,
    };
    let cost = sum(first.cost.clone(), next.cost);
    let mut usage = first.usage.clone().or_else(|| next.usage.clone());
    if let (Some(usage), Some(_)) = (&mut usage, &first.usage) {
        count(usage, next.usage.as_ref());
    }
    let error = first.noting(&format!("then {name}: {}", next.text));
    ModelError { retry_after: wait, cost, usage, ..error }
}

fn sum(first: Option<String>, next: Option<String>) -> Option<String> {
    let read = |cost: &Option<String>| cost.as_deref().and_then(|cost| cost.parse::<Decimal>().ok());
    match (read(&first), read(&next)) {
        (Some(first), Some(next)) => Some(first.saturating_add(next).normalize().to_string()),
        (_, None) => first,
        (None, _) => next,
    }
}

/// Adds the tokens that another request took.
fn count(usage: &mut Json, more: Option<&Json>) {
    for name in ["input_tokens", "output_tokens"] {
        let of = |usage: &Json| usage.get(name).and_then(Json::as_u64);
        if let Some(more) = more.and_then(of) {
            usage[name] = of(usage).unwrap_or(0).saturating_add(more).into();
        }
    }
}
