//! The formatter: the one way in which a text is laid out.
//!
//! The layout depends on the tokens, the comments and empty lines alone, so it is the same for everybody and formatting twice changes
//! nothing. `pieces` holds tokens and comments in their order, the builder (`build` and its neighbours by concept) says where lines may
//! break, `print` breaks them, `rows` puts arrows below each other. Leaves files to its callers. Invariant: tokens and comments
//! stay as they are and in their order, except for commas at the ends of lists. Start with [`format`].

mod arrows;
mod build;
mod decls;
mod doc;
mod expand;
mod exprs;
mod flows;
mod lists;
mod pieces;
mod print;
mod rows;

use crate::diag::{Diagnostic, FileId};
use crate::syntax::{Parse, parse};
use build::Builder;
pub use expand::{ExpandError, expand};
use pieces::{Pieces, says_the_same};
use print::Printer;

/// Why a text was not laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// The syntax is broken; the diagnostics say where.
    Syntax(Vec<Diagnostic>),
    /// The layout would have changed more than white space: a mistake of the formatter.
    Changed,
}

/// Lays out `text`.
///
/// # Errors
/// [`FormatError`] if the text is not well formed.
pub fn format(file: FileId, text: &str) -> Result<String, FormatError> {
    let before = parse_clean(file, text)?;
    let mut printer = Printer::default();
    Builder { pieces: Pieces::of(text, &before.syntax()) }.file(&before.syntax(), &mut printer);
    let formatted = printer.finish();
    let after = parse_clean(file, &formatted).map_err(|_| FormatError::Changed)?;
    if says_the_same(&before.syntax(), &after.syntax()) { Ok(formatted) } else { Err(FormatError::Changed) }
}

fn parse_clean(file: FileId, text: &str) -> Result<Parse, FormatError> {
    let parsed = parse(file, text);
    if parsed.diagnostics().iter().any(Diagnostic::is_error) {
        return Err(FormatError::Syntax(parsed.diagnostics().to_vec()));
    }
    Ok(parsed)
}
