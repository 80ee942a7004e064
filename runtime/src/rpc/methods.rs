//! What the methods do: one call of the API each.
//!
//! Leaves following a run to whoever can send notifications. Invariant: parameters that are not known are refused, and a method does
//! nothing for a caller without its scope.

use outlast_dsl::diag;
use outlast_kernel::Json;
use outlast_protocol::access::Scope;
use outlast_protocol::{ApiError, Code};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{METHOD_NOT_FOUND, RpcError};
use crate::access::Need;
use crate::api::{Api, EventsPage, Wait};
use crate::engine::DeployError;
use crate::limits::QUOTED_CHARS;

type Params = Map<String, Json>;
type Called = Result<Json, RpcError>;

/// No parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// What each method needs.
pub(crate) const METHODS: &[(&str, Scope)] = &[
    ("flows.deploy", Scope::Deploy),
    ("flows.list", Scope::Read),
    ("runs.start", Scope::Start),
    ("runs.list", Scope::Read),
    ("runs.get", Scope::Read),
    ("runs.result", Scope::Read),
    ("runs.events", Scope::Read),
    ("runs.tree", Scope::Read),
    ("runs.watch", Scope::Read),
    ("runs.unwatch", Scope::Read),
    ("runs.message", Scope::Send),
    ("runs.withdraw", Scope::Send),
    ("runs.answer", Scope::Answer),
    ("runs.cancel", Scope::Control),
    ("runs.terminate", Scope::Control),
    ("runs.delete", Scope::Admin),
    ("runs.settle", Scope::Control),
    ("runs.release", Scope::Control),
    ("runs.fork", Scope::Control),
    ("retention.get", Scope::Read),
    ("retention.put", Scope::Admin),
    ("schedules.list", Scope::Read),
    ("schedules.get", Scope::Read),
    ("schedules.put", Scope::Deploy),
    ("schedules.remove", Scope::Deploy),
    ("schedules.pause", Scope::Deploy),
    ("schedules.resume", Scope::Deploy),
    ("schedules.run_now", Scope::Deploy),
];

/// Whether a method may change something, so that the order of calls counts.
pub(crate) fn writes(method: &str, params: &Params) -> bool {
    match method {
        // Who waits for a run to take a message would hold up everything behind it.
        "runs.message" => !params.contains_key("wait"),
        "flows.deploy" | "runs.start" | "runs.withdraw" | "runs.answer" | "runs.cancel"
        | "runs.terminate" | "runs.delete" | "runs.settle" | "runs.release" | "runs.fork"
        | "retention.put" | "schedules.put" | "schedules.remove" | "schedules.pause" | "schedules.resume"
        | "schedules.run_now" => true,
        _ => false,
    }
}

/// Calls a method.
pub(crate) async fn call(api: Api<'_>, method: &str, params: Params) -> Called {
    let Some((_, scope)) = METHODS.iter().find(|(name, _)| *name == method) else {
        return Err(unknown(method));
    };
    api.caller.demand(Need::Scope(*scope))?;
    match method {
        "flows.deploy" => deploy(api, params).await,
        "flows.list" => {
            let Nothing {} = read(params)?;
            shown(api.flows())
        }
        "runs.start" => shown(api.start(read(params)?).await),
        "runs.list" => shown(api.list(read(params)?).await),
        "runs.get" | "runs.terminate" | "runs.delete" | "runs.tree" => {
            of_run_alone(api, method, params).await
        }
        "runs.cancel" | "runs.result" | "runs.events" | "runs.message" | "runs.withdraw" | "runs.answer"
        | "runs.settle" | "runs.release" | "runs.fork" => of_run(api, method, params).await,
        "retention.get" => {
            let Nothing {} = read(params)?;
            shown(api.retention())
        }
        "retention.put" => shown(api.put_retention(read(params)?).await),
        "schedules.list" => {
            let Nothing {} = read(params)?;
            shown(api.schedules().await)
        }
        "schedules.get" | "schedules.put" | "schedules.remove" | "schedules.pause" | "schedules.resume"
        | "schedules.run_now" => of_schedule(api, method, params).await,
        "runs.watch" | "runs.unwatch" => {
            let hint = "follow GET /v1/runs/{id}/stream, or call `outlast rpc` over stdio";
            Err(ApiError::new(Code::Invalid, "HTTP has no notifications to follow a run by")
                .hint(hint)
                .into())
        }
        other => Err(unknown(other)),
    }
}

fn unknown(method: &str) -> RpcError {
    let method: String = method.chars().take(QUOTED_CHARS).collect();
    let known: Vec<&str> = METHODS.iter().map(|(name, _)| *name).collect();
    let message = format!("there is no method {method:?}");
    let error = ApiError::new(Code::NotFound, &message).hint(format!("the methods are {}", known.join(", ")));
    RpcError { data: Some(json!(error)), ..RpcError::new(METHOD_NOT_FOUND, message) }
}

