//! From machine to diagram.
//!
//! Leaves folding of sugar to `fold` and words of effects to `effect`. Invariant: everything stands in the machine's order, so
//! the same machine gives the same diagram.

use super::diagram::{Cluster, Diagram, Edge, EdgeKind, Line, Mark, Node, NodeKind};
use super::print::{Printer, shorten};
use super::{effect, fold, text};
use crate::limits::{GRAPH_LABEL_COLUMNS_MAX, GRAPH_TITLE_COLUMNS_MAX};
use crate::machine::{
    Arm, Arrow, Bind, Cond, Effect, Expr, Flow, FlowIx, Goal, Limit, Machine, Measure, Outcome, StateIx,
    Then, TimerArrow, TimerKind,
};

/// Builds the diagram of the root flow and of every flow that it can run, in the order of first use.
pub(super) fn diagram(machine: &Machine) -> Diagram {
    let mut found = vec![machine.root];
    let mut next = 0;
    while let Some(ix) = found.get(next).copied() {
        next += 1;
        let Some(flow) = machine.flows.get(ix.at()) else { continue };
        for ix in flow.states.iter().flat_map(|state| state.effect.runs()) {
            if !found.contains(&ix) {
                found.push(ix);
            }
        }
    }
    let flow = |ix: FlowIx| machine.flows.get(ix.at());
    let clusters = found.into_iter().filter_map(flow).map(|flow| cluster(machine, flow)).collect();
    Diagram { clusters }
}

fn cluster(machine: &Machine, flow: &Flow) -> Cluster {
    let params: Vec<String> = flow.params.iter().map(|param| param.name.clone()).collect();
    let saga = if flow.saga { "saga " } else { "" };
    let title = shorten(&format!("{saga}flow {}", flow.name), "(", ")", &params);
    let mut builder = Builder {
        machine,
        flow,
        cluster: Cluster {
            name: flow.name.clone(),
            title: text::cut(&title, GRAPH_TITLE_COLUMNS_MAX),
            nodes: vec![node(NodeKind::Start, "")],
            edges: Vec::new(),
        },
        first_state: 1,
    };
    let has_scope = !(flow.arrows.is_empty() && flow.limits.is_empty() && flow.on_cancel.is_none());
    if has_scope {
        builder.cluster.nodes.push(node(NodeKind::Any, "any state"));
        builder.first_state = 2;
    }
    builder.states();
    fold::chains(builder.cluster)
}

fn node(kind: NodeKind, title: &str) -> Node {
    Node { kind, title: title.to_owned(), lines: Vec::new(), states: Vec::new(), mark: Mark::None }
}

struct Builder<'a> {
    machine: &'a Machine,
    flow: &'a Flow,
    cluster: Cluster,
    first_state: usize,
}

