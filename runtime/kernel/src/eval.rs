//! Expressions: from a frame of values to a value, or a fault.
//!
//! Leaves state and arrows to [`crate::state`]. Invariant: total (fuel, depth and size are bounded) and pure: the same
//! environment and scope give the same value. Start at [`eval`].

mod builtins;
mod comprehension;
mod operators;
mod pattern;
pub(crate) mod policy;
mod show;

use std::sync::Arc;

use outlast_dsl::machine::{Cond, Expr, Literal, Machine, Slot, TypeIx, TypeKind};

pub(crate) use operators::add;
pub(crate) use operators::sub;
pub(crate) use pattern::bind_fields;
pub(crate) use pattern::fits;
pub(crate) use show::show;

use crate::event::Config;
use crate::fault::Fault;
use crate::ids::{Millis, Seq};
use crate::json::{Reader, Unknown, value_to_open_json};
use crate::limits::{EVAL_DEPTH_MAX, FUEL_MAX};
use crate::program::{Program, Shapes};
use crate::value::{List, Map, Record, Value};

/// What evaluation sees beside its scope, and what it has left.
#[derive(Debug)]
pub(crate) struct Env<'m> {
    pub(crate) machine: &'m Machine,
    pub(crate) shapes: &'m Shapes,
    pub(crate) config: Arc<Config>,
    /// The time of the event that is applied.
    pub(crate) now: Millis,
    pub(crate) seed: u64,
    /// The number of the event that is applied.
    pub(crate) n: Seq,
    ids: u32,
    fuel: u64,
    depth: u32,
}

/// The variables of one evaluation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) params: Arc<[Value]>,
    pub(crate) args: Arc<[Value]>,
    pub(crate) data: Vec<Value>,
    pub(crate) frame: Vec<Value>,
}

impl Scope {
    /// Writes a local variable.
    pub(crate) fn bind(&mut self, slot: Slot, value: Value) {
        if slot.at() >= self.frame.len() {
            self.frame.resize(slot.at() + 1, Value::Nothing);
        }
        self.frame[slot.at()] = value;
    }
}

impl<'m> Env<'m> {
    /// Makes the environment of one event.
    pub(crate) fn new(program: &'m Program, config: Arc<Config>, seed: u64, n: Seq, now: Millis) -> Env<'m> {
        Env { config, seed, n, now, ..Env::pure(&program.machine, &program.shapes) }
    }

    fn pure(machine: &'m Machine, shapes: &'m Shapes) -> Env<'m> {
        let config = Arc::new(Config::default());
        Env { machine, shapes, config, now: Millis(0), seed: 0, n: Seq(0), ids: 0, fuel: FUEL_MAX, depth: 0 }
    }

    /// Takes steps from the fuel.
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Fault> {
        self.fuel = self.fuel.checked_sub(steps as u64).ok_or(Fault::Fuel)?;
        Ok(())
    }

    /// Takes fuel for work on a whole value.
    pub(crate) fn spend_on(&mut self, value: &Value) -> Result<(), Fault> {
        self.spend(usize::try_from(value.size() / 64).unwrap_or(usize::MAX))
    }
}

/// Evaluates a constant expression: the default of a field.
pub(crate) fn constant(machine: &Machine, shapes: &Shapes, expr: &Expr) -> Result<Value, Fault> {
    eval(&mut Env::pure(machine, shapes), &mut Scope::default(), expr)
}

/// Evaluates an expression.
pub(crate) fn eval(env: &mut Env<'_>, scope: &mut Scope, expr: &Expr) -> Result<Value, Fault> {
    env.spend(1)?;
    if env.depth >= EVAL_DEPTH_MAX {
        return Err(Fault::Depth);
    }
    env.depth += 1;
    let value = step(env, scope, expr);
    env.depth -= 1;
    value
}

/// Evaluates several expressions in order.
pub(crate) fn eval_all(env: &mut Env<'_>, scope: &mut Scope, exprs: &[Expr]) -> Result<Arc<[Value]>, Fault> {
    exprs.iter().map(|expr| eval(env, scope, expr)).collect()
}

/// Says whether a condition holds, and binds the value of its option.
pub(crate) fn holds(env: &mut Env<'_>, scope: &mut Scope, cond: &Cond) -> Result<bool, Fault> {
    match (eval(env, scope, &cond.test)?, cond.bind) {
        (Value::None, Some(_)) => Ok(false),
        (value, Some(slot)) => {
            scope.bind(slot, value);
            Ok(true)
        }
        (Value::Bool(value), None) => Ok(value),
        (other, None) => Err(unexpected("a condition", &other)),
    }
}

