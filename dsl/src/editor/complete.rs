//! What may stand at a place.
//!
//! The tokens before the place say what kind of name is wanted. A text that is being written is broken at that place, so it is also
//! checked with a name put in. Leaves filtering by what was typed to the editor. Invariant: the offers come in a fixed order.

use std::collections::BTreeMap;

use super::sight::{bound_in, name_of};
use super::{Editor, title};
use crate::check::tables::{Spot, Tables};
use crate::check::ty::{GENERIC, Ty};
use crate::diag::FileId;
use crate::lower::builtins;
use crate::lower::outcomes::WORDS;
use crate::syntax::ast::{self, AstNode as _, docs_of};
use crate::syntax::kind::{SyntaxKind, SyntaxNode, SyntaxToken};

/// What a completion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the variants are the words of the language")]
pub enum CompletionKind {
    State,
    Outcome,
    Activity,
    Flow,
    Field,
    Type,
    Variable,
    Function,
    Word,
}

/// Something that may stand at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The text to put in.
    pub label: String,
    /// What it is.
    pub kind: CompletionKind,
    /// Its declaration or type.
    pub detail: Option<String>,
    /// Its documentation.
    pub docs: Option<String>,
}

/// A name that no text has, put in where one is being written.
const MARK: &str = "zz_here";

impl Editor {
    /// What may stand at `offset`, where a name may have been begun.
    pub fn completions(&self, file: FileId, offset: u32) -> Vec<Completion> {
        let Some(source) = self.files.get(file.0 as usize) else { return Vec::new() };
        let text = source.text.as_str();
        let Some(before) = text.get(..offset as usize) else { return Vec::new() };
        let start = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
        let (before, rest) = (&text[..start], &text[offset as usize..]);
        let after = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let wanted = Wanted::after(before);
        let mark = if wanted.is_upper() { "ZzHere" } else { MARK };
        let patched = self.with_text(file, format!("{before}{mark}{after}"));
        let at = u32::try_from(start).unwrap_or(u32::MAX);
        let Some(here) = patched.token(file, at + 1) else { return Vec::new() };
        let mut out = patched.offers(wanted, file, at, &here);
        out.retain(|one| one.label != mark);
        out.sort_by(|a, b| (a.kind, &a.label).cmp(&(b.kind, &b.label)));
        out.dedup_by(|a, b| a.label == b.label && a.kind == b.kind);
        out
    }

    /// The same sources with another text of one file.
    fn with_text(&self, file: FileId, text: String) -> Editor {
        let (mut given, mut attachments) = (self.given.clone(), self.attachments.clone());
        match given.get_mut(file.0 as usize) {
            Some(source) => source.text = text,
            None => drop(attachments.insert(self.files[file.0 as usize].name.clone(), text)),
        }
        Editor::new(&given, &attachments)
    }

    fn offers(&self, wanted: Wanted, file: FileId, at: u32, here: &SyntaxToken) -> Vec<Completion> {
        let flow = here.parent_ancestors().find(|node| node.kind() == SyntaxKind::Flow);
        let root = here.parent_ancestors().last();
        let of_file = |kinds: &[SyntaxKind], as_kind| declared(root.as_ref(), kinds, as_kind);
        match wanted {
            Wanted::Goal => {
                let mut out = declared(flow.as_ref(), &[SyntaxKind::State], CompletionKind::State);
                out.extend(["stay", "end", "fail"].map(word));
                out
            }
            Wanted::Outcome => {
                let mut out = declared(flow.as_ref(), &[SyntaxKind::Message], CompletionKind::Outcome);
                match self.outcomes_of(file, here) {
                    Some(words) => {
                        out.retain(|message| !words.handled.contains(&message.label));
                        out.extend(words.open.iter().map(|word| plain(word, CompletionKind::Outcome)));
                    }
                    None => {
                        out.extend(of_file(&[SyntaxKind::ErrorDecl], CompletionKind::Outcome));
                        out.extend(WORDS.iter().map(|(word, _)| plain(word, CompletionKind::Outcome)));
                    }
                }
                out
            }
            Wanted::Error => of_file(&[SyntaxKind::ErrorDecl], CompletionKind::Outcome),
            Wanted::Activity => of_file(&[SyntaxKind::Activity], CompletionKind::Activity),
            Wanted::Flow => of_file(&[SyntaxKind::Flow], CompletionKind::Flow),
            Wanted::Type => {
                let kinds = [SyntaxKind::TypeDecl, SyntaxKind::ErrorDecl, SyntaxKind::Flow];
                let mut out = of_file(&kinds, CompletionKind::Type);
                out.extend(self.prelude(&kinds, CompletionKind::Type));
                let words = Ty::scalar_words().chain(GENERIC.iter().copied()).chain(["Problem"]);
                out.extend(words.map(|word| plain(word, CompletionKind::Type)));
                out
            }
            Wanted::Field => {
                let ends = |spot: Spot| spot.file == file && spot.span.end + 1 == at;
                let ty = self.tables.notes.narrowest(ends);
                ty.map_or_else(Vec::new, |ty| fields(&self.tables, &ty))
            }
            Wanted::Value => {
                let bound = here.parent_ancestors().flat_map(|node| bound_in(&node));
                let mut out: Vec<Completion> =
                    bound.map(|name| plain(name.text(), CompletionKind::Variable)).collect();
                out.extend(of_file(&[SyntaxKind::FnDecl], CompletionKind::Function));
                out.extend(self.prelude(&[SyntaxKind::FnDecl], CompletionKind::Function));
                out.extend(builtins::words().map(|word| plain(word, CompletionKind::Function)));
                out
            }
        }
    }

