//! The tokens that the parser sees: no trivia, with each bracket's partner known beforehand.
//!
//! Knowing partners makes every look over a bracket one step, so no lookahead costs more than it saves.
//! Invariant: partners nest, and no pair crosses the border of a hole.

use crate::diag::TextSpan;
use crate::syntax::kind::SyntaxKind;
use crate::syntax::lexer::Token;

/// A token that is not trivia.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solid {
    pub(super) kind: SyntaxKind,
    pub(super) start: u32,
    pub(super) end: u32,
    /// Its number among all tokens.
    pub(super) raw: u32,
    /// For an opening bracket or quote: the number of its partner among the solid tokens.
    pub(super) partner: Option<u32>,
    pub(super) first_on_line: bool,
}

impl Solid {
    pub(super) fn span(&self) -> TextSpan {
        TextSpan::new(self.start, self.end)
    }
}

/// Leaves out trivia and finds partners.
pub(super) fn solid_tokens(text: &str, raw: &[Token]) -> Vec<Solid> {
    let mut solid = Vec::with_capacity(raw.len() / 2);
    let mut first_on_line = true;
    for (number, token) in (0..).zip(raw) {
        if token.kind.is_trivia() {
            first_on_line |= token.span().of(text).contains('\n');
            continue;
        }
        let Token { kind, start, end } = *token;
        solid.push(Solid { kind, start, end, raw: number, partner: None, first_on_line });
        // A long text may hold line breaks, but what follows it on its last line is not first there.
        first_on_line = false;
    }
    find_partners(&mut solid);
    solid
}

fn find_partners(solid: &mut [Solid]) {
    let mut open = OpenBrackets { stack: Vec::new(), braces: vec![0] };
    for at in 0..solid.len() {
        let kind = solid[at].kind;
        let partner = match kind {
            SyntaxKind::LBrace | SyntaxKind::LParen | SyntaxKind::LBrack => open.push(kind, at),
            SyntaxKind::HoleOpen | SyntaxKind::StringOpen => {
                open.braces.push(0);
                open.push(kind, at)
            }
            SyntaxKind::HoleClose => open.close_frame(SyntaxKind::HoleOpen),
            SyntaxKind::StringClose => open.close_frame(SyntaxKind::StringOpen),
            SyntaxKind::RBrace => open.close_brace(),
            SyntaxKind::RParen => open.close_small(SyntaxKind::LParen),
            SyntaxKind::RBrack => open.close_small(SyntaxKind::LBrack),
            _ => None,
        };
        if let Some(partner) = partner {
            solid[partner].partner = u32::try_from(at).ok();
        }
    }
}

struct OpenBrackets {
    stack: Vec<(SyntaxKind, usize)>,
    /// Open braces in each text and hole around this place, so that a brace without a partner is known at once.
    braces: Vec<u32>,
}

impl OpenBrackets {
    fn push(&mut self, kind: SyntaxKind, at: usize) -> Option<usize> {
        if let (SyntaxKind::LBrace, Some(braces)) = (kind, self.braces.last_mut()) {
            *braces += 1;
        }
        self.stack.push((kind, at));
        None
    }

    fn close_frame(&mut self, opener: SyntaxKind) -> Option<usize> {
        self.braces.pop();
        self.pop_to(opener)
    }

    fn close_brace(&mut self) -> Option<usize> {
        let braces = self.braces.last_mut().filter(|braces| **braces > 0)?;
        *braces -= 1;
        self.pop_to(SyntaxKind::LBrace)
    }

    /// A round or square bracket closes its own kind only, or one below a forgotten bracket.
    fn close_small(&mut self, opener: SyntaxKind) -> Option<usize> {
        let is_opener = |entry: Option<&(SyntaxKind, usize)>| entry.is_some_and(|(kind, _)| *kind == opener);
        let is_small = |kind| matches!(kind, SyntaxKind::LParen | SyntaxKind::LBrack);
        let top_is_small = self.stack.last().is_some_and(|(kind, _)| is_small(*kind));
        if is_opener(self.stack.last()) || (top_is_small && is_opener(self.stack.iter().rev().nth(1))) {
            self.pop_to(opener)
        } else {
            None
        }
    }

    fn pop_to(&mut self, opener: SyntaxKind) -> Option<usize> {
        while let Some((kind, at)) = self.stack.pop() {
            if kind == opener {
                return Some(at);
            }
        }
        None
    }
}
