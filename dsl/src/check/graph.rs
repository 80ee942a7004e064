//! The graph of a flow's states: what can be reached, and what can end.
//!
//! `loops` and `ways` ask it further questions. Leaves outcomes without an arrow to `lower::arrows`, which refuses them earlier. Invariant: every answer lists states in
//! the order of the text, whatever order the graph library uses.

mod loops;
mod undoing;
mod ways;

pub(crate) use loops::IdleCycle;
use undoing::Done;

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::outcomes::as_effect;
use crate::machine::refs::{self, Ref};
use crate::machine::{
    Act, Arm, Arrow, Assign, AssignOp, Await, BinaryOp, DataIx, EachBody, Effect, Expr, Flow, Goal, Join,
    Limit, Literal, Measure, Outcome, Parallel, Region, StateDef, StateIx, Then, TimerArrow, TimerKind, Wait,
};

/// Where an edge leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    State(usize),
    End,
    Fail,
    /// Nowhere: only what it sets matters, since limits are measured then too.
    Stay,
}

impl To {
    fn state(self) -> Option<usize> {
        match self {
            To::State(to) => Some(to),
            To::End | To::Fail | To::Stay => None,
        }
    }
}

/// Whether a message or an answer is surely taken, or time surely passes, before a flow is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passing {
    /// Before it ends.
    end: bool,
    /// Before it fails.
    fail: bool,
}

/// One way from a state.
#[derive(Clone, Debug)]
struct Edge {
    from: usize,
    to: To,
    /// Whether it takes a message or an answer, or lets time pass.
    moves_on: bool,
    /// Data fields that it raises by a positive constant.
    raises: Vec<DataIx>,
    /// Data fields that it changes otherwise.
    changes: Vec<DataIx>,
    /// The limit that was broken, if it is not the way of an arrow.
    broken: Option<usize>,
    done: Done,
    /// Whether a saga has undone what it did by then.
    undone: bool,
    /// Whether it is taken at once because the effect of the state finds no room in the budget.
    no_room: bool,
}

impl Edge {
    fn sets(&self, field: DataIx) -> bool {
        self.raises.contains(&field) || self.changes.contains(&field)
    }
}

