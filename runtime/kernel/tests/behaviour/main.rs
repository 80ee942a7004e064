//! Behaviour of runs, concept by concept, through decide and apply.

#[path = "../common/mod.rs"]
mod common;

mod attempts;
mod groups;
mod messages;
mod people;
mod runs;

use common::Run;
use outlast_kernel::event::{Failure, Tokens};
use outlast_kernel::ids::{Attempt, OpId};
use outlast_kernel::input::{Input, Report};
use serde_json::json;

fn begin(run: &mut Run, op: OpId) {
    run.must(Input::Begin { op, attempt: Attempt(1), worker: "w".to_owned() });
}

fn finish(run: &mut Run, op: OpId, text: &str) {
    begin(run, op);
    run.done_op(op, json!(text));
}

fn fail_op(run: &mut Run, op: OpId) {
    begin(run, op);
    let error = Failure { kind: "failed".to_owned(), text: "no".to_owned(), ..Failure::default() };
    run.must(Input::Reported {
        op,
        attempt: Attempt(1),
        report: Report::Failed { error, cost: None, tokens: Tokens::default() },
    });
}

fn open(run: &Run) -> Vec<OpId> {
    run.activities().iter().map(|(id, _)| *id).collect()
}
