//! What is still worth saying of files in which the syntax is broken somewhere: the declarations whose trees are whole, and the whole
//! states of flows in which others are broken.
//!
//! Everything is checked, holes and all; afterwards what may follow from a hole is dropped. Leaves recovery to the parser. Invariant: a
//! diagnostic that is kept would be there too if the broken places were mended without changing any declared name.

use std::collections::BTreeSet;

use super::load::Parsed;
use crate::diag::catalogue::names;
use crate::diag::{Code, Diagnostic, FileId, TextSpan};
use crate::syntax::ast::AstNode as _;
use crate::syntax::kind::{SyntaxKind, SyntaxNode};

/// A declaration, or what stands in its place.
struct Piece {
    file: FileId,
    span: TextSpan,
    node: SyntaxNode,
    broken: bool,
    /// Where its errors are, if only they break it.
    errors: Vec<u32>,
}

/// The whole declarations of broken files, and the whole states of broken flows.
pub(super) struct Damage {
    whole: Vec<(FileId, TextSpan)>,
    states: Vec<(FileId, TextSpan)>,
    /// Whether every declared name is known; a name that was lost would be missed wherever it is used.
    names_known: bool,
}

impl Damage {
    /// Finds the damage that syntax errors do; nothing if there are none.
    pub(super) fn of(parsed: &[Parsed], diagnostics: &[Diagnostic]) -> Option<Damage> {
        let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|one| one.is_error()).collect();
        if errors.is_empty() {
            return None;
        }
        let mut pieces: Vec<Piece> = parsed.iter().flat_map(pieces).collect();
        let mut unsure = BTreeSet::new();
        let mut names_known = true;
        for error in errors {
            names_known &= mark(&mut pieces, error, &mut unsure);
        }
        spread(&mut pieces, &mut unsure);
        let states = pieces.iter().filter(|piece| piece.broken).flat_map(whole_states).collect();
        let whole = pieces.iter().filter(|piece| !piece.broken);
        Some(Damage { whole: whole.map(|piece| (piece.file, piece.span)).collect(), states, names_known })
    }

    /// Whether the declaration there has no hole, nor anything that it uses.
    pub(super) fn is_whole(&self, file: FileId, span: TextSpan) -> bool {
        holds(&self.whole, file, span)
    }

    /// Whether a diagnostic surely does not follow from the damage.
    pub(super) fn spares(&self, diagnostic: &Diagnostic) -> bool {
        let Diagnostic { code, file, span, .. } = diagnostic;
        let inside = holds(&self.whole, *file, *span) || holds(&self.states, *file, *span);
        // A name that a broken part reads would seem to be unused.
        inside && diagnostic.is_error() && (self.names_known || !asks_for_a_name(*code))
    }
}

fn holds(all: &[(FileId, TextSpan)], file: FileId, span: TextSpan) -> bool {
    all.iter().any(|(of, whole)| *of == file && whole.start <= span.start && span.end <= whole.end)
}

/// The states of a broken flow that have no hole, if every error stands in the body of another one.
fn whole_states(piece: &Piece) -> Vec<(FileId, TextSpan)> {
    if piece.node.kind() != SyntaxKind::Flow || piece.errors.is_empty() {
        return Vec::new();
    }
    let states: Vec<SyntaxNode> =
        piece.node.children().filter(|item| item.kind() == SyntaxKind::State).collect();
    let inside = |state: &SyntaxNode, at: u32| {
        body(state).is_some_and(|body| body <= at) && at < u32::from(state.text_range().end())
    };
    if !piece.errors.iter().all(|at| states.iter().any(|state| inside(state, *at))) {
        return Vec::new();
    }
    let whole = states.iter().filter(|state| !piece.errors.iter().any(|at| inside(state, *at)));
    whole.map(|state| (piece.file, state.text_range().into())).collect()
}

fn asks_for_a_name(code: Code) -> bool {
    (names::UNKNOWN_NAME..=names::UNKNOWN_FIELD).contains(&code)
}

fn pieces(parsed: &Parsed) -> Vec<Piece> {
    let file = parsed.file;
    let nodes = parsed.tree.syntax().children();
    nodes
        .map(|node| Piece { file, span: node.text_range().into(), node, broken: false, errors: Vec::new() })
        .collect()
}

/// Marks what one error breaks and notes the names whose meaning is lost with it; whether all names are still known.
fn mark(pieces: &mut [Piece], error: &Diagnostic, unsure: &mut BTreeSet<String>) -> bool {
    let at = error.span.start;
    let inside = |piece: &Piece| piece.file == error.file && piece.span.start <= at && at <= piece.span.end;
    let mut found = false;
    for piece in pieces.iter_mut().filter(|piece| inside(piece)) {
        found = true;
        if !piece.broken || !piece.errors.is_empty() {
            piece.errors.push(at);
        }
        piece.broken = true;
        let in_body = body(&piece.node).is_some_and(|body| body <= at);
        if !in_body {
            unsure.extend(declared(&piece.node));
        }
    }
    if !found {
        // Between two declarations: either may have lost a part, such as all that follows a bracket too many.
        let after = pieces.iter().position(|piece| piece.file == error.file && piece.span.start > at);
        let before = pieces.iter().rposition(|piece| piece.file == error.file && piece.span.end < at);
        for at in [before, after].into_iter().flatten() {
            pieces[at].broken = true;
            pieces[at].errors.clear();
        }
    }
    let is_declaration =
        |piece: &Piece| piece.node.kind() == SyntaxKind::Test || !declared(&piece.node).is_empty();
    found && pieces.iter().filter(|piece| inside(piece)).all(is_declaration)
}

/// Marks what uses an unsure name, and what uses that in turn.
fn spread(pieces: &mut [Piece], unsure: &mut BTreeSet<String>) {
    loop {
        let before = unsure.len();
        for piece in pieces.iter_mut() {
            let body = body(&piece.node).unwrap_or(piece.span.end);
            for token in piece.node.descendants_with_tokens().filter_map(|element| element.into_token()) {
                if unsure.contains(token.text()) {
                    piece.broken = true;
                    piece.errors.clear();
                    if u32::from(token.text_range().start()) < body {
                        unsure.extend(declared(&piece.node));
                        break;
                    }
                }
            }
        }
        if unsure.len() == before {
            return;
        }
    }
}

/// Where the part begins that nobody sees from outside.
fn body(node: &SyntaxNode) -> Option<u32> {
    let opener = match node.kind() {
        SyntaxKind::Flow | SyntaxKind::State => SyntaxKind::LBrace,
        SyntaxKind::FnDecl => SyntaxKind::Eq,
        SyntaxKind::Test => return Some(node.text_range().start().into()),
        _ => return None,
    };
    let mut tokens = node.children_with_tokens().filter(|element| element.kind() == opener);
    tokens.next().map(|token| token.text_range().end().into())
}

/// The names that a declaration gives to others: its own and those of its variants, or those that it imports.
fn declared(node: &SyntaxNode) -> Vec<String> {
    if node.kind() == SyntaxKind::Import {
        let names = node.children().filter(|child| child.kind() == SyntaxKind::NameRef);
        return names.map(|name| name.text().to_string().trim().to_owned()).collect();
    }
    let owners = node.descendants().filter(|one| one == node || one.kind() == SyntaxKind::Variant);
    let names = owners.flat_map(|owner| owner.children().filter(|child| child.kind() == SyntaxKind::Name));
    names.map(|name| name.text().to_string().trim().to_owned()).collect()
}
