//! Makes the changes that a machine can make: applies the safe fixes of diagnostics to a text, and looks again.
//!
//! Leaves checking to the caller's function and files to whoever owns them. Invariants: a text that parsed parses afterwards; every change
//! that is kept leaves fewer mistakes of the syntax, or as many and fewer mistakes at all, so that it comes to an end.

use crate::diag::FileId;
use crate::diag::{Code, Diagnostic, Fix, LineIndex, Position, TextSpan};
use crate::limits::FIX_ROUNDS_MAX;
use crate::syntax::parse;

/// One change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The diagnostic that it answers.
    pub code: Code,
    /// What was wrong.
    pub message: String,
    /// Where, in the text as it was before this change.
    pub at: Position,
    /// The text that was there; empty for an insertion.
    pub old: String,
    /// What stands there now.
    pub new: String,
}

/// A text after all changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The text.
    pub text: String,
    /// What was changed, in order.
    pub changes: Vec<Change>,
}

/// Applies edits that do not touch each other, in one go: of two that overlap the first counts. Returns the text and which were applied.
pub fn apply(text: &str, edits: &[&Fix]) -> (String, Vec<usize>) {
    let mut order: Vec<usize> = (0..edits.len()).collect();
    order.sort_by_key(|at| (edits[*at].span.start, edits[*at].span.end, *at));
    let (mut out, mut applied, mut done) = (String::with_capacity(text.len()), Vec::new(), 0);
    for at in order {
        let Fix { span, replacement, .. } = edits[at];
        // An insertion at the end of a change could belong to either side of it.
        let touches = !applied.is_empty() && span.start <= done;
        let Some(before) = text.get(done as usize..span.start as usize) else { continue };
        if touches || text.get(span.start as usize..span.end as usize).is_none() {
            continue;
        }
        out.push_str(before);
        out.push_str(replacement);
        done = span.end;
        applied.push(at);
    }
    out.push_str(text.get(done as usize..).unwrap_or_default());
    (out, applied)
}

/// Applies safe fixes until none is left that helps; `diagnose` says what is wrong with a text.
pub fn fix(text: &str, diagnose: impl Fn(&str) -> Vec<Diagnostic>) -> Fixed {
    let mut now = State::of(text.to_owned(), &diagnose);
    let mut changes = Vec::new();
    for _ in 0..FIX_ROUNDS_MAX {
        let edits: Vec<Diagnostic> = now.diagnostics.iter().filter(|one| is_safe(one)).cloned().collect();
        // All at once is usual; one of them that does harm must not keep the others from being made.
        let next = now
            .with(&edits, &diagnose)
            .or_else(|| edits.iter().find_map(|one| now.with(std::slice::from_ref(one), &diagnose)));
        let Some((next, made)) = next else { break };
        changes.extend(made);
        now = next;
    }
    Fixed { text: now.text, changes }
}

fn is_safe(diagnostic: &Diagnostic) -> bool {
    diagnostic.fix.as_ref().is_some_and(|fix| fix.safe)
}

/// A text with what is wrong with it.
struct State {
    text: String,
    diagnostics: Vec<Diagnostic>,
    /// Mistakes of the syntax, and all: what every change must make less.
    mistakes: (usize, usize),
}

impl State {
    fn of(text: String, diagnose: &impl Fn(&str) -> Vec<Diagnostic>) -> State {
        let diagnostics = diagnose(&text);
        let parsed = parse(FileId(0), &text);
        let broken = parsed.diagnostics().iter().filter(|one| one.is_error()).count();
        State { mistakes: (broken, diagnostics.len()), text, diagnostics }
    }

    /// The text with these changes, if that is better.
    fn with(
        &self,
        edits: &[Diagnostic],
        diagnose: &impl Fn(&str) -> Vec<Diagnostic>,
    ) -> Option<(State, Vec<Change>)> {
        let fixes: Vec<&Fix> = edits.iter().filter_map(|one| one.fix.as_ref()).collect();
        let (text, applied) = apply(&self.text, &fixes);
        let next = State::of(text, diagnose);
        if next.mistakes >= self.mistakes {
            return None;
        }
        let lines = LineIndex::new(&self.text);
        let change = |at: usize| {
            let TextSpan { start, .. } = fixes[at].span;
            Change {
                code: edits[at].code,
                message: edits[at].message.clone(),
                at: lines.position(start, &self.text),
                old: fixes[at].span.of(&self.text).to_owned(),
                new: fixes[at].replacement.clone(),
            }
        };
        let made = applied.into_iter().map(change).collect();
        Some((next, made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: u32, end: u32, replacement: &str) -> Fix {
        Fix { span: TextSpan::new(start, end), replacement: replacement.to_owned(), safe: true }
    }

    #[test]
    fn edits_are_applied_in_the_order_of_the_text_and_the_first_of_two_that_touch_counts() {
        for (edits, text, applied) in [
            (vec![], "abcdef", vec![]),
            (vec![edit(4, 5, "E"), edit(0, 1, "A")], "AbcdEf", vec![1, 0]),
            (vec![edit(0, 3, "x"), edit(2, 4, "y")], "xdef", vec![0]),
            (vec![edit(1, 2, "B"), edit(2, 2, "!")], "aBcdef", vec![0]),
            (vec![edit(0, 0, "<"), edit(6, 6, ">")], "<abcdef>", vec![0, 1]),
            (vec![edit(2, 2, "x"), edit(2, 2, "y")], "abxcdef", vec![0]),
            (vec![edit(5, 9, "x")], "abcdef", vec![]),
        ] {
            let edits: Vec<&Fix> = edits.iter().collect();
            assert_eq!(apply("abcdef", &edits), (text.to_owned(), applied), "{edits:?}");
        }
    }
}