impl Builder<'_> {
    fn states(&mut self) {
        let (machine, flow) = (self.machine, self.flow);
        for state in &flow.states {
            let mut printer = Printer::new(machine, flow, Some(state));
            name_bindings(&mut printer, &state.effect, &state.arrows);
            let lines = effect::lines(&mut printer, &state.effect);
            let line = |text| Line { text, state: state.name.clone(), live: false };
            self.cluster.nodes.push(Node {
                kind: NodeKind::State,
                title: text::cut(&state.name, GRAPH_LABEL_COLUMNS_MAX),
                lines: lines.into_iter().map(line).collect(),
                states: vec![state.name.clone()],
                mark: Mark::None,
            });
        }
        let mut printer = Printer::new(machine, flow, None);
        let start = Goal::State(flow.start.state, flow.start.args.clone());
        self.edge(&mut printer, 0, EdgeKind::Enter, ("", ""), &start);
        name_bindings(&mut printer, &Effect::Wait, &flow.arrows);
        for arrow in &flow.arrows {
            self.arrow(&mut printer, 1, EdgeKind::Scope, arrow);
        }
        for limit in &flow.limits {
            let on = self.limit(&mut printer, limit);
            self.edge(&mut printer, 1, EdgeKind::Scope, (&on, ""), &limit.goal);
        }
        if let Some(on_cancel) = &flow.on_cancel {
            self.edge(&mut printer, 1, EdgeKind::Scope, ("cancel", ""), &on_cancel.goal);
        }
        for (at, state) in flow.states.iter().enumerate() {
            let mut printer = Printer::new(machine, flow, Some(state));
            name_bindings(&mut printer, &state.effect, &state.arrows);
            // For the names that it gives.
            let _ = effect::lines(&mut printer, &state.effect);
            let from = self.first_state + at;
            self.branches(&mut printer, from, &state.effect);
            for arrow in &state.arrows {
                self.arrow(&mut printer, from, EdgeKind::Enter, arrow);
            }
            for timer in &state.timers {
                self.timer(&mut printer, from, timer);
            }
        }
    }

    fn branches(&mut self, printer: &mut Printer<'_>, from: usize, effect: &Effect) {
        match effect {
            Effect::Choose(branches) => {
                for branch in branches {
                    let guard = branch.cond.as_ref().map_or_else(|| "else".to_owned(), |c| guard(printer, c));
                    self.edge(printer, from, EdgeKind::Enter, ("", &guard), &branch.goal);
                }
            }
            Effect::Match(_, arms) => self.arms(printer, (from, EdgeKind::Enter), "", arms),
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

    fn arrow(&mut self, printer: &mut Printer<'_>, from: usize, kind: EdgeKind, arrow: &Arrow) {
        let names: Vec<String> = arrow.on.iter().map(|outcome| self.outcome(*outcome)).collect();
        let on = names.join(", ");
        match &arrow.then {
            Then::Goal(goal) => {
                let guard = arrow.guard.as_ref().map(|cond| guard(printer, cond)).unwrap_or_default();
                self.edge(printer, from, kind, (&on, &guard), goal);
            }
            Then::Arms(arms) => self.arms(printer, (from, kind), &on, arms),
        }
    }

    fn arms(&mut self, printer: &mut Printer<'_>, from: (usize, EdgeKind), on: &str, arms: &[Arm]) {
        for arm in arms {
            let guard = arm.guard.as_ref().map(|cond| guard(printer, cond)).unwrap_or_default();
            let on = if on.is_empty() { arm.tag.clone() } else { format!("{on} {}", arm.tag) };
            self.edge(printer, from.0, from.1, (&on, &guard), &arm.goal);
        }
    }

    fn timer(&mut self, printer: &mut Printer<'_>, from: usize, timer: &TimerArrow) {
        let word = match timer.kind {
            TimerKind::After => "after",
            TimerKind::At => "at",
            TimerKind::Every => "every",
        };
        let on = format!("{word} {}", printer.expr(&timer.due));
        self.edge(printer, from, EdgeKind::Enter, (&on, ""), &timer.goal);
    }

    fn limit(&self, printer: &mut Printer<'_>, limit: &Limit) -> String {
        let measure = match limit.measure {
            Measure::Visits(of, None) => format!("visits({})", self.state_name(of)),
            Measure::Visits(of, Some(since)) => {
                format!("visits({}) since {}", self.state_name(of), self.state_name(since))
            }
            Measure::Data(ix) => printer.expr(&Expr::Data(ix)),
            Measure::Cost => "cost".to_owned(),
            Measure::Age => "age".to_owned(),
        };
        format!("{measure} > {}", printer.expr(&limit.max))
    }

    /// Adds an arrow; one to a state that does not exist is left out.
    fn edge(
        &mut self,
        printer: &mut Printer<'_>,
        from: usize,
        kind: EdgeKind,
        (on, guard): (&str, &str),
        goal: &Goal,
    ) {
        let (to, text, kind) = match goal {
            Goal::State(ix, args) => {
                let Some(state) = self.flow.states.get(ix.at()) else { return };
                let text = if args.is_empty() { state.name.clone() } else { printer.call(&state.name, args) };
                (self.first_state + ix.at(), text, kind)
            }
            Goal::Stay => (from, "stay".to_owned(), EdgeKind::Stay),
            Goal::End(value) => self.ending(printer, NodeKind::End, "end", value, kind),
            Goal::Fail(value) => self.ending(printer, NodeKind::Fail, "fail", value, kind),
        };
        let cut = |text: &str| text::cut(text, GRAPH_LABEL_COLUMNS_MAX);
        let (on, guard, goal) = (cut(on), cut(guard), cut(&text));
        self.cluster.edges.push(Edge { from, to, on, guard, goal, kind, mark: Mark::None });
    }

    /// Returns the node where a flow ends with `value`: one for each variant, so that the picture shows what can come out.
    fn ending(
        &mut self,
        printer: &mut Printer<'_>,
        kind: NodeKind,
        word: &str,
        value: &Expr,
        edge: EdgeKind,
    ) -> (usize, String, EdgeKind) {
        let title = if let Expr::Variant(_, tag, _) = value {
            format!("{word} {tag}")
        } else if let Expr::Record(ix, _) = value {
            format!("{word} {}", printer.type_name(*ix))
        } else {
            word.to_owned()
        };
        let title = text::cut(&title, GRAPH_LABEL_COLUMNS_MAX);
        let nodes = &mut self.cluster.nodes;
        let at = nodes.iter().position(|node| node.kind == kind && node.title == title);
        let at = at.unwrap_or_else(|| {
            nodes.push(node(kind, &title));
            nodes.len() - 1
        });
        let text = printer.expr(value);
        (at, if text == "nothing" { word.to_owned() } else { format!("{word} {text}") }, edge)
    }

    fn state_name(&self, ix: StateIx) -> &str {
        self.flow.states.get(ix.at()).map_or("_", |state| state.name.as_str())
    }

    fn outcome(&self, outcome: Outcome) -> String {
        outcome_name(self.machine, self.flow, outcome)
    }
}

fn outcome_name(machine: &Machine, flow: &Flow, outcome: Outcome) -> String {
    let word = match outcome {
        Outcome::Ok => "ok",
        Outcome::Error(ix) => machine.types.get(ix.at()).map_or("_", |def| def.name.as_str()),
        Outcome::Failed => "failed",
        Outcome::Timeout => "timeout",
        Outcome::Problem => "problem",
        Outcome::Unknown => "unknown",
        Outcome::Message(ix) => flow.messages.get(ix.at()).map_or("_", |message| message.name.as_str()),
        Outcome::Closed => "closed",
        Outcome::Ended => "ended",
        Outcome::Approve => "approve",
        Outcome::Answer => "answer",
        Outcome::Reject => "reject",
        Outcome::Exists => "exists",
        Outcome::UndoFailed => "undo_failed",
    };
    word.to_owned()
}

fn guard(printer: &mut Printer<'_>, cond: &Cond) -> String {
    format!("if {}", printer.cond(cond))
}

/// Names what arrows and branches bind: after the parameter that takes it, else after the outcome.
fn name_bindings(printer: &mut Printer<'_>, effect: &Effect, arrows: &[Arrow]) {
    match effect {
        Effect::Choose(branches) => {
            for branch in branches {
                name_goal(printer, &branch.goal);
                if let Some(slot) = branch.cond.as_ref().and_then(|cond| cond.bind) {
                    printer.name(slot, "found");
                }
            }
        }
        Effect::Match(_, arms) => name_arms(printer, arms),
        Effect::Wait
        | Effect::Do(..)
        | Effect::Run(..)
        | Effect::Each(_)
        | Effect::Parallel(_)
        | Effect::Await(_)
        | Effect::Ask(_)
        | Effect::Spawn(_) => {}
    }
    for arrow in arrows {
        let Bind { whole, fields } = &arrow.bind;
        printer.name_fields(fields);
        match &arrow.then {
            Then::Goal(goal) => name_goal(printer, goal),
            Then::Arms(arms) => name_arms(printer, arms),
        }
        if let Some(slot) = whole {
            let word = match arrow.on.as_slice() {
                [Outcome::Ok] => "result".to_owned(),
                [Outcome::Unknown] => "doubt".to_owned(),
                [one] => outcome_name(printer.machine, printer.flow, *one).to_lowercase(),
                _ => "problem".to_owned(),
            };
            printer.name(*slot, &word);
        }
    }
}

fn name_arms(printer: &mut Printer<'_>, arms: &[Arm]) {
    for arm in arms {
        printer.name_fields(&arm.fields);
        name_goal(printer, &arm.goal);
    }
}

fn name_goal(printer: &mut Printer<'_>, goal: &Goal) {
    match goal {
        Goal::State(ix, args) => {
            let flow = printer.flow;
            if let Some(state) = flow.states.get(ix.at()) {
                printer.name_after(args, &state.params);
            }
        }
        Goal::Stay | Goal::End(_) | Goal::Fail(_) => {}
    }
}
