//! `steps`: sugar for a chain of states `S.a`, `S.b`, each with the results that are still needed as parameters.
//!
//! Leaves effects and arrows to their files. Invariant: the chain is what a person would have written by hand: the first state
//! has the place of `S` in the flow, the others stand behind all written states; `ok` leads from one to the next, every other
//! arrow of the block belongs to each of them that can lead to one of its outcomes.

use std::collections::BTreeSet;

use super::arrows::{OwnArrow, Timers};
use super::effects::Member;
use super::flows::{FlowCx, Lowering, position};
use super::outcomes::{EffectInfo, Level, ResultVar, named_first};
use super::places::Part;
use super::scope::Scope;
use crate::check::graph::covers;
use crate::check::outcomes::as_effect;
use crate::check::tables::Spot;
use crate::check::ty::Ty;
use crate::diag::TextSpan;
use crate::machine::{
    Arrow, Bind, Effect, Expr, FieldDef, Goal, Outcome, Payload, Slot, StateDef, StateIx, Then,
};
use crate::syntax::ast::{self, AstNode as _};
use crate::syntax::kind::SyntaxKind;

/// One step with what is known of it before the chain is built.
struct Step {
    name: String,
    effect: ast::Effect,
    span: TextSpan,
    ok: Ty,
    possible: Vec<Outcome>,
}

/// A block of steps with the variables that its states may hand on: the state's parameters, then the results.
struct Block<'b> {
    text: &'b ast::State,
    steps: Vec<Step>,
    variables: Vec<(String, Ty)>,
    params: usize,
    /// The state of the first step, and the first of the others.
    first: StateIx,
    others: u32,
}

impl Lowering<'_, '_> {
    /// Lowers a state with `steps`; the states of all steps but the first are put aside.
    pub(super) fn steps(
        &mut self,
        cx: &FlowCx<'_>,
        ix: StateIx,
        text: &ast::State,
        steps: &ast::Steps,
    ) -> Option<StateDef> {
        let params: Vec<(String, Ty)> = cx.names.states[ix.at()]
            .params
            .iter()
            .map(|param| (param.name.clone(), param.ty.clone()))
            .collect();
        let others = position(cx.names.states.len() + self.extra.len());
        let mut block =
            Block { text, steps: Vec::new(), params: params.len(), variables: params, first: ix, others };
        for step in steps.steps() {
            self.read_step(cx, &mut block, &step);
        }
        let mut states = Vec::new();
        for at in 0..block.steps.len() {
            states.push(self.step_state(cx, &block, at));
        }
        let mut states = states.into_iter();
        let first = states.next();
        self.extra.extend(states);
        first
    }

    /// Finds out what a step gives, with its mistakes left for when its state is built.
    fn read_step(&mut self, cx: &FlowCx<'_>, block: &mut Block<'_>, text: &ast::StepBind) {
        let (Some(name), Some(effect)) = (text.name(), text.effect()) else { return };
        let taken = cx.names.data(&name.text()).is_some()
            || block.variables.iter().any(|(one, _)| *one == name.text())
            || cx.signature.params.iter().any(|one| one.name == name.text());
        if taken {
            let spot = Spot { file: self.file, span: name.span() };
            self.report_duplicate(spot, &name.text());
            return;
        }
        let mut unheard = Vec::new();
        let mut scope = Scope::new(self.tables, self.tables.layer_of(self.file), self.file, &mut unheard);
        scope.show_flow(cx);
        for (at, (name, ty)) in block.variables.iter().enumerate() {
            scope.show(name, ty.clone(), Expr::Arg(position(at)));
        }
        let (ok, possible) = match scope.member(cx, &effect) {
            Some(member) => (member.info.ok, member.info.possible),
            None => (Ty::Unknown, Vec::new()),
        };
        block.variables.push((name.text(), ok.clone()));
        block.steps.push(Step { name: name.text(), effect, span: text.span(), ok, possible });
    }

