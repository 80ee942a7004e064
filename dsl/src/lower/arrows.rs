//! Arrows: guards, arms, goals, timers.
//!
//! Leaves outcomes to `lower::outcomes` and acts to `lower::acts`. Invariant: acts are lowered before the goal, so that its
//! arguments see what `set` has changed.

use super::expr::Typed;
use super::flows::FlowCx;
use super::outcomes::{EffectInfo, Named};
use super::places::Part;
use super::scope::Scope;
use super::word::Word;
use crate::check::tables::{Shape, UpperName};
use crate::check::ty::Ty;
use crate::diag::TextSpan;
use crate::diag::catalogue::{deadlines, flows, names, types};
use crate::machine::{Arm, Arrow, Expr, Goal, Literal, Outcome, StateIx, Then, TimerArrow, TimerKind};
use crate::syntax::ast::{self, AstNode as _};

/// A lowered arrow with its outcomes as they are written.
#[derive(Clone, Debug)]
pub(crate) struct OwnArrow {
    pub(crate) arrow: Arrow,
    pub(crate) named: Named,
    pub(crate) span: TextSpan,
    /// Where its arms stand; none if it leads to one goal.
    pub(crate) arms: Vec<TextSpan>,
}

impl OwnArrow {
    /// The parts that it is, as the `at`th arrow, with their places.
    pub(crate) fn parts(&self, at: usize) -> impl Iterator<Item = (Part, TextSpan)> {
        let arms = self.arms.iter().enumerate().map(move |(arm, span)| (Part::Arm(at, arm), *span));
        std::iter::once((Part::Arrow(at), self.span)).chain(arms)
    }
}

/// The timers of a state with their places.
pub(crate) type Timers = Vec<(TimerArrow, TextSpan)>;