fn step(env: &mut Env<'_>, scope: &mut Scope, expr: &Expr) -> Result<Value, Fault> {
    match expr {
        Expr::Lit(literal) => constant_of(literal),
        Expr::Local(slot) => variable(&scope.frame, slot.at()),
        Expr::Param(at) => variable(&scope.params, *at as usize),
        Expr::Arg(at) => variable(&scope.args, *at as usize),
        Expr::Data(at) => variable(&scope.data, at.at()),
        Expr::Text(parts) => text(env, scope, parts),
        Expr::List(items) => list(env, scope, items),
        Expr::Map(entries) => map(env, scope, entries),
        Expr::ListFor(source, body) => comprehension::list_for(env, scope, source, body),
        Expr::MapFor(source, key, value) => comprehension::map_for(env, scope, source, key, value),
        Expr::Fold(fold, source, body) => comprehension::fold(env, scope, *fold, source, body),
        Expr::Record(ix, fields) => record(env, scope, *ix, None, fields),
        Expr::Variant(ix, tag, fields) => record(env, scope, *ix, Some(tag), fields),
        Expr::BuiltinRecord(tag, fields) => built_in_record(env, scope, tag.as_deref(), fields),
        Expr::Field(of, name) => field(eval(env, scope, of)?, name),
        Expr::Index(of, at) => index(env, scope, of, at),
        Expr::Not(of) => match eval(env, scope, of)? {
            Value::Bool(value) => Ok(Value::Bool(!value)),
            other => Err(unexpected("`not`", &other)),
        },
        Expr::Neg(of) => operators::negate(&eval(env, scope, of)?),
        Expr::Binary(op, left, right) => operators::binary(env, scope, *op, left, right),
        Expr::Else(option, other) => match eval(env, scope, option)? {
            Value::None => eval(env, scope, other),
            value => Ok(value),
        },
        Expr::If(cond, then, other) => {
            let branch = if holds(env, scope, cond)? { then } else { other };
            eval(env, scope, branch)
        }
        Expr::Match(subject, arms) => pattern::match_arms(env, scope, subject, arms),
        Expr::Is(of, tag, fields) => pattern::is(env, scope, of, tag, fields),
        Expr::Call(function, args) => call(env, scope, function.at(), args),
        Expr::Builtin(builtin, args) => builtins::call(env, scope, *builtin, args),
        Expr::FromJson(ty, of) => from_json(env, scope, ty, of),
        Expr::ToJson(of) => {
            let value = eval(env, scope, of)?;
            env.spend_on(&value)?;
            Ok(Value::json(value_to_open_json(&value))?)
        }
        Expr::Schemas(catalogue) => policy::schemas(env, *catalogue),
        Expr::Allow(catalogue, call) => {
            let call = eval(env, scope, call)?;
            policy::allow(env, *catalogue, call)
        }
    }
}

fn variable(values: &[Value], at: usize) -> Result<Value, Fault> {
    values.get(at).cloned().ok_or_else(|| Fault::inconsistent(format!("no variable at {at}")))
}

/// Says that a value is of a kind that the checker should have refused.
pub(crate) fn unexpected(place: &str, value: &Value) -> Fault {
    Fault::inconsistent(format!("{place} got a {}", value.kind()))
}

fn constant_of(literal: &Literal) -> Result<Value, Fault> {
    let damaged = || Fault::inconsistent(format!("the constant {literal:?} cannot be read"));
    Ok(match literal {
        Literal::Nothing => Value::Nothing,
        Literal::None => Value::None,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Float(text) => text.parse().ok().and_then(Value::float).ok_or_else(damaged)?,
        Literal::Decimal(text) => Value::decimal(crate::json::parse_decimal(text).ok_or_else(damaged)?),
        Literal::Text(text) => Value::text(text),
        Literal::Duration(ms) => Value::Duration(*ms),
        Literal::Json(text) => Value::json(serde_json::from_str(text).map_err(|_| damaged())?)?,
    })
}

fn text(env: &mut Env<'_>, scope: &mut Scope, parts: &[Expr]) -> Result<Value, Fault> {
    let mut text = String::new();
    for part in parts {
        let value = eval(env, scope, part)?;
        env.spend_on(&value)?;
        show(&value, &mut text);
        if text.len() as u64 > crate::limits::VALUE_BYTES_MAX {
            return Err(Fault::Size);
        }
    }
    Ok(Value::Text(text.into()).checked()?)
}

