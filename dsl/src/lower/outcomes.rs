//! What arrows say of outcomes: which they name, what these bring along, and whether every outcome has an arrow.
//!
//! Leaves the set of possible outcomes to `check::outcomes`. Invariant: after [`Scope::check_outcomes`] without a mistake every
//! possible outcome is taken by exactly one arrow whose guard holds.

use super::arrows::OwnArrow;
use super::flows::FlowCx;
use super::scope::Scope;
use super::word::Word;
use crate::check::graph::covers;
use crate::check::tables::names_and_types;
use crate::check::ty::Ty;
use crate::diag::TextSpan;
use crate::diag::catalogue::{effects, flows, names};
use crate::machine::{Arrow, Bind, Expr, MessageIx, Outcome, Payload, Slot};
use crate::syntax::ast::{self, AstNode as _};

/// A variable that holds the result of an effect, or of one of its regions.
#[derive(Clone, Debug)]
pub(crate) struct ResultVar {
    pub(crate) name: String,
    pub(crate) slot: Slot,
    /// What it holds on `ok`.
    pub(crate) ok: Ty,
    /// What it holds on all other outcomes; groups only.
    pub(crate) partial: Option<Ty>,
}

/// What an effect can lead to and what its outcomes bring along.
#[derive(Clone, Debug)]
pub(crate) struct EffectInfo {
    /// The closed set.
    pub(crate) possible: Vec<Outcome>,
    /// What `ok`, `approve` or `answer` brings along.
    pub(crate) ok: Ty,
    /// What `ended` brings along.
    pub(crate) ended: Ty,
    /// The result of the operation that `unknown` doubts.
    pub(crate) doubt: Ty,
    /// The variables of the results.
    pub(crate) results: Vec<ResultVar>,
    /// Whether it holds others: then every timeout is a `Problem`.
    pub(crate) group: bool,
    /// Whether the effect never waits.
    pub(crate) transient: bool,
    /// Whether it is an activity: a timeout of one is a `Problem`.
    pub(crate) activity: bool,
    /// Whether a doubt waits for a person, so that it needs no arrow.
    pub(crate) doubt_holds: bool,
    /// Whether the effect is not known because of a mistake; then nothing is said about its arrows.
    pub(crate) unknown: bool,
}

impl EffectInfo {
    /// A state that only waits for messages and timers.
    pub(crate) fn nothing() -> EffectInfo {
        EffectInfo {
            possible: Vec::new(),
            ok: Ty::Nothing,
            ended: Ty::Unknown,
            doubt: Ty::Unknown,
            results: Vec::new(),
            group: false,
            transient: false,
            activity: false,
            doubt_holds: true,
            unknown: false,
        }
    }

    /// An effect of which a mistake leaves nothing.
    pub(crate) fn unknown() -> EffectInfo {
        EffectInfo { unknown: true, ok: Ty::Unknown, ..EffectInfo::nothing() }
    }
}

/// One arrow of those that are tried one after the other, as far as it matters for which is taken.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) named: Named,
    pub(crate) guarded: bool,
}

impl Level {
    pub(crate) fn of(arrows: &[OwnArrow]) -> Vec<Level> {
        let one = |own: &OwnArrow| Level { named: own.named.clone(), guarded: own.arrow.guard.is_some() };
        arrows.iter().map(one).collect()
    }

    /// Puts those on `problem` behind those on a single failure, in which order they are tried.
    pub(crate) fn named_first(all: Vec<Level>) -> Vec<Level> {
        let on_problem = |one: &Level| one.named.iter().any(|(on, _)| *on == Outcome::Problem);
        let (rest, named): (Vec<_>, Vec<_>) = all.into_iter().partition(on_problem);
        named.into_iter().chain(rest).collect()
    }
}

