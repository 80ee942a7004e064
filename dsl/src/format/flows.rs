//! Flows, their items and the effects of states.
//!
//! Leaves arrows to `arrows`. Invariant: a state stands on several lines, however short it is, unless it is empty.

use super::build::{Builder, is_word, parts_of};
use super::doc::{Doc, SPACE};
use super::rows::Entry;
use crate::syntax::kind::{SyntaxElement, SyntaxKind, SyntaxNode};

impl Builder<'_> {
    pub(super) fn flow(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let at = parts.iter().position(|part| part.kind() == SyntaxKind::LBrace).unwrap_or(parts.len());
        let signature = self.signature(node.kind(), &parts[..at]);
        let head = Doc::All(vec![signature, self.clauses(&parts[..at]), SPACE]).group();
        let [open, items @ .., close] = &parts[at..] else { return head };
        let items: Vec<SyntaxNode> = items.iter().filter_map(|part| part.as_node().cloned()).collect();
        Doc::All(vec![head, self.block(open, close, |b| b.items(&items))])
    }

    /// `A { … } | B { … }`
    pub(super) fn flow_result(&mut self, node: &SyntaxNode) -> Doc {
        let mut all = Vec::new();
        for part in parts_of(node) {
            let is_bar = part.kind() == SyntaxKind::Pipe;
            all.extend(is_bar.then_some(Doc::Line));
            all.push(self.part(&part));
            all.extend(is_bar.then_some(SPACE));
        }
        Doc::All(all).nest().group()
    }

    /// The items of a flow; arrows and limits on neighbouring lines are put below each other.
    fn items(&mut self, items: &[SyntaxNode]) -> Doc {
        let (mut all, mut run) = (Vec::new(), Vec::new());
        for item in items {
            let is_row = matches!(
                item.kind(),
                SyntaxKind::Limit | SyntaxKind::OnArrow | SyntaxKind::TimerArrow | SyntaxKind::OnCancel
            );
            if !is_row || self.pieces.blank_before() {
                all.push(Entry::rows(std::mem::take(&mut run), 1));
            }
            if is_row {
                run.push(self.arrow(item));
                continue;
            }
            all.push(self.line_break());
            all.push(self.lead());
            all.push(if item.kind() == SyntaxKind::State { self.state(item) } else { self.node(item) });
        }
        all.push(Entry::rows(run, 1));
        Doc::All(all)
    }

    /// `data x: T = value`
    pub(super) fn data(&mut self, node: &SyntaxNode) -> Doc {
        self.with_value(SyntaxKind::Data, &parts_of(node))
    }

    fn state(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let at = parts.iter().position(|part| part.kind() == SyntaxKind::LBrace).unwrap_or(parts.len());
        let head = self.side_by_side(SyntaxKind::State, &parts[..at]);
        let [open, body @ .., close] = &parts[at..] else { return head };
        let body: Vec<SyntaxNode> = body.iter().filter_map(|part| part.as_node().cloned()).collect();
        Doc::All(vec![head, SPACE, self.block(open, close, |b| b.state_body(&body))])
    }

    fn state_body(&mut self, body: &[SyntaxNode]) -> Doc {
        let mut entries = Vec::new();
        let mut first = Doc::Empty;
        for node in body {
            match node.kind() {
                SyntaxKind::Choose => first = self.choose(node, &mut entries),
                SyntaxKind::OnArrow | SyntaxKind::TimerArrow => entries.push(self.arrow(node)),
                _ => {
                    let line = self.line_break();
                    entries.push(Entry::Other(Doc::All(vec![line, self.lead(), self.node(node)])));
                }
            }
        }
        Doc::All(vec![first, Entry::rows(entries, 2)])
    }

    /// `choose`: its branches are lines of the state, so the word stands behind the brace of the state; arms have a block of their own.
    fn choose(&mut self, node: &SyntaxNode, entries: &mut Vec<Entry>) -> Doc {
        let parts = parts_of(node);
        if parts.last().is_some_and(|part| part.kind() == SyntaxKind::Arms) {
            entries.push(self.with_arms(&parts, Vec::new()));
            return Doc::Empty;
        }
        let mut word = Doc::Empty;
        for part in &parts {
            match part.as_node() {
                Some(branch) => entries.push(self.arrow(branch)),
                None => word = Doc::All(vec![SPACE, self.part(part)]),
            }
        }
        word
    }

    /// `steps { … }`, `parallel { … } join …`
    pub(super) fn group_effect(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let is_brace = |kind| move |part: &SyntaxElement| part.kind() == kind;
        let open = parts.iter().position(is_brace(SyntaxKind::LBrace));
        let close = parts.iter().position(is_brace(SyntaxKind::RBrace));
        let Some((open, close)) = open.zip(close) else { return self.row(node) };
        let mut all = vec![self.side_by_side(node.kind(), &parts[..open]), SPACE];
        let members: Vec<SyntaxNode> =
            parts[open + 1..close].iter().filter_map(|part| part.as_node().cloned()).collect();
        all.push(self.block(&parts[open], &parts[close], |b| b.lines(&members, Self::node)));
        if close + 1 < parts.len() {
            all.push(SPACE);
            all.push(self.side_by_side(node.kind(), &parts[close + 1..]));
        }
        Doc::All(all)
    }

    /// `name: do f(x)  on ok yield v`
    pub(super) fn region(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let at = parts.iter().position(|part| part.kind() == SyntaxKind::Yield).unwrap_or(parts.len());
        let mut all = vec![self.side_by_side(SyntaxKind::Region, &parts[..at])];
        for part in &parts[at..] {
            all.push(Doc::All(vec![Doc::Line, self.lead(), self.part(part)]).nest());
        }
        Doc::All(all).group()
    }

    /// `each x in xs at most n … { EFFECT on X yield v }`
    pub(super) fn each(&mut self, node: &SyntaxNode) -> Doc {
        let parts = parts_of(node);
        let at = parts.iter().position(|part| part.kind() == SyntaxKind::LBrace).unwrap_or(parts.len());
        let mut clauses: Vec<Vec<SyntaxElement>> = vec![Vec::new()];
        for part in &parts[..at] {
            let begins = ["at", "until", "keep"].iter().any(|word| is_word(part, word))
                || matches!(part.kind(), SyntaxKind::Bound | SyntaxKind::Binding);
            if begins {
                clauses.push(Vec::new());
            }
            if let Some(clause) = clauses.last_mut() {
                clause.push(part.clone());
            }
        }
        let mut head = Vec::new();
        for clause in clauses {
            head.extend((!head.is_empty()).then(Doc::fill));
            head.push(self.side_by_side(SyntaxKind::Each, &clause));
        }
        let head = Doc::All(head).nest();
        let [open, body @ .., close] = &parts[at..] else { return head };
        let open = self.part(open);
        let mut inner = Vec::new();
        for part in body {
            inner.push(Doc::Line);
            inner.push(self.lead());
            inner.push(self.part(part));
        }
        inner.push(self.lead());
        let body = vec![open, Doc::All(inner).nest(), Doc::Line, self.part(close)];
        Doc::All(vec![head, SPACE, Doc::All(body).group()])
    }

    /// `ask "…" show v for T to "a" and "b" within D`: its clauses break together.
    pub(super) fn ask(&mut self, node: &SyntaxNode) -> Doc {
        let mut all = Vec::new();
        for part in parts_of(node) {
            let begins = is_word(&part, "for")
                || is_word(&part, "to")
                || matches!(part.kind(), SyntaxKind::Show | SyntaxKind::Bound);
            if !all.is_empty() {
                all.push(if begins { Doc::Line } else { SPACE });
            }
            all.push(self.part(&part));
        }
        Doc::All(all).nest().group()
    }
}
