//! Stubs: which reply a call gets.
//!
//! The first stub of the activity, in the order of the text, whose guard holds and that has a reply left. A reply belongs to an
//! attempt from its hand-out on; if the attempt is lost, the reply is there for the next one. Invariant: a reply of a list is
//! reported at most once.

use std::collections::BTreeSet;

use outlast_dsl::test_case::{Reply, Stub, StubReply};
use outlast_kernel::event::Failure;
use outlast_kernel::ids::Millis;
use outlast_kernel::text::parse_duration;
use outlast_kernel::{Functions, Json};

use crate::failure::{Problem, Why};

/// A reply of a stub, by positions: the stub and the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken(usize, usize);

/// What a stub makes of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    /// A result.
    Value(Json),
    /// A failure with an answer.
    Failure(Failure),
    /// No report in time.
    Timeout,
    /// It was begun and will never answer.
    Unknown,
}

/// The reply for a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drawn {
    /// Which it is.
    pub(crate) taken: Taken,
    /// How many milliseconds it takes, if the test says so.
    pub(crate) after_ms: Option<u64>,
    /// What it costs, if the test says so.
    pub(crate) cost: Option<String>,
    /// What it gives.
    pub(crate) given: Given,
}

/// The stubs of a test so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stubs<'t> {
    all: Vec<(&'t Stub, BTreeSet<usize>)>,
}

impl<'t> Stubs<'t> {
    /// Adds a stub.
    pub(crate) fn add(&mut self, stub: &'t Stub) {
        self.all.push((stub, (0..stub.replies.len()).collect()));
    }

    /// Takes the reply for a call.
    pub(crate) fn take(
        &mut self,
        values: &Functions,
        (activity, input): (&str, &Json),
        now: Millis,
    ) -> Result<Drawn, Problem> {
        let of_call = |stub: &Stub, function| {
            let value = if stub.takes_input {
                values.call_with(function, activity, input, now)
            } else {
                values.call(function, now)
            };
            value.map_err(|fault| {
                Problem::new(format!("a value of the stub of `{activity}` has none: {fault}"))
            })
        };
        let mut used_up = false;
        for (at, (stub, left)) in self.all.iter_mut().enumerate() {
            if stub.activity != activity {
                continue;
            }
            if let Some(guard) = stub.guard
                && of_call(stub, guard)? != Json::Bool(true)
            {
                continue;
            }
            let Some(next) = left.first().copied() else {
                used_up = true;
                continue;
            };
            if !stub.repeats {
                left.remove(&next);
            }
            let StubReply { after_ms, cost, gives } = &stub.replies[next];
            let given = match gives {
                Reply::Value(function) => Given::Value(of_call(stub, *function)?),
                Reply::Fail(function) => Given::Failure(declared(of_call(stub, *function)?)),
                Reply::FailText(function) => Given::Failure(undeclared(&of_call(stub, *function)?)),
                Reply::Timeout => Given::Timeout,
                Reply::Unknown => Given::Unknown,
            };
            let (taken, cost) = (Taken(at, next), cost.clone());
            return Ok(Drawn { taken, after_ms: *after_ms, cost, given });
        }
        Err(no_reply(activity, input, used_up))
    }

    /// Gives a reply back whose attempt was lost.
    pub(crate) fn give_back(&mut self, taken: Taken) {
        if let Some((_, left)) = self.all.get_mut(taken.0) {
            left.insert(taken.1);
        }
    }
}

fn no_reply(activity: &str, input: &Json, used_up: bool) -> Problem {
    let input = crate::diff::shown(input);
    let message = if used_up {
        format!("the replies of `{activity}` are used up, and it is called again")
    } else {
        format!("`{activity}` is called, and no stub answers")
    };
    let hint = if used_up {
        format!(
            "add a reply to the list, or write `stub {activity} gives REPLY`, without brackets, for every further call"
        )
    } else {
        format!("write `stub {activity} gives REPLY` before this step")
    };
    Problem { why: Why::NoReply, ..Problem::new(message).found(format!("input {input}")).hint(hint) }
}

/// A declared error as a worker reports it.
fn declared(error: Json) -> Failure {
    let Json::Object(mut fields) = error else { return undeclared(&error) };
    let kind = match fields.remove("type") {
        Some(Json::String(kind)) => kind,
        Some(_) | None => "failed".to_owned(),
    };
    let text =
        ["text", "detail"].iter().find_map(|name| fields.get(*name)?.as_str()).unwrap_or(&kind).to_owned();
    let retry_after_ms = fields.get("retry_after").and_then(Json::as_str).and_then(parse_duration);
    Failure { kind, text, retryable: true, retry_after_ms, fields }
}

fn undeclared(text: &Json) -> Failure {
    let text = text.as_str().unwrap_or_default().to_owned();
    Failure { kind: "failed".to_owned(), text, retryable: true, ..Failure::default() }
}
