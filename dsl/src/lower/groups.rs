//! Groups: the same effect for many items (`each`), and regions side by side (`parallel`).
//!
//! Leaves the effects of members to `lower::effects`. Invariant: every member gives one type, whatever outcome it ends well with.

use super::effects::Member;
use super::expr::Typed;
use super::flows::{FlowCx, position};
use super::outcomes::{EffectInfo, Level, ResultVar};
use super::scope::Scope;
use crate::check::outcomes::possible;
use crate::check::ty::Ty;
use crate::diag::TextSpan;
use crate::diag::catalogue::{beside, effects, names};
use crate::machine::{Cond, Each, Effect, Expr, Join, Literal, Outcome, Parallel, Region, Wait, Yield};
use crate::syntax::ast::{self, AstNode as _};

impl Scope<'_> {
    /// Lowers `each`.
    pub(super) fn each(&mut self, cx: &FlowCx<'_>, of: &ast::Each) -> Option<(Each, EffectInfo)> {
        let mark = self.enter();
        let (over, item_ty) = self.each_over(of);
        let at_most = self.each_at_most(of);
        let (index, item) = match (of.item(), of.second()) {
            (Some(index), Some(item)) => {
                (Some(self.bind(&index.text(), Ty::Int)), self.bind(&item.text(), item_ty))
            }
            (Some(item), None) => (None, self.bind(&item.text(), item_ty)),
            (None, _) => (None, self.take_slot()),
        };
        let member = of.effect().and_then(|effect| Some((self.member(cx, &effect)?, effect.span())));
        let Some((member, span)) = member else {
            self.leave(mark);
            return None;
        };
        let (yields, item_result) = self.yields(cx, of.yields(), &member, span);
        self.leave(mark);
        let slots = Ty::list(Ty::Slot(Box::new(item_result.clone())));
        let keep_going = of.keeps_going();
        let ok = if keep_going { slots.clone() } else { Ty::list(item_result) };
        let (result, slot) = (of.binding(), self.take_slot());
        let results: Vec<ResultVar> = result
            .into_iter()
            .map(|name| ResultVar { name: name.text(), slot, ok: ok.clone(), partial: Some(slots.clone()) })
            .collect();
        let bound = of.bound().map(|bound| self.wait(&bound));
        let (until, within) = match of.until() {
            // A time after `until` is a deadline, as it is everywhere else.
            Some(time) if bound.is_none() && !of.is_draining() && self.is_time(&time) => {
                (None, Some(Wait::Until(self.expr_as(&time, &Ty::Time))))
            }
            until => (until.map(|until| self.each_until(&until, &results)), bound),
        };
        let draining = of.is_draining();
        let Member { body, info } = member;
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
        let info = EffectInfo {
            ok,
            doubt: info.doubt,
            results,
            group: true,
            activity: info.activity,
            doubt_holds: info.doubt_holds,
            ..EffectInfo::nothing()
        };
        Some((each, info))
    }

    fn each_at_most(&mut self, of: &ast::Each) -> Expr {
        let Some(count) = of.at_most() else { return Expr::Lit(Literal::Int(1)) };
        let expr = self.expr_as(&count, &Ty::Int);
        if let Expr::Lit(Literal::Int(value)) = &expr {
            self.refuse_zero(*value, count.span());
        }
        expr
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

    /// Whether an expression that sees no results is a time; its mistakes are left for when it is lowered.
    fn is_time(&self, of: &ast::Expr) -> bool {
        let mut unheard = Vec::new();
        self.aside(&mut unheard).expr(of, None).ty == Ty::Time
    }

    /// `until COND`, which sees the results so far.
    fn each_until(&mut self, of: &ast::Expr, results: &[ResultVar]) -> Cond {
        let mark = self.enter();
        self.show_partial(results);
        let test = self.bool_expr(of);
        self.leave(mark);
        Cond { test, bind: None }
    }

    /// Lowers `parallel`.
    pub(super) fn parallel(&mut self, cx: &FlowCx<'_>, of: &ast::Parallel) -> (Effect, EffectInfo) {
        let (mut regions, mut results): (Vec<Region>, Vec<(ResultVar, TextSpan)>) = Default::default();
        let mut whole = true;
        for region in of.regions() {
            let Some(name) = region.name() else { continue };
            if regions.iter().any(|one| one.name == name.text()) {
                let message = format!("`{}` is a region already", name.text());
                let diagnostic = self.error(names::DUPLICATE, name.span(), message);
                self.report(diagnostic);
                continue;
            }
            match self.region(cx, &region, &name) {
                Some((region, ty)) => {
                    let slots = Ty::Slot(Box::new(ty.clone()));
                    let var = ResultVar {
                        name: region.name.clone(),
                        slot: region.result,
                        ok: ty,
                        partial: Some(slots),
                    };
                    regions.push(region);
                    results.push((var, name.span()));
                }
                None => whole = false,
            }
        }
        let join = of.join().map(|join| self.join(&join, &regions, whole));
        let within = of.bound().map(|bound| self.wait(&bound));
        let Some(Some(join)) = join else { return (Effect::Wait, EffectInfo::unknown()) };
        if !whole || regions.is_empty() {
            return (Effect::Wait, EffectInfo::unknown());
        }
        let results = results.into_iter().map(|(var, _)| match (join, var.partial.clone()) {
            (Join::Count(_) | Join::Region(_), Some(slot)) => ResultVar { ok: slot, ..var },
            (Join::All, _) | (_, None) => var,
        });
        let results = results.collect();
        let effect = Effect::Parallel(Box::new(Parallel { regions, join, within }));
        let possible = possible(self.tables, &effect);
        (effect, EffectInfo { possible, results, group: true, ..EffectInfo::nothing() })
    }

    /// One region and the type that it gives.
    fn region(&mut self, cx: &FlowCx<'_>, of: &ast::Region, name: &ast::Name) -> Option<(Region, Ty)> {
        let effect = of.effect()?;
        let mark = self.enter();
        let lowered = self.member(cx, &effect).map(|member| {
            let (yields, ty) = self.yields(cx, of.yields(), &member, effect.span());
            (member, yields, ty)
        });
        self.leave(mark);
        let (Member { body, info }, yields, ty) = lowered?;
        let takes_doubt = yields.iter().any(|one| one.guard.is_none() && one.on.contains(&Outcome::Unknown));
        if info.possible.contains(&Outcome::Unknown) && !info.doubt_holds && !takes_doubt {
            let message = "nobody takes care of a doubt: after a crash it may have happened or not";
            let diagnostic = self.error(effects::UNSETTLED_DOUBT, effect.span(), message);
            self.report(diagnostic.expected(
                "`on unknown yield …` in the region, or the words `unknown holds` on the activity",
            ));
        }
        let result = self.take_slot();
        Some((Region { name: name.text(), result, body, yields }, ty))
    }

    /// When the regions are met. `whole` says that none was left out because of a mistake.
    fn join(&mut self, of: &ast::Join, regions: &[Region], whole: bool) -> Option<Join> {
        match of {
            ast::Join::All => Some(Join::All),
            ast::Join::Any => Some(Join::Count(1)),
            ast::Join::Count(written) => {
                let count = written.value().and_then(|count| u32::try_from(count).ok());
                let most = position(regions.len());
                match count {
                    Some(count) if count >= 1 && (count <= most || !whole) => Some(Join::Count(count)),
                    _ => {
                        let message = format!("there are {most} regions to wait for");
                        let diagnostic = self.error(beside::BAD_JOIN, written.span(), message);
                        self.report(diagnostic.expected(format!("a number from 1 to {most}")));
                        None
                    }
                }
            }
            ast::Join::Region(name) => {
                let word = name.text();
                let at = regions.iter().position(|region| region.name == word);
                if at.is_none() && whole {
                    let known = regions.iter().map(|region| region.name.as_str());
                    let near = self.tables.closest(&word, known.chain(["all", "any"])).map(str::to_owned);
                    let message = format!("there is no region `{word}`");
                    self.report_unknown(beside::BAD_JOIN, name.span(), message, near.as_deref());
                }
                at.map(|at| Join::Region(position(at)))
            }
        }
    }

    /// The arrows of a member, and the type that it gives.
    fn yields(
        &mut self,
        cx: &FlowCx<'_>,
        all: impl Iterator<Item = ast::Yield>,
        member: &Member,
        span: TextSpan,
    ) -> (Vec<Yield>, Ty) {
        let info = &member.info;
        let (mut yields, mut values, mut level) = (Vec::new(), Vec::new(), Vec::new());
        for one in all {
            let Some(outcomes) = one.outcomes() else { continue };
            let mark = self.enter();
            let named = self.outcome_names(cx, &outcomes, Some(info));
            let (payload, bind) = self.bind_payload(cx, &outcomes, &named, Some(info));
            let guard = one.guard().and_then(|guard| guard.cond()).map(|cond| self.cond(&cond));
            let value = one.value().map(|value| (self.expr(&value, Some(&info.ok)), value.span()));
            self.leave(mark);
            let Some(value) = value else { continue };
            let on: Vec<_> = named.iter().map(|(outcome, _)| *outcome).collect();
            values.push(value);
            yields.push(Yield { on, payload, bind, guard: guard.clone(), value: Typed::unknown().expr });
            level.push(Level { named, guarded: guard.is_some() });
        }
        self.check_never_taken(cx, &Level::named_first(level), Some(info));
        let mut ty = self.given(cx, &yields, info, span);
        for (value, _) in &values {
            ty = ty.join(&value.ty).unwrap_or(ty);
        }
        for (one, (value, span)) in yields.iter_mut().zip(values) {
            one.value = self.fit(value, &ty, span);
        }
        (yields, ty)
    }

    /// What the good outcomes give that no `yield` takes.
    fn given(&mut self, cx: &FlowCx<'_>, yields: &[Yield], info: &EffectInfo, span: TextSpan) -> Ty {
        let taken =
            |outcome: &Outcome| yields.iter().any(|one| one.guard.is_none() && one.on.contains(outcome));
        let mut ty = Ty::Unknown;
        for outcome in info.possible.iter().filter(|outcome| outcome.is_good() && !taken(outcome)) {
            let given = self.brought(cx, *outcome, info);
            match ty.join(&given) {
                Some(joined) => ty = joined,
                None => {
                    let word = self.outcome_word(cx, *outcome);
                    let (shown, before) = (self.tables.show(&given), self.tables.show(&ty));
                    let message = format!("`{word}` gives `{shown}`, what comes before it `{before}`");
                    let diagnostic = self.error(beside::MIXED_RESULTS, span, message);
                    self.report(diagnostic.expected(format!("`on {word} yield …` with a `{before}`")));
                }
            }
        }
        ty
    }
}
