//! Functions of a machine, called from outside of a run: the values of tests.
//!
//! Leaves what the values are for to the caller. Invariant: pure; evaluated as the expressions of a flow are.

use std::sync::Arc;

use outlast_dsl::machine::{FunctionIx, Machine, Param, Type};

use crate::Json;
use crate::eval::{Env, Scope, eval};
use crate::event::Config;
use crate::ids::{Millis, Seq};
use crate::json::{Reader, Unknown, value_to_json};
use crate::program::Program;
use crate::value::Value;

/// The functions of a machine.
#[derive(Clone, Debug)]
pub struct Functions {
    program: Arc<Program>,
}

impl Functions {
    /// Prepares the functions of a machine.
    #[must_use]
    pub fn new(machine: Arc<Machine>) -> Functions {
        Functions { program: Program::new(machine) }
    }

    /// Returns the value of a function without parameters.
    ///
    /// # Errors
    /// Says which fault stopped it.
    pub fn call(&self, function: FunctionIx, now: Millis) -> Result<Json, String> {
        self.value(function, Vec::new(), now)
    }

    /// Returns the value of a function of a call's arguments: those of the activity, in the order of its parameters.
    ///
    /// # Errors
    /// Says which fault stopped it, or which argument does not fit.
    pub fn call_with(
        &self,
        function: FunctionIx,
        activity: &str,
        input: &Json,
        now: Millis,
    ) -> Result<Json, String> {
        let machine = &self.program.machine;
        let Some(def) = machine.activities.iter().find(|def| def.name == activity) else {
            return Err(format!("{activity} is no activity of the flow"));
        };
        let reader = Reader { machine, shapes: &self.program.shapes, unknown: Unknown::Drop };
        let argument = |param: &Param| {
            let json = input.get(&param.name).unwrap_or(&Json::Null);
            let Type::Approved(inner) = &param.ty else {
                return reader.read(&param.ty, json).map_err(|mismatch| mismatch.to_string());
            };
            // What a run has approved reads back here, where nothing is done with it.
            let value = reader.read(inner, &json["value"]).map_err(|mismatch| mismatch.to_string())?;
            let by = reader.read(&Type::List(Box::new(Type::Text)), &json["by"]);
            let by = by.map_err(|mismatch| mismatch.to_string())?;
            Value::record(None, [("value", value), ("by", by)])
                .map_err(|_| "an argument is too big".to_owned())
        };
        let values = def.params.iter().map(argument).collect::<Result<Vec<_>, String>>()?;
        self.value(function, values, now)
    }

    fn value(&self, function: FunctionIx, frame: Vec<Value>, now: Millis) -> Result<Json, String> {
        let Some(def) = self.program.machine.functions.get(function.at()) else {
            return Err(format!("the machine has no function {}", function.0));
        };
        let mut scope = Scope { frame, ..Scope::default() };
        scope.frame.resize((def.frame as usize).max(scope.frame.len()), Value::Nothing);
        let mut env = Env::new(&self.program, Arc::new(Config::default()), 0, Seq(0), now);
        let value = eval(&mut env, &mut scope, &def.body).map_err(|fault| fault.to_string())?;
        Ok(value_to_json(&value))
    }
}
