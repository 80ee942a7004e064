//! Effects of states: what they open, and what their outcomes bring along.
//!
//! Leaves arrows to `lower::arrows`. Invariant: an effect that this version does not run is reported once and becomes
//! [`Effect::Wait`], with outcomes that nobody asks for.

use super::expr::Typed;
use super::flows::FlowCx;
use super::outcomes::EffectInfo;
use super::scope::Scope;
use super::word::Word;
use crate::check::outcomes::{as_effect, possible};
use crate::check::ty::Ty;
use crate::diag::catalogue::{deadlines, effects, later};
use crate::diag::{Code, TextSpan};
use crate::machine::{Ask, Await, Branch, Each, EachBody, Effect, Expr, Literal, Slot, Wait, Who, Yield};
use crate::syntax::ast::{self, AstNode as _};

/// A lowered effect that may stand in a group: what it opens, its good result, its variable.
pub(super) struct Member {
    pub(super) body: EachBody,
    pub(super) ok: Ty,
    pub(super) result: Option<(String, Slot)>,
    pub(super) activity: bool,
    pub(super) doubt_holds: bool,
}

impl Scope<'_> {
    /// Lowers the effect of a state.
    pub(crate) fn effect(&mut self, cx: &FlowCx<'_>, of: Option<&ast::Effect>) -> (Effect, EffectInfo) {
        let Some(of) = of else { return (Effect::Wait, EffectInfo::nothing()) };
        match of {
            ast::Effect::Do(_) | ast::Effect::Run(_) | ast::Effect::Ask(_) => self.single(of),
            ast::Effect::Await(one) => {
                let effect = Effect::Await(self.awaited(cx, one));
                let possible = possible(self.tables, &effect);
                (effect, EffectInfo { possible, ..EffectInfo::nothing() })
            }
            ast::Effect::Each(each) => self.each(cx, each),
            ast::Effect::Choose(choose) => {
                (self.choose(cx, choose), EffectInfo { transient: true, ..EffectInfo::nothing() })
            }
            // A state with steps becomes several states; this is left only of a block that is empty.
            ast::Effect::Steps(_) => (Effect::Wait, EffectInfo { unknown: true, ..EffectInfo::nothing() }),
            ast::Effect::Parallel(parallel) => self.not_yet(later::PARALLEL, parallel.span(), "parallel"),
            ast::Effect::Spawn(spawn) => self.not_yet(later::SPAWN, spawn.span(), "spawn"),
        }
    }

    fn not_yet(&mut self, code: Code, span: TextSpan, word: &str) -> (Effect, EffectInfo) {
        let diagnostic = self.error(code, span, format!("`{word}` is not in this version"));
        self.report(diagnostic);
        (Effect::Wait, EffectInfo { unknown: true, ..EffectInfo::nothing() })
    }

    /// `do`, `run` or `ask` as the effect of a state.
    fn single(&mut self, of: &ast::Effect) -> (Effect, EffectInfo) {
        let Some(member) = self.member(of) else {
            return (Effect::Wait, EffectInfo { unknown: true, ..EffectInfo::nothing() });
        };
        let effect = as_effect(&member.body);
        let info = EffectInfo {
            possible: possible(self.tables, &effect),
            ok: member.ok,
            result: member.result,
            partial: None,
            transient: false,
            activity: member.activity,
            doubt_holds: member.doubt_holds,
            unknown: false,
        };
        (effect, info)
    }

    pub(super) fn member(&mut self, of: &ast::Effect) -> Option<Member> {
        match of {
            ast::Effect::Do(one) => {
                let name = one.activity();
                let activity = name.as_ref().and_then(|name| self.activity_named(name));
                let (Some(activity), Some(name)) = (activity, name) else {
                    self.look_at(one.args().as_ref());
                    return None;
                };
                let signature = &self.tables.activities[activity.at()];
                let args = self.args(&signature.params, one.args().as_ref(), &signature.name, name.span());
                let ok = signature.result.clone();
                let result = self.result(one.binding());
                Some(Member {
                    body: EachBody::Do(activity, args, result.as_ref().map(|(_, slot)| *slot)),
                    ok,
                    result,
                    activity: true,
                    doubt_holds: signature.unknown_holds,
                })
            }
            ast::Effect::Run(one) => {
                let name = one.flow();
                let flow = name.as_ref().and_then(|name| self.flow_named(name));
                let (Some(flow), Some(name)) = (flow, name) else {
                    self.look_at(one.args().as_ref());
                    return None;
                };
                let signature = &self.tables.flows[flow.at()];
                let args = self.args(&signature.params, one.args().as_ref(), &signature.name, name.span());
                let wait = one.bound().map(|bound| self.wait(&bound));
                let ok = signature.result.clone();
                let result = self.result(one.binding());
                let body = EachBody::Run(flow, args, wait, result.as_ref().map(|(_, slot)| *slot));
                Some(Member { body, ok, result, activity: false, doubt_holds: true })
            }
            ast::Effect::Ask(one) => {
                let (ask, ok) = self.ask(one);
                Some(Member {
                    body: EachBody::Ask(Box::new(ask)),
                    ok,
                    result: None,
                    activity: false,
                    doubt_holds: true,
                })
            }
            ast::Effect::Spawn(_)
            | ast::Effect::Steps(_)
            | ast::Effect::Each(_)
            | ast::Effect::Parallel(_)
            | ast::Effect::Await(_)
            | ast::Effect::Choose(_) => None,
        }
    }

    /// Looks at arguments whose callee is not known.
    fn look_at(&mut self, args: Option<&ast::ArgList>) {
        let args = args.into_iter().flat_map(|args| args.args());
        args.filter_map(|arg| arg.value()).for_each(|arg| drop(self.expr(&arg, None)));
    }

    /// The variable of a result takes a slot; arrows bring it into sight.
    fn result(&mut self, name: Option<ast::Name>) -> Option<(String, Slot)> {
        name.map(|name| (name.text(), self.take_slot()))
    }

    /// `within D`, `within forever`, `until T`.
    fn wait(&mut self, of: &ast::Bound) -> Wait {
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

    fn awaited(&mut self, cx: &FlowCx<'_>, of: &ast::Await) -> Await {
        let mut all = Await { messages: Vec::new(), closed: false, ended: Vec::new(), wait: Wait::Forever };
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
                Some(ast::Awaited::Ended(_)) => {
                    let diagnostic =
                        self.error(later::SPAWN, one.span(), "`await ended` is not in this version");
                    self.report(diagnostic);
                    false
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
        all
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

    fn refuse_zero(&mut self, count: i64, span: TextSpan) {
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

    fn each(&mut self, cx: &FlowCx<'_>, of: &ast::Each) -> (Effect, EffectInfo) {
        let unknown = EffectInfo { unknown: true, ..EffectInfo::nothing() };
        let mark = self.enter();
        let (over, item_ty) = self.each_over(of);
        let at_most = of.at_most().map_or(Expr::Lit(Literal::Int(1)), |count| {
            let expr = self.expr_as(&count, &Ty::Int);
            if let Expr::Lit(Literal::Int(value)) = &expr {
                self.refuse_zero(*value, count.span());
            }
            expr
        });
        let (index, item) = match (of.item(), of.second()) {
            (Some(index), Some(item)) => {
                (Some(self.bind(&index.text(), Ty::Int)), self.bind(&item.text(), item_ty))
            }
            (Some(item), None) => (None, self.bind(&item.text(), item_ty)),
            (None, _) => (None, self.take_slot()),
        };
        let member = of.effect().and_then(|effect| self.member(&effect));
        let Some(member) = member else {
            self.leave(mark);
            return (Effect::Wait, unknown);
        };
        let (yields, item_result) = self.yields(cx, of, &member);
        self.leave(mark);
        let slots = Ty::list(Ty::Slot(Box::new(item_result.clone())));
        let result = self.result(of.binding());
        let slot = result.as_ref().map_or_else(|| self.take_slot(), |(_, slot)| *slot);
        let until = of.until().map(|until| self.each_until(&until, result.as_ref(), &slots));
        let keep_going = of.keeps_going();
        let within = of.bound().map(|bound| self.wait(&bound));
        let (draining, body) = (of.is_draining(), member.body);
        let each = Each {
            item,
            index,
            over,
            at_most,
            until,
            draining,
            keep_going,
            within,
            body,
            yields,
            result: slot,
        };
        let effect = Effect::Each(Box::new(each));
        let info = EffectInfo {
            possible: possible(self.tables, &effect),
            ok: if keep_going { slots.clone() } else { Ty::list(item_result) },
            result,
            partial: Some(slots),
            transient: false,
            activity: member.activity,
            doubt_holds: member.doubt_holds,
            unknown: false,
        };
        (effect, info)
    }

    fn each_over(&mut self, of: &ast::Each) -> (Expr, Ty) {
        let Some(over) = of.over() else { return (Typed::unknown().expr, Ty::Unknown) };
        let typed = self.expr(&over, None);
        let expr = self.value_of_approved(typed.expr, &typed.ty);
        match typed.ty {
            Ty::Approved(of) => match *of {
                Ty::List(item) => (expr, *item),
                found => self.not_a_list(expr, &found, over.span()),
            },
            Ty::List(item) => (expr, *item),
            Ty::Unknown => (expr, Ty::Unknown),
            found => self.not_a_list(expr, &found, over.span()),
        }
    }

    fn not_a_list(&mut self, expr: Expr, found: &Ty, span: TextSpan) -> (Expr, Ty) {
        self.report_mismatch_text(found, "a list", span);
        (expr, Ty::Unknown)
    }

    /// `until COND`, which sees the results so far.
    fn each_until(
        &mut self,
        of: &ast::Expr,
        result: Option<&(String, Slot)>,
        slots: &Ty,
    ) -> crate::machine::Cond {
        let mark = self.enter();
        if let Some((name, slot)) = result {
            self.show(name, slots.clone(), Expr::Local(*slot));
        }
        let test = self.bool_expr(of);
        self.leave(mark);
        crate::machine::Cond { test, bind: None }
    }

    /// The arrows of a member, and the type that each member yields.
    fn yields(&mut self, cx: &FlowCx<'_>, of: &ast::Each, member: &Member) -> (Vec<Yield>, Ty) {
        let effect = as_effect(&member.body);
        let info = EffectInfo {
            possible: possible(self.tables, &effect),
            ok: member.ok.clone(),
            result: member.result.clone(),
            partial: None,
            transient: false,
            activity: member.activity,
            doubt_holds: member.doubt_holds,
            unknown: false,
        };
        let mut yields = Vec::new();
        let mut values = Vec::new();
        for one in of.yields() {
            let Some(outcomes) = one.outcomes() else { continue };
            let mark = self.enter();
            let named = self.outcome_names(cx, &outcomes, Some(&info));
            let (payload, bind) = self.bind_payload(cx, &outcomes, &named, Some(&info));
            let guard = one.guard().and_then(|guard| guard.cond()).map(|cond| self.cond(&cond));
            let value = one.value().map(|value| (self.expr(&value, Some(&member.ok)), value.span()));
            self.leave(mark);
            let Some((value, span)) = value else { continue };
            let on: Vec<_> = named.iter().map(|(outcome, _)| *outcome).collect();
            values.push((value, span));
            yields.push(Yield { on, payload, bind, guard, value: Typed::unknown().expr });
        }
        let ok_is_yielded =
            yields.iter().any(|one| one.guard.is_none() && one.on.iter().any(|on| info.is_good(*on)));
        let mut ty = if ok_is_yielded { Ty::Unknown } else { member.ok.clone() };
        for (value, _) in &values {
            ty = ty.join(&value.ty).unwrap_or(ty);
        }
        for (one, (value, span)) in yields.iter_mut().zip(values) {
            one.value = self.fit(value, &ty, span);
        }
        (yields, ty)
    }
}
