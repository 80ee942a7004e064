//! A name with its place, wherever in the tree it comes from.

use crate::diag::TextSpan;
use crate::syntax::ast::{self, AstNode as _};

/// A name as it is written.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    text: String,
    span: TextSpan,
}

impl Word {
    pub(crate) fn text(&self) -> String {
        self.text.clone()
    }

    pub(crate) fn span(&self) -> TextSpan {
        self.span
    }
}

impl From<ast::NameRef> for Word {
    fn from(name: ast::NameRef) -> Word {
        Word { text: name.text(), span: name.span() }
    }
}

impl From<ast::Name> for Word {
    fn from(name: ast::Name) -> Word {
        Word { text: name.text(), span: name.span() }
    }
}

impl From<ast::PathPart> for Word {
    fn from(part: ast::PathPart) -> Word {
        Word { text: part.text, span: part.span }
    }
}

impl From<(String, TextSpan)> for Word {
    fn from((text, span): (String, TextSpan)) -> Word {
        Word { text, span }
    }
}
