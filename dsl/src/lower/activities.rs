//! Activities: their clauses, and whether these fit together.
//!
//! Leaves retry policies to `lower::defs`. Invariant: every deadline of a lowered activity is above zero and holds the deadlines
//! and waits inside it.

use super::scope::Scope;
use crate::check::declare::Texts;
use crate::check::tables::{ActivitySig, LowerName, Tables, names_and_types};
use crate::check::ty::Ty;
use crate::diag::catalogue::{deadlines, effects, names, types};
use crate::diag::{Diagnostic, TextSpan};
use crate::machine::link::Program;
use crate::machine::{Activity, ActivityIx, CatalogueIx, EffectClass, Retry, RetryIx};
use crate::syntax::ast::{self, AstNode as _};

/// The shape that an activity after `verify` or `undo` must have.
struct Helper<'t> {
    of: &'t str,
    params: Vec<(String, Ty)>,
    result: Option<Ty>,
}

/// The queue of activities that name none.
const DEFAULT_QUEUE: &str = "default";

/// Lowers all activities; the retry policies are there already.
pub(crate) fn activities(texts: &Texts, tables: &Tables, program: &mut Program, out: &mut Vec<Diagnostic>) {
    for (at, (file, text)) in texts.activities.iter().enumerate() {
        let mut scope = Scope::new(tables, tables.layer_of(*file), *file, out);
        let activity = scope.activity(text, &tables.activities[at], &program.retries);
        program.activities.push(activity);
    }
    for (at, (file, text)) in texts.activities.iter().enumerate() {
        let mut scope = Scope::new(tables, tables.layer_of(*file), *file, out);
        scope.check_helpers(text, at, program);
    }
}

