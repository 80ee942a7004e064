//! Operators on two values.
//!
//! Invariant: checked: what does not fit its type is a fault, division by zero is `none`; floats stay finite.

use std::cmp::Ordering;

use outlast_dsl::machine::{BinaryOp, Expr};

use super::{Env, Scope, eval, unexpected};
use crate::fault::Fault;
use crate::ids::Millis;
use crate::limits::DURATION_MS_MAX;
use crate::value::Value;

pub(super) fn binary(
    env: &mut Env<'_>,
    scope: &mut Scope,
    op: BinaryOp,
    left: &Expr,
    right: &Expr,
) -> Result<Value, Fault> {
    let left = eval(env, scope, left)?;
    match (op, &left) {
        (BinaryOp::And, Value::Bool(false)) | (BinaryOp::Or, Value::Bool(true)) => return Ok(left),
        (BinaryOp::And | BinaryOp::Or, Value::Bool(_)) => return eval(env, scope, right),
        _ => {}
    }
    let right = eval(env, scope, right)?;
    match op {
        BinaryOp::And | BinaryOp::Or => Err(unexpected("`and` or `or`", &left)),
        BinaryOp::Eq | BinaryOp::Ne => {
            env.spend_on(&left)?;
            Ok(Value::Bool((left == right) == (op == BinaryOp::Eq)))
        }
        BinaryOp::Lt => compare(env, &left, &right, Ordering::is_lt),
        BinaryOp::Le => compare(env, &left, &right, Ordering::is_le),
        BinaryOp::Gt => compare(env, &left, &right, Ordering::is_gt),
        BinaryOp::Ge => compare(env, &left, &right, Ordering::is_ge),
        BinaryOp::In => contains(env, &left, &right),
        BinaryOp::Add => add(env, &left, &right),
        BinaryOp::Sub => sub(&left, &right),
        BinaryOp::Mul => mul(&left, &right),
        BinaryOp::Div => div(&left, &right),
        BinaryOp::Rem => rem(&left, &right),
    }
}

fn compare(
    env: &mut Env<'_>,
    left: &Value,
    right: &Value,
    test: fn(Ordering) -> bool,
) -> Result<Value, Fault> {
    env.spend_on(left)?;
    Ok(Value::Bool(test(left.cmp(right))))
}

fn contains(env: &mut Env<'_>, item: &Value, of: &Value) -> Result<Value, Fault> {
    let found = match (item, of) {
        (item, Value::List(list)) => {
            env.spend(list.len())?;
            list.iter().any(|known| known == item)
        }
        (Value::Text(key), Value::Map(map)) => map.get(key).is_some(),
        (Value::Text(part), Value::Text(text)) => {
            env.spend_on(of)?;
            text.contains(&**part)
        }
        (_, other) => return Err(unexpected("`in`", other)),
    };
    Ok(Value::Bool(found))
}

fn overflow(left: &Value, op: &str, right: &Value) -> Fault {
    let mut what = String::new();
    super::show(left, &mut what);
    what.push_str(op);
    super::show(right, &mut what);
    Fault::Overflow { what: what.chars().take(crate::limits::QUOTE_CHARS_MAX).collect() }
}

/// Adds two values: numbers, text, lists, times and durations.
pub(crate) fn add(env: &mut Env<'_>, left: &Value, right: &Value) -> Result<Value, Fault> {
    let sum = match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_add(*b).map(Value::Int),
        (Value::Float(a), Value::Float(b)) => Value::float(a + b),
        (Value::Decimal(a), Value::Decimal(b)) => a.checked_add(*b).map(Value::decimal),
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_add(*b)),
        (Value::Time(a), Value::Duration(b)) | (Value::Duration(b), Value::Time(a)) => {
            a.0.checked_add_unsigned(*b).map(|ms| Value::Time(Millis(ms)))
        }
        (Value::Text(a), Value::Text(b)) => {
            if a.len() as u64 + b.len() as u64 > crate::limits::VALUE_BYTES_MAX {
                return Err(Fault::Size);
            }
            Some(Value::Text(format!("{a}{b}").into()))
        }
        (Value::List(a), Value::List(b)) => {
            env.spend(b.len())?;
            let mut list = a.clone();
            b.iter().for_each(|item| list.push(item.clone()));
            Some(Value::List(list))
        }
        (other, _) => return Err(unexpected("`+`", other)),
    };
    Ok(sum.ok_or_else(|| overflow(left, " + ", right))?.checked()?)
}