/// All ways through a flow.
#[derive(Debug)]
pub(crate) struct Graph<'f> {
    flow: &'f Flow,
    edges: Vec<Edge>,
    /// What surely happens in the flows of the program.
    passing: &'f [Passing],
}
impl<'f> Graph<'f> {
    /// Builds the graph; `possible` gives the outcomes that the effect of a state can have, `costs` says whether it may cost
    /// something, `passing` holds what is known of all flows.
    pub(crate) fn new(
        flow: &'f Flow,
        possible: impl Fn(&StateDef) -> Vec<Outcome>,
        costs: impl Fn(&StateDef) -> bool,
        passing: &'f [Passing],
    ) -> Graph<'f> {
        let mut graph = Graph { flow, edges: Vec::new(), passing };
        for (from, state) in flow.states.iter().enumerate() {
            graph.add_effect(from, &state.effect);
            graph.add_outcomes(from, state, possible(state));
            for TimerArrow { kind, due, acts, goal } in &state.timers {
                // `at` may name a time that is over; `every` and `after` let time pass unless it is written as zero.
                let moves_on = match kind {
                    TimerKind::After | TimerKind::Every => !is_zero(due),
                    TimerKind::At => false,
                };
                let added = graph.edges.len();
                graph.add(from, goal, moves_on, &[acts]);
                graph.edges[added..].iter_mut().for_each(|edge| edge.done = Done::early(&state.effect));
            }
        }
        let plain = graph.edges.clone();
        for (at, limit) in flow.limits.iter().enumerate() {
            let added = graph.edges.len();
            graph.add_limit(limit, &plain);
            if limit.measure == Measure::Cost && fields_of(&limit.max).is_empty() {
                graph.add_no_room(limit, &costs);
            }
            graph.edges[added..].iter_mut().for_each(|edge| edge.broken = Some(at));
        }
        graph
    }

    /// Adds where a limit on cost leads from the states that find no room in what it leaves: that is noticed again and again.
    fn add_no_room(&mut self, limit: &Limit, costs: impl Fn(&StateDef) -> bool) {
        for (from, _) in self.flow.states.iter().enumerate().filter(|(_, state)| costs(state)) {
            let added = self.edges.len();
            self.add(from, &limit.goal, false, &[&limit.acts]);
            self.edges[added..].iter_mut().for_each(|edge| edge.no_room = true);
        }
    }

    /// Adds where a broken limit leads: it replaces the arrow that broke it.
    fn add_limit(&mut self, limit: &Limit, plain: &[Edge]) {
        let of = |edge: &Edge| (edge.from, edge.moves_on, edge.done);
        let breaking: Vec<(usize, bool, Done)> = match limit.measure {
            // Every later arrow finds it broken still.
            Measure::Visits(..) | Measure::Data(_) | Measure::Age | Measure::Cost if stays_broken(limit) => {
                plain.iter().map(of).collect()
            }
            Measure::Visits(counted, _) => {
                plain.iter().filter(|edge| edge.to == To::State(counted.at())).map(of).collect()
            }
            Measure::Data(data) => plain.iter().filter(|edge| edge.sets(data)).map(of).collect(),
            // Money and time are spent, not counted: nothing goes round within one moment because of them.
            // They run out while an effect is open.
            Measure::Age | Measure::Cost => {
                let states = self.flow.states.iter().enumerate();
                states.map(|(from, state)| (from, true, Done::early(&state.effect))).collect()
            }
        };
        for (from, moves_on, done) in breaking {
            let added = self.edges.len();
            self.add(from, &limit.goal, moves_on, &[&limit.acts]);
            self.edges[added..].iter_mut().for_each(|edge| edge.done = done);
        }
    }

    fn add_effect(&mut self, from: usize, effect: &Effect) {
        match effect {
            Effect::Choose(branches) => {
                for branch in branches {
                    self.add(from, &branch.goal, false, &[&branch.acts]);
                }
            }
            Effect::Match(_, arms) => self.add_arms(from, arms, false, &[]),
            Effect::Wait
            | Effect::Do(..)
            | Effect::Run(..)
            | Effect::Each(_)
            | Effect::Parallel(_)
            | Effect::Await(_)
            | Effect::Ask(_)
            | Effect::Spawn(_) => {}
        }
    }

    fn add_outcomes(&mut self, from: usize, state: &StateDef, mut outcomes: Vec<Outcome>) {
        if !matches!(state.effect, Effect::Choose(_) | Effect::Match(..)) {
            // Every message can be taken beside any effect that waits.
            let messages = state.arrows.iter().chain(&self.flow.arrows).flat_map(|arrow| &arrow.on);
            let messages: Vec<Outcome> =
                messages.copied().filter(|on| matches!(on, Outcome::Message(_))).collect();
            outcomes.extend(messages);
        }
        outcomes.sort();
        outcomes.dedup();
        let flow = self.flow;
        if flow.saga {
            // Wherever a saga is left, undoing may fail, and every undo has used up its attempts by then.
            let added = self.edges.len();
            for arrow in taken_for(&[], &flow.arrows, Outcome::UndoFailed) {
                self.add_then(from, &arrow.then, true, &arrow.acts);
            }
            self.edges[added..].iter_mut().for_each(|edge| edge.undone = true);
        }
        for outcome in outcomes {
            let moves_on = self.moves_on(outcome, &state.effect);
            let added = self.edges.len();
            for arrow in taken_for(&state.arrows, &flow.arrows, outcome) {
                self.add_then(from, &arrow.then, moves_on, &arrow.acts);
            }
            let done = Done::on(outcome, &state.effect);
            self.edges[added..].iter_mut().for_each(|edge| edge.done = done);
        }
    }

    fn add_then(&mut self, from: usize, then: &Then, moves_on: bool, acts: &[Act]) {
        match then {
            Then::Goal(goal) => self.add(from, goal, moves_on, &[acts]),
            Then::Arms(arms) => self.add_arms(from, arms, moves_on, acts),
        }
    }

    fn add_arms(&mut self, from: usize, arms: &[Arm], moves_on: bool, before: &[Act]) {
        for arm in arms {
            self.add(from, &arm.goal, moves_on, &[before, &arm.acts]);
        }
    }

    fn add(&mut self, from: usize, goal: &Goal, moves_on: bool, acts: &[&[Act]]) {
        let to = match goal {
            Goal::State(StateIx(to), _) => To::State(*to as usize),
            Goal::End(_) => To::End,
            Goal::Fail(_) => To::Fail,
            Goal::Stay => To::Stay,
        };
        let (mut raises, mut changes) = (Vec::new(), Vec::new());
        for act in acts.iter().copied().flatten() {
            if let Act::Set(assign) = act {
                if raises_its_field(assign) { raises.push(assign.data) } else { changes.push(assign.data) }
            }
        }
        self.edges.push(Edge {
            from,
            to,
            moves_on,
            raises,
            changes,
            broken: None,
            done: Done::Nothing,
            undone: false,
            no_room: false,
        });
    }

    /// Returns the states that no way leads to.
    pub(crate) fn unreachable(&self) -> Vec<StateIx> {
        let seen = self.reachable();
        self.states(|state| !seen[state])
    }

    fn reachable(&self) -> Vec<bool> {
        let mut from = self.entries();
        from.extend(self.flow.on_cancel.iter().filter_map(|cancel| target(&cancel.goal)));
        self.closure(from, forwards)
    }

    /// Where a run may begin, or go on in this version of the flow.
    fn entries(&self) -> Vec<usize> {
        let migrated = self.flow.migrations.iter().map(|migration| migration.to.state.at());
        std::iter::once(self.flow.start.state.at()).chain(migrated).collect()
    }

    /// Returns the states that some way leads to from `first`, and `first`.
    pub(crate) fn from(&self, first: StateIx) -> Vec<StateIx> {
        let seen = self.closure(vec![first.at()], forwards);
        self.states(|state| seen[state])
    }

    /// Returns the reachable states from which no way leads to an end.
    pub(crate) fn endless(&self) -> Vec<StateIx> {
        let ending = self.ending(|_| true);
        let seen = self.reachable();
        self.states(|state| !ending[state] && seen[state])
    }

    /// Marks the states from which a way of edges that count leads to an end.
    fn ending(&self, counts: impl Fn(&Edge) -> bool) -> Vec<bool> {
        let last = self.edges.iter().filter(|edge| counts(edge) && matches!(edge.to, To::End | To::Fail));
        let step = |edge: &Edge| edge.to.state().filter(|_| counts(edge)).map(|to| (to, edge.from));
        self.closure(last.map(|edge| edge.from).collect(), step)
    }

    /// Returns what surely happens before the flow is over.
    pub(crate) fn passing(&self) -> Passing {
        let step = |edge: &Edge| edge.to.state().filter(|_| !edge.moves_on).map(|to| (edge.from, to));
        let idle = self.closure(vec![self.flow.start.state.at()], step);
        let reached =
            |to: To| self.edges.iter().any(|edge| edge.to == to && !edge.moves_on && idle[edge.from]);
        Passing { end: !reached(To::End), fail: !reached(To::Fail) }
    }

    fn cycles(&self, edges: &[&Edge]) -> Vec<Vec<usize>> {
        let pairs = edges.iter().filter_map(|edge| forwards(edge));
        cycles(self.flow.states.len(), pairs)
    }

    /// Marks everything that can be reached from `from`; `step` says from where to where an edge is followed.
    fn closure(&self, from: Vec<usize>, step: impl Fn(&Edge) -> Option<(usize, usize)>) -> Vec<bool> {
        let mut next = vec![Vec::new(); self.flow.states.len()];
        for (from, to) in self.edges.iter().filter_map(step) {
            next[from].push(to);
        }
        let mut seen = vec![false; next.len()];
        let mut pending = from;
        while let Some(state) = pending.pop() {
            if !seen.get(state).copied().unwrap_or(true) {
                seen[state] = true;
                pending.extend(&next[state]);
            }
        }
        seen
    }

    fn states(&self, wanted: impl Fn(usize) -> bool) -> Vec<StateIx> {
        (0..self.flow.states.len()).filter(|state| wanted(*state)).map(to_ix).collect()
    }
}