impl Scope<'_> {
    fn activity(&mut self, text: &ast::Activity, signature: &ActivitySig, retries: &[Retry]) -> Activity {
        let params = self.field_defs(&signature.params);
        if let Some(written) = text.result() {
            self.refuse_secret(&signature.result, written.span(), "the result of an activity");
        }
        let retry = text.retry().and_then(|name| self.retry_named(&name));
        let effect = self.effect_class(text, signature);
        let undo = text.undo().and_then(|undo| {
            let helper = self.activity_named(&undo.activity()?)?;
            Some((helper, undo.is_always()))
        });
        let activity = Activity {
            name: signature.name.clone(),
            params,
            result: signature.result.stored(),
            raises: signature.raises.clone(),
            within_ms: self.deadline(text.within()),
            in_all_ms: text.in_all().map(|written| self.deadline(Some(written))),
            silent_ms: text.silent().map(|written| self.deadline(Some(written))),
            retry,
            costs: text.costs().and_then(|costs| costs.digits()),
            queue: text.queue().and_then(|queue| queue.plain()).unwrap_or_else(|| DEFAULT_QUEUE.to_owned()),
            effect,
            undo,
            unknown_holds: signature.unknown_holds,
        };
        self.check_deadlines(text, &activity);
        if let (Some(retry), Some(name)) = (retry, text.retry()) {
            self.check_retry(&name, &activity, &retries[retry.at()]);
        }
        activity
    }

    /// A deadline that is written as a literal; zero is refused.
    fn deadline(&mut self, written: Option<ast::DurLiteral>) -> u64 {
        let Some(written) = written else { return 1 };
        let ms = written.ms().and_then(|ms| u64::try_from(ms).ok()).unwrap_or(1);
        if ms == 0 {
            let diagnostic = self.error(
                deadlines::ZERO_DEADLINE,
                written.span(),
                "a deadline of zero is over before it begins",
            );
            self.report(diagnostic.expected("a duration above zero"));
        }
        ms
    }

    fn check_deadlines(&mut self, text: &ast::Activity, activity: &Activity) {
        if let (Some(in_all), Some(written)) = (activity.in_all_ms, text.in_all())
            && activity.within_ms > in_all
        {
            let message = format!(
                "one attempt may take {}, all together only {}",
                shown(activity.within_ms),
                shown(in_all)
            );
            let diagnostic = self.error(deadlines::ATTEMPT_LONGER, written.span(), message);
            self.report(diagnostic.expected(format!("at least `in all {}`", shown(activity.within_ms))));
        }
        if let (Some(silent), Some(written)) = (activity.silent_ms, text.silent())
            && silent >= activity.within_ms
        {
            let message = format!("an attempt is over after {} anyway", shown(activity.within_ms));
            let diagnostic = self.error(deadlines::SILENCE_LONGER, written.span(), message);
            self.report(diagnostic.expected(format!("less than {}", shown(activity.within_ms))));
        }
    }

    fn check_retry(&mut self, name: &ast::NameRef, activity: &Activity, retry: &Retry) {
        if matches!(activity.effect, EffectClass::Once(None) | EffectClass::From(_, _, None)) {
            let message = format!(
                "`{}` may have happened although it failed, so it is not tried again blindly",
                activity.name
            );
            let diagnostic = self.error(effects::BLIND_RETRY, name.span(), message);
            self.report(
                diagnostic
                    .expected("`verify f` after the effect")
                    .hint("`f` looks whether it happened: `activity f(…) -> Verdict<T>`"),
            );
        }
        let budget = activity.in_all_ms.unwrap_or(activity.within_ms);
        for rule in &retry.rules {
            let waits = waits_ms(rule.attempts_max, rule.wait_ms, rule.wait_ms_max);
            let timed = rule.on.iter().any(|on| matches!(on.as_str(), "timeout" | "problem"));
            let attempts = if timed && activity.in_all_ms.is_some() {
                activity.within_ms.saturating_mul(u64::from(rule.attempts_max))
            } else {
                0
            };
            let needed = waits.saturating_add(attempts);
            if needed > budget {
                let clause = if activity.in_all_ms.is_some() { "in all" } else { "within" };
                let message = format!(
                    "{} attempts on {} take up to {}, but `{clause}` is {}",
                    rule.attempts_max,
                    rule.on.join(", "),
                    shown(needed),
                    shown(budget)
                );
                let diagnostic = self.error(deadlines::RETRIES_LONGER, name.span(), message);
                self.report(
                    diagnostic.expected(format!("at least `{clause} {}`, or fewer attempts", shown(needed))),
                );
            }
        }
    }

    fn retry_named(&mut self, name: &ast::NameRef) -> Option<RetryIx> {
        let word = name.text();
        let found = self.tables.retry(self.layer, &word);
        if found.is_none() {
            let near = self.tables.near_retry(self.layer, &word).map(str::to_owned);
            let message = format!("there is no retry policy `{word}`");
            self.report_unknown(names::UNKNOWN_DECLARATION, name.span(), message, near.as_deref());
        }
        found
    }

    /// An activity by its name; reports what is none.
    pub(crate) fn activity_named(&mut self, name: &ast::NameRef) -> Option<ActivityIx> {
        let word = name.text();
        match self.tables.lower(self.layer, &word) {
            Some(LowerName::Activity(ix)) => Some(ix),
            Some(LowerName::Function(_)) => {
                let message = format!("`{word}` is a function");
                let diagnostic = self.error(names::UNKNOWN_DECLARATION, name.span(), message);
                self.report(
                    diagnostic.expected("an activity").hint("functions are called inside expressions"),
                );
                None
            }
            Some(LowerName::Catalogue(_)) | None => {
                let near = self
                    .tables
                    .near_lower(self.layer, &word, |found| matches!(found, LowerName::Activity(_)));
                let near = near.map(str::to_owned);
                let message = format!("there is no activity `{word}`");
                self.report_unknown(names::UNKNOWN_DECLARATION, name.span(), message, near.as_deref());
                None
            }
        }
    }

    fn effect_class(&mut self, text: &ast::Activity, signature: &ActivitySig) -> EffectClass {
        let Some(class) = text.effect() else { return EffectClass::Pure };
        let verify = class.verify().and_then(|name| self.activity_named(&name));
        match class.word() {
            Some(ast::EffectWord::Pure) | None => EffectClass::Pure,
            Some(ast::EffectWord::Idempotent) => EffectClass::Idempotent,
            Some(ast::EffectWord::Once) => EffectClass::Once(verify),
            Some(ast::EffectWord::From) => {
                let found =
                    class.catalogue().and_then(|name| Some((self.catalogue_named(&name)?, name.span())));
                match found {
                    Some((ix, span)) => EffectClass::From(ix, self.tool_call_param(signature, span), verify),
                    None => EffectClass::Once(verify),
                }
            }
        }
    }

    fn catalogue_named(&mut self, name: &ast::NameRef) -> Option<CatalogueIx> {
        let word = name.text();
        if let Some(LowerName::Catalogue(ix)) = self.tables.lower(self.layer, &word) {
            return Some(ix);
        }
        let near = self
            .tables
            .near_lower(self.layer, &word, |found| matches!(found, LowerName::Catalogue(_)))
            .map(str::to_owned);
        let message = format!("there is no catalogue `{word}`");
        self.report_unknown(names::UNKNOWN_DECLARATION, name.span(), message, near.as_deref());
        None
    }

    /// Where the parameters hold the tool call whose class counts.
    fn tool_call_param(&mut self, signature: &ActivitySig, span: TextSpan) -> u32 {
        let call = self.tables.library_type("ToolCall");
        let found = signature.params.iter().position(|param| *param.ty.bare() == call);
        if found.is_none() {
            let message = format!("`{}` takes no tool call whose class could count", signature.name);
            let diagnostic = self.error(effects::NO_TOOL_CALL, span, message);
            self.report(diagnostic.expected("a parameter of type `ToolCall` or `approved<ToolCall>`"));
        }
        found.and_then(|at| u32::try_from(at).ok()).unwrap_or(0)
    }

    /// Checks the shapes of the activities after `verify` and `undo`.
    fn check_helpers(&mut self, text: &ast::Activity, at: usize, program: &Program) {
        let activity = &program.activities[at];
        let verify = match activity.effect {
            EffectClass::Once(verify) | EffectClass::From(_, _, verify) => verify,
            EffectClass::Pure | EffectClass::Idempotent => None,
        };
        let own = &self.tables.activities[at];
        let params: Vec<(String, Ty)> = names_and_types(&own.params);
        let verify_name = text.effect().and_then(|class| class.verify());
        if let (Some(ix), Some(name)) = (verify, verify_name) {
            let result = Ty::Verdict(Box::new(own.result.clone()));
            let wanted = Helper { of: &own.name, params: params.clone(), result: Some(result) };
            self.check_helper(&name, &wanted, ix, program);
        }
        let undo_name = text.undo().and_then(|undo| undo.activity());
        if let (Some((ix, _)), Some(name)) = (activity.undo, undo_name) {
            let mut params = params;
            // What gives nothing has no result that could help to undo it.
            if own.result != Ty::Nothing || self.tables.activities[ix.at()].params.len() > params.len() {
                params.push(("result".to_owned(), Ty::option(own.result.clone())));
            }
            self.check_helper(&name, &Helper { of: &own.name, params, result: None }, ix, program);
        }
    }

    fn check_helper(
        &mut self,
        name: &ast::NameRef,
        wanted: &Helper<'_>,
        helper: ActivityIx,
        program: &Program,
    ) {
        let found = &self.tables.activities[helper.at()];
        let same_params = found.params.len() == wanted.params.len()
            && found
                .params
                .iter()
                .zip(&wanted.params)
                .all(|(param, (name, ty))| param.name == *name && ty.fits(&param.ty).is_some());
        let same_result = wanted.result.as_ref().is_none_or(|result| found.result.same(result));
        let class = program.activities[helper.at()].effect;
        let repeatable = matches!(class, EffectClass::Pure | EffectClass::Idempotent);
        if same_params && same_result && repeatable {
            return;
        }
        let params: Vec<String> =
            wanted.params.iter().map(|(name, ty)| format!("{name}: {}", self.tables.show(ty))).collect();
        let result = wanted
            .result
            .as_ref()
            .map_or(String::new(), |result| format!(" -> {}", self.tables.show(result)));
        let message = if same_params && same_result {
            format!("`{}` must be `pure` or `idempotent`: it is called again after a crash", found.name)
        } else {
            format!("`{}` has another shape than `{}` needs", found.name, wanted.of)
        };
        let expected =
            format!("`activity {}({}){result}`, `pure` or `idempotent`", found.name, params.join(", "));
        let diagnostic = self.error(effects::WRONG_HELPER, name.span(), message);
        self.report(diagnostic.expected(expected));
    }

    /// Refuses a secret anywhere but among the arguments of an activity.
    pub(crate) fn refuse_secret(&mut self, ty: &Ty, span: TextSpan, what: &str) {
        if self.tables.holds_secret(ty) {
            let diagnostic = self.error(types::SECRET_USED, span, format!("a secret cannot be {what}"));
            self.report(diagnostic);
        }
    }
}

/// All waits of a rule together.
fn waits_ms(attempts_max: u32, wait_ms: u64, wait_ms_max: Option<u64>) -> u64 {
    let mut left = u64::from(attempts_max.saturating_sub(1));
    let mut sum: u64 = 0;
    let mut wait = wait_ms;
    while let Some(cap) = wait_ms_max
        && left > 0
        && wait < cap
        && wait > 0
    {
        sum = sum.saturating_add(wait);
        wait = wait.saturating_mul(2).min(cap);
        left -= 1;
    }
    // From here on every wait is the same.
    sum.saturating_add(wait.saturating_mul(left))
}

/// A span of time as it is written.
pub(crate) fn shown(ms: u64) -> String {
    const UNITS: [(u64, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
    let mut left = ms;
    let mut text = String::new();
    for (size, unit) in UNITS {
        if left >= size {
            text.push_str(&format!("{}{unit}", left / size));
            left %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}
