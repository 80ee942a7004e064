//! Flows: parameters, data, limits, states.
//!
//! Leaves effects, arrows and goals to their files. Invariant: states stand in the order of the text, those made from `steps`
//! behind all others.

use std::collections::BTreeSet;

use super::arrows::OwnArrow;
use super::outcomes::{Level, named_first};
use super::places::{Part, PlaceBook};
use super::scope::{FlowNames, MessageSig, Scope, StateSig};
use crate::check::declare::Texts;
use crate::check::tables::{FlowSig, Spot, Tables};
use crate::check::ty::Ty;
use crate::diag::TextSpan;
use crate::diag::catalogue::{deadlines, flows, names, types};
use crate::diag::{Diagnostic, FileId};
use crate::machine::link::Program;
use crate::machine::{
    Arrow, DataDef, DataIx, Expr, Flow, FlowIx, Goal, Limit, Literal, Measure, MessageDef, OnCancel, Place,
    StateDef, StateIx,
};
use crate::syntax::ast::{self, AstNode as _};

/// What belongs to the flow that is lowered.
#[derive(Debug)]
pub(crate) struct FlowCx<'t> {
    pub(crate) ix: FlowIx,
    pub(crate) signature: &'t FlowSig,
    pub(crate) names: FlowNames,
    /// The arrows of all states, once they are lowered.
    pub(crate) scope_arrows: Vec<Arrow>,
}

/// Lowers the flow at `ix`; those before it are there already. Returns what belongs to it, for its tests.
pub(crate) fn flow<'t>(
    texts: &Texts,
    tables: &'t Tables,
    program: &mut Program,
    ix: FlowIx,
    book: &mut PlaceBook,
    out: &mut Vec<Diagnostic>,
) -> FlowCx<'t> {
    let (file, text) = &texts.flows[ix.at()];
    let lowering = Lowering { tables, file: *file, book, out, extra: Vec::new() };
    let (flow, cx) = lowering.flow(ix, text);
    program.flows.push(flow);
    cx
}

/// A flow that is being lowered.
pub(super) struct Lowering<'t, 'l> {
    pub(super) tables: &'t Tables,
    pub(super) file: FileId,
    pub(super) book: &'l mut PlaceBook,
    pub(super) out: &'l mut Vec<Diagnostic>,
    /// States that are made from `steps`.
    pub(super) extra: Vec<StateDef>,
}

/// What is evaluated in a flow's own frame.
struct OwnItems {
    data: Vec<DataDef>,
    limits: Vec<Limit>,
    on_cancel: Option<OnCancel>,
    start: Place,
    frame: u32,
}

