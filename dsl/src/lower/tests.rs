//! `test` blocks: whether what they name exists and what they give has the right type, and what they mean.
//!
//! Leaves running them to the test runner; replies of stubs and expectations have files of their own. Invariant: nothing of a test
//! reaches a flow's machine; without a known flow only what needs none is looked at.

mod expect;
mod stub;

use super::flows::FlowCx;
use super::scope::Scope;
use super::word::Word;
use crate::check::declare::Texts;
use crate::check::tables::{Layer, Tables, UpperName};
use crate::check::ty::Ty;
use crate::diag::catalogue::{effects, tests as codes};
use crate::diag::{Diagnostic, FileId, TextSpan};
use crate::machine::link::{Program, link_with};
use crate::machine::{Expr, FlowIx, Function, FunctionIx};
use crate::syntax::ast::{self, AstNode as _};
use crate::test_case::{Choice, Reaction, StepKind, TestCase, TestStep, Verdict};

/// A test whose values are functions of the program.
pub(crate) struct Draft {
    name: String,
    pub(crate) file: FileId,
    span: TextSpan,
    root: FlowIx,
    steps: Vec<TestStep>,
    /// The first of its values among the program's functions, and their number.
    values: (u32, u32),
}

impl Draft {
    /// Gives the test a machine for its values.
    pub(crate) fn linked(self, program: &Program, edition: u32) -> TestCase {
        let (first, count) = self.values;
        let (values, _) = link_with(program, edition, self.root, first..first + count);
        let flow = values.root().name.clone();
        TestCase { name: self.name, file: self.file, span: self.span, flow, values, steps: self.steps }
    }
}

/// Looks at all tests; `contexts` holds what belongs to each flow.
pub(crate) fn tests(
    texts: &Texts,
    tables: &Tables,
    contexts: &[FlowCx<'_>],
    program: &mut Program,
    out: &mut Vec<Diagnostic>,
) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for (file, test) in &texts.tests {
        let first = u32::try_from(program.functions.len()).unwrap_or(u32::MAX);
        let layer = tables.layer_of(*file);
        let mut script =
            Script { tables, layer, contexts, file: *file, out: &mut *out, cx: None, values: Vec::new() };
        let steps = script.steps(test);
        let (root, values) = (script.cx.map(|cx| cx.ix), script.values);
        let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
        program.functions.extend(values);
        if let Some(root) = root {
            let (name, span) = named(test);
            drafts.push(Draft { name, file: *file, span, root, steps, values: (first, count) });
        }
    }
    drafts
}

/// What a test shows, and where that stands.
fn named(test: &ast::Test) -> (String, TextSpan) {
    match test.name() {
        Some(name) => (name.plain().unwrap_or_else(|| quoted(&name)), name.span()),
        None => (String::new(), test.span()),
    }
}

/// A text with holes, as it is written.
fn quoted(text: &ast::StringExpr) -> String {
    text.syntax().text().to_string().trim().trim_matches('"').to_owned()
}

/// A test that is being looked at.
struct Script<'t, 's> {
    tables: &'t Tables,
    layer: Layer,
    contexts: &'s [FlowCx<'t>],
    file: FileId,
    out: &'s mut Vec<Diagnostic>,
    /// The started flow, once it is known.
    cx: Option<&'s FlowCx<'t>>,
    values: Vec<Function>,
}