/// Returns the groups of nodes that lie on a common cycle, each in order, the groups by their first node.
pub(crate) fn cycles(nodes: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let mut graph: DiGraph<(), ()> = DiGraph::new();
    for _ in 0..nodes {
        graph.add_node(());
    }
    for (from, to) in pairs {
        graph.update_edge(NodeIndex::new(from), NodeIndex::new(to), ());
    }
    let groups = tarjan_scc(&graph).into_iter();
    let mut groups: Vec<Vec<usize>> = groups
        .filter(|group| group.len() > 1 || graph.find_edge(group[0], group[0]).is_some())
        .map(|group| {
            let mut group: Vec<usize> = group.into_iter().map(NodeIndex::index).collect();
            group.sort_unstable();
            group
        })
        .collect();
    groups.sort_unstable();
    groups
}

/// Returns the arrows that may be taken for an outcome: the innermost first, up to the first without a guard.
pub(crate) fn taken_for<'f>(own: &'f [Arrow], scope: &'f [Arrow], outcome: Outcome) -> Vec<&'f Arrow> {
    let mut taken = Vec::new();
    for arrow in own.iter().chain(scope).filter(|arrow| arrow.on.iter().any(|on| covers(*on, outcome))) {
        taken.push(arrow);
        if arrow.guard.is_none() {
            break;
        }
    }
    taken
}

