//! One event, worked off to the end.
//!
//! A turn owns a copy of the state; it is dropped on a fault. What is to be done next stands on a stack, so that a long chain of
//! transitions needs no deep recursion and everything happens depth first in text order.
//! Invariant: the stack is empty when the event is applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use outlast_dsl::machine::{FlowIx, StateIx};

use super::Core;
use super::parts::{Completion, FlowNode, GroupNode, Node, NodeId, NodeKind, Parent};
use crate::eval::{Env, Scope};
use crate::event::Event;
use crate::fault::Fault;
use crate::ids::{Millis, OpId, Seq};
use crate::limits::TRANSITIONS_MAX;
use crate::operation::{Blocked, Effects, Taken, Way};
use crate::program::Program;
use crate::value::Value;

/// Why an event is not applied.
pub(super) enum Stop {
    Fault(Fault),
    /// What was expected and found.
    Diverged(String, String),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

/// What is to be done next.
pub(super) enum Task {
    /// Enters a state.
    Enter(NodeId, StateIx, Arc<[Value]>),
    /// Tells a flow instance or group of the end of a piece of its work.
    Complete(Parent, Completion),
    /// Starts the next members of a group, or ends it.
    Fill(NodeId),
    /// Takes the oldest unread message that a flow instance listens to.
    Mail(NodeId),
    /// Takes the arrow of a broken limit.
    Break(NodeId, u32),
    /// Undoes the next operation of a saga that is being left, or ends it.
    Undo(NodeId),
}

/// A place in the machine, for faults.
#[derive(Clone, Copy)]
pub(super) enum Spot {
    Start,
    Effect,
    Data(usize),
    /// An arrow of the active state.
    State(Way),
    /// An arrow or a limit of the flow itself.
    Flow(Way),
    Cancel,
}

impl Spot {
    fn text(self) -> String {
        match self {
            Spot::Start => "start".to_owned(),
            Spot::Effect => "effect".to_owned(),
            Spot::Data(at) => format!("data {at}"),
            Spot::State(way) | Spot::Flow(way) => way.to_string(),
            Spot::Cancel => "on cancel".to_owned(),
        }
    }
}

/// The application of one event.
pub(super) struct Turn<'m> {
    pub(super) program: &'m Program,
    pub(super) s: Core,
    pub(super) env: Env<'m>,
    pub(super) effects: Effects,
    /// Operations, nodes and emits made so far.
    pub(super) ops_made: u32,
    pub(super) nodes_made: u32,
    pub(super) emits_made: u32,
    pub(super) tasks: Vec<Task>,
    /// Operations with an undo that were cut off, and sagas: what becomes of them is seen when everything else is at rest.
    pub(super) cut: Vec<OpId>,
    pub(super) cut_sagas: Vec<(NodeId, Option<NodeId>)>,
    transitions: u32,
    /// Flow instances whose clean-up is over where it would go on.
    pub(super) gives_up: BTreeSet<NodeId>,
    /// The time of the event before.
    pub(super) before: Millis,
    /// The number of the fact that is worked off: that of the event, or of a held one.
    pub(super) fact: Seq,
    /// The flow instance and place that are worked on.
    pub(super) spot: (Option<NodeId>, Spot),
}

