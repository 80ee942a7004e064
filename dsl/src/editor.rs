//! What an editor asks about sources: what is wrong, what a name stands for, where else it stands, what may stand here.
//!
//! Declarations and types come from the checker (its tables, and the notes that lowering takes on its way); names inside of flows
//! (states, messages, variables) are looked up in the tree, in `sight`. Leaves files and the protocol of editors to its callers.
//! Invariant: pure; places are byte offsets, and nothing is offered in a file that was not given. Start with [`Editor::new`].

mod complete;
mod folds;
mod rename;
mod sight;
mod symbols;

use std::collections::BTreeMap;

use crate::check::noted;
use crate::check::notes::Notes;
use crate::check::tables::Tables;
use crate::diag::{Diagnostic, FileId, TextSpan};
use crate::files::SourceFile;
use crate::prelude;
use crate::syntax::ast::docs_of;
use crate::syntax::kind::{SyntaxKind, SyntaxNode, SyntaxToken};
use crate::syntax::parse;

pub use complete::{Completion, CompletionKind};
pub use folds::{Fold, FoldKind, folds};
pub use rename::{Edit, RenameError};
pub use symbols::{Symbol, symbols};

/// A place in one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The file, by its position among [`Editor::files`].
    pub file: FileId,
    /// The bytes.
    pub span: TextSpan,
}

/// What is shown of a name or an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The declaration without its body, or the type.
    pub title: String,
    /// The documentation above the declaration.
    pub docs: Option<String>,
    /// What it is shown of.
    pub span: TextSpan,
}

/// Checked sources that can be asked.
pub struct Editor {
    given: Vec<SourceFile>,
    attachments: BTreeMap<String, String>,
    files: Vec<SourceFile>,
    diagnostics: Vec<Diagnostic>,
    tables: Tables,
    /// The trees of `files` and then those of the prelude.
    trees: Vec<SyntaxNode>,
}

impl Editor {
    /// Checks `files` together, with the texts of what they use by their paths (see [`gather`](crate::gather)).
    #[must_use]
    pub fn new(files: &[SourceFile], attachments: &BTreeMap<String, String>) -> Self {
        let (checked, tables) = noted(files, attachments, Notes::kept());
        let own = checked.files.iter().map(|file| file.text.as_str());
        let texts = own.chain(prelude::FILES.iter().copied());
        let trees = texts.map(|text| parse(FileId(0), text).syntax()).collect();
        Self {
            given: files.to_vec(),
            attachments: attachments.clone(),
            files: checked.files,
            diagnostics: checked.diagnostics,
            tables,
            trees,
        }
    }

    /// All files: those that were given, then those that they use.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// What is wrong, in the order of the files; of parts with broken syntax only that.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The declaration of the name at `offset`, or the type of the expression there.
    pub fn hover(&self, file: FileId, offset: u32) -> Option<Hover> {
        let token = self.token(file, offset)?;
        let span = token.text_range().into();
        let ty = || {
            let here = |spot: crate::check::tables::Spot| spot.file == file && spot.span.contains(offset);
            self.tables.notes.narrowest(here).map(|ty| self.tables.show(&ty))
        };
        let Some(found) = self.resolve(file, &token) else {
            return Some(Hover { title: ty()?, docs: None, span });
        };
        let declaration = self.declaration(found)?;
        let title = match declaration.kind() {
            // A variable is bound without its type.
            SyntaxKind::Binding | SyntaxKind::FieldBind | SyntaxKind::ForIn | SyntaxKind::Each => {
                format!("{}: {}", token.text(), ty()?)
            }
            SyntaxKind::StepBind | SyntaxKind::Region => format!("{}: {}", token.text(), ty()?),
            _ => title(&declaration),
        };
        Some(Hover { title, docs: docs_of(&declaration), span })
    }

    /// Where the name at `offset` is declared; none for what the language brings along.
    pub fn definition(&self, file: FileId, offset: u32) -> Option<Location> {
        let token = self.token(file, offset)?;
        self.resolve(file, &token).filter(|found| self.is_own(found.file))
    }

    /// Every place where the name at `offset` stands, its declaration included, in the order of the files.
    pub fn references(&self, file: FileId, offset: u32) -> Vec<Location> {
        let Some(wanted) = self.token(file, offset).and_then(|token| self.resolve(file, &token)) else {
            return Vec::new();
        };
        let word = self.text_of(wanted);
        let mut all = Vec::new();
        for (number, tree) in (0..).zip(&self.trees[..self.files.len()]) {
            let same = tokens(tree).filter(|token| token.text() == word);
            let same = same.filter(|token| self.resolve(FileId(number), token) == Some(wanted));
            all.extend(same.map(|token| Location { file: FileId(number), span: token.text_range().into() }));
        }
        all
    }

    /// Whether the caller can change the file: the standard library is not among what was given.
    fn can_change(&self, file: FileId) -> bool {
        let name = self.files.get(file.0 as usize).map(|file| &file.name);
        (file.0 as usize) < self.given.len() || name.is_some_and(|name| self.attachments.contains_key(name))
    }

    fn is_own(&self, file: FileId) -> bool {
        (file.0 as usize) < self.files.len()
    }

    fn tree(&self, file: FileId) -> Option<&SyntaxNode> {
        self.trees.get(file.0 as usize)
    }

    /// The name that `offset` lies in or directly behind.
    fn token(&self, file: FileId, offset: u32) -> Option<SyntaxToken> {
        let tree = self.tree(file).filter(|_| self.is_own(file))?;
        if offset > u32::from(tree.text_range().end()) {
            return None;
        }
        let around = tree.token_at_offset(offset.into());
        let names = around.filter(|token| !token.kind().is_trivia());
        names.max_by_key(|token| matches!(token.kind(), SyntaxKind::Upper | SyntaxKind::Lower))
    }

    fn text_of(&self, place: Location) -> String {
        let token = self.tree(place.file).and_then(|tree| token_at(tree, place.span));
        token.map_or_else(String::new, |token| token.text().to_owned())
    }

    /// The node that declares the name at `place`.
    fn declaration(&self, place: Location) -> Option<SyntaxNode> {
        token_at(self.tree(place.file)?, place.span)?.parent()?.parent()
    }
}

fn tokens(tree: &SyntaxNode) -> impl Iterator<Item = SyntaxToken> + use<> {
    tree.descendants_with_tokens().filter_map(|element| element.into_token())
}

fn token_at(tree: &SyntaxNode, span: TextSpan) -> Option<SyntaxToken> {
    if span.end > u32::from(tree.text_range().end()) {
        return None;
    }
    tree.token_at_offset(span.start.into()).right_biased()
}

/// A declaration up to its body, on one line.
fn title(node: &SyntaxNode) -> String {
    let is_body = |kind| matches!(kind, SyntaxKind::LBrace | SyntaxKind::Eq);
    let has_body = matches!(
        node.kind(),
        SyntaxKind::Flow | SyntaxKind::State | SyntaxKind::RetryDecl | SyntaxKind::FnDecl | SyntaxKind::Data
    );
    let parts = node.children_with_tokens().take_while(|part| !(has_body && is_body(part.kind())));
    let solid = parts.skip_while(|part| part.kind().is_trivia());
    let text: String = solid.map(|part| part.to_string()).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
