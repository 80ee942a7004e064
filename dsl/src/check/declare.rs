//! Collects the names of all files: types, errors, functions, activities, flows, retry policies, catalogues.
//!
//! Leaves their types to `check::signatures`. Invariant: a declaration keeps the place in its table that its name leads to, and
//! the second of two equal names is reported and left out.

use super::load::{CatalogueFile, Parsed};
use super::tables::{
    ActivitySig, FlowSig, FunctionSig, Layer, LowerName, Shape, Spot, Tables, TypeSig, UpperName,
};
use super::ty::{GENERIC, Ty};
use crate::diag::catalogue::names;
use crate::diag::{Diagnostic, FileId};
use crate::lower::builtins;
use crate::machine::{ActivityIx, CatalogueIx, FlowIx, FunctionIx, RetryIx, TypeIx};
use crate::syntax::ast::{self, AstNode as _};

/// A named type as it is written.
#[derive(Debug)]
pub(crate) enum TypeText {
    Type(ast::TypeDecl),
    Error(ast::ErrorDecl),
    /// The variants after a flow's `->`.
    Result(ast::FlowResult),
}

/// A tool catalogue as it was found.
#[derive(Debug)]
pub(crate) struct CatalogueText {
    pub(crate) name: String,
    /// What tells its file from others.
    pub(crate) key: String,
    pub(crate) text: Option<String>,
    /// Where its path stands.
    pub(crate) spot: Spot,
}

/// The texts of all declarations, each at the index of its table.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) types: Vec<(FileId, TypeText)>,
    pub(crate) activities: Vec<(FileId, ast::Activity)>,
    pub(crate) functions: Vec<(FileId, ast::FnDecl)>,
    pub(crate) flows: Vec<(FileId, ast::Flow)>,
    pub(crate) retries: Vec<(FileId, ast::RetryDecl)>,
    pub(crate) catalogues: Vec<CatalogueText>,
    pub(crate) migrations: Vec<(FileId, ast::Migrate)>,
    pub(crate) tests: Vec<(FileId, ast::Test)>,
}

/// Collects the declarations of all files into empty signatures.
pub(crate) fn declare(files: &[Parsed], tables: &mut Tables, out: &mut Vec<Diagnostic>) -> Texts {
    let mut declarer = Declarer { tables, out, texts: Texts::default() };
    for parsed in files {
        parsed.catalogues.iter().for_each(|(one, found)| declarer.catalogue(parsed, one, found));
        parsed.tree.decls().for_each(|decl| declarer.decl(parsed, decl));
    }
    declarer.texts
}

struct Declarer<'d> {
    tables: &'d mut Tables,
    out: &'d mut Vec<Diagnostic>,
    texts: Texts,
}