fn duration(ms: Option<u64>) -> Option<Value> {
    ms.filter(|ms| *ms <= DURATION_MS_MAX).map(Value::Duration)
}

/// Subtracts numbers and durations; times and durations clamp at zero.
pub(crate) fn sub(left: &Value, right: &Value) -> Result<Value, Fault> {
    let difference = match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_sub(*b).map(Value::Int),
        (Value::Float(a), Value::Float(b)) => Value::float(a - b),
        (Value::Decimal(a), Value::Decimal(b)) => a.checked_sub(*b).map(Value::decimal),
        (Value::Duration(a), Value::Duration(b)) => Some(Value::Duration(a.saturating_sub(*b))),
        (Value::Time(a), Value::Duration(b)) => {
            a.0.checked_sub_unsigned(*b).map(|ms| Value::Time(Millis(ms)))
        }
        (Value::Time(a), Value::Time(b)) => {
            let ms = a.0.saturating_sub(b.0).max(0);
            Some(Value::Duration(ms.unsigned_abs().min(DURATION_MS_MAX)))
        }
        (other, _) => return Err(unexpected("`-`", other)),
    };
    difference.ok_or_else(|| overflow(left, " - ", right))
}

fn mul(left: &Value, right: &Value) -> Result<Value, Fault> {
    let product = match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_mul(*b).map(Value::Int),
        (Value::Float(a), Value::Float(b)) => Value::float(a * b),
        (Value::Decimal(a), Value::Decimal(b)) => a.checked_mul(*b).map(Value::decimal),
        (Value::Duration(a), Value::Int(b)) | (Value::Int(b), Value::Duration(a)) => {
            duration(u64::try_from(*b).ok().and_then(|b| a.checked_mul(b)))
        }
        (other, _) => return Err(unexpected("`*`", other)),
    };
    product.ok_or_else(|| overflow(left, " * ", right))
}

fn div(left: &Value, right: &Value) -> Result<Value, Fault> {
    let quotient = match (left, right) {
        (_, Value::Int(0)) => return Ok(Value::None),
        (_, Value::Float(zero)) if *zero == 0.0 => return Ok(Value::None),
        (_, Value::Decimal(zero)) if zero.is_zero() => return Ok(Value::None),
        (Value::Int(a), Value::Int(b)) => a.checked_div(*b).map(Value::Int),
        (Value::Float(a), Value::Float(b)) => Value::float(a / b),
        (Value::Decimal(a), Value::Decimal(b)) => a.checked_div(*b).map(Value::decimal),
        (Value::Duration(a), Value::Int(b)) => u64::try_from(*b).ok().map(|b| Value::Duration(a / b)),
        (other, _) => return Err(unexpected("`/`", other)),
    };
    quotient.ok_or_else(|| overflow(left, " / ", right))
}

fn rem(left: &Value, right: &Value) -> Result<Value, Fault> {
    let rest = match (left, right) {
        (_, Value::Int(0)) => return Ok(Value::None),
        (_, Value::Decimal(zero)) if zero.is_zero() => return Ok(Value::None),
        (_, Value::Float(zero)) if *zero == 0.0 => return Ok(Value::None),
        (Value::Int(a), Value::Int(b)) => a.checked_rem(*b).map(Value::Int),
        (Value::Float(a), Value::Float(b)) => Value::float(a % b),
        (Value::Decimal(a), Value::Decimal(b)) => a.checked_rem(*b).map(Value::decimal),
        (other, _) => return Err(unexpected("`%`", other)),
    };
    rest.ok_or_else(|| overflow(left, " % ", right))
}

pub(super) fn negate(of: &Value) -> Result<Value, Fault> {
    match of {
        Value::Int(value) => {
            let negated = value.checked_neg().map(Value::Int);
            negated.ok_or_else(|| overflow(&Value::text(""), "-", of))
        }
        Value::Float(value) => Ok(Value::float(-value).unwrap_or(Value::Nothing)),
        Value::Decimal(value) => Ok(Value::decimal(-*value)),
        other => Err(unexpected("`-`", other)),
    }
}
