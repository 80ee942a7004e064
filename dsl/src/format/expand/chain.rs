//! The text of the states of one chain: its pieces are cut out of the block, with their comments, and put together anew.
//!
//! Leaves names and types to its parent. Invariants: a piece is taken as it is written, less what its state cannot lead to; every
//! comment of the block stands in at least one state, beside what it stood beside.

use super::Unwritable;
use crate::diag::TextSpan;
use crate::lower::outcomes::WORDS;
use crate::machine::{Machine, Outcome, Payload, StateDef};
use crate::syntax::ast::{self, AstNode};
use crate::syntax::kind::{SyntaxKind, SyntaxNode};

/// One state of a chain.
pub(super) struct Link<'m> {
    /// How it is written.
    pub(super) name: String,
    pub(super) step: ast::StepBind,
    pub(super) state: &'m StateDef,
}

/// A block of steps, cut into pieces.
pub(super) struct Chain<'t> {
    text: &'t str,
    machine: &'t Machine,
    effects: Vec<Piece<ast::Effect>>,
    arrows: Vec<Piece<ast::Arrow>>,
    span: TextSpan,
}

/// A part of the block with the comments that belong to it.
struct Piece<N> {
    node: N,
    /// On lines of their own.
    before: Vec<String>,
    /// At the end of its line, and behind it where nothing else follows.
    after: String,
}

impl<'t> Chain<'t> {
    pub(super) fn of(
        text: &'t str,
        state: &ast::State,
        steps: &ast::Steps,
        machine: &'t Machine,
    ) -> Chain<'t> {
        let comments = comments(state.syntax());
        let within = steps.span();
        let arrows: Vec<ast::Arrow> = state.arrows().collect();
        let mut end = arrows.last().map_or(within.end, |arrow| arrow.span().end);
        if let Some(last) = comments.iter().find(|one| one.start >= end && is_same_line(text, end, one.start))
        {
            end = last.end;
        }
        let effects = steps.steps().filter_map(|step| step.effect()).collect();
        let rest = TextSpan::new(within.end, end);
        Chain {
            text,
            machine,
            effects: pieces(text, effects, &comments, within),
            arrows: pieces(text, arrows, &comments, rest),
            span: TextSpan::new(within.start, end),
        }
    }

    /// What the body of the first state takes the place of.
    pub(super) fn span(&self) -> TextSpan {
        self.span
    }

    /// What stands between the braces of a state; `next` is the state that follows.
    pub(super) fn body(
        &self,
        link: &Link<'_>,
        at: usize,
        next: Option<&Link<'_>>,
    ) -> Result<String, Unwritable> {
        let mut out = String::new();
        if let Some(effect) = self.effects.get(at) {
            effect.write(&self.effect(&effect.node, link), &mut out);
        }
        if let Some(next) = next {
            let args: Vec<&str> = next.state.params.iter().map(|param| param.name.as_str()).collect();
            let args = if args.is_empty() { String::new() } else { format!("({})", args.join(", ")) };
            out.push_str(&format!("on ok -> {}{args}\n", next.name));
        }
        let words = self.words(link.state, next.is_some());
        for arrow in &self.arrows {
            if let Some(code) = self.arrow(&arrow.node, link, &words)? {
                arrow.write(&code, &mut out);
            }
        }
        Ok(out)
    }

    /// The effect of a step, whose name is that of its result.
    fn effect(&self, effect: &ast::Effect, link: &Link<'_>) -> String {
        let span = effect.span();
        let name = ast::text_of(link.step.name()).unwrap_or_default();
        let binding = effect.syntax().children().find(|child| child.kind() == SyntaxKind::Binding);
        // Comments may stand around the name.
        match binding.and_then(ast::Binding::cast).and_then(|binding| binding.name()).map(|name| name.span())
        {
            Some(own) => {
                format!("{}{name}{}", self.cut(span.start, own.start), self.cut(own.end, span.end))
            }
            None => format!("{}\nas {name}", self.cut(span.start, span.end)),
        }
    }

    /// The outcomes that the arrows of the block have in this state.
    fn words(&self, state: &StateDef, goes_on: bool) -> Vec<String> {
        let own = state.arrows.iter().skip(usize::from(goes_on));
        own.flat_map(|arrow| &arrow.on).map(|outcome| self.word(*outcome)).collect()
    }

    fn word(&self, outcome: Outcome) -> String {
        match outcome {
            Outcome::Error(ix) => self.machine.type_def(ix).name.clone(),
            Outcome::Message(ix) => self.machine.root().messages[ix.at()].name.clone(),
            other => {
                let word = WORDS.iter().find(|(_, one)| *one == other).map(|(word, _)| *word);
                word.unwrap_or_default().to_owned()
            }
        }
    }

    /// An arrow with those of its outcomes that are among `words`; none if there are none.
    fn arrow(
        &self,
        arrow: &ast::Arrow,
        link: &Link<'_>,
        words: &[String],
    ) -> Result<Option<String>, Unwritable> {
        let span = arrow.span();
        let Some(outcomes) = arrow.outcomes() else {
            return Ok(Some(self.cut(span.start, span.end).to_owned()));
        };
        let (kept, lost): (Vec<_>, Vec<_>) =
            outcomes.names().partition(|one| one.name().is_some_and(|name| words.contains(&name.text())));
        if lost.is_empty() || kept.is_empty() {
            return Ok(kept.first().map(|_| self.cut(span.start, span.end).to_owned()));
        }
        if let [only] = kept.as_slice() {
            self.check_payload(only, link)?;
        }
        let mut names = String::new();
        let mut written = 0;
        for part in outcomes.syntax().children_with_tokens() {
            let range: TextSpan = part.text_range().into();
            let name = part.as_node().cloned().and_then(ast::OutcomeName::cast);
            match name {
                Some(name) if kept.contains(&name) => {
                    names.push_str(if written > 0 { ", " } else { "" });
                    names.push_str(range.of(self.text));
                    written += 1;
                }
                Some(_) => {}
                None if part.kind() == SyntaxKind::Comma => {}
                None => names.push_str(range.of(self.text)),
            }
        }
        let within: TextSpan = outcomes.syntax().text_range().into();
        let (before, after) = (self.cut(span.start, within.start), self.cut(within.end, span.end));
        Ok(Some(format!("{before}{names}{after}")))
    }

    /// Refuses an arrow that sees a problem because of what it cannot have here: alone, the outcome would be told as itself.
    fn check_payload(&self, only: &ast::OutcomeName, link: &Link<'_>) -> Result<(), Unwritable> {
        let Some(name) = only.name() else { return Ok(()) };
        let told_as_problem = link.state.arrows.iter().any(|arrow| {
            let alone = matches!(arrow.on.as_slice(), [one] if *one != Outcome::Problem && self.word(*one) == name.text());
            alone && arrow.payload == Payload::Problem
        });
        if !told_as_problem {
            return Ok(());
        }
        let (word, step) = (name.text(), &link.state.name);
        let message = format!(
            "in `{step}` this arrow would be on `{word}` alone, which is told as itself and not as a problem; \
             give `{word}` an arrow of its own, or write `on problem`"
        );
        Err(Unwritable(name.span(), message))
    }

    fn cut(&self, start: u32, end: u32) -> &'t str {
        TextSpan::new(start, end).of(self.text)
    }
}