impl Scope<'_> {
    /// Lowers the arrows and timers of a state.
    pub(crate) fn arrows(
        &mut self,
        cx: &FlowCx<'_>,
        all: impl Iterator<Item = ast::Arrow>,
        info: &EffectInfo,
    ) -> (Vec<OwnArrow>, Timers) {
        let (mut arrows, mut timers) = (Vec::new(), Vec::new());
        for arrow in all {
            match &arrow {
                ast::Arrow::On(_) => arrows.extend(self.arrow(cx, &arrow, Some(info))),
                ast::Arrow::Timer(timer) => timers.push((self.timer(cx, &arrow, timer, info), arrow.span())),
            }
        }
        (arrows, timers)
    }

    /// Lowers one arrow of a state (`info`) or of the flow; nothing if none of its outcomes is known.
    pub(crate) fn arrow(
        &mut self,
        cx: &FlowCx<'_>,
        of: &ast::Arrow,
        info: Option<&EffectInfo>,
    ) -> Option<OwnArrow> {
        let outcomes = of.outcomes()?;
        let mark = self.enter();
        let named = self.outcome_names(cx, &outcomes, info);
        let (payload, bind) = self.bind_payload(cx, &outcomes, &named, info);
        let guard = of.guard().and_then(|guard| guard.cond()).map(|cond| self.cond(&cond));
        let acts = self.acts(cx, &of.acts());
        let then = match of.arms() {
            Some(arms) => self.arms_of_arrow(cx, &arms, &named, info),
            None => Then::Goal(self.goal(cx, of.goal().as_ref(), can_stay(&named))),
        };
        self.leave(mark);
        let on: Vec<Outcome> = named.iter().map(|(outcome, _)| *outcome).collect();
        let arrow = Arrow { on, payload, bind, guard, acts, then };
        let arms = of.arms().into_iter().flat_map(|arms| arms.arms()).map(|arm| arm.span()).collect();
        (!named.is_empty()).then(|| OwnArrow { arrow, named, span: of.span(), arms })
    }

    fn arms_of_arrow(
        &mut self,
        cx: &FlowCx<'_>,
        of: &ast::Arms,
        named: &Named,
        info: Option<&EffectInfo>,
    ) -> Then {
        let ty = match (named.as_slice(), info) {
            ([(Outcome::Ok, _)], Some(info)) => info.ok.clone(),
            ([], _) => Ty::Unknown,
            ([(_, span), ..], _) => {
                let message = "only `ok` of a state with a union as its result has arms";
                let diagnostic = self.error(types::NOT_UNION, *span, message);
                self.report(diagnostic);
                Ty::Unknown
            }
        };
        let span = named.first().map_or_else(|| of.span(), |(_, span)| *span);
        let subject = Typed::new(Expr::Lit(Literal::Nothing), ty.clone());
        if self.union_subject(subject, span).is_none() {
            return Then::Goal(Goal::Stay);
        }
        Then::Arms(self.arms(cx, of, ty.bare(), span))
    }

    /// Lowers arms over the variants of `ty`.
    pub(crate) fn arms(&mut self, cx: &FlowCx<'_>, of: &ast::Arms, ty: &Ty, span: TextSpan) -> Vec<Arm> {
        let (mut arms, mut tags) = (Vec::new(), Vec::new());
        for arm in of.arms() {
            let mark = self.enter();
            let bound = arm.pattern().and_then(|pattern| Some((self.pattern(&pattern, ty)?, pattern.span())));
            let guard = arm.guard().and_then(|guard| guard.cond()).map(|cond| self.cond(&cond));
            let acts = self.acts(cx, &arm.acts());
            let goal = self.goal(cx, arm.goal().as_ref(), false);
            self.leave(mark);
            let Some(((tag, fields), at)) = bound else { continue };
            tags.push((tag.clone(), guard.is_some(), at));
            arms.push(Arm { tag, fields, guard, acts, goal });
        }
        self.check_arms(ty, &tags, span);
        arms
    }

    /// Lowers a timer of a state.
    pub(crate) fn timer(
        &mut self,
        cx: &FlowCx<'_>,
        arrow: &ast::Arrow,
        of: &ast::TimerArrow,
        info: &EffectInfo,
    ) -> TimerArrow {
        if info.transient {
            let diagnostic =
                self.error(flows::IMPOSSIBLE, of.span(), "`choose` never waits, so no timer can be due");
            self.report(diagnostic);
        }
        let (kind, want) = match of.word() {
            ast::TimerWord::After => (TimerKind::After, Ty::Duration),
            ast::TimerWord::At => (TimerKind::At, Ty::Time),
            ast::TimerWord::Every => (TimerKind::Every, Ty::Duration),
        };
        let due = of.when().map_or(Expr::Lit(Literal::Duration(1)), |when| self.expr_as(&when, &want));
        if kind == TimerKind::Every && matches!(due, Expr::Lit(Literal::Duration(0))) {
            let diagnostic = self.error(deadlines::ZERO_DEADLINE, of.span(), "every 0s is always due");
            self.report(diagnostic.expected("a duration above zero"));
        }
        let mark = self.enter();
        self.show_partial(&info.results);
        let acts = self.acts(cx, &arrow.acts());
        let goal = self.goal(cx, arrow.goal().as_ref(), true);
        self.leave(mark);
        TimerArrow { kind, due, acts, goal }
    }

    /// A message of the flow; reports an unknown one.
    pub(crate) fn message_named(
        &mut self,
        cx: &FlowCx<'_>,
        name: &Word,
    ) -> Option<crate::machine::MessageIx> {
        let word = name.text();
        let found = cx.names.message(&word);
        if found.is_none() {
            let known = cx.names.messages.iter().map(|message| message.name.as_str());
            let near = self.tables.closest(&word, known).map(str::to_owned);
            let message = format!("the flow has no message `{word}`");
            self.report_unknown(names::UNKNOWN_MESSAGE, name.span(), message, near.as_deref());
        }
        found
    }

    /// A state of the flow; reports an unknown one.
    pub(crate) fn state_named(&mut self, cx: &FlowCx<'_>, name: &ast::NameRef) -> Option<StateIx> {
        let word = name.text();
        let found = cx.names.state(&word);
        if found.is_none() {
            let known = cx.names.states.iter().map(|state| state.name.as_str());
            let near = self.tables.closest(&word, known).map(str::to_owned);
            let message = format!("`{}` has no state `{word}`", cx.signature.name);
            self.report_unknown(names::UNKNOWN_STATE, name.span(), message, near.as_deref());
        }
        found
    }

    /// `S(args)`.
    pub(crate) fn place(&mut self, cx: &FlowCx<'_>, of: &ast::Place) -> Option<Goal> {
        let name = of.state()?;
        let args = of.args();
        let Some(state) = self.state_named(cx, &name) else {
            args.iter()
                .flat_map(|args| args.args())
                .filter_map(|arg| arg.value())
                .for_each(|arg| drop(self.expr(&arg, None)));
            return None;
        };
        let signature = &cx.names.states[state.at()];
        let args = self.args(&signature.params, args.as_ref(), &signature.name, name.span());
        Some(Goal::State(state, args))
    }

    /// Where an arrow leads; `stay` only where something stays open.
    pub(crate) fn goal(&mut self, cx: &FlowCx<'_>, of: Option<&ast::Goal>, can_stay: bool) -> Goal {
        match of.and_then(|goal| goal.target()) {
            Some(ast::Target::State(place)) => self.place(cx, &place).unwrap_or(Goal::Stay),
            Some(ast::Target::Stay(span)) => {
                if !can_stay {
                    let message = "nothing stays open here that could be gone on with";
                    let diagnostic = self.error(flows::NO_STAY, span, message);
                    self.report(diagnostic.expected("a state, `end` or `fail`"));
                }
                Goal::Stay
            }
            Some(ast::Target::End(value)) => Goal::End(self.end_value(cx, value.as_ref(), of)),
            Some(ast::Target::Fail(error)) => Goal::Fail(self.fail_value(cx, error.as_ref())),
            None => Goal::Stay,
        }
    }

    fn end_value(&mut self, cx: &FlowCx<'_>, value: Option<&ast::Expr>, goal: Option<&ast::Goal>) -> Expr {
        let want = &cx.signature.result;
        let Some(value) = value else {
            if !matches!(want, Ty::Nothing | Ty::Unknown) {
                let shown = self.tables.show(want);
                let span = goal.map_or_else(TextSpan::default, |goal| goal.span());
                let message = format!("`{}` ends with a value", cx.signature.name);
                let diagnostic = self.error(types::WRONG_TYPE, span, message);
                self.report(diagnostic.expected(format!("`end` and `{shown}`")));
            }
            return Expr::Lit(Literal::Nothing);
        };
        self.refuse_secret(want, value.span(), "a result");
        self.expr_as(value, want)
    }

    fn fail_value(&mut self, cx: &FlowCx<'_>, value: Option<&ast::Expr>) -> Expr {
        let Some(value) = value else { return Typed::unknown().expr };
        let typed = self.expr(value, None);
        self.refuse_secret(&typed.ty, value.span(), "part of an error");
        let raises = &cx.signature.raises;
        let is_raised = matches!(&typed.ty, Ty::Named(ix) if raises.contains(ix));
        if !is_raised && !typed.ty.is_unknown() {
            let shown = self.tables.show(&typed.ty);
            let is_error = matches!(&typed.ty, Ty::Named(ix) if matches!(self.tables.types[ix.at()].shape, Shape::Error(_)));
            let message = if is_error {
                format!("`{}` does not say that it raises `{shown}`", cx.signature.name)
            } else {
                format!("`{shown}` is no error")
            };
            let known: Vec<String> =
                raises.iter().map(|ix| format!("`{}`", self.tables.types[ix.at()].name)).collect();
            let diagnostic = self.error(flows::UNDECLARED_ERROR, value.span(), message);
            self.report(if known.is_empty() {
                diagnostic.expected("`raises E` after the result of the flow")
            } else {
                diagnostic.expected(known.join(" or "))
            });
        }
        typed.expr
    }

    /// A flow by its name; reports what is none.
    pub(crate) fn flow_named(&mut self, name: &ast::NameRef) -> Option<crate::machine::FlowIx> {
        let word = name.text();
        match self.tables.upper(self.layer, &word) {
            Some(UpperName::Flow(ix)) => Some(ix),
            Some(UpperName::Type(_)) | None => {
                let near = self
                    .tables
                    .near_upper(self.layer, &word, |found| matches!(found, UpperName::Flow(_)))
                    .map(str::to_owned);
                let message = format!("there is no flow `{word}`");
                self.report_unknown(names::UNKNOWN_DECLARATION, name.span(), message, near.as_deref());
                None
            }
        }
    }
}

/// Only a message leaves the open operation as it is.
fn can_stay(named: &Named) -> bool {
    named.iter().all(|(outcome, _)| matches!(outcome, Outcome::Message(_)))
}
