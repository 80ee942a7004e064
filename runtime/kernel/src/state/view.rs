//! Open operations as the outside sees them.
//!
//! Invariant: made when someone looks and not before, because a view copies the whole input of its operation.

use std::sync::Arc;

use super::State;
use super::parts::{ActivityWork, AskWork, ChildWork, Op, Work};
use crate::Json;
use crate::ids::OpId;
use crate::json::{schema, value_to_json};
use crate::operation::{ActivityOp, ChildOp, Operation, OperationKind, Question, SpawnOp};

impl State {
    /// Returns the view of an operation.
    pub(super) fn view<'a>(&self, op: &'a Arc<Op>) -> &'a Operation {
        op.view.get_or_init(|| {
            let kind = match &op.work {
                Work::Activity(work) => OperationKind::Activity(Box::new(self.activity_view(op, work))),
                Work::Timer(_) => OperationKind::Timer,
                Work::Await(names) => OperationKind::Await(names.to_vec()),
                Work::Ask(ask) => OperationKind::Question(Box::new(self.question_view(ask))),
                Work::AwaitEnded(runs, types) => {
                    OperationKind::AwaitEnded { runs: runs.to_vec(), types: types.to_vec() }
                }
                Work::Spawn(child) => OperationKind::Spawn(Box::new(self.spawn_view(child))),
                Work::Child(child) => OperationKind::Child(Box::new(self.child_view(op.id, child))),
                Work::CancelChild(of, child) => {
                    OperationKind::CancelChild(Box::new(self.child_view(*of, child)))
                }
                Work::TellParent(notice) => OperationKind::TellParent(notice.clone()),
            };
            Operation { id: op.id, path: op.path.to_string(), opened_at: op.opened_at, due: op.due, kind }
        })
    }

    /// Walks over the `once` operations of which nobody knows whether they happened.
    pub fn in_doubt(&self) -> impl Iterator<Item = OpId> {
        let in_doubt = |op: &&Arc<Op>| op.work.activity().is_some_and(ActivityWork::in_doubt);
        self.core.ops.values().filter(in_doubt).map(|op| op.id)
    }

    fn spawn_view(&self, child: &ChildWork) -> SpawnOp {
        let def = self.program.flow(child.flow);
        let named = def.params.iter().zip(child.args.iter());
        let input = named.map(|(param, arg)| (param.name.clone(), value_to_json(arg))).collect();
        SpawnOp {
            run: child.run.clone(),
            flow: def.name.clone(),
            input: Json::Object(input),
            on_close: child.on_close,
        }
    }

    fn child_view(&self, spawned_by: OpId, child: &ChildWork) -> ChildOp {
        let flow = self.program.flow(child.flow).name.clone();
        ChildOp { run: child.run.clone(), spawned_by, flow, on_close: child.on_close }
    }

    fn activity_view(&self, op: &Op, work: &ActivityWork) -> ActivityOp {
        let def = &self.machine().activities[work.activity.at()];
        let named = def.params.iter().zip(work.args.iter());
        let input = named.map(|(param, arg)| (param.name.clone(), value_to_json(arg))).collect();
        ActivityOp {
            activity: def.name.clone(),
            queue: def.queue.clone(),
            class: work.class,
            input: Json::Object(input),
            key: format!("{}/{}", self.core.run, work.key),
            attempt: work.attempt,
            phase: work.phase.clone(),
            attempt_ms: def.in_all_ms.map(|_| def.within_ms),
            silent_ms: def.silent_ms,
            handle: work.handle.clone(),
            last: work.last.clone(),
            undoes: op.owner.undoes(),
            settling: work.settling,
        }
    }

    fn question_view(&self, ask: &AskWork) -> Question {
        Question {
            text: ask.text.to_string(),
            show: value_to_json(&ask.show),
            shown: ask.shown.clone(),
            to: ask.to.clone(),
            wanted: ask.answer.as_ref().map(|ty| schema(self.machine(), ty)),
            editable: ask.editable,
            agreed: ask.agreed.clone(),
        }
    }
}