fn list(env: &mut Env<'_>, scope: &mut Scope, items: &[Expr]) -> Result<Value, Fault> {
    let mut list = List::default();
    for item in items {
        list.push(eval(env, scope, item)?);
    }
    Ok(Value::List(list).checked()?)
}

fn map(env: &mut Env<'_>, scope: &mut Scope, entries: &[(Expr, Expr)]) -> Result<Value, Fault> {
    let mut map = Map::default();
    for (key, value) in entries {
        let Value::Text(key) = eval(env, scope, key)? else {
            return Err(Fault::inconsistent("a key of a map is no text"));
        };
        map.insert(key, eval(env, scope, value)?);
    }
    Ok(Value::Map(map).checked()?)
}

fn record(
    env: &mut Env<'_>,
    scope: &mut Scope,
    ix: TypeIx,
    tag: Option<&str>,
    fields: &[(String, Expr)],
) -> Result<Value, Fault> {
    let shapes = env.shapes.of(ix.at());
    let at = match (&env.machine.type_def(ix).kind, tag) {
        (TypeKind::Union(variants), Some(tag)) => variants.iter().position(|variant| variant.name == tag),
        (TypeKind::Record(_) | TypeKind::Error(_) | TypeKind::Union(_), _) => Some(0),
    };
    let shape = at.and_then(|at| shapes.get(at)).filter(|shape| {
        shape.names().iter().map(|name| &**name).eq(fields.iter().map(|(name, _)| name.as_str()))
    });
    let shape =
        shape.ok_or_else(|| Fault::inconsistent("the fields of a record are not those of its type"))?;
    let values: Result<_, _> = fields.iter().map(|(_, value)| eval(env, scope, value)).collect();
    Ok(Value::Record(Arc::new(Record::new(Arc::clone(shape), values?))).checked()?)
}

fn built_in_record(
    env: &mut Env<'_>,
    scope: &mut Scope,
    tag: Option<&str>,
    fields: &[(String, Expr)],
) -> Result<Value, Fault> {
    let shape = crate::value::Shape::new(tag, fields.iter().map(|(name, _)| name.as_str()));
    let values: Result<_, _> = fields.iter().map(|(_, value)| eval(env, scope, value)).collect();
    Ok(Value::Record(Arc::new(Record::new(shape, values?))).checked()?)
}

fn field(of: Value, name: &str) -> Result<Value, Fault> {
    match of.field(name) {
        Some(value) => Ok(value.clone()),
        None => Err(Fault::inconsistent(format!("a {} has no field {name}", of.kind()))),
    }
}

fn index(env: &mut Env<'_>, scope: &mut Scope, of: &Expr, at: &Expr) -> Result<Value, Fault> {
    let (of, at) = (eval(env, scope, of)?, eval(env, scope, at)?);
    let found = match (&of, &at) {
        (Value::List(list), Value::Int(at)) => usize::try_from(*at).ok().and_then(|at| list.get(at)).cloned(),
        (Value::Map(map), Value::Text(key)) => map.get(key).cloned(),
        (other, _) => return Err(unexpected("an index", other)),
    };
    Ok(found.unwrap_or(Value::None))
}

fn call(env: &mut Env<'_>, scope: &mut Scope, at: usize, args: &[Expr]) -> Result<Value, Fault> {
    let function = &env.machine.functions[at];
    let mut frame: Vec<_> = args.iter().map(|arg| eval(env, scope, arg)).collect::<Result<_, _>>()?;
    frame.resize(frame.len().max(function.frame as usize), Value::Nothing);
    // A function sees its parameters only.
    let mut inner = Scope { frame, ..Scope::default() };
    eval(env, &mut inner, &function.body)
}

fn from_json(
    env: &mut Env<'_>,
    scope: &mut Scope,
    ty: &outlast_dsl::machine::Type,
    of: &Expr,
) -> Result<Value, Fault> {
    let value = eval(env, scope, of)?;
    env.spend_on(&value)?;
    let reader = Reader { machine: env.machine, shapes: env.shapes, unknown: Unknown::Drop };
    match &value {
        Value::Json(json) => Ok(reader.read(ty, json.json()).unwrap_or(Value::None)),
        other => Err(unexpected("`from`", other)),
    }
}

#[cfg(test)]
mod tests;
