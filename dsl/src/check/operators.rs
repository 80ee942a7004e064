//! Which types the operators take and give.
//!
//! Leaves fitting literals to their place to `lower::operators`. Invariant: what is accepted here has a meaning in the kernel.

use super::ty::Ty;
use crate::machine::BinaryOp;

/// Returns the type of `left op right`, or `None` if the operator does not take them. `exact` says that the right side is a
/// literal other than zero, so that a division always has a value.
pub(crate) fn binary(op: BinaryOp, left: &Ty, right: &Ty, exact: bool) -> Option<Ty> {
    if left.is_unknown() || right.is_unknown() {
        return Some(of_unknown(op, left, right));
    }
    match op {
        BinaryOp::And | BinaryOp::Or => (*left == Ty::Bool && *right == Ty::Bool).then_some(Ty::Bool),
        BinaryOp::Eq | BinaryOp::Ne => left.join(right).map(|_| Ty::Bool),
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
            (left == right && left.is_ordered()).then_some(Ty::Bool)
        }
        BinaryOp::In => is_in(left, right).then_some(Ty::Bool),
        BinaryOp::Add => add(left, right),
        BinaryOp::Sub => match (left, right) {
            (Ty::Time, Ty::Duration) => Some(Ty::Time),
            (Ty::Time, Ty::Time) | (Ty::Duration, Ty::Duration) => Some(Ty::Duration),
            _ => number(left, right),
        },
        BinaryOp::Mul => match (left, right) {
            (Ty::Duration, Ty::Int) => Some(Ty::Duration),
            _ => number(left, right),
        },
        BinaryOp::Div | BinaryOp::Rem => {
            number(left, right).map(|ty| if exact { ty } else { Ty::option(ty) })
        }
    }
}

fn of_unknown(op: BinaryOp, left: &Ty, right: &Ty) -> Ty {
    match op {
        BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::In => Ty::Bool,
        // A list keeps its items' type when something unknown is put to it.
        BinaryOp::Add => match (left, right) {
            (Ty::List(_), _) => left.clone(),
            (_, Ty::List(_)) => right.clone(),
            _ => Ty::Unknown,
        },
        BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => Ty::Unknown,
    }
}

fn number(left: &Ty, right: &Ty) -> Option<Ty> {
    (left == right && left.is_number()).then(|| left.clone())
}

fn add(left: &Ty, right: &Ty) -> Option<Ty> {
    match (left, right) {
        (Ty::Text, Ty::Text) => Some(Ty::Text),
        (Ty::List(_), Ty::List(_)) => left.join(right),
        (Ty::Time, Ty::Duration) | (Ty::Duration, Ty::Time) => Some(Ty::Time),
        (Ty::Duration, Ty::Duration) => Some(Ty::Duration),
        _ => number(left, right),
    }
}

fn is_in(left: &Ty, right: &Ty) -> bool {
    match right {
        Ty::List(of) => left.join(of).is_some(),
        Ty::Map(_) | Ty::Text => *left == Ty::Text,
        _ => false,
    }
}

/// Says what the operator takes, for a message.
pub(crate) fn takes(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::And | BinaryOp::Or => "two conditions (`bool`)",
        BinaryOp::Eq | BinaryOp::Ne => "two values of one type",
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
            "two numbers, texts, times or durations of one type"
        }
        BinaryOp::In => "a value and a list of such values, or a text and a map or text",
        BinaryOp::Add => "two numbers of one type, two texts, two lists, or times and durations",
        BinaryOp::Sub => "two numbers of one type, or times and durations",
        BinaryOp::Mul => "two numbers of one type, or a duration and an `int`",
        BinaryOp::Div | BinaryOp::Rem => "two numbers of one type",
    }
}