impl<N> Piece<N> {
    fn write(&self, code: &str, out: &mut String) {
        for comment in &self.before {
            out.push_str(&format!("{comment}\n"));
        }
        out.push_str(&format!("{code}{}\n", self.after));
    }
}

/// The comments and documentation of a node, in order.
fn comments(node: &SyntaxNode) -> Vec<TextSpan> {
    let tokens = node.descendants_with_tokens().filter_map(|element| element.into_token());
    let comments = tokens.filter(|token| matches!(token.kind(), SyntaxKind::Comment | SyntaxKind::Doc));
    comments.map(|token| token.text_range().into()).collect()
}

/// Gives the comments `within` to the nodes that they stand beside.
fn pieces<N: AstNode>(text: &str, nodes: Vec<N>, comments: &[TextSpan], within: TextSpan) -> Vec<Piece<N>> {
    let mut all: Vec<Piece<N>> = Vec::new();
    let mut loose: Vec<TextSpan> = comments.to_vec();
    // What stands inside of a node is part of its text.
    loose.retain(|one| {
        let is_inside = nodes.iter().any(|node| node.span().start <= one.start && one.end <= node.span().end);
        one.start >= within.start && one.end <= within.end && !is_inside
    });
    let mut loose = loose.into_iter().peekable();
    for node in nodes {
        let span = node.span();
        let mut before = Vec::new();
        while let Some(one) = loose.next_if(|one| one.start < span.start) {
            let comment = one.of(text).trim_end();
            match all.last_mut() {
                Some(last) if is_same_line(text, last.node.span().end, one.start) => {
                    last.after.push_str(&format!(" {comment}"));
                }
                Some(_) | None => before.push(comment.to_owned()),
            }
        }
        all.push(Piece { node, before, after: String::new() });
    }
    if let Some(last) = all.last_mut() {
        for one in loose {
            let gap = if is_same_line(text, last.node.span().end, one.start) { " " } else { "\n" };
            last.after.push_str(&format!("{gap}{}", one.of(text).trim_end()));
        }
    }
    all
}

fn is_same_line(text: &str, end: u32, start: u32) -> bool {
    !TextSpan::new(end, start).of(text).contains(['\n', '\r'])
}
