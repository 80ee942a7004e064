//! `stub a … gives …`: what the calls of an activity come to.
//!
//! Invariant: a stub gives only what its activity can give; its values see the arguments that it names and nothing else.

use super::{Script, ms};
use crate::check::tables::ActivitySig;
use crate::check::ty::Ty;
use crate::diag::catalogue::{tests as codes, types};
use crate::diag::{Diagnostic, TextSpan};
use crate::lower::calls::counted;
use crate::lower::scope::Scope;
use crate::machine::{Expr, FunctionIx};
use crate::syntax::ast::{self, AstNode as _};
use crate::test_case::{Reply, Stub, StubReply};

impl Script<'_, '_> {
    pub(super) fn stub(&mut self, of: &ast::StepStub) -> Option<Stub> {
        let name = of.activity()?;
        let ix = self.scope().activity_named(&name)?;
        let tables = self.tables;
        let activity = &tables.activities[ix.at()];
        let params = self.arguments(of, activity, name.span());
        let guard = of.guard().map(|guard| self.of_call(&params, |scope| scope.bool_expr(&guard)));
        let nodes: Vec<ast::ReplyNode> = of.replies().collect();
        let before = self.out.len();
        let replies: Vec<StubReply> =
            nodes.iter().filter_map(|node| self.reply(activity, &params, node)).collect();
        if of.is_list() {
            self.brackets(of, activity, nodes.is_empty(), before);
        }
        Some(Stub {
            activity: name.text(),
            span: name.span(),
            takes_input: !params.is_empty(),
            guard,
            replies,
            repeats: !of.is_list(),
        })
    }

    /// Says what brackets mean, where a list that is a reply was perhaps meant: where there is none, and where one has the wrong type.
    fn brackets(&mut self, of: &ast::StepStub, activity: &ActivitySig, is_empty: bool, before: usize) {
        let is_list = matches!(activity.result.bare(), Ty::List(_));
        let hint = "brackets hold a reply for each call: write `gives [[…]]` for one call that gives a list, \
                    or `gives ([…])` for the same list at every call";
        if is_empty {
            let message = "the brackets hold no reply";
            let diagnostic = Diagnostic::error(codes::WRONG_REPLY, self.file, of.span(), message);
            let diagnostic = diagnostic.expected("a reply for each call");
            let empty = "for an empty list write `gives [[]]` for one call, or `gives ([])` for every call";
            self.out.push(if is_list { diagnostic.hint(empty) } else { diagnostic });
        }
        let new = self.out.iter_mut().skip(before).filter(|one| one.code == types::WRONG_TYPE);
        for diagnostic in new.filter(|one| is_list && one.hint.is_none()) {
            diagnostic.hint = Some(hint.to_owned());
        }
    }

    /// The names of the arguments with their types: none or all.
    fn arguments(&mut self, of: &ast::StepStub, activity: &ActivitySig, span: TextSpan) -> Vec<(String, Ty)> {
        let names: Vec<String> = of.params().map(|name| name.text()).collect();
        if !names.is_empty() && names.len() != activity.params.len() {
            let wanted = counted(activity.params.len(), "argument");
            let message = format!("`{}` takes {wanted}, not {}", activity.name, names.len());
            let diagnostic = Diagnostic::error(types::WRONG_COUNT, self.file, span, message);
            let shape: Vec<&str> = activity.params.iter().map(|param| param.name.as_str()).collect();
            self.out.push(diagnostic.expected(format!("`{}({})`", activity.name, shape.join(", "))));
        }
        let types =
            activity.params.iter().map(|param| param.ty.clone()).chain(std::iter::repeat(Ty::Unknown));
        names.into_iter().zip(types).collect()
    }

    /// Keeps a value that may look at the arguments of a call.
    fn of_call(&mut self, params: &[(String, Ty)], make: impl FnOnce(&mut Scope<'_>) -> Expr) -> FunctionIx {
        let mut scope = self.scope();
        for (name, ty) in params {
            scope.bind(name, ty.clone());
        }
        let body = make(&mut scope);
        let frame = scope.frame();
        self.keep(u32::try_from(params.len()).unwrap_or(u32::MAX), body, frame)
    }

    fn reply(
        &mut self,
        activity: &ActivitySig,
        params: &[(String, Ty)],
        of: &ast::ReplyNode,
    ) -> Option<StubReply> {
        let after_ms = of.after().and_then(|after| ms(&after));
        let gives = match of.reply()? {
            ast::Reply::Value(value) => {
                Reply::Value(self.of_call(params, |scope| scope.expr_as(&value, &activity.result)))
            }
            ast::Reply::Fail(error) => Reply::Fail(self.error(activity, params, &error?)),
            ast::Reply::FailText(text) => Reply::FailText(
                self.of_call(params, |scope| scope.expr_as(&ast::Expr::String(text), &Ty::Text)),
            ),
            ast::Reply::Timeout => Reply::Timeout,
            ast::Reply::Unknown => {
                if !activity.doubtful {
                    let message = format!("`{}` can be done again, so it is never in doubt", activity.name);
                    let diagnostic = Diagnostic::error(codes::WRONG_REPLY, self.file, of.span(), message);
                    self.out.push(diagnostic.expected("a result, `fail …` or `timeout`"));
                }
                Reply::Unknown
            }
        };
        let cost = of.costs().and_then(|costs| costs.digits());
        if cost.is_some() && matches!(gives, Reply::Timeout | Reply::Unknown) {
            let message = "an attempt that does not report cannot say what it cost";
            let diagnostic = Diagnostic::error(codes::WRONG_REPLY, self.file, of.span(), message);
            self.out.push(
                diagnostic
                    .expected("a result or `fail …` after `costs`")
                    .hint("leave `costs` out: a lost attempt counts as what its activity `costs` at most"),
            );
        }
        Some(StubReply { after_ms, cost, gives })
    }

    fn error(&mut self, activity: &ActivitySig, params: &[(String, Ty)], of: &ast::Construct) -> FunctionIx {
        let mut found = Ty::Unknown;
        let value = self.of_call(params, |scope| {
            let typed = scope.construct(of, None);
            found = typed.ty;
            typed.expr
        });
        let raised = match &found {
            Ty::Named(ix) => activity.raises.contains(ix),
            Ty::Unknown => true,
            _ => false,
        };
        if !raised {
            let message = format!("`{}` does not raise `{}`", activity.name, self.tables.show(&found));
            let diagnostic = Diagnostic::error(codes::WRONG_REPLY, self.file, of.span(), message);
            let raises: Vec<String> =
                activity.raises.iter().map(|ix| format!("`{}`", self.tables.types[ix.at()].name)).collect();
            let named = if raises.is_empty() { String::new() } else { format!("{} or ", raises.join(", ")) };
            self.out.push(diagnostic.expected(format!("{named}a text, as in `fail \"disk full\"`")));
        }
        value
    }
}
