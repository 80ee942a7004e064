//! Renaming with checks: the texts must mean the same afterwards.
//!
//! Leaves applying the edits to the editor. Invariant: no edit is offered for a name of the language, of the prelude, or one that
//! is taken where the old name stands.

use super::sight::{bound_in, name_of};
use super::{Editor, Location};
use crate::check::tables::Layer;
use crate::diag::{FileId, TextSpan};
use crate::lower::builtins::is_builtin;
use crate::syntax::kind::{SyntaxKind, SyntaxNode};
use crate::syntax::words::is_reserved;

/// A text that takes the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub place: Location,
    /// The new text.
    pub text: String,
}

/// Why a name stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenameError {
    /// No name stands there that is declared in these files.
    NoName,
    /// The new name is no name of that kind: upper-case names begin with a capital, the rest do not.
    BadName,
    /// The new name is a word of the language.
    Reserved,
    /// The new name has a meaning there already.
    Taken,
}

impl Editor {
    /// The edits that give the name at `offset` another one; for a state also `was`, so that its runs can follow.
    ///
    /// # Errors
    /// [`RenameError`] if the texts would not mean the same.
    pub fn rename(&self, file: FileId, offset: u32, to: &str) -> Result<Vec<Edit>, RenameError> {
        let found = self.definition(file, offset).filter(|found| self.can_change(found.file));
        let found = found.ok_or(RenameError::NoName)?;
        let old = self.text_of(found);
        let declaration = self.declaration(found).ok_or(RenameError::NoName)?;
        if !fits(&old, to) {
            return Err(RenameError::BadName);
        }
        let is_function = declaration.kind() == SyntaxKind::FnDecl;
        if is_reserved(to) || to == "now" || (is_function && is_builtin(to)) {
            return Err(RenameError::Reserved);
        }
        let places = self.references(found.file, found.span.start);
        if old != to && places.iter().any(|place| self.is_taken(*place, &declaration, to)) {
            return Err(RenameError::Taken);
        }
        let shorthand = |place: &Location| {
            self.shorthand(*place).map_or_else(|| to.to_owned(), |field| format!("{field}: {to}"))
        };
        let mut edits: Vec<Edit> =
            places.iter().map(|place| Edit { place: *place, text: shorthand(place) }).collect();
        let has_was = || {
            let names = declaration.children().filter(|child| child.kind() == SyntaxKind::NameRef);
            names.count() > 0
        };
        if declaration.kind() == SyntaxKind::State && old != to && !has_was() {
            let end = Location { file: found.file, span: TextSpan::empty(found.span.end) };
            let behind = edits.iter().position(|edit| edit.place == found).map_or(edits.len(), |at| at + 1);
            edits.insert(behind, Edit { place: end, text: format!(" was {old}") });
        }
        Ok(edits)
    }

    /// The field that a name stands for beside its variable: `{ a }` in a pattern or a value.
    fn shorthand(&self, place: Location) -> Option<String> {
        let token = super::token_at(self.tree(place.file)?, place.span)?;
        let node = token.parent()?.parent()?;
        let is_short =
            matches!(node.kind(), SyntaxKind::FieldBind | SyntaxKind::Init) && node.children().count() == 1;
        is_short.then(|| token.text().to_owned())
    }

    /// Whether the new name means something where the old one stands.
    fn is_taken(&self, place: Location, declaration: &SyntaxNode, to: &str) -> bool {
        let layer = self.tables.layer_of(place.file);
        let in_sight = |layer: Layer| {
            self.tables.upper(layer, to).is_some()
                || self.tables.lower(layer, to).is_some()
                || self.tables.retry(layer, to).is_some()
        };
        let Some(token) = self.tree(place.file).and_then(|tree| super::token_at(tree, place.span)) else {
            return true;
        };
        let bound = token.parent_ancestors().flat_map(|node| bound_in(&node)).any(|name| name.text() == to);
        let inner = declaration.parent().is_some_and(|parent| {
            let siblings = parent.children().filter_map(|sibling| name_of(&sibling));
            siblings.into_iter().any(|name| name.text() == to)
        });
        in_sight(layer) || bound || inner
    }
}

/// Whether `to` is a name of the same kind as `old`.
fn fits(old: &str, to: &str) -> bool {
    let is_upper = |word: &str| word.starts_with(|c: char| c.is_ascii_uppercase());
    let rest = |c: char| c.is_ascii_alphanumeric();
    if is_upper(old) {
        return is_upper(to) && to.chars().all(rest);
    }
    let first = to.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    first && to.chars().all(|c| (rest(c) && !c.is_ascii_uppercase()) || c == '_')
}