/// Whether an arrow on `on` is taken for `outcome`.
pub(crate) fn covers(on: Outcome, outcome: Outcome) -> bool {
    on == outcome
        || (on == Outcome::Problem
            && matches!(outcome, Outcome::Error(_) | Outcome::Failed | Outcome::Timeout))
}

impl Graph<'_> {
    fn moves_on(&self, outcome: Outcome, effect: &Effect) -> bool {
        match (outcome, effect) {
            (Outcome::Message(_) | Outcome::Approve | Outcome::Answer | Outcome::Reject, _) => true,
            (Outcome::Ok, Effect::Run(flow, ..)) => {
                self.passing.get(flow.at()).is_some_and(|known| known.end)
            }
            (Outcome::Error(_), Effect::Run(..)) => self.fails_slowly(effect),
            (Outcome::Ok, Effect::Parallel(parallel)) => self.needs_someone(parallel),
            // An activity has a deadline above zero.
            (Outcome::Timeout, Effect::Do(..)) => true,
            (Outcome::Timeout, Effect::Await(wait)) => passes(&wait.wait),
            (Outcome::Timeout, Effect::Ask(ask)) => passes(&ask.wait),
            (Outcome::Timeout, Effect::Run(_, _, wait, _)) => wait.as_ref().is_some_and(passes),
            (Outcome::Timeout, Effect::Each(each)) => each.within.as_ref().is_some_and(passes),
            (Outcome::Timeout, Effect::Parallel(parallel)) => parallel.within.as_ref().is_some_and(passes),
            // Only what a region yields something for is a problem as such; in those that wait it is an error or a timeout.
            (Outcome::Problem, Effect::Run(_, _, wait, _)) => {
                let is_late = wait.as_ref().is_none_or(|wait| *wait == Wait::Forever || passes(wait));
                is_late && self.fails_slowly(effect)
            }
            (Outcome::Problem, Effect::Await(Await { wait, .. })) => passes(wait),
            (Outcome::Problem, Effect::Ask(ask)) => passes(&ask.wait),
            (Outcome::Timeout, Effect::Wait | Effect::Spawn(_) | Effect::Choose(_) | Effect::Match(..))
            | (
                Outcome::Ok
                | Outcome::Error(_)
                | Outcome::Failed
                | Outcome::Problem
                | Outcome::Unknown
                | Outcome::Closed
                | Outcome::Ended
                | Outcome::Exists
                | Outcome::UndoFailed,
                _,
            ) => false,
        }
    }

    /// Whether time surely passes before a flow that an effect runs fails.
    fn fails_slowly(&self, effect: &Effect) -> bool {
        effect.runs().iter().all(|flow| self.passing.get(flow.at()).is_some_and(|known| known.fail))
    }

    /// Whether regions can be met only if a message or an answer comes, or time passes.
    fn needs_someone(&self, parallel: &Parallel) -> bool {
        let waits = |region: &Region| {
            let ends_slowly = match &region.body {
                EachBody::Ask(_) => true,
                EachBody::Await(one) => !one.closed && one.ended.is_empty(),
                EachBody::Run(flow, ..) => self.passing.get(flow.at()).is_some_and(|known| known.end),
                EachBody::Do(..) | EachBody::Each(_) => false,
            };
            let effect = as_effect(&region.body);
            let mut yielding = region.yields.iter().flat_map(|one| &one.on);
            ends_slowly && yielding.all(|on| self.moves_on(*on, &effect))
        };
        let waiting = parallel.regions.iter().filter(|region| waits(region)).count();
        match parallel.join {
            Join::All => waiting > 0,
            Join::Count(wanted) => parallel.regions.len() - waiting < wanted as usize,
            Join::Region(at) => parallel.regions.get(at as usize).is_some_and(waits),
        }
    }
}