    /// What an arrow of the state around `here` can be on, if its effect is known.
    fn outcomes_of(&self, file: FileId, here: &SyntaxToken) -> Option<Outcomes> {
        let arrow = here.parent_ancestors().find(|node| node.kind() == SyntaxKind::OnArrow)?;
        let state = ast::State::cast(arrow.parent()?)?;
        let known = self.tables.notes.outcomes(Spot { file, span: state.span() })?;
        let others = state.arrows().filter(|one| *one.syntax() != arrow && one.guard().is_none());
        let named = others.filter_map(|one| one.outcomes());
        let handled: Vec<String> =
            named.flat_map(|one| one.names()).filter_map(|one| one.name()).map(|name| name.text()).collect();
        let open = known.into_iter().filter(|word| !handled.contains(word)).collect();
        Some(Outcomes { open, handled })
    }

    fn prelude(&self, kinds: &[SyntaxKind], kind: CompletionKind) -> Vec<Completion> {
        self.trees[self.files.len()..].iter().flat_map(|tree| declared(Some(tree), kinds, kind)).collect()
    }
}

/// The outcomes of a state.
struct Outcomes {
    /// Those that no arrow of the state takes yet.
    open: Vec<String>,
    /// Those that an arrow of the state takes whatever the case.
    handled: Vec<String>,
}

/// What kind of name a place wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Goal,
    Outcome,
    Error,
    Activity,
    Flow,
    Type,
    Field,
    Value,
}

impl Wanted {
    fn after(before: &str) -> Self {
        let line = before.trim_end();
        let word = line.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
        let is_declaration = || {
            let start = line.rsplit('\n').next().unwrap_or_default().trim_start();
            let begins = |words: &[&str]| words.iter().any(|word| start.starts_with(&format!("{word} ")));
            let is_header = begins(&["flow", "saga", "state"]) && !start.contains('{');
            is_header || begins(&["activity", "fn", "type", "error", "message", "data"])
        };
        match () {
            () if before.ends_with('.') => Self::Field,
            () if line.ends_with("->") && is_declaration() => Self::Type,
            () if line.ends_with("->") => Self::Goal,
            () if line.ends_with([':', '<']) && is_declaration() => Self::Type,
            () => match word {
                "on" => Self::Outcome,
                "do" => Self::Activity,
                "run" | "spawn" => Self::Flow,
                "raises" => Self::Error,
                _ => Self::Value,
            },
        }
    }

    /// Whether the name begins with a capital.
    fn is_upper(self) -> bool {
        matches!(self, Self::Goal | Self::Flow | Self::Type | Self::Error)
    }
}

/// What is declared directly in a node.
fn declared(node: Option<&SyntaxNode>, kinds: &[SyntaxKind], kind: CompletionKind) -> Vec<Completion> {
    let items = node.into_iter().flat_map(|node| node.children()).filter(|item| kinds.contains(&item.kind()));
    let offer = |item: SyntaxNode| {
        let label = name_of(&item)?.text().to_owned();
        Some(Completion { label, kind, detail: Some(title(&item)), docs: docs_of(&item) })
    };
    items.filter_map(offer).collect()
}

fn fields(tables: &Tables, ty: &Ty) -> Vec<Completion> {
    let all: BTreeMap<String, Ty> = tables.fields(ty).into_iter().collect();
    let offer = |(label, ty): (String, Ty)| Completion {
        detail: Some(tables.show(&ty)),
        ..plain(&label, CompletionKind::Field)
    };
    all.into_iter().map(offer).collect()
}

fn plain(label: &str, kind: CompletionKind) -> Completion {
    Completion { label: label.to_owned(), kind, detail: None, docs: None }
}

fn word(label: &str) -> Completion {
    plain(label, CompletionKind::Word)
}