impl Declarer<'_> {
    fn decl(&mut self, parsed: &Parsed, decl: ast::Decl) {
        let file = parsed.file;
        match decl {
            ast::Decl::Type(decl) => {
                if let Some(name) = decl.name() {
                    self.named_type(parsed, &name, TypeText::Type(decl));
                }
            }
            ast::Decl::Error(decl) => {
                if let Some(name) = decl.name() {
                    self.named_type(parsed, &name, TypeText::Error(decl));
                }
            }
            ast::Decl::Retry(decl) => self.retry(parsed, decl),
            ast::Decl::Activity(decl) => self.activity(parsed, decl),
            ast::Decl::Fn(decl) => self.function(parsed, decl),
            ast::Decl::Flow(decl) => self.flow(parsed, decl),
            ast::Decl::Migrate(decl) => self.texts.migrations.push((file, decl)),
            ast::Decl::Test(decl) => self.texts.tests.push((file, decl)),
        }
    }

    fn named_type(&mut self, parsed: &Parsed, name: &ast::Name, text: TypeText) {
        let ix = TypeIx(index(self.texts.types.len()));
        if !self.take_upper(parsed, name, UpperName::Type(ix)) {
            return;
        }
        self.push_type(parsed, name.text(), name, text);
    }

    fn push_type(&mut self, parsed: &Parsed, name: String, at: &ast::Name, text: TypeText) {
        let spot = Spot { file: parsed.file, span: at.span() };
        // Whether it is an error must be known before any field is read.
        let shape = match text {
            TypeText::Error(_) => Shape::Error(Vec::new()),
            TypeText::Type(_) | TypeText::Result(_) => Shape::Record(Vec::new()),
        };
        self.tables.types.push(TypeSig { name, shape, spot });
        self.texts.types.push((parsed.file, text));
    }

    fn retry(&mut self, parsed: &Parsed, decl: ast::RetryDecl) {
        let Some(name) = decl.name() else { return };
        let spot = Spot { file: parsed.file, span: name.span() };
        let key = (parsed.layer, name.text());
        if let Some((_, first)) = self.tables.retries.get(&key) {
            let first = *first;
            self.report_taken(&name, spot, Some(first));
            return;
        }
        let ix = RetryIx(index(self.texts.retries.len()));
        self.tables.retries.insert(key, (ix, spot));
        self.texts.retries.push((parsed.file, decl));
    }

    fn activity(&mut self, parsed: &Parsed, decl: ast::Activity) {
        let Some(name) = decl.name() else { return };
        let ix = ActivityIx(index(self.texts.activities.len()));
        if !self.take_lower(parsed, &name, LowerName::Activity(ix)) {
            return;
        }
        self.tables.activities.push(ActivitySig {
            name: name.text(),
            params: Vec::new(),
            result: Ty::Nothing,
            raises: Vec::new(),
            doubtful: false,
            unknown_holds: false,
            costly: false,
        });
        self.texts.activities.push((parsed.file, decl));
    }

    fn function(&mut self, parsed: &Parsed, decl: ast::FnDecl) {
        let Some(name) = decl.name() else { return };
        let spot = Spot { file: parsed.file, span: name.span() };
        if builtins::is_builtin(&name.text()) {
            self.report_taken(&name, spot, None);
            return;
        }
        let ix = FunctionIx(index(self.texts.functions.len()));
        if !self.take_lower(parsed, &name, LowerName::Function(ix)) {
            return;
        }
        self.tables.functions.push(FunctionSig { params: Vec::new(), result: Ty::Unknown, spot });
        self.texts.functions.push((parsed.file, decl));
    }

    fn flow(&mut self, parsed: &Parsed, decl: ast::Flow) {
        let Some(name) = decl.name() else { return };
        let ix = FlowIx(index(self.texts.flows.len()));
        if !self.take_upper(parsed, &name, UpperName::Flow(ix)) {
            return;
        }
        let mut result = Ty::Unknown;
        if let Some(written) = decl.result().filter(|result| result.variants().next().is_some()) {
            result = Ty::Named(TypeIx(index(self.texts.types.len())));
            self.push_type(parsed, format!("{}.result", name.text()), &name, TypeText::Result(written));
        }
        let spot = Spot { file: parsed.file, span: name.span() };
        self.tables.flows.push(FlowSig {
            name: name.text(),
            params: Vec::new(),
            result,
            raises: Vec::new(),
            emits: None,
            saga: false,
            spot,
        });
        self.texts.flows.push((parsed.file, decl));
    }

    fn catalogue(&mut self, parsed: &Parsed, one: &ast::Use, found: &CatalogueFile) {
        let Some(name) = one.name() else { return };
        let word = name.text();
        // Several files may use one catalogue under one name.
        let known =
            self.texts.catalogues.iter().position(|known| known.name == word && known.key == found.key);
        let ix = CatalogueIx(index(known.unwrap_or(self.texts.catalogues.len())));
        let stands_for = LowerName::Catalogue(ix);
        let is_again = known.is_some() && self.tables.lower(parsed.layer, &word) == Some(stands_for);
        if is_again || !self.take_lower(parsed, &name, stands_for) || known.is_some() {
            return;
        }
        let path = one.path();
        let span = path.as_ref().map_or_else(|| one.span(), |path| path.span());
        self.texts.catalogues.push(CatalogueText {
            name: word,
            key: found.key.clone(),
            text: found.text.clone(),
            spot: Spot { file: parsed.file, span },
        });
    }

    fn take_upper(&mut self, parsed: &Parsed, name: &ast::Name, stands_for: UpperName) -> bool {
        let word = name.text();
        let spot = Spot { file: parsed.file, span: name.span() };
        // A machine names its types, so the types of the standard library are taken too.
        let first = [parsed.layer, Layer::Library]
            .into_iter()
            .find_map(|layer| self.tables.upper.get(&(layer, word.clone())));
        let built_in = word == "Problem" || GENERIC.contains(&word.as_str());
        if first.is_some() || built_in {
            let first = first.map(|(_, first)| *first);
            self.report_taken(name, spot, first);
            return false;
        }
        self.tables.upper.insert((parsed.layer, word), (stands_for, spot));
        true
    }

    fn take_lower(&mut self, parsed: &Parsed, name: &ast::Name, stands_for: LowerName) -> bool {
        let word = name.text();
        let spot = Spot { file: parsed.file, span: name.span() };
        if let Some((_, first)) = self.tables.lower.get(&(parsed.layer, word.clone())) {
            let first = *first;
            self.report_taken(name, spot, Some(first));
            return false;
        }
        self.tables.lower.insert((parsed.layer, word), (stands_for, spot));
        true
    }

    fn report_taken(&mut self, name: &ast::Name, spot: Spot, first: Option<Spot>) {
        let message = format!("`{}` is declared already", name.text());
        let diagnostic = Diagnostic::error(names::DUPLICATE, spot.file, spot.span, message);
        self.out.push(match first {
            Some(first) if first.file.0 < self.tables.library_from => {
                let mut diagnostic = diagnostic;
                let message = "it is declared here".to_owned();
                diagnostic.related.push(crate::diag::Related { file: first.file, span: first.span, message });
                diagnostic
            }
            Some(_) | None => diagnostic.hint("the name belongs to the language or its standard library"),
        });
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
