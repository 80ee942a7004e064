//! Syntax: from a text to a lossless tree with typed views over it.
//!
//! `lexer` cuts the text, `parser` builds the tree, `ast` reads it, `kind` names its parts. Leaves names, types and
//! meaning to the checker. Invariant: any text gives a tree that holds exactly its bytes, and never a panic.
//! Start with [`parse`] and [`ast::File`].

pub mod ast;
pub mod kind;
mod lexer;
mod literal;
mod parser;
pub mod words;

use rowan::GreenNode;

use crate::diag::catalogue::syntax as code;
use crate::diag::{Diagnostic, FileId, TextSpan};
use crate::limits::SOURCE_BYTES_MAX;
use ast::AstNode as _;
use kind::{SyntaxKind, SyntaxNode};

/// The tree of one file and what is wrong with its syntax.
#[derive(Clone, Debug)]
pub struct Parse {
    file_id: FileId,
    green: GreenNode,
    diagnostics: Vec<Diagnostic>,
    steps: u64,
}

/// Parses `text`; `file` is the number under which diagnostics speak of it.
pub fn parse(file: FileId, text: &str) -> Parse {
    if text.len() > SOURCE_BYTES_MAX {
        return refuse_too_long(file);
    }
    let parser::Parsed { green, diagnostics, steps } = parser::parse(file, text);
    Parse { file_id: file, green, diagnostics, steps }
}

/// The one case in which the tree does not hold the text: its offsets might not fit.
fn refuse_too_long(file: FileId) -> Parse {
    let message = format!("this file is longer than {SOURCE_BYTES_MAX} bytes");
    let diagnostics = vec![Diagnostic::error(code::TOO_LONG, file, TextSpan::empty(0), message)];
    let green = GreenNode::new(rowan::SyntaxKind(SyntaxKind::File as u16), []);
    Parse { file_id: file, green, diagnostics, steps: 0 }
}

impl Parse {
    /// The number of the file.
    pub fn file_id(&self) -> FileId {
        self.file_id
    }

    /// The tree.
    pub fn file(&self) -> ast::File {
        let Some(file) = ast::File::cast(self.syntax()) else {
            unreachable!("the root of every tree is a file")
        };
        file
    }

    /// The untyped tree.
    pub fn syntax(&self) -> SyntaxNode {
        SyntaxNode::new_root(self.green.clone())
    }

    /// What is wrong with the syntax, in the order of the text.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Looks at tokens and writes to the tree that parsing took: a measure of work without a clock.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}
