//! Spawned runs: started for real in the same world, cancelled and heard of as the engine does it.
//!
//! Invariant: what one run wants of another happens there first and is acknowledged then, so that a crash in between repeats it and
//! changes nothing.

use outlast_kernel::event::{Receipt, SpawnResult};
use outlast_kernel::ids::OpId;
use outlast_kernel::input::{Input, Refusal};
use outlast_kernel::operation::{OperationKind, Outcome, SpawnOp};

use super::drive::RANDOM;
use super::{Cause, Play};
use crate::failure::Problem;
use crate::world::OpKey;

/// What a run wants of another one.
enum Want {
    Start(SpawnOp),
    Cancel(String),
    Tell { parent: String, op: OpId, outcome: Outcome },
}

impl Play<'_> {
    /// Does the first thing that a run wants of another; says whether there was one.
    pub(super) fn relate(&mut self) -> Result<bool, Problem> {
        let Some(((run, op), want)) = self.first_want() else { return Ok(false) };
        let input = match want {
            Want::Start(spawn) => Input::Spawned { op, result: self.spawn((run, op), spawn)? },
            Want::Cancel(child) => {
                let by = self.world.runs[run].state.run().to_string();
                Input::Delivered { op, receipt: self.deliver(&child, &Input::Cancel { by })? }
            }
            Want::Tell { parent, op: spawned_by, outcome } => {
                let ended = Input::ChildEnded { op: spawned_by, outcome };
                Input::Delivered { op, receipt: self.deliver(&parent, &ended)? }
            }
        };
        self.cause(run, &input, &Cause::Drive)?;
        Ok(true)
    }

    fn first_want(&self) -> Option<(OpKey, Want)> {
        self.world.runs.iter().enumerate().find_map(|(at, run)| {
            run.state.operations().find_map(|op| {
                let want = match &op.kind {
                    OperationKind::Spawn(spawn) => Want::Start((**spawn).clone()),
                    OperationKind::CancelChild(child) => Want::Cancel(child.run.to_string()),
                    OperationKind::TellParent(notice) => Want::Tell {
                        parent: notice.parent.to_string(),
                        op: notice.op,
                        outcome: notice.outcome.clone(),
                    },
                    OperationKind::Activity(_)
                    | OperationKind::Timer
                    | OperationKind::Await(_)
                    | OperationKind::AwaitEnded { .. }
                    | OperationKind::Question(_)
                    | OperationKind::Child(_) => return None,
                };
                Some(((at, op.id), want))
            })
        })
    }

    fn spawn(&mut self, (run, op): OpKey, spawn: SpawnOp) -> Result<SpawnResult, Problem> {
        let parent = (self.world.runs[run].state.run().clone(), op);
        let known = self.world.runs.iter().find(|other| *other.state.run() == spawn.run);
        match known.map(|known| known.parent.as_ref() == Some(&parent)) {
            Some(true) => {}
            Some(false) => return Ok(SpawnResult::Exists),
            None => self.world.begin(spawn.run.clone(), &spawn.flow, spawn.input, Some(parent))?,
        }
        Ok(SpawnResult::Run(spawn.run))
    }

    /// Gives an input to another run.
    fn deliver(&mut self, to: &str, input: &Input) -> Result<Receipt, Problem> {
        let Some(at) = self.world.runs.iter().position(|run| run.state.run().as_str() == to) else {
            return Ok(Receipt::Refused(format!("there is no run {to}")));
        };
        match self.world.runs[at].state.decide(input, self.world.now, RANDOM) {
            Ok(kinds) => {
                kinds.into_iter().try_for_each(|kind| self.append(at, kind, Cause::Drive))?;
                Ok(Receipt::Ok)
            }
            Err(Refusal::AlreadyEnding | Refusal::Repeated) => Ok(Receipt::Ok),
            Err(refusal) => Ok(Receipt::Refused(refusal.to_string())),
        }
    }
}
