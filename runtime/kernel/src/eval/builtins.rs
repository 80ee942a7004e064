//! Builtin functions of the edition.
//!
//! Invariant: a released builtin never changes; a repaired one belongs to a new edition. Text is counted in Unicode scalar
//! values, letters are folded in ASCII only.

use std::sync::Arc;

use outlast_dsl::machine::{Builtin, Expr};

use super::{Env, Scope, eval};
use crate::fault::Fault;
use crate::value::{List, Value};

pub(super) fn call(
    env: &mut Env<'_>,
    scope: &mut Scope,
    builtin: Builtin,
    args: &[Expr],
) -> Result<Value, Fault> {
    let args: Vec<Value> = args.iter().map(|arg| eval(env, scope, arg)).collect::<Result<_, _>>()?;
    for arg in &args {
        // Every builtin may look at all of its arguments, once.
        if is_linear(builtin) {
            env.spend_on(arg)?;
        }
    }
    let value = match builtin {
        Builtin::Now => Some(Value::Time(env.now)),
        Builtin::NewId => Some(new_id(env)),
        Builtin::Min => args.into_iter().min(),
        Builtin::Max => args.into_iter().max(),
        Builtin::Size
        | Builtin::FirstN
        | Builtin::LastN
        | Builtin::Range
        | Builtin::Sort
        | Builtin::Keys
        | Builtin::Values
        | Builtin::Put
        | Builtin::Done
        | Builtin::NotDone => on_collections(env, builtin, &args)?,
        Builtin::Join
        | Builtin::Split
        | Builtin::StartsWith
        | Builtin::Contains
        | Builtin::Find
        | Builtin::Trim
        | Builtin::Lower
        | Builtin::ParseInt
        | Builtin::ParseDecimal => on_text(builtin, &args),
    };
    Ok(value.ok_or_else(|| Fault::inconsistent(format!("{builtin:?} got other arguments")))?.checked()?)
}

fn is_linear(builtin: Builtin) -> bool {
    !matches!(builtin, Builtin::Now | Builtin::NewId | Builtin::Put | Builtin::Size)
}

/// Makes an id from the run's seed, the event and a position.
fn new_id(env: &mut Env<'_>) -> Value {
    env.ids += 1;
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&env.seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&env.n.0.to_le_bytes());
    bytes[16..].copy_from_slice(&env.ids.to_le_bytes());
    Value::text(&blake3::hash(&bytes).to_hex()[..32])
}

/// Returns none if the arguments are of other kinds.
fn on_collections(env: &mut Env<'_>, builtin: Builtin, args: &[Value]) -> Result<Option<Value>, Fault> {
    Ok(match (builtin, args) {
        (Builtin::Size, [of]) => size(of),
        (Builtin::FirstN, [of, Value::Int(n)]) => take(of, *n, End::First),
        (Builtin::LastN, [of, Value::Int(n)]) => take(of, *n, End::Last),
        (Builtin::Range, [Value::Int(from), Value::Int(to)]) => {
            let count = to.checked_sub(*from).ok_or(Fault::Size)?.max(0);
            env.spend(usize::try_from(count).map_err(|_| Fault::Size)?)?;
            Some(Value::List((*from..*to).map(Value::Int).collect()))
        }
        (Builtin::Sort, [Value::List(list)]) => {
            let mut items: Vec<_> = list.iter().cloned().collect();
            env.spend(items.len() * (items.len().max(1).ilog2() as usize + 1))?;
            items.sort();
            Some(Value::List(items.into_iter().collect()))
        }
        (Builtin::Keys, [Value::Map(map)]) => {
            Some(Value::List(map.iter().map(|(key, _)| Value::Text(Arc::clone(key))).collect()))
        }
        (Builtin::Values, [Value::Map(map)]) => {
            Some(Value::List(map.iter().map(|(_, value)| value.clone()).collect()))
        }
        (Builtin::Put, [Value::Map(map), Value::Text(key), value]) => {
            let mut map = map.clone();
            map.insert(Arc::clone(key), value.clone());
            Some(Value::Map(map))
        }
        (Builtin::Done, [Value::List(slots)]) => {
            Some(Value::List(slots.iter().filter_map(|slot| done(slot).cloned()).collect()))
        }
        (Builtin::NotDone, [Value::List(items), Value::List(slots)]) => {
            let missing = |at: &usize| slots.get(*at).and_then(done).is_none();
            let open = (0..items.len()).filter(missing).filter_map(|at| items.get(at).cloned());
            Some(Value::List(open.collect()))
        }
        _ => None,
    })
}