impl<'t, 's> Script<'t, 's> {
    fn scope(&mut self) -> Scope<'_> {
        Scope::new(self.tables, self.layer, self.file, self.out)
    }

    /// Keeps a value that needs no variables.
    fn value(&mut self, make: impl FnOnce(&mut Scope<'_>) -> Expr) -> FunctionIx {
        let mut scope = self.scope();
        let body = make(&mut scope);
        let frame = scope.frame();
        self.keep(0, body, frame)
    }

    fn keep(&mut self, params: u32, body: Expr, frame: u32) -> FunctionIx {
        let ix = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(Function { name: format!("value {ix}"), params, body, frame });
        FunctionIx(ix)
    }

    fn fields(&mut self, fields: Vec<(String, Expr)>, frame: u32) -> Vec<(String, FunctionIx)> {
        fields.into_iter().map(|(name, body)| (name, self.keep(0, body, frame))).collect()
    }

    fn misplaced(&mut self, span: TextSpan, message: &str, expected: &str) {
        let diagnostic = Diagnostic::error(codes::MISPLACED_STEP, self.file, span, message);
        self.out.push(diagnostic.expected(expected));
    }

    fn steps(&mut self, test: &ast::Test) -> Vec<TestStep> {
        let mut steps = Vec::new();
        let (mut started, mut early) = (false, false);
        for step in test.steps() {
            let span = step.span();
            let sets_up = matches!(step, ast::Step::Stub(_) | ast::Step::Allow(_));
            let starts = matches!(step, ast::Step::Start(_));
            if starts && started {
                self.misplaced(span, "a test starts one flow", "another `test` for another start");
                continue;
            }
            if !starts && !started && !sets_up && !early {
                early = true;
                self.misplaced(span, "no flow is started yet", "`start F(…)` before this step");
            }
            started |= starts;
            steps.extend(self.step(&step).map(|kind| TestStep { span, kind }));
        }
        if !started && !early {
            let (_, span) = named(test);
            self.misplaced(span, "the test starts no flow", "a step `start F(…)`");
        }
        steps
    }

    /// Returns what a step does; nothing if it is not whole.
    fn step(&mut self, of: &ast::Step) -> Option<StepKind> {
        match of {
            ast::Step::Start(start) => self.started(start),
            ast::Step::Stub(stub) => self.stub(stub).map(StepKind::Stub),
            ast::Step::Allow(allow) => {
                let value = allow.value()?;
                Some(StepKind::Allow(self.value(|scope| scope.expr_as(&value, &Ty::Text))))
            }
            ast::Step::Send(send) => self.sent(&send.message()?),
            ast::Step::Close(_) => Some(StepKind::Close),
            ast::Step::Cancel(_) => Some(StepKind::Cancel),
            ast::Step::Answer(answer) => self.answered(answer).map(StepKind::Answer),
            ast::Step::Advance(advance) => advance.by().and_then(|by| ms(&by)).map(StepKind::Advance),
            ast::Step::Crash(crash) => Some(StepKind::CrashAt(self.path_of(&crash.path()?))),
            ast::Step::LoseWorker(_) => Some(StepKind::LoseWorker),
            ast::Step::Settle(settle) => self.settled(settle),
            ast::Step::Release(release) => {
                let name = release.activity()?;
                self.scope().activity_named(&name)?;
                Some(StepKind::Release(name.text()))
            }
            ast::Step::Expect(expect) => self.expected(expect).map(StepKind::Expect),
        }
    }

    fn started(&mut self, of: &ast::StepStart) -> Option<StepKind> {
        let name = of.flow()?;
        let ix = self.scope().flow_named(&name)?;
        let tables = self.tables;
        let signature = &tables.flows[ix.at()];
        let mut scope = self.scope();
        let args = scope.args(&signature.params, of.args().as_ref(), &signature.name, name.span());
        let frame = scope.frame();
        self.cx = self.contexts.get(ix.at());
        let named = signature.params.iter().map(|param| param.name.clone()).zip(args).collect();
        Some(StepKind::Start(self.fields(named, frame)))
    }

    fn sent(&mut self, of: &ast::Construct) -> Option<StepKind> {
        let cx = self.cx?;
        let name = Word::from(of.path()?.last()?);
        let ix = self.scope().message_named(cx, &name)?;
        let message = &cx.names.messages[ix.at()];
        let mut scope = self.scope();
        let fields = scope.inits(of, &message.fields, &message.name);
        let frame = scope.frame();
        Some(StepKind::Send(message.name.clone(), self.fields(fields, frame)))
    }

    fn answered(&mut self, of: &ast::StepAnswer) -> Option<Reaction> {
        let word = of.choice()?;
        let choice = match word.text().as_str() {
            "approve" => Some(Choice::Approve),
            "reject" => Some(Choice::Reject),
            "answer" => Some(Choice::Answer),
            other => {
                let near = crate::diag::closest(other, ["approve", "reject", "answer"]);
                self.unknown_word(word.span(), format!("`{other}` is no answer"), near);
                None
            }
        };
        let (mut value, mut note) = (None, None);
        for init in of.inits() {
            let (Some(name), Some(given)) = (init.field().map(Word::from), init.value()) else { continue };
            match name.text().as_str() {
                "value" => value = Some(self.value(|scope| scope.expr(&given, None).expr)),
                "note" => note = Some(self.value(|scope| scope.expr_as(&given, &Ty::Text))),
                other => {
                    let near = crate::diag::closest(other, ["value", "note"]);
                    self.unknown_word(name.span(), format!("an answer has no field `{other}`"), near);
                }
            }
        }
        let question = of.question().map(|text| self.text(text));
        let by = of.by().map(|text| self.text(text));
        Some(Reaction { question, choice: choice?, value, note, by })
    }

    fn text(&mut self, of: ast::StringExpr) -> FunctionIx {
        self.value(|scope| scope.expr_as(&ast::Expr::String(of), &Ty::Text))
    }

    fn unknown_word(&mut self, span: TextSpan, message: String, near: Option<&str>) {
        self.scope().report_unknown(effects::TEST_NAME, span, message, near);
    }

    fn settled(&mut self, of: &ast::StepSettle) -> Option<StepKind> {
        let name = of.activity()?;
        let ix = self.scope().activity_named(&name)?;
        let activity = name.text();
        let Some(verdict) = of.verdict() else {
            return Some(StepKind::Settle(activity, Verdict::Fail));
        };
        let want = Ty::Verdict(Box::new(self.tables.activities[ix.at()].result.clone()));
        let verdict = self.value(|scope| {
            let typed = scope.construct(&verdict, Some(&want));
            scope.fit(typed, &want, verdict.span())
        });
        Some(StepKind::Settle(activity, Verdict::Value(verdict)))
    }

    /// `S / F.S`: a state of the started flow, and of the flows that run inside; as the kernel writes it.
    fn path_of(&mut self, of: &ast::Path) -> String {
        let mut path = String::new();
        if let Some(state) = of.state() {
            path.push_str(&state.text());
            if let Some(cx) = self.cx {
                self.scope().state_named(cx, &state);
            }
        }
        for (flow, state) in of.inner() {
            let found = match self.tables.upper(self.layer, &flow.text()) {
                Some(UpperName::Flow(ix)) => self.contexts.get(ix.at()),
                Some(UpperName::Type(_)) | None => {
                    self.scope().flow_named(&flow);
                    None
                }
            };
            if let Some(state) = state {
                path.push_str(&format!("/{}.{}", flow.text(), state.text()));
                if let Some(inner) = found {
                    self.scope().state_named(inner, &state);
                }
            }
        }
        path
    }
}

/// A written duration in milliseconds.
fn ms(of: &ast::DurLiteral) -> Option<u64> {
    of.ms().and_then(|ms| u64::try_from(ms).ok())
}
