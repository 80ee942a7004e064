//! Types as they are written, and lists of fields and errors.
//!
//! Leaves which names are declared to `check::declare`. Invariant: a name that is unknown is reported once and becomes
//! [`Ty::Unknown`].

use super::tables::{FieldSig, LowerName, UpperName};
use super::ty::{GENERIC, Ty};
use crate::diag::catalogue::{names, types};
use crate::diag::{Diagnostic, closest};
use crate::lower::scope::Scope;
use crate::lower::word::Word;
use crate::machine::TypeIx;
use crate::syntax::ast::{self, AstNode as _};

impl Scope<'_> {
    /// Returns the type that is written.
    pub(crate) fn ty(&mut self, of: &ast::Type) -> Ty {
        let Some(name) = of.name() else { return Ty::Unknown };
        let plain = self.plain_ty(of, &name);
        if of.is_optional() { Ty::option(plain) } else { plain }
    }

    fn plain_ty(&mut self, of: &ast::Type, name: &ast::NameRef) -> Ty {
        let word = name.text();
        if let Some(catalogue) = of.catalogue() {
            return self.tool_type(&catalogue.into(), &name.clone().into());
        }
        if word == "handle" {
            return self.handle(of);
        }
        let argument = of.argument();
        if GENERIC.contains(&word.as_str()) {
            let Some(argument) = argument else {
                let diagnostic = self.error(types::TYPE_ARGUMENTS, of.span(), format!("`{word}` of what?"));
                self.report(diagnostic.expected(format!("`{word}<T>`")));
                return Ty::Unknown;
            };
            let inner = self.ty(&argument);
            return generic(&word, inner);
        }
        if argument.is_some() {
            let diagnostic = self.error(types::TYPE_ARGUMENTS, of.span(), format!("`{word}` takes no type"));
            self.report(diagnostic);
        }
        if let Some(ty) = Ty::scalar(&word) {
            return ty;
        }
        if word == "Problem" {
            return Ty::Problem;
        }
        match self.tables.upper(self.layer, &word) {
            Some(UpperName::Type(ix)) => Ty::Named(ix),
            Some(UpperName::Flow(ix)) => self.tables.flows[ix.at()].result.clone(),
            None => {
                self.report_no_type(name);
                Ty::Unknown
            }
        }
    }

    /// `dev.ReadFile`: the arguments of a tool, or a part of them.
    pub(crate) fn tool_type(&mut self, catalogue: &Word, name: &Word) -> Ty {
        let (of, word) = (catalogue.text(), name.text());
        let Some(LowerName::Catalogue(ix)) = self.tables.lower(self.layer, &of) else {
            let is_catalogue = |found| matches!(found, LowerName::Catalogue(_));
            let near = self.tables.near_lower(self.layer, &of, is_catalogue).map(str::to_owned);
            let message = format!("there is no catalogue `{of}`");
            self.report_unknown(names::UNKNOWN_DECLARATION, catalogue.span(), message, near.as_deref());
            return Ty::Unknown;
        };
        let tables = self.tables;
        let Some(found) = tables.tool_types.get(&(ix, word.clone())) else {
            let known = tables.tool_types.keys().filter(|(one, _)| *one == ix).map(|(_, name)| name.as_str());
            let near = closest(&word, known).map(str::to_owned);
            let message = format!("`{of}` has no tool with the type `{word}`");
            self.report_unknown(names::UNKNOWN_TYPE, name.span(), message, near.as_deref());
            return Ty::Unknown;
        };
        if !found.losses.is_empty() {
            let message = format!("`{of}.{word}` says less than the tool's schema");
            let note = Diagnostic::note(names::TOOL_TYPE, self.file, name.span(), message);
            self.report(note.hint(found.losses.join("; ")));
        }
        found.ty.clone()
    }

    fn report_no_type(&mut self, name: &ast::NameRef) {
        let word = name.text();
        let usual = [
            ("string", "text"),
            ("str", "text"),
            ("String", "text"),
            ("number", "int"),
            ("integer", "int"),
            ("boolean", "bool"),
            ("date", "time"),
            ("datetime", "time"),
            ("array", "list"),
            ("any", "json"),
            ("object", "json"),
            ("void", "nothing"),
            ("List", "list"),
            ("Map", "map"),
        ];
        let habit = usual.iter().find(|(habit, _)| *habit == word).map(|(_, ours)| *ours);
        let built_in =
            || closest(&word, Ty::scalar_words().chain(GENERIC.iter().copied()).chain(["Problem"]));
        let near = habit
            .or_else(|| self.tables.near_upper(self.layer, &word, |_| true))
            .or_else(built_in)
            .map(str::to_owned);
        let message = format!("there is no type `{word}`");
        self.report_unknown(names::UNKNOWN_TYPE, name.span(), message, near.as_deref());
    }

    fn handle(&mut self, of: &ast::Type) -> Ty {
        let flow = of.argument().and_then(|argument| argument.name());
        match flow.and_then(|flow| self.tables.upper(self.layer, &flow.text())) {
            Some(UpperName::Flow(ix)) => Ty::Handle(ix),
            Some(UpperName::Type(_)) | None => {
                let diagnostic = self.error(types::TYPE_ARGUMENTS, of.span(), "`handle` of which flow?");
                self.report(diagnostic.expected("`handle<Flow>`"));
                Ty::Unknown
            }
        }
    }

    /// Fields of a record, variant, error or message.
    pub(crate) fn field_sigs(&mut self, fields: impl Iterator<Item = ast::Field>) -> Vec<FieldSig> {
        let mut all = Vec::new();
        for field in fields {
            let (Some(name), ty) = (field.name(), field.ty()) else { continue };
            let ty = ty.map_or(Ty::Unknown, |ty| self.ty(&ty));
            self.push_sig(&mut all, &name, ty, field.default());
        }
        all
    }

    /// Parameters.
    pub(crate) fn param_sigs(&mut self, params: impl Iterator<Item = ast::Param>) -> Vec<FieldSig> {
        let mut all = Vec::new();
        for param in params {
            let (Some(name), ty) = (param.name(), param.ty()) else { continue };
            let ty = ty.map_or(Ty::Unknown, |ty| self.ty(&ty));
            self.push_sig(&mut all, &name, ty, param.default());
        }
        all
    }

    fn push_sig(&mut self, all: &mut Vec<FieldSig>, name: &ast::Name, ty: Ty, default: Option<ast::Expr>) {
        let word = name.text();
        if all.iter().any(|one| one.name == word) {
            let diagnostic = self.error(names::DUPLICATE, name.span(), format!("`{word}` stands here twice"));
            self.report(diagnostic);
            return;
        }
        let default = default.map(|default| (self.file, default));
        all.push(FieldSig { name: word, ty, default, spot: self.spot(name.span()) });
    }

    /// The errors after `raises`.
    pub(crate) fn raised(&mut self, raises: impl Iterator<Item = ast::NameRef>) -> Vec<TypeIx> {
        let mut all: Vec<TypeIx> = Vec::new();
        for name in raises {
            match self.error_named(&name) {
                Some(ix) if all.contains(&ix) => {
                    let message = format!("`{}` stands here twice", name.text());
                    let diagnostic = self.error(names::DUPLICATE, name.span(), message);
                    self.report(diagnostic);
                }
                Some(ix) => all.push(ix),
                None => {}
            }
        }
        all
    }

    /// An error by its name; reports an unknown one.
    pub(crate) fn error_named(&mut self, name: &ast::NameRef) -> Option<TypeIx> {
        let word = name.text();
        let found = self.tables.error(self.layer, &word);
        if found.is_none() {
            let tables = self.tables;
            let is_error = |found| matches!(found, UpperName::Type(ix) if tables.is_error(ix));
            let near = tables.near_upper(self.layer, &word, is_error).map(str::to_owned);
            let message = format!("there is no error `{word}`");
            self.report_unknown(names::UNKNOWN_ERROR, name.span(), message, near.as_deref());
        }
        found
    }
}

fn generic(word: &str, inner: Ty) -> Ty {
    let inner = Box::new(inner);
    match word {
        "list" => Ty::List(inner),
        "map" => Ty::Map(inner),
        "approved" => Ty::Approved(inner),
        "Slot" => Ty::Slot(inner),
        "Verdict" => Ty::Verdict(inner),
        "Ended" => Ty::Ended(inner),
        _ => Ty::Doubt(inner),
    }
}