    fn step_state(&mut self, cx: &FlowCx<'_>, block: &Block<'_>, at: usize) -> StateDef {
        let ix = block.state(at);
        let step = &block.steps[at];
        let live = block.live(at);
        let mut scope = Scope::new(self.tables, self.tables.layer_of(self.file), self.file, self.out);
        scope.show_flow(cx);
        for (arg, variable) in live.iter().enumerate() {
            let (name, ty) = &block.variables[*variable];
            scope.show(name, ty.clone(), Expr::Arg(position(arg)));
        }
        let member = scope.member(cx, &step.effect);
        let is_last = at + 1 == block.steps.len();
        let (effect, info) = scope.step_effect(block, step, member, is_last);
        let (mut arrows, timers) = scope.step_arrows(cx, block, step, &info, is_last);
        if let (false, Some(ResultVar { slot, .. })) = (is_last, info.results.first()) {
            let span = block.steps[at + 1].span;
            arrows.insert(0, scope.onward(block, at, *slot, span));
        }
        scope.check_outcomes(cx, &arrows, &EffectInfo { possible: step.possible.clone(), ..info }, step.span);
        let frame = scope.frame();
        let mut places = vec![(Part::State, step.span), (Part::Effect, step.span)];
        places.extend(arrows.iter().enumerate().flat_map(|(at, one)| one.parts(at)));
        places.extend(timers.iter().enumerate().map(|(at, (_, span))| (Part::Timer(at), *span)));
        for (part, span) in places {
            self.book.add(cx.ix, Some(ix), part, Spot { file: self.file, span });
        }
        let state_name = &cx.names.states[block.first.at()].name;
        StateDef {
            name: format!("{state_name}.{}", step.name),
            was: if at == 0 { block.text.was().map(|was| was.text()) } else { None },
            params: self.step_params(cx, block, at, &live),
            effect,
            arrows: arrows.into_iter().map(|one| one.arrow).collect(),
            timers: timers.into_iter().map(|(timer, _)| timer).collect(),
            frame,
        }
    }

    fn step_params(
        &mut self,
        cx: &FlowCx<'_>,
        block: &Block<'_>,
        at: usize,
        live: &[usize],
    ) -> Vec<FieldDef> {
        if at == 0 {
            return self.scope().field_defs(&cx.names.states[block.first.at()].params);
        }
        let params = live.iter().map(|variable| {
            let (name, ty) = &block.variables[*variable];
            FieldDef { name: name.clone(), ty: ty.stored(), default: None }
        });
        params.collect()
    }
}

impl Block<'_> {
    fn state(&self, at: usize) -> StateIx {
        if at == 0 { self.first } else { StateIx(self.others + position(at - 1)) }
    }

    /// The variables that the step at `at` takes: those that it, a later step or an arrow names. The first takes what the
    /// written state takes.
    fn live(&self, at: usize) -> Vec<usize> {
        if at == 0 {
            return (0..self.params).collect();
        }
        let mut words: BTreeSet<String> = BTreeSet::new();
        let later = self.steps[at..].iter().map(|step| step.effect.syntax().clone());
        let arrows = self.text.arrows().map(|arrow| arrow.syntax().clone());
        for node in later.chain(arrows) {
            let names = node.descendants().filter(|node| node.kind() == SyntaxKind::NameRef);
            words.extend(names.map(|name| name.text().to_string().trim().to_owned()));
        }
        (0..self.params + at).filter(|variable| words.contains(&self.variables[*variable].0)).collect()
    }

    /// What any of the steps can lead to.
    fn possible(&self) -> Vec<Outcome> {
        let mut all: Vec<Outcome> =
            self.steps.iter().flat_map(|step| step.possible.iter().copied()).collect();
        all.sort();
        all.dedup();
        all
    }
}

