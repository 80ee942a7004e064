//! Acts: what an arrow does on its way.
//!
//! Leaves where it leads to `lower::arrows`. Invariant: acts are lowered in the order of the grammar: set, discard, settle, also
//! do, emit.

use super::expr::Typed;
use super::flows::FlowCx;
use super::scope::Scope;
use crate::check::operators;
use crate::check::ty::Ty;
use crate::diag::catalogue::{beside, flows, names, types};
use crate::machine::{Act, Assign, AssignOp, BinaryOp, Expr};
use crate::syntax::ast::{self, AstNode as _};

impl Scope<'_> {
    /// Lowers acts in the order of the grammar: set, discard, settle, also do, emit.
    pub(crate) fn acts(&mut self, cx: &FlowCx<'_>, of: &ast::Acts) -> Vec<Act> {
        let mut acts: Vec<Act> = of.assigns().filter_map(|assign| self.assign(cx, &assign)).collect();
        for name in of.discards() {
            acts.extend(self.message_named(cx, &name.into()).map(Act::Discard));
        }
        acts.extend(of.settles().filter_map(|settle| self.settle(&settle)));
        acts.extend(of.also_dos().filter_map(|also| self.also_do(&also)));
        for emit in of.emits() {
            acts.extend(emit.value().map(|value| Act::Emit(self.emitted(cx, &value))));
        }
        acts
    }

    fn emitted(&mut self, cx: &FlowCx<'_>, value: &ast::Expr) -> Expr {
        let Some(want) = &cx.signature.emits else {
            let message = format!("`{}` does not say that it emits", cx.signature.name);
            let diagnostic = self.error(flows::NO_EMITS, value.span(), message);
            self.report(diagnostic.expected("`emits T` after the result of the flow"));
            return self.expr(value, None).expr;
        };
        self.refuse_secret(want, value.span(), "emitted");
        self.expr_as(value, want)
    }

    /// `settle d as v`: the doubt is a variable, and the verdict is about its operation.
    fn settle(&mut self, of: &ast::Settle) -> Option<Act> {
        let (name, verdict) = (of.doubt()?, of.verdict()?);
        let Typed { expr: doubt, ty } = self.variable(&name);
        let result = match ty {
            Ty::Doubt(result) => *result,
            Ty::Unknown => {
                self.expr(&verdict, None);
                return None;
            }
            found => {
                self.expr(&verdict, None);
                self.report_mismatch_text(&found, "a `doubt<T>`, which `on unknown as d` gives", name.span());
                return None;
            }
        };
        let in_scope = result.is_unknown();
        let lowered = self.expr_as(&verdict, &Ty::Verdict(Box::new(result)));
        let tag = match &lowered {
            Expr::BuiltinRecord(tag, _) => tag.as_deref(),
            _ => None,
        };
        if tag == Some("CannotTell") {
            let diagnostic =
                self.error(beside::SETTLES_NOTHING, verdict.span(), "this leaves the doubt as it was");
            self.report(diagnostic.expected("`Happened { result: … }` or `NotHappened`"));
        } else if in_scope && tag != Some("NotHappened") {
            let message = "which operation is in doubt differs from state to state, and so does its result";
            let diagnostic = self.error(flows::SCOPE_OUTCOME, verdict.span(), message);
            self.report(diagnostic.hint("settle it as happened in an arrow of the state"));
        }
        Some(Act::Settle(doubt, lowered))
    }

    /// `also do a(x)`: what nobody waits for can only be work that may be repeated and costs nothing.
    fn also_do(&mut self, of: &ast::AlsoDo) -> Option<Act> {
        let name = of.activity()?;
        let Some(activity) = self.activity_named(&name) else {
            self.look_at(of.args().as_ref());
            return None;
        };
        let signature = &self.tables.activities[activity.at()];
        let args = self.args(&signature.params, of.args().as_ref(), &signature.name, name.span());
        let refused = [
            (
                signature.doubtful,
                beside::ALSO_ONCE,
                "must not be repeated blindly, and nothing here would take its doubt",
                "an activity that is `pure` or `idempotent`",
            ),
            (
                signature.costly,
                beside::ALSO_COSTS,
                "costs something, and no way out of a limit would end its wait for money",
                "an activity without `costs`",
            ),
        ];
        for (_, code, why, expected) in refused.into_iter().filter(|(applies, ..)| *applies) {
            let diagnostic = self.error(code, name.span(), format!("`{}` {why}", signature.name));
            self.report(diagnostic.expected(expected).hint("give it a state of its own"));
        }
        Some(Act::AlsoDo(activity, args))
    }

    pub(super) fn assign(&mut self, cx: &FlowCx<'_>, of: &ast::Assign) -> Option<Act> {
        let target = of.target()?;
        let word = target.text();
        let Some(data) = cx.names.data(&word) else {
            if let Some(value) = of.value() {
                self.expr(&value, None);
            }
            self.report_not_data(cx, &target, &word);
            return None;
        };
        let ty = cx.names.data[data.at()].1.clone();
        let value = of.value()?;
        let op = match of.op() {
            ast::AssignOp::Set => {
                let value = self.expr_as(&value, &ty);
                return Some(Act::Set(Assign { data, op: AssignOp::Set, value }));
            }
            ast::AssignOp::Add => AssignOp::Add,
            ast::AssignOp::Subtract => AssignOp::Sub,
        };
        let binary = if op == AssignOp::Add { BinaryOp::Add } else { BinaryOp::Sub };
        // A time is moved by a duration; everything else by its like.
        let hint = if ty == Ty::Time { Ty::Duration } else { ty.clone() };
        let typed = self.expr(&value, Some(&hint));
        let changed = operators::binary(binary, &ty, &typed.ty, false);
        if !changed.is_some_and(|changed| changed.same(&ty)) {
            let (shown, by) = (self.tables.show(&ty), self.tables.show(&typed.ty));
            let sign = if op == AssignOp::Add { "+=" } else { "-=" };
            let message = format!("`{word}` is `{shown}`, which `{sign}` does not change by `{by}`");
            let diagnostic = self.error(types::WRONG_OPERANDS, value.span(), message);
            self.report(diagnostic.expected(operators::takes(binary)));
        }
        Some(Act::Set(Assign { data, op, value: typed.expr }))
    }

    fn report_not_data(&mut self, cx: &FlowCx<'_>, target: &ast::NameRef, word: &str) {
        if self.find(word).is_some() {
            let message = format!("`{word}` is no data of the flow and never changes");
            let diagnostic = self.error(flows::NOT_DATA, target.span(), message);
            self.report(
                diagnostic
                    .hint("hand the new value on as an argument of the next state, or keep it in `data`"),
            );
            return;
        }
        let near =
            self.tables.closest(word, cx.names.data.iter().map(|(name, _)| name.as_str())).map(str::to_owned);
        let message = format!("the flow has no data `{word}`");
        self.report_unknown(names::UNKNOWN_NAME, target.span(), message, near.as_deref());
    }
}