impl<'t> Lowering<'t, '_> {
    pub(super) fn scope(&mut self) -> Scope<'_> {
        Scope::new(self.tables, self.tables.layer_of(self.file), self.file, self.out)
    }

    fn flow(mut self, ix: FlowIx, text: &ast::Flow) -> (Flow, FlowCx<'t>) {
        let tables = self.tables;
        let signature = &tables.flows[ix.at()];
        let params = self.scope().field_defs(&signature.params);
        let mut cx = FlowCx { ix, signature, names: self.names(text), scope_arrows: Vec::new() };
        let messages = self.messages(&cx, text);
        let own = self.own_items(&mut cx, text);
        let mut states = Vec::new();
        for state in text.states() {
            let at = states.len();
            // A second state of the same name was left out.
            let declared = cx
                .names
                .states
                .get(at)
                .is_some_and(|one| state.name().is_some_and(|name| name.text() == one.name));
            if declared {
                states.push(self.state(&cx, StateIx(position(at)), &state));
            }
        }
        states.append(&mut self.extra);
        let flow = Flow {
            name: signature.name.clone(),
            version: self.version(text),
            saga: text.is_saga(),
            params,
            result: signature.result.stored(),
            raises: signature.raises.clone(),
            emits: signature.emits.as_ref().map(Ty::stored),
            messages,
            data: own.data,
            limits: own.limits,
            arrows: cx.scope_arrows.clone(),
            on_cancel: own.on_cancel,
            start: own.start,
            states,
            frame: own.frame,
            migrations: Vec::new(),
        };
        (flow, cx)
    }

    fn version(&mut self, text: &ast::Flow) -> u32 {
        let Some(written) = text.version() else { return 1 };
        written.value().and_then(|value| u32::try_from(value).ok()).unwrap_or_else(|| {
            let message = "a version is a number from 0 to 4294967295";
            self.out.push(Diagnostic::error(types::NUMBER_RANGE, self.file, written.span(), message));
            1
        })
    }

    /// Collects what the flow declares; the second of two equal names is left out.
    fn names(&mut self, text: &ast::Flow) -> FlowNames {
        let mut all = FlowNames::default();
        for message in text.messages() {
            let Some(name) = message.name() else { continue };
            if self.is_new(&name, all.message(&name.text()).is_some()) {
                let fields = self.scope().field_sigs(message.fields());
                all.add_message(MessageSig { name: name.text(), fields });
            }
        }
        for data in text.data() {
            let Some(name) = data.name() else { continue };
            let ty = data.ty().map_or(Ty::Unknown, |ty| self.scope().ty(&ty));
            let is_param = self.tables_has_param(text, &name.text());
            if self.is_new(&name, is_param || all.data(&name.text()).is_some()) {
                all.add_data(name.text(), ty);
            }
        }
        for state in text.states() {
            let Some(name) = state.name() else { continue };
            let mut params = self.scope().param_sigs(state.params());
            params.retain(|param| {
                let taken = all.data(&param.name).is_some() || self.tables_has_param(text, &param.name);
                if taken {
                    self.report_duplicate(param.spot, &param.name);
                }
                !taken
            });
            if self.is_new(&name, all.state(&name.text()).is_some()) {
                all.add_state(StateSig { name: name.text(), params });
            }
        }
        all
    }

    fn tables_has_param(&self, text: &ast::Flow, name: &str) -> bool {
        text.params().any(|param| param.name().is_some_and(|one| one.text() == name))
    }

    fn is_new(&mut self, name: &ast::Name, taken: bool) -> bool {
        if taken {
            let spot = Spot { file: self.file, span: name.span() };
            self.report_duplicate(spot, &name.text());
        }
        !taken
    }

    pub(super) fn report_duplicate(&mut self, spot: Spot, name: &str) {
        let message = format!("`{name}` is declared already in this flow");
        self.out.push(Diagnostic::error(names::DUPLICATE, spot.file, spot.span, message));
    }

    fn messages(&mut self, cx: &FlowCx<'_>, text: &ast::Flow) -> Vec<MessageDef> {
        let mut all = Vec::new();
        let written = text.messages().filter(|one| one.is_now()).filter_map(|one| one.name());
        let now: BTreeSet<String> = written.map(|name| name.text()).collect();
        for signature in &cx.names.messages {
            let fields = self.scope().field_defs(&signature.fields);
            let now = now.contains(&signature.name);
            all.push(MessageDef { name: signature.name.clone(), fields, now });
        }
        all
    }

    /// What is evaluated in the flow's own frame.
    fn own_items(&mut self, cx: &mut FlowCx<'t>, text: &ast::Flow) -> OwnItems {
        let spot = cx.signature.spot;
        let mut places = Vec::new();
        let mut scope = Scope::new(self.tables, self.tables.layer_of(self.file), self.file, self.out);
        scope.show_params(cx.signature);
        let mut data: Vec<DataDef> = Vec::new();
        for written in text.data() {
            let Some(name) = written.name() else { continue };
            let at = data.len();
            let Some((declared, ty)) = cx.names.data.get(at) else { break };
            // A second `data` of the same name was left out.
            if *declared != name.text() {
                continue;
            }
            let init = match written.value() {
                Some(value) => scope.expr_as(&value, ty),
                None => Expr::Lit(Literal::None),
            };
            places.push((Part::Data(name.text()), written.span()));
            data.push(DataDef { name: name.text(), ty: ty.stored(), init });
            scope.show(&name.text(), ty.clone(), Expr::Data(DataIx(position(at))));
        }
        let mut limits = Vec::new();
        for written in text.limits() {
            if let Some(limit) = scope.limit(cx, &written) {
                places.push((Part::Limit(limits.len()), written.span()));
                limits.push(limit);
            }
        }
        let arrows = scope.scope_arrows(cx, text);
        places.extend(arrows.iter().enumerate().flat_map(|(at, one)| one.parts(at)));
        let on_cancel = scope.on_cancel(cx, text);
        let start = scope.start(cx, text, spot);
        places.extend(text.starts().take(1).map(|start| (Part::Start, start.span())));
        let frame = scope.frame();
        cx.scope_arrows = arrows.into_iter().map(|one| one.arrow).collect();
        for (part, span) in places {
            self.book.add(cx.ix, None, part, Spot { file: self.file, span });
        }
        OwnItems { data, limits, on_cancel, start, frame }
    }

    fn state(&mut self, cx: &FlowCx<'_>, ix: StateIx, text: &ast::State) -> StateDef {
        if let Some(ast::Effect::Steps(steps)) = text.effect()
            && let Some(first) = self.steps(cx, ix, text, &steps)
        {
            return first;
        }
        let signature = &cx.names.states[ix.at()];
        let params = self.scope().field_defs(&signature.params);
        let mut scope = Scope::new(self.tables, self.tables.layer_of(self.file), self.file, self.out);
        scope.show_flow(cx);
        for (at, param) in signature.params.iter().enumerate() {
            scope.show(&param.name, param.ty.clone(), Expr::Arg(position(at)));
        }
        let (effect, info) = scope.effect(cx, text.effect().as_ref());
        scope.note_outcomes(cx, text, &info);
        let (arrows, timers) = scope.arrows(cx, text.arrows(), &info);
        let arrows = named_first(arrows);
        let head = text.effect().map_or_else(|| text.head_span(), |effect| effect.span());
        scope.check_never_taken(cx, &Level::of(&arrows), Some(&info));
        scope.check_outcomes(cx, &arrows, &info, text.head_span());
        let frame = scope.frame();
        let mut places = vec![(Part::State, text.head_span()), (Part::Effect, head)];
        places.extend(arrows.iter().enumerate().flat_map(|(at, one)| one.parts(at)));
        places.extend(timers.iter().enumerate().map(|(at, (_, span))| (Part::Timer(at), *span)));
        let branches = text.effect().map(|effect| branches(&effect)).unwrap_or_default();
        places.extend(branches.into_iter().enumerate().map(|(at, span)| (Part::Branch(at), span)));
        for (part, span) in places {
            self.book.add(cx.ix, Some(ix), part, Spot { file: self.file, span });
        }
        StateDef {
            name: signature.name.clone(),
            was: text.was().map(|was| was.text()),
            params,
            effect,
            arrows: arrows.into_iter().map(|one| one.arrow).collect(),
            timers: timers.into_iter().map(|(timer, _)| timer).collect(),
            frame,
        }
    }
}

