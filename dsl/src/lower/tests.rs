//! `test` blocks: whether what they name exists and what they give has the right type.
//!
//! Leaves running them to the test runner. Invariant: nothing of a test reaches a machine; without a known flow only what needs
//! none is looked at.

use super::flows::FlowCx;
use super::scope::Scope;
use super::word::Word;
use crate::check::declare::Texts;
use crate::check::tables::{Tables, UpperName};
use crate::diag::Diagnostic;
use crate::diag::catalogue::effects;
use crate::syntax::ast::{self, AstNode as _};

/// The choices of an answer.
const CHOICES: &[&str] = &["approve", "reject", "answer"];

/// Looks at all tests; `contexts` holds what belongs to each flow.
pub(crate) fn tests(texts: &Texts, tables: &Tables, contexts: &[FlowCx<'_>], out: &mut Vec<Diagnostic>) {
    for (file, test) in &texts.tests {
        let mut scope = Scope::new(tables, tables.layer_of(*file), *file, out);
        let mut cx = None;
        for step in test.steps() {
            if let ast::Step::Start(start) = &step {
                cx = scope.started(contexts, start);
            } else {
                scope.step(contexts, cx, &step);
            }
        }
    }
}

impl Scope<'_> {
    fn started<'c>(&mut self, contexts: &'c [FlowCx<'c>], of: &ast::StepStart) -> Option<&'c FlowCx<'c>> {
        let name = of.flow()?;
        let ix = self.flow_named(&name)?;
        let signature = &self.tables.flows[ix.at()];
        self.args(&signature.params, of.args().as_ref(), &signature.name, name.span());
        contexts.get(ix.at())
    }

    fn step(&mut self, contexts: &[FlowCx<'_>], cx: Option<&FlowCx<'_>>, of: &ast::Step) {
        match of {
            ast::Step::Stub(stub) => self.stub(stub),
            ast::Step::Allow(allow) => {
                allow.value().iter().for_each(|value| drop(self.expr(value, None)));
            }
            ast::Step::Send(send) => {
                if let (Some(cx), Some(message)) = (cx, send.message()) {
                    self.sent(cx, &message);
                }
            }
            ast::Step::Answer(answer) => self.answered(answer),
            ast::Step::Crash(crash) => self.path_of(contexts, cx, crash.path().as_ref()),
            ast::Step::Expect(expect) => self.expected(contexts, cx, expect),
            ast::Step::Start(_)
            | ast::Step::Close(_)
            | ast::Step::Cancel(_)
            | ast::Step::Advance(_)
            | ast::Step::LoseWorker(_) => {}
        }
    }

    fn stub(&mut self, of: &ast::StepStub) {
        let activity = of.activity().and_then(|name| self.activity_named(&name));
        let Some(activity) = activity else { return };
        let result = self.tables.activities[activity.at()].result.clone();
        for reply in of.replies().filter_map(|reply| reply.reply()) {
            match reply {
                ast::Reply::Value(value) => drop(self.expr_as(&value, &result)),
                ast::Reply::Fail(Some(error)) => drop(self.construct(&error, None)),
                ast::Reply::Fail(None) | ast::Reply::Timeout | ast::Reply::Unknown => {}
            }
        }
    }

    fn sent(&mut self, cx: &FlowCx<'_>, of: &ast::Construct) {
        let Some(name) = of.path().and_then(|path| path.last()).map(Word::from) else { return };
        if let Some(ix) = self.message_named(cx, &name) {
            let message = &cx.names.messages[ix.at()];
            self.inits(of, &message.fields, &message.name);
        }
    }

    fn answered(&mut self, of: &ast::StepAnswer) {
        let Some(choice) = of.choice() else { return };
        let word = choice.text();
        if !CHOICES.contains(&word.as_str()) {
            let near = crate::diag::closest(&word, CHOICES.iter().copied());
            self.report_unknown(effects::TEST_NAME, choice.span(), format!("`{word}` is no answer"), near);
        }
        of.inits().filter_map(|init| init.value()).for_each(|value| drop(self.expr(&value, None)));
    }

    fn expected(&mut self, contexts: &[FlowCx<'_>], cx: Option<&FlowCx<'_>>, of: &ast::StepExpect) {
        match of.check() {
            Some(ast::Check::At(path)) => self.path_of(contexts, cx, path.as_ref()),
            Some(ast::Check::Path(states)) => {
                if let Some(cx) = cx {
                    for state in &states {
                        self.state_named(cx, state);
                    }
                }
            }
            Some(ast::Check::Calls(Some(name), _) | ast::Check::Attempts(Some(name), _)) => {
                self.activity_named(&name);
            }
            Some(ast::Check::End(Some(value))) => match cx {
                Some(cx) => drop(self.expr_as(&value, &cx.signature.result)),
                None => drop(self.expr(&value, None)),
            },
            Some(ast::Check::Emits(Some(value))) => {
                let want = cx.and_then(|cx| cx.signature.emits.as_ref());
                drop(self.wanted(&value, want));
            }
            Some(
                ast::Check::Calls(None, _)
                | ast::Check::Attempts(None, _)
                | ast::Check::End(None)
                | ast::Check::Emits(None)
                | ast::Check::Asked(_)
                | ast::Check::Refused(_),
            )
            | None => {}
        }
    }

    /// `S / F.S`: a state of the started flow, and of the flows that run inside.
    fn path_of(&mut self, contexts: &[FlowCx<'_>], cx: Option<&FlowCx<'_>>, of: Option<&ast::Path>) {
        let Some(path) = of else { return };
        if let (Some(cx), Some(state)) = (cx, path.state()) {
            self.state_named(cx, &state);
        }
        for (flow, state) in path.inner() {
            let found = match self.tables.upper(self.layer, &flow.text()) {
                Some(UpperName::Flow(ix)) => contexts.get(ix.at()),
                Some(UpperName::Type(_)) | None => {
                    self.flow_named(&flow);
                    None
                }
            };
            if let (Some(inner), Some(state)) = (found, state) {
                self.state_named(inner, &state);
            }
        }
    }
}