/// The outcomes with a word of their own.
pub(crate) const WORDS: &[(&str, Outcome)] = &[
    ("ok", Outcome::Ok),
    ("failed", Outcome::Failed),
    ("timeout", Outcome::Timeout),
    ("problem", Outcome::Problem),
    ("unknown", Outcome::Unknown),
    ("closed", Outcome::Closed),
    ("approve", Outcome::Approve),
    ("answer", Outcome::Answer),
    ("reject", Outcome::Reject),
    ("ended", Outcome::Ended),
    ("exists", Outcome::Exists),
    ("undo_failed", Outcome::UndoFailed),
];

/// The outcome names of an arrow, each with its place.
pub(crate) type Named = Vec<(Outcome, TextSpan)>;

impl Scope<'_> {
    /// Reads the outcomes of an arrow of a state (`info`) or of the flow (no `info`).
    pub(crate) fn outcome_names(
        &mut self,
        cx: &FlowCx<'_>,
        of: &ast::Outcomes,
        info: Option<&EffectInfo>,
    ) -> Named {
        let mut all = Named::new();
        for written in of.names() {
            let Some(name) = written.name().map(Word::from) else { continue };
            if let Some(prefix) = written.qualifier() {
                let message = "an outcome has no prefix";
                let diagnostic = self.error(flows::IMPOSSIBLE, prefix.span(), message);
                self.report(
                    diagnostic.hint(
                        "what a region of `parallel` makes of its outcomes stands in it: `on X yield v`",
                    ),
                );
                continue;
            }
            let Some(outcome) = self.outcome_named(cx, &name, info) else { continue };
            if all.iter().any(|(before, _)| *before == outcome) {
                let message = format!("`{}` stands here twice", name.text());
                let diagnostic = self.error(flows::NEVER_TAKEN, name.span(), message);
                self.report(diagnostic);
                continue;
            }
            if let Some(info) = info {
                self.check_possible(cx, outcome, &name, info);
            }
            all.push((outcome, name.span()));
        }
        all
    }

    fn outcome_named(&mut self, cx: &FlowCx<'_>, name: &Word, info: Option<&EffectInfo>) -> Option<Outcome> {
        let word = name.text();
        if let Some((_, outcome)) = WORDS.iter().find(|(one, _)| *one == word) {
            return Some(*outcome);
        }
        let message = cx.names.message(&word).map(Outcome::Message);
        // What an effect can lead to needs no name in sight: the effect brings it along.
        let brought = |outcome: &&Outcome| matches!(outcome, Outcome::Error(ix) if self.tables.types[ix.at()].name == word);
        let brought = info.and_then(|info| info.possible.iter().find(brought)).copied();
        let error = brought.or_else(|| self.tables.error(self.layer, &word).map(Outcome::Error));
        // A message and an error may have one name; what the effect can lead to decides.
        let possible = |outcome: &Outcome| info.is_some_and(|info| info.possible.contains(outcome));
        let found = error.filter(possible).or(message).or(error);
        if found.is_none() {
            let known = WORDS.iter().map(|(one, _)| *one);
            let messages = cx.names.messages.iter().map(|message| message.name.as_str());
            let near = self.tables.closest(&word, known.chain(messages)).map(str::to_owned);
            let tables = self.tables;
            let is_error =
                |found| matches!(found, crate::check::tables::UpperName::Type(ix) if tables.is_error(ix));
            let near = near.or_else(|| tables.near_upper(self.layer, &word, is_error).map(str::to_owned));
            let text = format!("there is no outcome, error or message `{word}`");
            self.report_unknown(names::UNKNOWN_ERROR, name.span(), text, near.as_deref());
            self.outcome_lost = true;
        }
        found
    }

    fn check_possible(&mut self, cx: &FlowCx<'_>, outcome: Outcome, name: &Word, info: &EffectInfo) {
        let possible = match outcome {
            _ if info.unknown => true,
            Outcome::Message(_) => !info.transient,
            Outcome::Problem => info.possible.iter().any(|one| covers(Outcome::Problem, *one)),
            outcome => info.possible.contains(&outcome),
        };
        if possible {
            return;
        }
        let all: Vec<String> =
            info.possible.iter().map(|one| format!("`{}`", self.outcome_word(cx, *one))).collect();
        let message = format!("this state cannot lead to `{}`", name.text());
        let diagnostic = self.error(flows::IMPOSSIBLE, name.span(), message);
        self.report(if all.is_empty() {
            diagnostic.expected("messages of the flow only")
        } else {
            diagnostic.expected(format!("{}, or messages of the flow", all.join(", ")))
        });
    }

    /// Notes for editors what arrows of a state can be on, but for messages that the effect does not await.
    pub(crate) fn note_outcomes(&self, cx: &FlowCx<'_>, state: &ast::State, info: &EffectInfo) {
        if info.unknown {
            return;
        }
        self.tables.notes.add_outcomes(self.spot(state.span()), || {
            let mut words: Vec<String> =
                info.possible.iter().map(|one| self.outcome_word(cx, *one)).collect();
            if info.possible.iter().any(|one| covers(Outcome::Problem, *one)) {
                words.push("problem".to_owned());
            }
            words
        });
    }

    /// An outcome as it is written.
    pub(crate) fn outcome_word(&self, cx: &FlowCx<'_>, outcome: Outcome) -> String {
        match outcome {
            Outcome::Error(ix) => self.tables.types[ix.at()].name.clone(),
            Outcome::Message(ix) => cx.names.messages[ix.at()].name.clone(),
            outcome => WORDS
                .iter()
                .find(|(_, one)| *one == outcome)
                .map_or_else(String::new, |(word, _)| (*word).to_owned()),
        }
    }

    /// Brings into sight what an arrow on these outcomes brings along, and says how the kernel sees it.
    pub(crate) fn bind_payload(
        &mut self,
        cx: &FlowCx<'_>,
        of: &ast::Outcomes,
        named: &Named,
        info: Option<&EffectInfo>,
    ) -> (Payload, Bind) {
        if let Some(info) = info {
            self.show_result(named, info);
        }
        let whole = of.binding();
        let has_fields = of.fields().is_some();
        if whole.is_none() && !has_fields {
            return (Payload::Own, Bind::default());
        }
        let span = whole.as_ref().map_or_else(|| of.span(), |name| name.span());
        let (payload, ty) =
            if named.is_empty() { (Payload::Own, Ty::Unknown) } else { self.payload(cx, named, info, span) };
        let owner = named.first().map_or_else(String::new, |(outcome, _)| self.outcome_word(cx, *outcome));
        let known = self.tables.fields(&ty);
        let fields = self.bind_fields(of.fields(), &known, ty.is_unknown(), &owner);
        let whole = whole.map(|name| self.bind(&name.text(), ty));
        (payload, Bind { whole, fields })
    }

    /// Brings the variables of the results into sight where they hold something.
    fn show_result(&mut self, named: &Named, info: &EffectInfo) {
        let good = |outcome: &Outcome| matches!(outcome, Outcome::Ok);
        let all_good = named.iter().all(|(outcome, _)| good(outcome));
        let some_good = named.iter().any(|(outcome, _)| good(outcome));
        for ResultVar { name, slot, ok, partial } in &info.results {
            let read = Expr::Local(*slot);
            match partial {
                _ if all_good => self.show(name, ok.clone(), read),
                // A group's variable holds one type on a mixture only if it is the same on all of them.
                Some(partial) if !some_good || partial == ok => self.show(name, partial.clone(), read),
                Some(_) | None => {}
            }
        }
    }

    /// Brings the variables of a group's results into sight while it is open.
    pub(crate) fn show_partial(&mut self, results: &[ResultVar]) {
        for ResultVar { name, slot, ok: _, partial } in results {
            if let Some(partial) = partial {
                self.show(name, partial.clone(), Expr::Local(*slot));
            }
        }
    }

    /// What a single outcome of this effect brings along, as far as it has a type.
    pub(crate) fn brought(&self, cx: &FlowCx<'_>, outcome: Outcome, info: &EffectInfo) -> Ty {
        match outcome {
            Outcome::Ok | Outcome::Approve | Outcome::Answer => info.ok.clone(),
            Outcome::Message(ix) => message_payload(cx, ix),
            Outcome::Ended => info.ended.clone(),
            Outcome::Unknown => Ty::Doubt(Box::new(info.doubt.clone())),
            Outcome::Error(ix) => Ty::Named(ix),
            Outcome::Failed | Outcome::Problem | Outcome::Timeout => Ty::Problem,
            Outcome::Reject => Ty::payload(&[("note", Ty::Text), ("by", Ty::Text)]),
            Outcome::UndoFailed => {
                let undos = Ty::list(self.tables.library_type("Undo"));
                let parts = ["undone", "failed", "left"].map(|part| (part, undos.clone()));
                Ty::payload(&parts)
            }
            Outcome::Closed | Outcome::Exists => Ty::Nothing,
        }
    }

    /// What outcomes bring along, for an arrow that binds it.
    fn payload(
        &mut self,
        cx: &FlowCx<'_>,
        named: &Named,
        info: Option<&EffectInfo>,
        span: TextSpan,
    ) -> (Payload, Ty) {
        if let [(outcome, _)] = named.as_slice() {
            return self.payload_of_one(cx, *outcome, info, span);
        }
        let is_failure = |outcome: Outcome| {
            covers(Outcome::Problem, outcome) || matches!(outcome, Outcome::Problem | Outcome::Unknown)
        };
        if named.iter().all(|(outcome, _)| is_failure(*outcome)) {
            return (Payload::Problem, Ty::Problem);
        }
        let message = "these outcomes have nothing in common to bind";
        let diagnostic = self.error(flows::CANNOT_BIND, span, message);
        self.report(diagnostic.hint("give each of them its own arrow"));
        (Payload::Own, Ty::Unknown)
    }

    fn payload_of_one(
        &mut self,
        cx: &FlowCx<'_>,
        outcome: Outcome,
        info: Option<&EffectInfo>,
        span: TextSpan,
    ) -> (Payload, Ty) {
        match (outcome, info) {
            (Outcome::Problem, _) => return (Payload::Problem, Ty::Problem),
            // A group's own deadline and a member's are both told as a problem; so is one of whatever state the flow is in.
            (Outcome::Timeout, None) => return (Payload::Problem, Ty::Problem),
            (Outcome::Timeout, Some(info)) if info.group => return (Payload::Problem, Ty::Problem),
            (Outcome::Timeout, Some(info)) if !info.activity => {
                return self.nothing_to_bind(cx, outcome, span);
            }
            (Outcome::Closed | Outcome::Exists, _) => return self.nothing_to_bind(cx, outcome, span),
            (Outcome::Ok | Outcome::Approve | Outcome::Answer | Outcome::Ended, None) => {
                let word = self.outcome_word(cx, outcome);
                let message = format!("what `{word}` brings along differs from state to state");
                let diagnostic = self.error(flows::SCOPE_OUTCOME, span, message);
                self.report(diagnostic.hint("bind it in an arrow of the state"));
                return (Payload::Own, Ty::Unknown);
            }
            (
                Outcome::Ok | Outcome::Approve | Outcome::Answer | Outcome::Ended | Outcome::Timeout,
                Some(_),
            )
            | (
                Outcome::Error(_)
                | Outcome::Failed
                | Outcome::Unknown
                | Outcome::Message(_)
                | Outcome::Reject
                | Outcome::UndoFailed,
                _,
            ) => {}
        }
        let nothing = EffectInfo::nothing();
        (Payload::Own, self.brought(cx, outcome, info.unwrap_or(&nothing)))
    }

    fn nothing_to_bind(&mut self, cx: &FlowCx<'_>, outcome: Outcome, span: TextSpan) -> (Payload, Ty) {
        let message = format!("`{}` brings nothing along", self.outcome_word(cx, outcome));
        let diagnostic = self.error(flows::CANNOT_BIND, span, message);
        self.report(diagnostic);
        (Payload::Own, Ty::Unknown)
    }

    /// Reports outcomes without an arrow that is always there.
    pub(crate) fn check_outcomes(
        &mut self,
        cx: &FlowCx<'_>,
        own: &[OwnArrow],
        info: &EffectInfo,
        span: TextSpan,
    ) {
        // A name that is misspelt stands for one of the outcomes that would be missed.
        if info.unknown || self.outcome_lost {
            return;
        }
        for outcome in info.possible.iter().copied() {
            if outcome == Outcome::Unknown && info.doubt_holds {
                continue;
            }
            let all = own.iter().map(|one| &one.arrow).chain(&cx.scope_arrows);
            let matching: Vec<&Arrow> =
                all.filter(|arrow| arrow.on.iter().any(|on| covers(*on, outcome))).collect();
            if matching.iter().any(|arrow| arrow.guard.is_none()) {
                continue;
            }
            let word = self.outcome_word(cx, outcome);
            let last = own.iter().rev().flat_map(|one| &one.named).find(|(on, _)| covers(*on, outcome));
            if let (false, Some((_, at))) = (matching.is_empty(), last) {
                let message = format!("if this condition is false, nothing takes `{word}`");
                let diagnostic = self.error(flows::GUARDED_LAST, *at, message);
                self.report(diagnostic.expected(format!("a last arrow `on {word}` without a condition")));
            } else if outcome == Outcome::Unknown {
                let message = "nobody takes care of a doubt: after a crash it may have happened or not";
                let diagnostic = self.error(effects::UNSETTLED_DOUBT, span, message);
                let diagnostic = diagnostic
                    .expected("an arrow `on unknown`, or the words `unknown holds` on the activity");
                self.report(diagnostic);
            } else {
                let diagnostic =
                    self.error(flows::UNHANDLED, span, format!("nothing takes the outcome `{word}`"));
                self.report(
                    diagnostic.expected(format!("an arrow `on {word}`, in the state or in the flow")),
                );
            }
        }
    }

    /// Reports arrows of one level that an earlier arrow always takes first.
    pub(crate) fn check_never_taken(&mut self, cx: &FlowCx<'_>, level: &[Level], info: Option<&EffectInfo>) {
        let info = info.filter(|info| !info.unknown);
        for (at, Level { named, .. }) in level.iter().enumerate() {
            let taken = |outcome: Outcome| {
                level[..at]
                    .iter()
                    .any(|one| !one.guarded && one.named.iter().any(|(on, _)| covers(*on, outcome)))
            };
            for (outcome, span) in named {
                let never = match (outcome, info) {
                    // `problem` takes what is left; nothing is left if every failure is taken already.
                    (Outcome::Problem, Some(info)) => {
                        let mut failures =
                            info.possible.iter().filter(|one| covers(Outcome::Problem, **one)).peekable();
                        taken(Outcome::Problem)
                            || (failures.peek().is_some() && failures.all(|one| taken(*one)))
                    }
                    (outcome, _) => taken(*outcome),
                };
                if never {
                    let word = self.outcome_word(cx, *outcome);
                    let message = format!("`{word}` is always taken by an earlier arrow");
                    let diagnostic = self.error(flows::NEVER_TAKEN, *span, message);
                    self.report(diagnostic);
                }
            }
        }
    }
}

fn message_payload(cx: &FlowCx<'_>, ix: MessageIx) -> Ty {
    Ty::Payload(std::rc::Rc::new(names_and_types(&cx.names.messages[ix.at()].fields)))
}

/// Puts arrows on `problem` behind those on a single failure: the named one wins.
pub(crate) fn named_first(arrows: Vec<OwnArrow>) -> Vec<OwnArrow> {
    let (rest, named): (Vec<_>, Vec<_>) =
        arrows.into_iter().partition(|one| one.arrow.on.contains(&Outcome::Problem));
    named.into_iter().chain(rest).collect()
}
