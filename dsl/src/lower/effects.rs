//! Effects of states: what they open, and what their outcomes bring along.
//!
//! Leaves fan-outs and regions to `lower::groups`, arrows to `lower::arrows`. Invariant: an effect that is wrong beyond repair is
//! reported once and becomes [`Effect::Wait`], with outcomes that nobody asks for.

use super::expr::Typed;
use super::flows::FlowCx;
use super::outcomes::{EffectInfo, ResultVar};
use super::scope::Scope;
use super::word::Word;
use crate::check::outcomes::{as_effect, possible};
use crate::check::ty::Ty;
use crate::diag::TextSpan;
use crate::diag::catalogue::{beside, deadlines, effects};
use crate::machine::{Ask, Await, Branch, EachBody, Effect, Expr, FlowIx, Literal, Spawn, Wait, Who};
use crate::syntax::ast::{self, AstNode as _};

/// A lowered effect that may stand in a group: what it opens, and what its outcomes bring along.
pub(super) struct Member {
    pub(super) body: EachBody,
    pub(super) info: EffectInfo,
}

impl Scope<'_> {
    /// Lowers the effect of a state.
    pub(crate) fn effect(&mut self, cx: &FlowCx<'_>, of: Option<&ast::Effect>) -> (Effect, EffectInfo) {
        let Some(of) = of else { return (Effect::Wait, EffectInfo::nothing()) };
        let (effect, mut info) = self.known_effect(cx, of);
        if info.unknown {
            // The mistake is told; that its variables hold nothing is not another one.
            info.results = self.lost_results(of);
        }
        (effect, info)
    }

    fn known_effect(&mut self, cx: &FlowCx<'_>, of: &ast::Effect) -> (Effect, EffectInfo) {
        match of {
            ast::Effect::Do(_)
            | ast::Effect::Run(_)
            | ast::Effect::Ask(_)
            | ast::Effect::Await(_)
            | ast::Effect::Each(_) => match self.member(cx, of) {
                Some(Member { body, info }) => (as_effect(&body), info),
                None => (Effect::Wait, EffectInfo::unknown()),
            },
            ast::Effect::Choose(choose) => {
                (self.choose(cx, choose), EffectInfo { transient: true, ..EffectInfo::nothing() })
            }
            // A state with steps becomes several states; this is left only of a block that is empty.
            ast::Effect::Steps(_) => (Effect::Wait, EffectInfo::unknown()),
            ast::Effect::Parallel(parallel) => self.parallel(cx, parallel),
            ast::Effect::Spawn(spawn) => self.spawn(spawn),
        }
    }

    /// The variables of an effect of which a mistake leaves nothing.
    fn lost_results(&mut self, of: &ast::Effect) -> Vec<ResultVar> {
        let names: Vec<ast::Name> = match of {
            ast::Effect::Do(one) => one.binding().into_iter().collect(),
            ast::Effect::Run(one) => one.binding().into_iter().collect(),
            ast::Effect::Each(one) => one.binding().into_iter().collect(),
            ast::Effect::Spawn(one) => one.binding().into_iter().collect(),
            ast::Effect::Parallel(one) => one.regions().filter_map(|region| region.name()).collect(),
            ast::Effect::Await(_) | ast::Effect::Ask(_) | ast::Effect::Choose(_) | ast::Effect::Steps(_) => {
                Vec::new()
            }
        };
        let lost = |name: ast::Name| ResultVar {
            name: name.text(),
            slot: self.take_slot(),
            ok: Ty::Unknown,
            partial: Some(Ty::Unknown),
        };
        names.into_iter().map(lost).collect()
    }

    /// An effect that may stand alone or in a group; nothing if its mistakes leave nothing of it.
    pub(super) fn member(&mut self, cx: &FlowCx<'_>, of: &ast::Effect) -> Option<Member> {
        let (body, info) = match of {
            ast::Effect::Do(one) => self.activity_call(one)?,
            ast::Effect::Run(one) => self.run(one)?,
            ast::Effect::Ask(one) => {
                let (ask, ok) = self.ask(one);
                (EachBody::Ask(Box::new(ask)), EffectInfo { ok, ..EffectInfo::nothing() })
            }
            ast::Effect::Await(one) => {
                let (awaited, ended) = self.awaited(cx, one);
                (EachBody::Await(awaited), EffectInfo { ended, ..EffectInfo::nothing() })
            }
            ast::Effect::Each(one) => {
                let (each, info) = self.each(cx, one)?;
                (EachBody::Each(Box::new(each)), info)
            }
            ast::Effect::Spawn(_)
            | ast::Effect::Steps(_)
            | ast::Effect::Parallel(_)
            | ast::Effect::Choose(_) => return None,
        };
        let possible = possible(self.tables, &as_effect(&body));
        Some(Member { body, info: EffectInfo { possible, ..info } })
    }

    fn activity_call(&mut self, of: &ast::Do) -> Option<(EachBody, EffectInfo)> {
        let name = of.activity();
        let activity = name.as_ref().and_then(|name| self.activity_named(name));
        let (Some(activity), Some(name)) = (activity, name) else {
            self.look_at(of.args().as_ref());
            return None;
        };
        let signature = &self.tables.activities[activity.at()];
        let args = self.args(&signature.params, of.args().as_ref(), &signature.name, name.span());
        let ok = signature.result.clone();
        let result = self.result(of.binding(), &ok);
        let body = EachBody::Do(activity, args, result.as_ref().map(|result| result.slot));
        let info = EffectInfo {
            doubt: ok.clone(),
            ok,
            results: result.into_iter().collect(),
            activity: true,
            doubt_holds: signature.unknown_holds,
            ..EffectInfo::nothing()
        };
        Some((body, info))
    }

    fn run(&mut self, of: &ast::Run) -> Option<(EachBody, EffectInfo)> {
        let name = of.flow();
        let (flow, args) = self.flow_call(name.as_ref(), of.args().as_ref())?;
        let wait = of.bound().map(|bound| self.wait(&bound));
        let ok = self.tables.flows[flow.at()].result.clone();
        let result = self.result(of.binding(), &ok);
        let body = EachBody::Run(flow, args, wait, result.as_ref().map(|result| result.slot));
        Some((body, EffectInfo { ok, results: result.into_iter().collect(), ..EffectInfo::nothing() }))
    }

    /// A flow with its arguments.
    fn flow_call(
        &mut self,
        name: Option<&ast::NameRef>,
        args: Option<&ast::ArgList>,
    ) -> Option<(FlowIx, Vec<Expr>)> {
        let flow = name.and_then(|name| self.flow_named(name));
        let (Some(flow), Some(name)) = (flow, name) else {
            self.look_at(args);
            return None;
        };
        let signature = &self.tables.flows[flow.at()];
        Some((flow, self.args(&signature.params, args, &signature.name, name.span())))
    }

    fn spawn(&mut self, of: &ast::Spawn) -> (Effect, EffectInfo) {
        let name = of.flow();
        let called = self.flow_call(name.as_ref(), of.args().as_ref());
        let named = of.id().map(|id| self.expr_as(&id, &Ty::Text));
        let (Some((flow, args)), Some(name)) = (called, name) else {
            return (Effect::Wait, EffectInfo::unknown());
        };
        self.check_travels(flow, name.span());
        let ok = Ty::Handle(flow);
        let result = self.result(of.binding(), &ok);
        let cancel = of.policy() != Some(ast::ClosePolicy::Detach);
        let handle = result.as_ref().map(|result| result.slot);
        let effect = Effect::Spawn(Box::new(Spawn { flow, args, named, cancel, handle }));
        let possible = possible(self.tables, &effect);
        let results = result.into_iter().collect();
        (effect, EffectInfo { possible, ok, results, ..EffectInfo::nothing() })
    }

    /// What goes into another run and comes back is written as JSON, and an approval or a doubt is worth nothing there.
    fn check_travels(&mut self, flow: FlowIx, span: TextSpan) {
        let tables = self.tables;
        let signature = &tables.flows[flow.at()];
        let params = signature.params.iter().map(|param| (format!("takes `{}`", param.name), &param.ty));
        let result = std::iter::once(("gives a result".to_owned(), &signature.result));
        for (what, ty) in params.chain(result).filter(|(_, ty)| tables.is_bound_to_run(ty)) {
            let message = format!("`{}` {what} of type `{}`", signature.name, tables.show(ty));
            let diagnostic = self.error(beside::BOUND_TO_RUN, span, message);
            self.report(diagnostic.hint("hand over the value itself, or `run` the flow inside this run"));
        }
    }

    /// Looks at arguments whose callee is not known.
    pub(super) fn look_at(&mut self, args: Option<&ast::ArgList>) {
        let args = args.into_iter().flat_map(|args| args.args());
        args.filter_map(|arg| arg.value()).for_each(|arg| drop(self.expr(&arg, None)));
    }

    /// The variable of a result takes a slot; arrows bring it into sight.
    fn result(&mut self, name: Option<ast::Name>, ok: &Ty) -> Option<ResultVar> {
        name.map(|name| ResultVar {
            name: name.text(),
            slot: self.take_slot(),
            ok: ok.clone(),
            partial: None,
        })
    }

    /// `within D`, `within forever`, `until T`.
    pub(super) fn wait(&mut self, of: &ast::Bound) -> Wait {
        match of.limitation() {
            ast::Limitation::Forever => Wait::Forever,
            ast::Limitation::Within(Some(bound)) => {
                let expr = self.expr_as(&bound, &Ty::Duration);
                if matches!(expr, Expr::Lit(Literal::Duration(0))) {
                    let diagnostic = self.error(
                        deadlines::ZERO_DEADLINE,
                        bound.span(),
                        "a wait of zero is over before it begins",
                    );
                    self.report(diagnostic.expected("a duration above zero"));
                }
                Wait::Within(expr)
            }
            ast::Limitation::Until(Some(bound)) => Wait::Until(self.expr_as(&bound, &Ty::Time)),
            ast::Limitation::Within(None) | ast::Limitation::Until(None) => Wait::Forever,
        }
    }

    /// What is awaited, and what the end of a spawned run brings along.
    fn awaited(&mut self, cx: &FlowCx<'_>, of: &ast::Await) -> (Await, Ty) {
        let mut all = Await { messages: Vec::new(), closed: false, ended: Vec::new(), wait: Wait::Forever };
        let mut flows = Vec::new();
        for one in of.awaited() {
            let again = match one.awaited() {
                Some(ast::Awaited::Message(name)) => match self.message_named(cx, &Word::from(name)) {
                    Some(ix) if all.messages.contains(&ix) => true,
                    Some(ix) => {
                        all.messages.push(ix);
                        false
                    }
                    None => false,
                },
                Some(ast::Awaited::Closed) => std::mem::replace(&mut all.closed, true),
                Some(ast::Awaited::Ended(handle)) => {
                    let (handle, flow) = self.awaited_run(handle.as_ref());
                    let again = all.ended.contains(&handle);
                    flows.extend(flow.map(|flow| (flow, one.span())));
                    all.ended.push(handle);
                    again
                }
                None => false,
            };
            if again {
                let diagnostic = self.error(effects::REPEATED_AWAIT, one.span(), "this is awaited already");
                self.report(diagnostic);
            }
        }
        if let Some(bound) = of.bound() {
            all.wait = self.wait(&bound);
        }
        (all, self.ended_payload(&flows))
    }

    /// A handle, and the flow of its run.
    fn awaited_run(&mut self, of: Option<&ast::Expr>) -> (Expr, Option<FlowIx>) {
        let Some(of) = of else { return (Typed::unknown().expr, None) };
        let Typed { expr, ty } = self.expr(of, None);
        match ty {
            Ty::Handle(flow) => (expr, Some(flow)),
            Ty::Unknown => (expr, None),
            found => {
                self.report_mismatch_text(
                    &found,
                    "a `handle<F>`, which `spawn F(…) … as h` gives",
                    of.span(),
                );
                (expr, None)
            }
        }
    }

    /// What `ended` brings along: how the run ended, and its handle if all are of one flow.
    fn ended_payload(&mut self, flows: &[(FlowIx, TextSpan)]) -> Ty {
        let Some(((first, _), rest)) = flows.split_first() else { return Ty::Unknown };
        let tables = self.tables;
        let result = &tables.flows[first.at()].result;
        let mut same_flow = true;
        for (flow, span) in rest {
            let other = &tables.flows[flow.at()].result;
            same_flow &= flow == first;
            if other != result {
                let message = format!(
                    "this run gives `{}`, the one before `{}`",
                    tables.show(other),
                    tables.show(result)
                );
                let diagnostic = self.error(beside::MIXED_ENDS, *span, message);
                self.report(diagnostic.hint("await runs with different results in states of their own"));
            }
        }
        let outcome = ("outcome", Ty::Ended(Box::new(result.clone())));
        if same_flow {
            Ty::payload(&[outcome, ("handle", Ty::Handle(*first))])
        } else {
            Ty::payload(&[outcome])
        }
    }

    fn ask(&mut self, of: &ast::Ask) -> (Ask, Ty) {
        let text = of
            .question()
            .map_or(Expr::Lit(Literal::Text(String::new())), |text| self.expr_as(&text, &Ty::Text));
        let show = of.show().and_then(|show| Some((show.value()?, show.is_editable())));
        let shown = show.as_ref().map(|(value, _)| (self.expr(value, None), value.span()));
        let shown_ty = shown.as_ref().map_or(Ty::Nothing, |(typed, _)| typed.ty.clone());
        // What is shown may be approved already; it is asked about the value itself.
        let (show_expr, shown_ty) = match (shown, shown_ty) {
            (Some((Typed { expr, .. }, _)), Ty::Approved(of)) => {
                (Some(Expr::Field(Box::new(expr), "value".to_owned())), *of)
            }
            (Some((Typed { expr, .. }, span)), ty) => {
                self.refuse_secret(&ty, span, "shown");
                (Some(expr), ty)
            }
            (None, ty) => (None, ty),
        };
        let editable = show.as_ref().is_some_and(|(_, editable)| *editable);
        let answer = of.answer().map(|ty| (self.ty(&ty), ty.span()));
        if let Some((ty, span)) = &answer {
            self.refuse_secret(ty, *span, "asked for");
        }
        if let (true, Some((_, span))) = (editable, &answer) {
            let message = "`editable` changes what is approved, `for T` asks for another value";
            let diagnostic = self.error(effects::BAD_ASK, *span, message);
            self.report(diagnostic.expected("one of the two"));
        }
        let to = of.who().map(|who| self.who(&who)).collect();
        let wait = of.bound().map_or(Wait::Forever, |bound| self.wait(&bound));
        let ok = match &answer {
            Some((ty, _)) => Ty::payload(&[("value", ty.clone()), ("by", Ty::Text)]),
            None => Ty::Approved(Box::new(shown_ty.clone())),
        };
        let answer = answer.map(|(ty, _)| ty.stored());
        (Ask { text, show: show_expr, shown: shown_ty.stored(), editable, answer, to, wait }, ok)
    }

    fn who(&mut self, of: &ast::Who) -> Who {
        let count = match of.count() {
            Some(written) => {
                let count = written.value().and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
                self.refuse_zero(i64::from(count), written.span());
                count
            }
            None => 1,
        };
        let role =
            of.role().map_or(Expr::Lit(Literal::Text(String::new())), |role| self.expr_as(&role, &Ty::Text));
        Who { count, role }
    }

    pub(super) fn refuse_zero(&mut self, count: i64, span: TextSpan) {
        if count < 1 {
            let diagnostic = self.error(effects::BAD_COUNT, span, "this counts from one");
            self.report(diagnostic.expected("at least 1"));
        }
    }

    fn choose(&mut self, cx: &FlowCx<'_>, of: &ast::Choose) -> Effect {
        if let Some(value) = of.value() {
            let typed = self.expr(&value, None);
            let ty = typed.ty.bare().clone();
            let Some(subject) = self.union_subject(typed, value.span()) else { return Effect::Wait };
            let arms = of.arms().map(|arms| self.arms(cx, &arms, &ty, value.span())).unwrap_or_default();
            return Effect::Match(subject, arms);
        }
        let mut branches = Vec::new();
        for branch in of.branches() {
            let mark = self.enter();
            let cond = branch.cond().map(|cond| self.cond(&cond));
            let acts = self.acts(cx, &branch.acts());
            let goal = self.goal(cx, branch.goal().as_ref(), false);
            self.leave(mark);
            branches.push(Branch { cond, acts, goal });
        }
        Effect::Choose(branches)
    }
}
