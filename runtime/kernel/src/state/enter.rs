//! Starting flows and entering states.
//!
//! Leaves the opening of work to `body`. Invariant: timers are armed before the effect is opened; unread messages are looked at
//! when the effect has come to rest.

use std::sync::Arc;

use outlast_dsl::machine::{Effect, FlowIx, Measure, StateIx, TimerArrow, TimerKind};

use super::parts::{Active, FlowNode, Node, NodeId, NodeKind, Owner, Parent, Work};
use super::turn::{Spot, Task, Turn};
use crate::eval::{eval, eval_all};
use crate::fault::Fault;
use crate::ids::Millis;
use crate::limits::{EVERY_MS_MIN, NESTING_MAX};
use crate::operation::Way;
use crate::value::Value;

impl Turn<'_> {
    /// Makes an instance of a flow and lets it enter its first state next.
    pub(super) fn start_flow(
        &mut self,
        parent: Option<Parent>,
        flow: FlowIx,
        params: Arc<[Value]>,
    ) -> Result<NodeId, Fault> {
        let def = self.program.flow(flow);
        let (level, prefix) = match parent {
            None => (0, String::new()),
            Some(parent) => {
                let level = self.node(parent.node)?.level + 1;
                let path = self.path_of(parent.node).unwrap_or_else(|| Arc::from(""));
                (level, format!("{path}/{}.", def.name))
            }
        };
        if level > NESTING_MAX {
            return Err(Fault::Nesting);
        }
        let node = FlowNode {
            flow,
            prefix: prefix.into(),
            params,
            data: Vec::new(),
            visits: vec![0; def.limits.len()],
            started_at: self.s.time,
            acted: false,
            state: def.start.state,
            args: Arc::default(),
            active: Active::Idle,
            timers: Vec::new(),
            limits: Vec::new(),
            undoing: None,
        };
        let id = self.add_node(Node { parent, level, deadline: None, kind: NodeKind::Flow(node) });
        for (at, data) in def.data.iter().enumerate() {
            self.spot = (Some(id), Spot::Data(at));
            let mut scope = self.flow_scope(id)?;
            let value = eval(&mut self.env, &mut scope, &data.init)?;
            self.flow_mut(id)?.data.push(value);
        }
        self.arm_limits(id)?;
        self.spot = (Some(id), Spot::Start);
        let mut scope = self.flow_scope(id)?;
        let args = eval_all(&mut self.env, &mut scope, &def.start.args)?;
        self.tasks.push(Task::Enter(id, def.start.state, args));
        Ok(id)
    }

    /// Arms the limits on age.
    fn arm_limits(&mut self, id: NodeId) -> Result<(), Fault> {
        let def = self.program.flow(self.flow(id)?.flow);
        for (at, limit) in def.limits.iter().enumerate() {
            if limit.measure == Measure::Age {
                self.arm_limit(id, at)?;
            }
        }
        Ok(())
    }

    /// Arms one limit on age.
    pub(super) fn arm_limit(&mut self, id: NodeId, at: usize) -> Result<(), Fault> {
        let index = index(at)?;
        self.spot = (Some(id), Spot::Flow(Way::Limit(index)));
        let flow = self.flow(id)?;
        let (limit, since) = (&self.program.flow(flow.flow).limits[at], flow.started_at);
        let mut scope = self.flow_scope(id)?;
        let Value::Duration(ms) = eval(&mut self.env, &mut scope, &limit.max)? else {
            return Err(Fault::inconsistent("a limit on age is no duration"));
        };
        // A limit says how much is allowed: it is broken one millisecond later.
        let op = self.open(id, Owner::Limit(id, index), Some(since.plus(ms + 1)), Work::Timer(None))?;
        self.flow_mut(id)?.limits.push((index, op));
        Ok(())
    }

    /// Enters a state: counts the visit, arms its timers, opens its effect.
    pub(super) fn enter(&mut self, id: NodeId, state: StateIx, args: Arc<[Value]>) -> Result<(), Fault> {
        if !self.s.nodes.contains_key(&id) {
            return Ok(());
        }
        self.count_transition()?;
        let program = self.program;
        let def = program.flow(self.flow(id)?.flow);
        let flow = self.flow_mut(id)?;
        for (count, limit) in flow.visits.iter_mut().zip(&def.limits) {
            if let Measure::Visits(counted, since) = limit.measure {
                *count = visits_after(*count, counted, since, state);
            }
        }
        flow.state = state;
        flow.args = args;
        flow.active = Active::Idle;
        let path = self.path_of(id).map(|path| path.to_string()).unwrap_or_default();
        self.effects.entered.push(path);
        let state = &def.states[state.at()];
        for (at, timer) in state.timers.iter().enumerate() {
            self.arm(id, at, timer)?;
        }
        if !matches!(state.effect, Effect::Choose(_) | Effect::Match(..)) {
            self.tasks.push(Task::Mail(id));
        }
        self.spot = (Some(id), Spot::Effect);
        self.open_effect(id, &state.effect)
    }

    pub(super) fn arm(&mut self, id: NodeId, at: usize, timer: &TimerArrow) -> Result<(), Fault> {
        let index = index(at)?;
        self.spot = (Some(id), Spot::State(Way::Timer(index)));
        let mut scope = self.scope(id)?;
        let value = eval(&mut self.env, &mut scope, &timer.due)?;
        let (due, period) = match (timer.kind, value) {
            (TimerKind::After, Value::Duration(ms)) => (self.s.time.plus(ms), None),
            (TimerKind::At, Value::Time(time)) => (time, None),
            (TimerKind::Every, Value::Duration(ms)) => {
                let ms = ms.max(EVERY_MS_MIN);
                (self.s.time.plus(ms), Some(ms))
            }
            (TimerKind::After | TimerKind::At | TimerKind::Every, other) => {
                return Err(crate::eval::unexpected("a timer", &other));
            }
        };
        self.open_timer(id, index, due, period)
    }

    fn open_timer(&mut self, id: NodeId, at: u32, due: Millis, period: Option<u64>) -> Result<(), Fault> {
        let op = self.open(id, Owner::Timer(id, at), Some(due), Work::Timer(period))?;
        self.flow_mut(id)?.timers.push((at, op));
        Ok(())
    }

    /// Takes a timer arrow. A periodic one is armed anew from its nominal time; periods that are over already are skipped.
    pub(super) fn timer_arrow(
        &mut self,
        id: NodeId,
        at: u32,
        due: Millis,
        period: Option<u64>,
    ) -> Result<(), Fault> {
        let flow = self.flow_mut(id)?;
        flow.timers.retain(|(known, _)| *known != at);
        let (flow, state) = (flow.flow, flow.state);
        let timer = &self.program.state(flow, state).timers[at as usize];
        let mut scope = self.scope(id)?;
        for (slot, value) in self.results(id)? {
            scope.bind(slot, value);
        }
        if let Some(period) = period {
            let late = self.s.time.0.saturating_sub(due.0).max(0).unsigned_abs();
            let next = due.plus((late / period + 1) * period);
            self.open_timer(id, at, next, Some(period))?;
        }
        self.spot = (Some(id), Spot::State(Way::Timer(at)));
        self.note_taken(id, self.spot.1)?;
        self.follow(id, scope, &timer.acts, &timer.goal)
    }
}

/// Counts visits of one state since the last visit of another.
pub(super) fn visits_after(count: i64, counted: StateIx, since: Option<StateIx>, entered: StateIx) -> i64 {
    let base = if since == Some(entered) { 0 } else { count };
    if counted == entered { base.saturating_add(1) } else { base }
}

/// Returns an index of a table of the machine in its stored width.
pub(super) fn index(at: usize) -> Result<u32, Fault> {
    u32::try_from(at).map_err(|_| Fault::inconsistent("a table is too long"))
}
