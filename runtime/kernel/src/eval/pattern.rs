//! Patterns: which variant a value is, and its fields.
//!
//! Invariant: the first arm that fits is taken; an option fits `None` or, with a value, `Some`.

use outlast_dsl::machine::{Expr, MatchArm, Slot};

use super::{Env, Scope, eval, holds};
use crate::fault::Fault;
use crate::value::Value;

/// Says whether a value fits a tag.
pub(crate) fn fits(value: &Value, tag: &str) -> bool {
    match (value, tag) {
        (Value::None, _) => tag == "None",
        (Value::Bool(value), _) => tag == if *value { "true" } else { "false" },
        // A union whose variant is called `Some` cannot be told from an option's value; the checker refuses it.
        (_, "Some") => true,
        (value, tag) => value.tag() == Some(tag),
    }
}

/// Binds the fields of a variant; under `Some` the one field is the value itself.
pub(crate) fn bind_fields(
    scope: &mut Scope,
    value: &Value,
    tag: &str,
    fields: &[(String, Slot)],
) -> Result<(), Fault> {
    for (name, slot) in fields {
        let field = match value.field(name) {
            Some(field) => field.clone(),
            None if tag == "Some" => value.clone(),
            None => return Err(Fault::inconsistent(format!("{tag} has no field {name}"))),
        };
        scope.bind(*slot, field);
    }
    Ok(())
}

pub(super) fn match_arms(
    env: &mut Env<'_>,
    scope: &mut Scope,
    subject: &Expr,
    arms: &[MatchArm],
) -> Result<Value, Fault> {
    let subject = eval(env, scope, subject)?;
    for arm in arms {
        env.spend(1)?;
        if !fits(&subject, &arm.tag) {
            continue;
        }
        bind_fields(scope, &subject, &arm.tag, &arm.fields)?;
        let passes = match &arm.guard {
            Some(guard) => holds(env, scope, guard)?,
            None => true,
        };
        if passes {
            return eval(env, scope, &arm.body);
        }
    }
    Err(Fault::inconsistent(format!("no arm of a match fits {}", subject.tag().unwrap_or(subject.kind()))))
}

pub(super) fn is(
    env: &mut Env<'_>,
    scope: &mut Scope,
    of: &Expr,
    tag: &str,
    fields: &[(String, Slot)],
) -> Result<Value, Fault> {
    let value = eval(env, scope, of)?;
    let fits = fits(&value, tag);
    if fits {
        bind_fields(scope, &value, tag, fields)?;
    }
    Ok(Value::Bool(fits))
}