/// Where the branches of a `choose` stand.
fn branches(effect: &ast::Effect) -> Vec<TextSpan> {
    let ast::Effect::Choose(choose) = effect else { return Vec::new() };
    match choose.arms() {
        Some(arms) => arms.arms().map(|arm| arm.span()).collect(),
        None => choose.branches().map(|branch| branch.span()).collect(),
    }
}

/// A position in a table.
pub(crate) fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Scope<'_> {
    fn show_params(&mut self, signature: &FlowSig) {
        for (at, param) in signature.params.iter().enumerate() {
            self.show(&param.name, param.ty.clone(), Expr::Param(position(at)));
        }
    }

    /// Brings the parameters and data of the flow into sight.
    pub(super) fn show_flow(&mut self, cx: &FlowCx<'_>) {
        self.show_params(cx.signature);
        for (at, (name, ty)) in cx.names.data.iter().enumerate() {
            self.show(name, ty.clone(), Expr::Data(DataIx(position(at))));
        }
    }

    fn limit(&mut self, cx: &FlowCx<'_>, text: &ast::Limit) -> Option<Limit> {
        let (measure, ty) = self.measure(cx, &text.measure()?)?;
        let max = self.expr_as(&text.bound()?, &ty);
        let acts = self.acts(cx, &text.acts());
        let goal = self.goal(cx, text.goal().as_ref(), false);
        Some(Limit { measure, max, acts, goal })
    }

    fn measure(&mut self, cx: &FlowCx<'_>, text: &ast::Measure) -> Option<(Measure, Ty)> {
        if let Some(state) = text.visits() {
            let of = self.state_named(cx, &state)?;
            let since = match text.since() {
                Some(since) => Some(self.state_named(cx, &since)?),
                None => None,
            };
            return Some((Measure::Visits(of, since), Ty::Int));
        }
        let counter = text.counter()?;
        let word = counter.text();
        match (word.as_str(), cx.names.data(&word)) {
            (_, Some(ix)) => {
                let ty = cx.names.data[ix.at()].1.clone();
                if matches!(ty, Ty::Int | Ty::Decimal | Ty::Float | Ty::Duration | Ty::Unknown) {
                    return Some((Measure::Data(ix), ty));
                }
                let message = format!("`{word}` is `{}`, which has no size", self.tables.show(&ty));
                let diagnostic = self.error(flows::BAD_LIMIT, counter.span(), message);
                self.report(diagnostic.expected("a number or a duration"));
                None
            }
            ("cost", None) => Some((Measure::Cost, Ty::Decimal)),
            ("age", None) => Some((Measure::Age, Ty::Duration)),
            (_, None) => {
                let known = cx.names.data.iter().map(|(name, _)| name.as_str()).chain(["cost", "age"]);
                let near = self.tables.closest(&word, known).map(str::to_owned);
                let message = format!("`{word}` cannot be limited");
                self.report_unknown(flows::BAD_LIMIT, counter.span(), message, near.as_deref());
                None
            }
        }
    }

    /// The arrows of the flow, in the order in which they are tried.
    fn scope_arrows(&mut self, cx: &FlowCx<'_>, text: &ast::Flow) -> Vec<OwnArrow> {
        let mut all = Vec::new();
        for arrow in text.arrows() {
            match arrow {
                ast::Arrow::On(_) => all.extend(self.arrow(cx, &arrow, None)),
                ast::Arrow::Timer(timer) => {
                    let message = "a timer belongs to a state";
                    let diagnostic = self.error(flows::SCOPE_OUTCOME, timer.span(), message);
                    self.report(diagnostic.hint("for the whole flow write `limit age <= D else -> …`"));
                }
            }
        }
        let all = named_first(all);
        self.check_never_taken(cx, &Level::of(&all), None);
        all
    }

    fn on_cancel(&mut self, cx: &FlowCx<'_>, text: &ast::Flow) -> Option<OnCancel> {
        let mut all = text.on_cancels();
        let first = all.next()?;
        for second in all {
            let diagnostic = self.error(names::DUPLICATE, second.span(), "`on cancel` stands here twice");
            self.report(diagnostic);
        }
        let within_ms =
            first.within().and_then(|within| within.ms()).and_then(|ms| u64::try_from(ms).ok()).unwrap_or(1);
        if within_ms == 0 {
            let diagnostic = self.error(
                deadlines::ZERO_DEADLINE,
                first.span(),
                "a clean-up of zero is over before it begins",
            );
            self.report(diagnostic);
        }
        Some(OnCancel { within_ms, goal: self.goal(cx, first.goal().as_ref(), false) })
    }

    fn start(&mut self, cx: &FlowCx<'_>, text: &ast::Flow, spot: Spot) -> Place {
        let nowhere = Place { state: StateIx(0), args: Vec::new() };
        let mut all = text.starts();
        let first = all.next();
        for second in all {
            let diagnostic = self.error(flows::NO_START, second.span(), "a flow starts once");
            self.report(diagnostic);
        }
        let Some(first) = first else {
            let message = format!("`{}` does not say where it starts", cx.signature.name);
            let diagnostic = self.error(flows::NO_START, spot.span, message);
            self.report(diagnostic.expected("`start State`"));
            return nowhere;
        };
        match first.place().and_then(|place| self.place(cx, &place)) {
            Some(Goal::State(state, args)) => Place { state, args },
            Some(Goal::Stay | Goal::End(_) | Goal::Fail(_)) | None => nowhere,
        }
    }
}
