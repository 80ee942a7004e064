//! The arguments of a run, checked before its first event is made.
//!
//! Leaves starting to the engine. Invariant: what passes is accepted by [`crate::State::start`].

use outlast_dsl::machine::Machine;

use crate::Json;
use crate::json::{Reader, Unknown, fields_to_values, value_to_json};
use crate::program::Shapes;

/// Returns the arguments of a machine's flow in canonical form: by name, defaults filled in.
///
/// # Errors
/// Says what does not fit, where, and what was expected; unknown fields are refused.
pub fn check_input(machine: &Machine, input: Json) -> Result<Json, String> {
    let flow = machine.root();
    let input = if input.is_null() { Json::Object(serde_json::Map::new()) } else { input };
    let shapes = Shapes::new(machine);
    let reader = Reader { machine, shapes: &shapes, unknown: Unknown::Refuse };
    let values = fields_to_values(&reader, &flow.params, &input)
        .map_err(|mismatch| format!("the input of {} does not fit: {mismatch}", flow.name))?;
    let named = flow.params.iter().zip(&values);
    Ok(Json::Object(named.map(|(param, value)| (param.name.clone(), value_to_json(value))).collect()))
}
