//! `expect …`: what must hold at a step.
//!
//! Invariant: a value that is compared has the type of what it is compared with.

use super::Script;
use crate::check::ty::Ty;
use crate::diag::catalogue::names;
use crate::diag::{TextSpan, closest};
use crate::machine::FunctionIx;
use crate::syntax::ast::{self, AstNode as _};
use crate::test_case::{Expectation, REFUSALS, WaitKind};

impl Script<'_, '_> {
    pub(super) fn expected(&mut self, of: &ast::StepExpect) -> Option<Expectation> {
        match of.check()? {
            ast::Check::At(path) => Some(Expectation::At(self.path_of(&path?))),
            ast::Check::Path(states) => {
                if let Some(cx) = self.cx {
                    for state in &states {
                        self.scope().state_named(cx, state);
                    }
                }
                Some(Expectation::Path(states.iter().map(|state| state.text()).collect()))
            }
            ast::Check::Calls(name, count) => {
                let (name, count) = self.counted(name, count)?;
                Some(Expectation::Calls(name, count))
            }
            ast::Check::Attempts(name, count) => {
                let (name, count) = self.counted(name, count)?;
                Some(Expectation::Attempts(name, count))
            }
            ast::Check::End(value) => {
                let want = self.cx.map(|cx| cx.signature.result.clone());
                Some(Expectation::End(self.wanted(&value?, want)))
            }
            ast::Check::Fail(error) => self.failed(&error?).map(Expectation::Fail),
            ast::Check::Cancelled => Some(Expectation::Cancelled),
            ast::Check::Data(name, value) => self.data(&name?, &value?),
            ast::Check::Emits(value) => {
                let want = self.cx.and_then(|cx| cx.signature.emits.clone());
                Some(Expectation::Emits(self.wanted(&value?, want)))
            }
            ast::Check::Asked(text) => {
                let text = text?;
                Some(Expectation::Asked(self.text(text)))
            }
            ast::Check::Waiting(word) => {
                let word = word?;
                let known = WaitKind::ALL.into_iter().find(|kind| kind.word() == word.text());
                if known.is_none() {
                    let words = WaitKind::ALL.map(WaitKind::word);
                    self.no_word(word.span(), &word.text(), "no run waits for", &words);
                }
                known.map(Expectation::Waiting)
            }
            ast::Check::Refused(word) => {
                let word = word?;
                let text = word.text();
                if !REFUSALS.contains(&text.as_str()) {
                    self.no_word(word.span(), &text, "nothing is refused as", REFUSALS);
                }
                Some(Expectation::Refused(text))
            }
        }
    }

    fn no_word(&mut self, span: TextSpan, word: &str, what: &str, known: &[&str]) {
        let near = closest(word, known.iter().copied());
        let message = format!("{what} `{word}`, but {}", known.join(", "));
        self.unknown_word(span, message, near);
    }

    fn wanted(&mut self, of: &ast::Expr, want: Option<Ty>) -> FunctionIx {
        self.value(|scope| scope.wanted(of, want.as_ref()).expr)
    }

    fn counted(
        &mut self,
        name: Option<ast::NameRef>,
        count: Option<ast::IntLiteral>,
    ) -> Option<(String, u64)> {
        let name = name?;
        self.scope().activity_named(&name)?;
        Some((name.text(), u64::try_from(count?.value()?).ok()?))
    }

    fn failed(&mut self, of: &ast::Construct) -> Option<FunctionIx> {
        let cx = self.cx?;
        let mut found = Ty::Unknown;
        let value = self.value(|scope| {
            let typed = scope.construct(of, None);
            found = typed.ty;
            typed.expr
        });
        let raised = match &found {
            Ty::Named(ix) => cx.signature.raises.contains(ix),
            Ty::Unknown => true,
            _ => false,
        };
        if !raised {
            let message = format!("`{}` does not raise `{}`", cx.signature.name, self.tables.show(&found));
            self.unknown_word(of.span(), message, None);
        }
        Some(value)
    }

    fn data(&mut self, name: &ast::NameRef, value: &ast::Expr) -> Option<Expectation> {
        let cx = self.cx?;
        let word = name.text();
        let Some(ix) = cx.names.data(&word) else {
            let near = closest(&word, cx.names.data.iter().map(|(name, _)| name.as_str()));
            let message = format!("the flow has no data `{word}`");
            self.scope().report_unknown(names::UNKNOWN_NAME, name.span(), message, near);
            return None;
        };
        let want = cx.names.data[ix.at()].1.clone();
        Some(Expectation::Data(word, self.wanted(value, Some(want))))
    }
}