impl<'m> Turn<'m> {
    pub(super) fn new(program: &'m Program, core: Core, event: &Event) -> Turn<'m> {
        let env = Env::new(program, Arc::clone(&core.config), core.seed, event.n, event.time);
        let mut turn = Turn {
            program,
            env,
            s: core,
            effects: Effects::default(),
            ops_made: 0,
            nodes_made: 0,
            emits_made: 0,
            tasks: Vec::new(),
            cut: Vec::new(),
            cut_sagas: Vec::new(),
            transitions: 0,
            gives_up: BTreeSet::new(),
            before: Millis(0),
            fact: event.n,
            spot: (None, Spot::Start),
        };
        turn.before = turn.s.time;
        turn.s.last = event.n;
        turn.s.time = event.time;
        turn
    }

    /// Works until nothing is left to do in this event.
    pub(super) fn settle(&mut self) -> Result<(), Fault> {
        loop {
            while let Some(task) = self.tasks.pop() {
                match task {
                    Task::Enter(node, state, args) => self.enter(node, state, args)?,
                    Task::Complete(parent, completion) => self.complete(parent, completion)?,
                    Task::Fill(group) => self.fill(group)?,
                    Task::Mail(node) => self.take_mail(node)?,
                    Task::Break(node, limit) => self.take_limit(node, limit as usize)?,
                    Task::Undo(node) => self.undo_next(node)?,
                }
            }
            self.admit_waiting()?;
            if self.tasks.is_empty() {
                self.settle_cuts()?;
            }
            if self.tasks.is_empty() {
                return self.end_if_settled();
            }
        }
    }

    /// Counts a transition.
    pub(super) fn count_transition(&mut self) -> Result<(), Fault> {
        self.transitions += 1;
        if self.transitions > TRANSITIONS_MAX { Err(Fault::Transitions) } else { Ok(()) }
    }

    /// Notes an arrow that is taken.
    pub(super) fn note_taken(&mut self, id: NodeId, spot: Spot) -> Result<(), Fault> {
        let FlowNode { flow, state, .. } = *self.flow(id)?;
        let (state, way) = match spot {
            Spot::State(way) => (Some(state), way),
            Spot::Flow(way) => (None, way),
            Spot::Start | Spot::Effect | Spot::Data(_) | Spot::Cancel => return Ok(()),
        };
        self.effects.taken.push(Taken { flow, state, way });
        Ok(())
    }

    /// Returns the new state and what happened.
    pub(super) fn finish(mut self) -> (Core, Effects) {
        // What was opened and closed by one event was never seen by anyone.
        let n = self.s.last;
        let ops = &self.s.ops;
        self.effects.opened.retain(|op| ops.contains_key(op));
        self.effects.closed.retain(|op| op.0 != n);
        (self.s, self.effects)
    }

    /// Describes a fault.
    pub(super) fn blocked(&self, fault: &Fault) -> Blocked {
        let (node, spot) = self.spot;
        let flow = node.and_then(|id| match &self.s.nodes.get(&id)?.kind {
            NodeKind::Flow(flow) => Some(flow),
            NodeKind::Group(_) => None,
        });
        let of = |flow: FlowIx| self.program.flow(flow);
        let name = of(flow.map_or(self.program.machine.root, |flow| flow.flow)).name.clone();
        let in_state = matches!(spot, Spot::Effect | Spot::State(_));
        let state = flow.filter(|_| in_state).map(|flow| of(flow.flow).states[flow.state.at()].name.clone());
        let place = match spot {
            Spot::Data(at) => {
                let data = flow.and_then(|flow| of(flow.flow).data.get(at));
                data.map_or_else(|| spot.text(), |data| format!("data {}", data.name))
            }
            Spot::Start | Spot::Effect | Spot::State(_) | Spot::Flow(_) | Spot::Cancel => spot.text(),
        };
        Blocked {
            event: self.s.last.0,
            path: node.and_then(|id| self.path_of(id)).map(|path| path.to_string()).unwrap_or_default(),
            place: (name, state, place),
            cause: fault.to_string(),
        }
    }

    /// Returns a node that must be there.
    pub(super) fn node(&self, id: NodeId) -> Result<&Node, Fault> {
        let node = self.s.nodes.get(&id).map(|node| &**node);
        node.ok_or_else(|| Fault::inconsistent("a part of the state is gone"))
    }

    /// Returns a flow instance that must be there.
    pub(super) fn flow(&self, id: NodeId) -> Result<&FlowNode, Fault> {
        match &self.node(id)?.kind {
            NodeKind::Flow(flow) => Ok(flow),
            NodeKind::Group(_) => Err(Fault::inconsistent("a group stands where a flow is expected")),
        }
    }

    /// Returns a group that must be there.
    pub(super) fn group(&self, id: NodeId) -> Result<&GroupNode, Fault> {
        match &self.node(id)?.kind {
            NodeKind::Group(group) => Ok(group),
            NodeKind::Flow(_) => Err(Fault::inconsistent("a flow stands where a group is expected")),
        }
    }

    /// Returns a node to be changed.
    pub(super) fn node_mut(&mut self, id: NodeId) -> Result<&mut Node, Fault> {
        let node = self.s.nodes.get_mut(&id);
        node.map(Arc::make_mut).ok_or_else(|| Fault::inconsistent("a part of the state is gone"))
    }

    /// Returns a flow instance to be changed.
    pub(super) fn flow_mut(&mut self, id: NodeId) -> Result<&mut FlowNode, Fault> {
        match &mut self.node_mut(id)?.kind {
            NodeKind::Flow(flow) => Ok(flow),
            NodeKind::Group(_) => Err(Fault::inconsistent("a group stands where a flow is expected")),
        }
    }

    /// Returns a group to be changed.
    pub(super) fn group_mut(&mut self, id: NodeId) -> Result<&mut GroupNode, Fault> {
        match &mut self.node_mut(id)?.kind {
            NodeKind::Group(group) => Ok(group),
            NodeKind::Flow(_) => Err(Fault::inconsistent("a flow stands where a group is expected")),
        }
    }

    /// Adds a node.
    pub(super) fn add_node(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.s.last, self.nodes_made);
        self.nodes_made += 1;
        self.s.nodes.insert_mut(id, Arc::new(node));
        id
    }

    /// Returns the variables of a flow instance's active state, with an empty frame.
    pub(super) fn scope(&self, id: NodeId) -> Result<Scope, Fault> {
        let flow = self.flow(id)?;
        let frame = self.program.state(flow.flow, flow.state).frame;
        Ok(Scope { args: Arc::clone(&flow.args), ..self.outer_scope(id, frame)? })
    }

    /// Returns the variables of a flow instance outside of its states.
    pub(super) fn flow_scope(&self, id: NodeId) -> Result<Scope, Fault> {
        let frame = self.program.flow(self.flow(id)?.flow).frame;
        self.outer_scope(id, frame)
    }

    fn outer_scope(&self, id: NodeId, frame: u32) -> Result<Scope, Fault> {
        let flow = self.flow(id)?;
        Ok(Scope {
            params: Arc::clone(&flow.params),
            args: Arc::default(),
            data: flow.data.clone(),
            frame: vec![Value::Nothing; frame as usize],
        })
    }

    /// Returns the path of a node's active state: a group has that of its flow.
    pub(super) fn path_of(&self, id: NodeId) -> Option<Arc<str>> {
        let flow = match &self.s.nodes.get(&id)?.kind {
            NodeKind::Flow(flow) => flow,
            NodeKind::Group(group) => return self.path_of(group.flow),
        };
        let state = &self.program.state(flow.flow, flow.state).name;
        Some(format!("{}{state}", flow.prefix).into())
    }
}
