//! Calls: functions, builtins, folds, and what looks like a method (`T.from(v)`, `T.schema`, `dev.allow(call)`).
//!
//! Leaves the signatures of builtins to `lower::builtins`. Invariant: arguments of a lowered call stand in the order of the
//! parameters, with defaults filled in.

use super::builtins;
use super::expr::Typed;
use super::scope::Scope;
use super::word::Word;
use crate::check::tables::{FieldSig, LowerName, UpperName};
use crate::check::ty::Ty;
use crate::diag::TextSpan;
use crate::diag::catalogue::{names, syntax, types};
use crate::limits::DEFAULTS_WITHIN_MAX;
use crate::machine::{CatalogueIx, Expr, Fold, Literal};
use crate::schema;
use crate::syntax::ast::{self, AstNode as _};
use crate::syntax::words;

/// The folds by their words.
const FOLDS: &[(&str, Fold)] = &[
    ("count", Fold::Count),
    ("sum", Fold::Sum),
    ("any", Fold::Any),
    ("all", Fold::All),
    ("first", Fold::First),
    ("last", Fold::Last),
];

impl Scope<'_> {
    pub(crate) fn call(&mut self, of: &ast::Call, want: Option<&Ty>) -> Typed {
        let (Some(name), Some(args)) = (of.function().map(Word::from), of.args()) else {
            return Typed::unknown();
        };
        let word = name.text();
        if let Some((_, fold)) = FOLDS.iter().find(|(one, _)| *one == word) {
            return self.fold(*fold, &name, &args, want);
        }
        match self.tables.lower(self.layer, &word) {
            Some(LowerName::Function(ix)) => {
                let signature = &self.tables.functions[ix.at()];
                let (params, result) = (&signature.params, signature.result.clone());
                let args = self.args(params, Some(&args), &word, name.span());
                Typed::new(Expr::Call(ix, args), result)
            }
            Some(LowerName::Activity(_)) => {
                let message = format!("`{word}` is an activity: only a state's `do` can call it");
                let diagnostic = self.error(names::UNKNOWN_NAME, name.span(), message);
                self.report(diagnostic);
                Typed::unknown()
            }
            Some(LowerName::Catalogue(_)) | None => self.builtin(&name, &args, want),
        }
    }

    /// `count(… for …)` and its like.
    fn fold(&mut self, fold: Fold, name: &Word, args: &ast::ArgList, want: Option<&Ty>) -> Typed {
        let (Some(for_in), Some(body)) = (args.for_in(), args.args().next().and_then(|arg| arg.value()))
        else {
            let word = name.text();
            let diagnostic =
                self.error(types::WRONG_ARGUMENT, args.span(), format!("`{word}` goes over a list or a map"));
            self.report(diagnostic.expected(format!("`{word}(… for x in xs)`")));
            return Typed::unknown();
        };
        let mark = self.enter();
        let over = Box::new(self.for_in(&for_in));
        let typed = match fold {
            Fold::Any | Fold::All => Typed::new(self.expr_as(&body, &Ty::Bool), Ty::Bool),
            Fold::First | Fold::Last | Fold::Sum => self.expr(&body, want.map(Ty::present)),
            Fold::Count | Fold::SumDecimal | Fold::SumDuration | Fold::SumFloat | Fold::SumList => {
                self.expr(&body, None)
            }
        };
        self.leave(mark);
        let (fold, ty) = match fold {
            Fold::Count => (Fold::Count, Ty::Int),
            Fold::Any | Fold::All => (fold, Ty::Bool),
            Fold::First | Fold::Last => (fold, Ty::option(typed.ty)),
            Fold::Sum | Fold::SumDecimal | Fold::SumDuration | Fold::SumFloat | Fold::SumList => {
                match &typed.ty {
                    Ty::Int => (Fold::Sum, Ty::Int),
                    Ty::Decimal => (Fold::SumDecimal, Ty::Decimal),
                    Ty::Duration => (Fold::SumDuration, Ty::Duration),
                    Ty::Float => (Fold::SumFloat, Ty::Float),
                    Ty::List(_) => (Fold::SumList, typed.ty.clone()),
                    Ty::Unknown => (Fold::Sum, Ty::Unknown),
                    found => {
                        let found = found.clone();
                        self.report_mismatch_text(&found, "a number, a duration or a list", body.span());
                        (Fold::Sum, Ty::Unknown)
                    }
                }
            }
        };
        Typed::new(Expr::Fold(fold, over, Box::new(typed.expr)), ty)
    }

    /// The arguments of a call in the order of the parameters.
    pub(crate) fn args(
        &mut self,
        params: &[FieldSig],
        args: Option<&ast::ArgList>,
        callee: &str,
        span: TextSpan,
    ) -> Vec<Expr> {
        let given: Vec<ast::Arg> = args.map(|args| args.args().collect()).unwrap_or_default();
        let mut values: Vec<Option<Expr>> = vec![None; params.len()];
        let (mut named, mut extra) = (false, None);
        for (at, arg) in given.iter().enumerate() {
            let Some(value) = arg.value() else { continue };
            let position = match arg.name() {
                Some(name) => {
                    named = true;
                    self.named_argument(params, &name.into(), callee)
                }
                None if named => {
                    let message = "an argument by position cannot follow one by name";
                    let diagnostic = self.error(types::WRONG_ARGUMENT, arg.span(), message);
                    self.report(diagnostic);
                    None
                }
                None if at < params.len() => Some(at),
                None => {
                    extra = extra.or(Some(arg.span()));
                    None
                }
            };
            let Some(position) = position else {
                self.expr(&value, None);
                continue;
            };
            let param = &params[position];
            let lowered = self.expr_as(&value, &param.ty);
            if values[position].replace(lowered).is_some() {
                let message = format!("`{}` has a value already", param.name);
                let diagnostic = self.error(types::WRONG_ARGUMENT, arg.span(), message);
                self.report(diagnostic);
            }
        }
        let span = args.map_or(span, |args| args.span());
        self.report_extra(params, extra, given.len(), callee);
        self.filled(params, values, callee, span)
    }

    fn named_argument(&mut self, params: &[FieldSig], name: &Word, callee: &str) -> Option<usize> {
        let word = name.text();
        let found = params.iter().position(|param| param.name == word);
        if found.is_none() {
            let near = self.tables.closest(&word, params.iter().map(|param| param.name.as_str()));
            let message = format!("`{callee}` has no parameter `{word}`");
            self.report_unknown(types::WRONG_ARGUMENT, name.span(), message, near);
        }
        found
    }

    fn report_extra(&mut self, params: &[FieldSig], extra: Option<TextSpan>, given: usize, callee: &str) {
        if let Some(extra) = extra {
            let message = format!("`{callee}` takes {}, not {given}", counted(params.len(), "argument"));
            let diagnostic = self.error(types::WRONG_COUNT, extra, message);
            self.report(diagnostic.expected(listed(params)));
        }
    }

    /// Fills in defaults, and reports what has neither a value nor a default.
    fn filled(
        &mut self,
        params: &[FieldSig],
        values: Vec<Option<Expr>>,
        callee: &str,
        span: TextSpan,
    ) -> Vec<Expr> {
        let mut missing = Vec::new();
        let filled = params.iter().zip(values).map(|(param, value)| match (value, &param.default) {
            (Some(value), _) => value,
            (None, Some(_)) => self.default_of(param),
            (None, None) => {
                missing.push(format!("`{}`", param.name));
                Typed::unknown().expr
            }
        });
        let filled = filled.collect();
        if !missing.is_empty() {
            let message = format!("`{callee}` also needs {}", missing.join(", "));
            let diagnostic = self.error(types::WRONG_COUNT, span, message);
            self.report(diagnostic.expected(listed(params)));
        }
        filled
    }

    /// The default of a field or parameter, read anew at the place where it is filled in. Its mistakes are reported where it
    /// is declared.
    pub(crate) fn default_of(&mut self, field: &FieldSig) -> Expr {
        let Some((file, default)) = &field.default else { return Expr::Lit(Literal::None) };
        if self.defaults >= DEFAULTS_WITHIN_MAX {
            return Typed::unknown().expr;
        }
        let mut unheard = Vec::new();
        let layer = self.tables.layer_of(*file);
        let mut scope = Scope::new(self.tables, layer, *file, &mut unheard);
        scope.constant = true;
        scope.defaults = self.defaults + 1;
        scope.expr_as(default, &field.ty)
    }

    /// `base.name`, `base.name(args)`.
    pub(crate) fn field(&mut self, of: &ast::FieldExpr) -> Typed {
        let (Some(base), Some(name)) = (of.value(), of.field().map(Word::from)) else {
            return Typed::unknown();
        };
        if let Some(typed) = self.special(&base, &name, of.args().as_ref()) {
            return typed;
        }
        if let Some(args) = of.args() {
            self.report_method(of, &base, &name, &args);
            args.args().filter_map(|arg| arg.value()).for_each(|arg| drop(self.expr(&arg, None)));
            return Typed::unknown();
        }
        let typed = self.expr(&base, None);
        if words::is_length(&name.text()) && has_size(&typed.ty) {
            let message = format!("`.{}` is written `size(…)`", name.text());
            let diagnostic = self.error(syntax::LENGTH, of.span(), message);
            self.report(diagnostic.fix(of.span(), format!("size({})", base.source())));
            return Typed::unknown();
        }
        self.field_of(typed, &name)
    }

    /// Reports `value.function(…)`, a habit.
    fn report_method(&mut self, of: &ast::FieldExpr, base: &ast::Expr, name: &Word, args: &ast::ArgList) {
        let word = name.text();
        let message = format!("there are no methods: `{word}` is no function of a value");
        let diagnostic = self.error(names::UNKNOWN_NAME, name.span(), message);
        let diagnostic = diagnostic.hint(format!("write it as a function: `{word}(…)`"));
        let inner: Vec<String> = args.args().filter_map(|arg| arg.value()).map(|arg| arg.source()).collect();
        let all = std::iter::once(base.source()).chain(inner).collect::<Vec<_>>().join(", ");
        let is_function = builtins::takes_values(&word)
            || matches!(self.tables.lower(self.layer, &word), Some(LowerName::Function(_)));
        self.report(if is_function {
            diagnostic.unsure_fix(of.span(), format!("{word}({all})"))
        } else {
            diagnostic
        });
    }

    fn field_of(&mut self, typed: Typed, name: &Word) -> Typed {
        let word = name.text();
        if typed.ty.is_unknown() {
            return Typed::unknown();
        }
        if let Ty::Approved(of) = &typed.ty
            && word != "value"
            && word != "by"
        {
            let value = Expr::Field(Box::new(typed.expr), "value".to_owned());
            return self.field_of(Typed::new(value, of.as_ref().clone()), name);
        }
        let fields = self.tables.fields(&typed.ty);
        if let Some((_, ty)) = fields.iter().find(|(one, _)| *one == word) {
            return Typed::new(Expr::Field(Box::new(typed.expr), word), ty.clone());
        }
        self.report_no_field(&typed.ty, name, &fields);
        Typed::unknown()
    }

    fn report_no_field(&mut self, ty: &Ty, name: &Word, fields: &[(String, Ty)]) {
        let (word, shown) = (name.text(), self.tables.show(ty));
        let message = format!("`{shown}` has no field `{word}`");
        let hint = match ty {
            Ty::Option(_) => Some(
                "it may be `none`: give a value for that case with `?? …`, or look with `if … as x`"
                    .to_owned(),
            ),
            Ty::Json => Some(format!(
                "JSON has no fields until it is narrowed: `T.from(…)` gives `T?`; `{word}` may be a field of T"
            )),
            Ty::Named(_)
                if self.tables.variants(ty).is_some_and(|all| {
                    all.iter().any(|(_, fields)| fields.iter().any(|(one, _)| *one == word))
                }) =>
            {
                Some("only some variants have it: use `match`, `is` or an arm".to_owned())
            }
            _ => None,
        };
        let code = if *ty == Ty::Json { types::DYNAMIC_JSON } else { names::UNKNOWN_FIELD };
        match hint {
            Some(hint) => {
                let diagnostic = self.error(code, name.span(), message);
                self.report(diagnostic.hint(hint));
            }
            None => {
                let near = self.tables.closest(&word, fields.iter().map(|(one, _)| one.as_str()));
                self.report_unknown(code, name.span(), message, near);
            }
        }
    }

    /// `T.from(v)`, `T.schema`, `dev.schemas`, `dev.allow(call)`.
    fn special(&mut self, base: &ast::Expr, name: &Word, args: Option<&ast::ArgList>) -> Option<Typed> {
        let word = name.text();
        match base {
            ast::Expr::Construct(construct) if construct.init_list().is_none() => {
                let path = construct.path()?;
                let named = path.last().filter(|_| path.qualifier().is_none())?;
                if let Some(catalogue) = path.catalogue() {
                    return match self.tool_type(&catalogue.into(), &named.into()) {
                        Ty::Unknown => Some(Typed::unknown()),
                        ty => self.of_type(&ty, &word, name, args),
                    };
                }
                let ty = match self.tables.upper(self.layer, &named.text) {
                    Some(UpperName::Type(ix)) => Ty::Named(ix),
                    Some(UpperName::Flow(ix)) => self.tables.flows[ix.at()].result.clone(),
                    None if named.text == "Problem" => Ty::Problem,
                    None => return None,
                };
                self.of_type(&ty, &word, name, args)
            }
            ast::Expr::Name(named) => {
                let named = named.name()?;
                if self.find(&named.text()).is_some() {
                    return None;
                }
                match self.tables.lower(self.layer, &named.text()) {
                    Some(LowerName::Catalogue(ix)) => Some(self.of_catalogue(ix, name, args)),
                    Some(LowerName::Activity(_) | LowerName::Function(_)) => None,
                    None => {
                        let ty = Ty::scalar(&named.text())?;
                        self.of_type(&ty, &word, name, args)
                    }
                }
            }
            _ => None,
        }
    }

    fn of_type(&mut self, ty: &Ty, word: &str, name: &Word, args: Option<&ast::ArgList>) -> Option<Typed> {
        match (word, args) {
            ("from", Some(args)) => {
                let json = self.only_arg(args, &Ty::Json, "from")?;
                // Otherwise whoever writes the JSON could name a secret.
                self.refuse_secret(ty, name.span(), "read from JSON");
                Some(Typed::new(Expr::FromJson(ty.stored(), Box::new(json)), Ty::option(ty.clone())))
            }
            ("schema", None) => {
                let schema = schema::of_type(&self.tables.stored_types(), &ty.stored());
                Some(Typed::new(Expr::Lit(Literal::Json(schema.to_string())), Ty::Json))
            }
            _ => {
                let message = format!("a type has no `{word}`");
                let diagnostic = self.error(names::UNKNOWN_FIELD, name.span(), message);
                self.report(diagnostic.expected("`T.from(json)` or `T.schema`"));
                Some(Typed::unknown())
            }
        }
    }

    fn of_catalogue(&mut self, ix: CatalogueIx, name: &Word, args: Option<&ast::ArgList>) -> Typed {
        match (name.text().as_str(), args) {
            ("schemas", None) => {
                Typed::new(Expr::Schemas(ix), Ty::list(self.tables.library_type("ToolSchema")))
            }
            ("allow", Some(args)) => {
                let call = self.tables.library_type("ToolCall");
                let Some(arg) = self.only_arg(args, &call, "allow") else { return Typed::unknown() };
                Typed::new(Expr::Allow(ix, Box::new(arg)), Ty::option(Ty::Approved(Box::new(call))))
            }
            ("call", Some(args)) => self.tool_call(ix, args),
            (word, _) => {
                let message = format!("a catalogue has no `{word}`");
                let diagnostic = self.error(names::UNKNOWN_FIELD, name.span(), message);
                self.report(diagnostic.expected("`schemas`, `allow(call)` or `call(id, arguments)`"));
                Typed::unknown()
            }
        }
    }

    /// `dev.call(id, ReadFile { … })`: the call of the tool whose arguments are given.
    fn tool_call(&mut self, ix: CatalogueIx, args: &ast::ArgList) -> Typed {
        let given: Vec<ast::Expr> = args.args().filter_map(|arg| arg.value()).collect();
        let [id, arguments] = given.as_slice() else {
            let message = format!("`call` takes 2 arguments, not {}", given.len());
            let diagnostic = self.error(types::WRONG_COUNT, args.span(), message);
            self.report(diagnostic.expected("the id of the call and the arguments of a tool"));
            return Typed::unknown();
        };
        let id = self.expr_as(id, &Ty::Text);
        let tables = self.tables;
        // Which catalogue it is of is said already.
        let short = match arguments {
            ast::Expr::Construct(construct) => construct.path().filter(|path| path.is_single()),
            _ => None,
        };
        let name = short.and_then(|path| path.last()).map(|name| name.text);
        let want = name.and_then(|name| tables.tool_types.get(&(ix, name))).map(|found| &found.ty);
        let typed = self.expr(arguments, want);
        let fits = |ty: &Ty| *ty == typed.ty && matches!(ty, Ty::Named(_));
        let all = tables.tool_types.iter().filter(|((of, _), one)| *of == ix && one.tool.is_some());
        let Some(tool) = all.filter(|(_, one)| fits(&one.ty)).find_map(|(_, one)| one.tool.clone()) else {
            if !typed.ty.is_unknown() {
                let what = "the arguments of a tool of this catalogue, such as `ReadFile { … }`";
                self.report_mismatch_text(&typed.ty, what, arguments.span());
            }
            return Typed::unknown();
        };
        let call = tables.library_type("ToolCall");
        let Ty::Named(record) = call else { return Typed::unknown() };
        let arguments = Expr::ToJson(Box::new(typed.expr));
        let mut given =
            [("id", Some(id)), ("name", Some(Expr::Lit(Literal::Text(tool)))), ("args", Some(arguments))];
        // What a call has besides is for others to fill in.
        let value = |field: String| {
            let given = given.iter_mut().find(|(name, _)| *name == field).and_then(|(_, value)| value.take());
            (field, given.unwrap_or(Expr::Lit(Literal::None)))
        };
        let fields = tables.fields(&call).into_iter().map(|(field, _)| field).map(value).collect();
        Typed::new(Expr::Record(record, fields), call)
    }

    /// The argument of something that takes exactly one.
    pub(crate) fn only_arg(&mut self, args: &ast::ArgList, want: &Ty, callee: &str) -> Option<Expr> {
        let given: Vec<ast::Expr> = args.args().filter_map(|arg| arg.value()).collect();
        let [arg] = given.as_slice() else {
            let message = format!("`{callee}` takes 1 argument, not {}", given.len());
            let diagnostic = self.error(types::WRONG_COUNT, args.span(), message);
            self.report(diagnostic);
            return None;
        };
        Some(self.expr_as(arg, want))
    }
}

/// `1 argument`, `2 arguments`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// The parameters as a message shows them.
fn listed(params: &[FieldSig]) -> String {
    let names: Vec<String> = params
        .iter()
        .map(|param| if param.default.is_some() { format!("{}?", param.name) } else { param.name.clone() })
        .collect();
    format!("`({})`", names.join(", "))
}

/// Whether `size` counts what is in it.
fn has_size(ty: &Ty) -> bool {
    matches!(ty.bare(), Ty::List(_) | Ty::Map(_) | Ty::Text | Ty::Bytes)
}
