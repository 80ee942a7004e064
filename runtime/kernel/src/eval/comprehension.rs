//! Comprehensions and folds over lists and maps.
//!
//! Invariant: items come in list order, entries in byte order of their keys; each item costs a step.

use outlast_dsl::machine::{Expr, Fold, ForIn};
use rust_decimal::Decimal;

use super::{Env, Scope, add, eval, holds, unexpected};
use crate::fault::Fault;
use crate::value::{List, Map, Value};

/// Calls `body` for each item that takes part, until it says stop.
fn each(
    env: &mut Env<'_>,
    scope: &mut Scope,
    source: &ForIn,
    body: &mut dyn FnMut(&mut Env<'_>, &mut Scope) -> Result<Go, Fault>,
) -> Result<(), Fault> {
    let over = eval(env, scope, &source.over)?;
    let mut visit = |key: Value, item: Value, env: &mut Env<'_>, scope: &mut Scope| {
        env.spend(1)?;
        scope.bind(source.item, item);
        if let Some(slot) = source.key {
            scope.bind(slot, key);
        }
        let takes_part = match &source.cond {
            Some(cond) => holds(env, scope, cond)?,
            None => true,
        };
        if takes_part { body(env, scope) } else { Ok(Go::On) }
    };
    match &over {
        Value::List(list) => {
            for (at, item) in list.iter().enumerate() {
                let at = i64::try_from(at).map_err(|_| Fault::Size)?;
                if let Go::Stop = visit(Value::Int(at), item.clone(), env, scope)? {
                    break;
                }
            }
        }
        Value::Map(map) => {
            for (key, item) in map.iter() {
                if let Go::Stop = visit(Value::Text(key.clone()), item.clone(), env, scope)? {
                    break;
                }
            }
        }
        other => return Err(unexpected("`for`", other)),
    }
    Ok(())
}

/// Whether a walk goes on.
enum Go {
    On,
    Stop,
}

pub(super) fn list_for(
    env: &mut Env<'_>,
    scope: &mut Scope,
    source: &ForIn,
    body: &Expr,
) -> Result<Value, Fault> {
    let mut list = List::default();
    each(env, scope, source, &mut |env, scope| {
        list.push(eval(env, scope, body)?);
        Value::List(list.clone()).checked()?;
        Ok(Go::On)
    })?;
    Ok(Value::List(list))
}

pub(super) fn map_for(
    env: &mut Env<'_>,
    scope: &mut Scope,
    source: &ForIn,
    key: &Expr,
    value: &Expr,
) -> Result<Value, Fault> {
    let mut map = Map::default();
    each(env, scope, source, &mut |env, scope| {
        let Value::Text(key) = eval(env, scope, key)? else {
            return Err(Fault::inconsistent("a key of a map is no text"));
        };
        map.insert(key, eval(env, scope, value)?);
        Value::Map(map.clone()).checked()?;
        Ok(Go::On)
    })?;
    Ok(Value::Map(map))
}

pub(super) fn fold(
    env: &mut Env<'_>,
    scope: &mut Scope,
    fold: Fold,
    source: &ForIn,
    body: &Expr,
) -> Result<Value, Fault> {
    let mut result = match fold {
        Fold::Count | Fold::Sum => Value::Int(0),
        Fold::SumDecimal => Value::Decimal(Decimal::ZERO),
        Fold::SumDuration => Value::Duration(0),
        Fold::SumFloat => Value::Float(0.0),
        Fold::SumList => Value::List(List::default()),
        Fold::Any => Value::Bool(false),
        Fold::All => Value::Bool(true),
        Fold::First | Fold::Last => Value::None,
    };
    let mut started = false;
    each(env, scope, source, &mut |env, scope| {
        if fold == Fold::Count {
            result = add(env, &result, &Value::Int(1))?;
            return Ok(Go::On);
        }
        let value = eval(env, scope, body)?;
        match (fold, value) {
            (Fold::Sum, value) if !started => result = value,
            (Fold::Sum | Fold::SumDecimal | Fold::SumDuration | Fold::SumFloat | Fold::SumList, value) => {
                result = add(env, &result, &value)?;
            }
            (Fold::Any, Value::Bool(true)) | (Fold::All, Value::Bool(false)) => {
                result = Value::Bool(fold == Fold::Any);
                return Ok(Go::Stop);
            }
            (Fold::Any | Fold::All, Value::Bool(_)) => {}
            (Fold::First, value) => {
                result = value;
                return Ok(Go::Stop);
            }
            (Fold::Last, value) => result = value,
            (Fold::Any | Fold::All | Fold::Count, other) => return Err(unexpected("a fold", &other)),
        }
        started = true;
        Ok(Go::On)
    })?;
    Ok(result)
}