fn done(slot: &Value) -> Option<&Value> {
    if slot.tag() == Some("Done") { slot.field("value") } else { None }
}

fn size(of: &Value) -> Option<Value> {
    let size = match of {
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Text(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        _ => return None,
    };
    i64::try_from(size).ok().map(Value::Int)
}

enum End {
    First,
    Last,
}

fn take(of: &Value, n: i64, end: End) -> Option<Value> {
    let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX);
    match of {
        Value::List(list) => {
            let skip = match end {
                End::First => 0,
                End::Last => list.len().saturating_sub(n),
            };
            let items: List = list.iter().skip(skip).take(n).cloned().collect();
            Some(Value::List(items))
        }
        Value::Text(text) => {
            let skip = match end {
                End::First => 0,
                End::Last => text.chars().count().saturating_sub(n),
            };
            Some(Value::Text(text.chars().skip(skip).take(n).collect::<String>().into()))
        }
        _ => None,
    }
}

/// Returns none if the arguments are of other kinds.
fn on_text(builtin: Builtin, args: &[Value]) -> Option<Value> {
    match (builtin, args) {
        (Builtin::Join, [Value::List(parts), Value::Text(between)]) => {
            let parts: Option<Vec<_>> = parts.iter().map(Value::as_text).collect();
            let parts = parts?;
            let bytes: usize = parts.iter().map(|part| part.len() + between.len()).sum();
            // The caller refuses what is too big; a text of that size is not built first.
            let fits = bytes as u64 <= crate::limits::VALUE_BYTES_MAX + between.len() as u64;
            fits.then(|| Value::Text(parts.join(between).into()))
        }
        (Builtin::Split, [Value::Text(text), Value::Text(at)]) if at.is_empty() => {
            let mut buffer = [0; 4];
            Some(Value::List(text.chars().map(|c| Value::text(c.encode_utf8(&mut buffer))).collect()))
        }
        (Builtin::Split, [Value::Text(text), Value::Text(at)]) => {
            Some(Value::List(text.split(&**at).map(Value::text).collect()))
        }
        (Builtin::StartsWith, [Value::Text(text), Value::Text(start)]) => {
            Some(Value::Bool(text.starts_with(&**start)))
        }
        (Builtin::Contains, [Value::Text(text), Value::Text(part)]) => {
            Some(Value::Bool(text.contains(&**part)))
        }
        (Builtin::Find, [Value::Text(text), Value::Text(part)]) => match text.find(&**part) {
            Some(byte) => i64::try_from(text[..byte].chars().count()).ok().map(Value::Int),
            None => Some(Value::None),
        },
        (Builtin::Trim, [Value::Text(text)]) => Some(Value::text(text.trim_matches(is_space))),
        (Builtin::Lower, [Value::Text(text)]) => Some(Value::Text(text.to_ascii_lowercase().into())),
        (Builtin::ParseInt, [Value::Text(text)]) => {
            Some(text.trim_matches(is_space).parse().map_or(Value::None, Value::Int))
        }
        (Builtin::ParseDecimal, [Value::Text(text)]) => {
            let parsed = crate::json::parse_decimal(text.trim_matches(is_space));
            Some(parsed.map_or(Value::None, Value::Decimal))
        }
        _ => None,
    }
}

// Unicode's list of spaces grows; the edition's does not.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
