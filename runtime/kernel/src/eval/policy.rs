//! Tool catalogues: what models see, and which calls need no person.
//!
//! Leaves asking to the machine, and what a rule fits to [`crate::rules`]. Invariant: reads the recorded configuration only; deny wins
//! over ask, ask over allow and grants, and those over the catalogue.

use outlast_dsl::machine::{CatalogueIx, Machine, Permission, ToolEffect};

use super::Env;
use crate::event::Config;
use crate::fault::Fault;
use crate::json::value_to_json;
use crate::rules::{Call, Reading};
use crate::value::{List, Value};

/// Returns the schemas of a catalogue's tools.
pub(super) fn schemas(env: &mut Env<'_>, catalogue: CatalogueIx) -> Result<Value, Fault> {
    let tools = &env.machine.catalogues[catalogue.at()].tools;
    env.spend(tools.len())?;
    let mut list = List::default();
    for tool in tools {
        list.push(Value::record(
            None,
            [
                ("name", Value::text(&tool.name)),
                ("description", Value::text(&tool.description)),
                ("input", Value::json(tool.input.clone())?),
            ],
        )?);
    }
    Ok(Value::List(list))
}

/// Returns the call as approved if no person needs to be asked, else `none`.
pub(super) fn allow(env: &mut Env<'_>, catalogue: CatalogueIx, call: Value) -> Result<Value, Fault> {
    let Some(name) = call.field("name").and_then(Value::as_text) else {
        return Err(Fault::inconsistent("a tool call has no name"));
    };
    env.spend_on(&call)?;
    let tools = &env.machine.catalogues[catalogue.at()].tools;
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        return Ok(Value::None);
    };
    let args = call.field("args").map(value_to_json).unwrap_or_default();
    let seen = Call::new(name, &args, tool.effect.name());
    let any = |rules: &[String], reading| seen.first(rules, reading).is_some();
    let config = &env.config;
    let allowed = if any(&config.deny, Reading::Wide) || any(&config.ask, Reading::Wide) {
        false
    } else if any(&config.allow, Reading::Narrow) || any(&config.grants, Reading::Narrow) {
        true
    } else {
        tool.permission == Permission::Allow
    };
    if !allowed {
        return Ok(Value::None);
    }
    let by = Value::list([Value::text("policy")])?;
    Ok(Value::record(None, [("value", call), ("by", by)])?)
}

/// Returns why nobody need be asked about a call, because the answer is no; none if a person decides.
pub(crate) fn refusal(machine: &Machine, config: &Config, shown: &Value) -> Option<String> {
    if config.deny.is_empty() && !config.deny_asks {
        return None;
    }
    let name = shown.field("name").and_then(Value::as_text)?;
    let (args, _id) = (shown.field("args")?, shown.field("id")?);
    let tools = machine.catalogues.iter().flat_map(|catalogue| &catalogue.tools);
    // A tool that no catalogue knows may do anything.
    let effect =
        tools.into_iter().find(|tool| tool.name == name).map_or(ToolEffect::Once, |tool| tool.effect);
    let call = Call::new(name, &value_to_json(args), effect.name());
    match call.first(&config.deny, Reading::Wide) {
        Some(rule) => Some(format!("denied by the rule {rule}")),
        None => config.deny_asks.then(|| "nobody is asked: the permission mode is deny-asks".to_owned()),
    }
}