async fn deploy(api: Api<'_>, params: Params) -> Called {
    match api.deploy(read(params)?).await {
        Ok(flows) => Ok(json!({ "flows": flows })),
        Err(DeployError::Other(error)) => Err(error.into()),
        Err(DeployError::Invalid { diagnostics, sources }) => {
            let error = ApiError::new(Code::Invalid, "the flows have faults; see `diagnostics`");
            Err(RpcError::from(error).with("diagnostics", json!(diag::json(&diagnostics, &sources))))
        }
    }
}

/// Calls a method that needs nothing but a run.
async fn of_run_alone(api: Api<'_>, method: &str, mut params: Params) -> Called {
    let run = take_run(&mut params)?;
    let Nothing {} = read(params)?;
    let (engine, run, by) = (api.engine(), run.as_str(), api.by());
    api.see_run(run)?;
    match method {
        "runs.get" => shown(engine.get(run).await),
        "runs.terminate" => shown(engine.terminate(run, &by).await),
        "runs.delete" => shown(engine.delete(run).await.map(|()| json!({ "deleted": run }))),
        _ => shown(api.tree(run).await),
    }
}

/// Calls a method of a run that has parameters of its own.
async fn of_run(api: Api<'_>, method: &str, mut params: Params) -> Called {
    let run = take_run(&mut params)?;
    let (engine, run, by) = (api.engine(), run.as_str(), api.by());
    let by = by.as_str();
    api.see_run(run)?;
    match method {
        "runs.cancel" => shown(api.cancel(run, read(params)?).await),
        "runs.result" => shown(api.result(run, read(params)?).await),
        "runs.events" => shown(api.events(run, read::<EventsPage>(params)?).await),
        "runs.message" => {
            let wait = params.remove("wait").map(|wait| read_value("wait", wait)).transpose()?;
            shown(api.message(run, Wait { wait }, read(params)?).await)
        }
        "runs.withdraw" => shown(engine.withdraw(run, read(params)?, by).await),
        "runs.answer" => shown(api.answer(run, read(params)?).await),
        "runs.settle" => shown(engine.settle(run, read(params)?, by).await),
        "runs.release" => shown(engine.release(run, read(params)?, by).await),
        _ => shown(api.fork(run, read(params)?).await),
    }
}

/// Calls a method of a schedule.
async fn of_schedule(api: Api<'_>, method: &str, mut params: Params) -> Called {
    let name = take(&mut params, "name", "a schedule's name")?;
    if method == "schedules.put" {
        return shown(api.put_schedule(&name, read(params)?).await);
    }
    let Nothing {} = read(params)?;
    // Also tells who may not know of it that there is none.
    let view = api.schedule(&name).await?;
    let engine = api.engine();
    match method {
        "schedules.get" => Ok(json!(view)),
        "schedules.remove" => shown(engine.remove_schedule(&name).await.map(|()| json!({}))),
        "schedules.pause" => shown(engine.pause_schedule(&name, true).await),
        "schedules.resume" => shown(engine.pause_schedule(&name, false).await),
        _ => shown(engine.run_schedule_now(&name).await),
    }
}

fn shown<T: serde::Serialize>(result: Result<T, ApiError>) -> Called {
    Ok(json!(result?))
}

/// Takes the parameter that names a run.
pub(crate) fn take_run(params: &mut Params) -> Result<String, ApiError> {
    take(params, "run", "a run's id")
}

/// Takes a parameter that is a text.
fn take(params: &mut Params, name: &str, expected: &str) -> Result<String, ApiError> {
    let refuse = |message: String| Err(ApiError::new(Code::Invalid, message).at(name));
    match params.remove(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => refuse(format!("{name}: {expected} is expected")),
        None => refuse(format!("the parameter `{name}` is missing")),
    }
}

/// Reads parameters.
pub(crate) fn read<T: DeserializeOwned>(params: Params) -> Result<T, ApiError> {
    let read = serde_json::from_value(Value::Object(params));
    read.map_err(|error| ApiError::new(Code::Invalid, format!("the parameters do not fit: {error}")))
}

fn read_value<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, ApiError> {
    let read = serde_json::from_value(value);
    read.map_err(|error| ApiError::new(Code::Invalid, format!("{name}: {error}")).at(name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_table_of_methods_is_that_of_the_document() {
        let document: Value = serde_json::from_str(outlast_protocol::OPENAPI).unwrap();
        let described = &document["paths"]["/v1/rpc"]["post"]["x-scopes"];
        let table: BTreeMap<&str, &str> = METHODS.iter().map(|(name, scope)| (*name, scope.name())).collect();
        assert_eq!((table.len(), &json!(table)), (METHODS.len(), described));
    }
}