/// Whether the flow goes on with a limit that nothing has set back when it was broken.
fn stays_broken(limit: &Limit) -> bool {
    let Goal::State(to, _) = limit.goal else { return false };
    match limit.measure {
        Measure::Visits(of, since) => of == to && since != Some(to),
        Measure::Data(data) => !limit.acts.iter().any(|act| match act {
            Act::Set(assign) => assign.data == data && !raises_its_field(assign),
            Act::Discard(_) | Act::Settle(..) | Act::AlsoDo(..) | Act::Emit(_) => false,
        }),
        // Nothing can set these back, so they are measured until they are broken, and not from then on.
        Measure::Age | Measure::Cost => false,
    }
}

fn forwards(edge: &Edge) -> Option<(usize, usize)> {
    edge.to.state().map(|to| (edge.from, to))
}

/// The data fields that an expression reads: what arrows can change of what it gives.
fn fields_of(of: &Expr) -> Vec<DataIx> {
    let mut fields = Vec::new();
    refs::expr(&mut of.clone(), &mut |named| {
        if let Ref::Data(field) = named {
            fields.push(*field);
        }
    });
    fields
}

/// Whether an assignment adds a positive constant: `n += 1` or `n = n + 1`.
fn raises_its_field(assign: &Assign) -> bool {
    match (assign.op, &assign.value) {
        (AssignOp::Add, by) => is_positive(by),
        (AssignOp::Set, Expr::Binary(BinaryOp::Add, a, b)) => {
            let itself = |expr: &Expr| *expr == Expr::Data(assign.data);
            (itself(a) && is_positive(b)) || (itself(b) && is_positive(a))
        }
        (AssignOp::Set | AssignOp::Sub, _) => false,
    }
}

/// Whether a wait lets time pass before it is over; a time may be over already.
fn passes(wait: &Wait) -> bool {
    match wait {
        Wait::Within(bound) => !is_zero(bound),
        Wait::Until(_) | Wait::Forever => false,
    }
}

fn is_zero(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(Literal::Duration(0)))
}

fn is_positive(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(Literal::Int(value)) => *value > 0,
        Expr::Lit(Literal::Duration(value)) => *value > 0,
        Expr::Lit(Literal::Decimal(value)) => {
            !value.starts_with('-') && value.bytes().any(|digit| matches!(digit, b'1'..=b'9'))
        }
        _ => false,
    }
}

fn target(goal: &Goal) -> Option<usize> {
    match goal {
        Goal::State(to, _) => Some(to.at()),
        Goal::Stay | Goal::End(_) | Goal::Fail(_) => None,
    }
}

fn to_ix(state: usize) -> StateIx {
    StateIx(u32::try_from(state).unwrap_or(u32::MAX))
}