impl Scope<'_> {
    fn step_effect(
        &mut self,
        block: &Block<'_>,
        step: &Step,
        member: Option<Member>,
        is_last: bool,
    ) -> (Effect, EffectInfo) {
        let Some(member) = member else {
            return (Effect::Wait, EffectInfo::unknown());
        };
        let mut effect = as_effect(&member.body);
        let slot = member.info.results.first().map_or_else(|| self.take_slot(), |result| result.slot);
        match &mut effect {
            Effect::Do(_, _, result) | Effect::Run(_, _, _, result) => *result = Some(slot),
            Effect::Wait
            | Effect::Each(_)
            | Effect::Parallel(_)
            | Effect::Await(_)
            | Effect::Ask(_)
            | Effect::Spawn(_)
            | Effect::Choose(_)
            | Effect::Match(..) => {}
        }
        let ok = if is_last { step.ok.clone() } else { Ty::Unknown };
        let result = ResultVar { name: step.name.clone(), slot, ok: ok.clone(), partial: None };
        let info = EffectInfo { possible: block.possible(), ok, results: vec![result], ..member.info };
        (effect, info)
    }

    /// The arrows of the block as they belong to one step.
    fn step_arrows(
        &mut self,
        cx: &FlowCx<'_>,
        block: &Block<'_>,
        step: &Step,
        info: &EffectInfo,
        is_last: bool,
    ) -> (Vec<OwnArrow>, Timers) {
        let only_ok = |arrow: &ast::Arrow| {
            let names = arrow.outcomes().into_iter().flat_map(|outcomes| outcomes.names());
            let mut words = names.filter_map(|name| name.name()).map(|name| name.text()).peekable();
            words.peek().is_some() && words.all(|word| word == "ok")
        };
        let written: Vec<ast::Arrow> =
            block.text.arrows().filter(|arrow| is_last || !only_ok(arrow)).collect();
        let by_name = self.taken_by_name(cx, &written, info);
        let fits = |outcome: Outcome| match outcome {
            Outcome::Message(_) => true,
            Outcome::Ok => is_last,
            // Where every failure of the step has an arrow of its own, nothing is left for `problem`.
            Outcome::Problem => {
                step.possible.iter().any(|one| covers(Outcome::Problem, *one) && !by_name.contains(one))
            }
            outcome => step.possible.contains(&outcome),
        };
        let (mut arrows, mut timers, mut level) = (Vec::new(), Timers::new(), Vec::new());
        for arrow in &written {
            if let ast::Arrow::Timer(timer) = arrow {
                timers.push((self.timer(cx, arrow, timer, info), arrow.span()));
                continue;
            }
            let mut told = Vec::new();
            let mut aside = self.aside(&mut told);
            let tried = aside.arrow(cx, arrow, Some(info));
            let Some(mut one) = (match &tried {
                Some(one) if one.arrow.on.iter().any(|outcome| fits(*outcome)) => {
                    self.arrow(cx, arrow, Some(info))
                }
                // It takes no place in the frame of a step that cannot lead to it; its mistakes count all the same.
                Some(_) | None => {
                    self.outcome_lost |= aside.outcome_lost;
                    self.out.append(&mut told);
                    tried
                }
            }) else {
                continue;
            };
            level.extend(Level::of(std::slice::from_ref(&one)));
            one.arrow.on.retain(|outcome| fits(*outcome));
            one.named.retain(|(outcome, _)| fits(*outcome));
            one.arrow.payload = payload(&one.arrow, info);
            arrows.push(one);
        }
        if is_last && !info.unknown {
            // Whether an arrow is ever taken is asked of the whole block.
            self.check_never_taken(cx, &Level::named_first(level), Some(info));
        }
        arrows.retain(|one| !one.arrow.on.is_empty());
        (named_first(arrows), timers)
    }

    /// The outcomes that an arrow without a condition names, so that none is left for `problem`.
    fn taken_by_name(&self, cx: &FlowCx<'_>, written: &[ast::Arrow], info: &EffectInfo) -> Vec<Outcome> {
        let mut unheard = Vec::new();
        let mut aside = self.aside(&mut unheard);
        let unguarded = written.iter().filter(|arrow| arrow.guard().is_none());
        let named = unguarded.filter_map(|arrow| arrow.outcomes()).map(|outcomes| {
            let named = aside.outcome_names(cx, &outcomes, Some(info));
            named.into_iter().map(|(outcome, _)| outcome).collect::<Vec<_>>()
        });
        named.filter(|outcomes| !outcomes.contains(&Outcome::Problem)).flatten().collect()
    }

    /// The arrow from one step to the next, which takes along what is still needed.
    fn onward(&mut self, block: &Block<'_>, at: usize, slot: Slot, span: TextSpan) -> OwnArrow {
        let args = block.live(at + 1).into_iter().map(|variable| {
            let (name, _) = &block.variables[variable];
            if variable == block.params + at {
                return Expr::Local(slot);
            }
            self.find(name).map_or(Expr::Local(slot), |variable| variable.read.clone())
        });
        let goal = Goal::State(block.state(at + 1), args.collect());
        let arrow = Arrow {
            on: vec![Outcome::Ok],
            payload: Payload::Own,
            bind: Bind::default(),
            guard: None,
            acts: Vec::new(),
            then: Then::Goal(goal),
        };
        OwnArrow { arrow, named: vec![(Outcome::Ok, span)], span, arms: Vec::new() }
    }
}

/// What an arrow brings along that is left with some of its outcomes: a single failure is a problem anyway.
fn payload(arrow: &Arrow, info: &EffectInfo) -> Payload {
    let is_problem = arrow.on == [Outcome::Failed] || (info.activity && arrow.on == [Outcome::Timeout]);
    if is_problem { Payload::Own } else { arrow.payload }
}
