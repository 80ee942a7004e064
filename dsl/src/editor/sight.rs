//! What a name stands for.
//!
//! Declarations are looked up in the checker's tables by the role that the tree gives to the name; what a flow holds and what is bound
//! inside of it is looked up around the name, from the inside out. Invariant: the place of a declaration is that of its name.

use super::{Editor, Location, token_at, tokens};
use crate::check::tables::{Layer, LowerName, Spot, UpperName};
use crate::diag::FileId;
use crate::syntax::kind::{SyntaxKind, SyntaxNode, SyntaxToken};

impl Editor {
    /// Where the name is declared.
    pub(super) fn resolve(&self, file: FileId, token: &SyntaxToken) -> Option<Location> {
        let here = |token: &SyntaxToken| Location { file, span: token.text_range().into() };
        let node = token.parent()?;
        let parent = node.parent()?;
        match (token.kind(), node.kind(), parent.kind()) {
            (SyntaxKind::Upper | SyntaxKind::Lower, SyntaxKind::Name, _) => Some(here(token)),
            (SyntaxKind::Upper, SyntaxKind::NameRef, SyntaxKind::Place | SyntaxKind::Measure) => {
                self.in_flow(&node, SyntaxKind::State, token.text()).map(|name| here(&name))
            }
            (SyntaxKind::Upper, SyntaxKind::NameRef, SyntaxKind::Discard | SyntaxKind::Awaited) => {
                self.in_flow(&node, SyntaxKind::Message, token.text()).map(|name| here(&name))
            }
            // The old name of a state is that of no state here.
            (SyntaxKind::Upper, SyntaxKind::NameRef, SyntaxKind::State) => None,
            (SyntaxKind::Upper, SyntaxKind::NameRef, SyntaxKind::RetryUse) => self.retry(file, token.text()),
            (SyntaxKind::Upper, SyntaxKind::NameRef, SyntaxKind::Path | SyntaxKind::StepExpect) => None,
            (SyntaxKind::Upper, SyntaxKind::NameRef, _) => {
                let message = self.in_flow(&node, SyntaxKind::Message, token.text()).map(|name| here(&name));
                let declared = self.upper(file, token.text());
                message
                    .or(declared)
                    .or_else(|| self.retry(file, token.text()))
                    .or_else(|| self.lower(file, token.text()))
            }
            (SyntaxKind::Upper, SyntaxKind::TypePath, _) => {
                self.upper(file, token.text()).or_else(|| self.variant(file, token.text()))
            }
            (
                SyntaxKind::Lower,
                SyntaxKind::NameRef,
                SyntaxKind::NameExpr | SyntaxKind::Assign | SyntaxKind::Settle,
            ) => local(token).map(|name| here(&name)).or_else(|| self.lower(file, token.text())),
            // A field and its shorthand `{ a }`, which reads the variable.
            (SyntaxKind::Lower, SyntaxKind::NameRef, SyntaxKind::Init) if parent.children().count() == 1 => {
                local(token).map(|name| here(&name))
            }
            (
                SyntaxKind::Lower,
                SyntaxKind::NameRef,
                SyntaxKind::FieldExpr | SyntaxKind::Init | SyntaxKind::Arg,
            ) => None,
            (SyntaxKind::Lower, SyntaxKind::NameRef | SyntaxKind::TypePath, _) => {
                self.lower(file, token.text())
            }
            _ => None,
        }
    }

    fn layer(&self, file: FileId) -> Layer {
        self.tables.layer_of(file)
    }

    fn upper(&self, file: FileId, word: &str) -> Option<Location> {
        let spot = match self.tables.upper(self.layer(file), word)? {
            UpperName::Type(ix) => self.tables.types[ix.at()].spot,
            UpperName::Flow(ix) => self.tables.flows[ix.at()].spot,
        };
        Some(place(spot))
    }

    fn lower(&self, file: FileId, word: &str) -> Option<Location> {
        let found = self.tables.lower(self.layer(file), word)?;
        if let LowerName::Function(ix) = found {
            return Some(place(self.tables.functions[ix.at()].spot));
        }
        let same = self.tables.lower.values().filter(|(one, _)| *one == found).map(|(_, spot)| *spot);
        self.declared(same)
    }

    fn retry(&self, file: FileId, word: &str) -> Option<Location> {
        let found = self.tables.retry(self.layer(file), word)?;
        let same = self.tables.retries.values().filter(|(one, _)| *one == found).map(|(_, spot)| *spot);
        self.declared(same)
    }

    /// The spot of the declaration among those where a name comes into sight.
    fn declared(&self, mut spots: impl Iterator<Item = Spot>) -> Option<Location> {
        let is_declaration = |spot: &Spot| {
            let name = self.tree(spot.file).and_then(|tree| token_at(tree, spot.span));
            name.and_then(|name| name.parent()).is_some_and(|node| node.kind() == SyntaxKind::Name)
        };
        spots.find(is_declaration).map(place)
    }

    /// A variant, if its name belongs to one union in sight only.
    fn variant(&self, file: FileId, word: &str) -> Option<Location> {
        let unions = self.tables.unions_with(self.layer(file), word);
        let [(ix, _)] = unions.as_slice() else { return None };
        let spot = self.tables.types[ix.at()].spot;
        let declaration = token_at(self.tree(spot.file)?, spot.span)?.parent()?.parent()?;
        let names = tokens(&declaration).filter(|token| token.text() == word);
        let mut variants = names.filter(|token| {
            token.parent_ancestors().nth(1).is_some_and(|node| node.kind() == SyntaxKind::Variant)
        });
        variants.next().map(|token| Location { file: spot.file, span: token.text_range().into() })
    }

    /// The name of a state or message of the flow around `node`.
    fn in_flow(&self, node: &SyntaxNode, kind: SyntaxKind, word: &str) -> Option<SyntaxToken> {
        let flow = node.ancestors().find(|node| node.kind() == SyntaxKind::Flow)?;
        let items = flow.children().filter(|item| item.kind() == kind);
        items.filter_map(|item| name_of(&item)).find(|name| name.text() == word)
    }
}

fn place(spot: Spot) -> Location {
    Location { file: spot.file, span: spot.span }
}

/// The name that a declaration declares.
pub(super) fn name_of(node: &SyntaxNode) -> Option<SyntaxToken> {
    node.children().find(|child| child.kind() == SyntaxKind::Name)?.first_token()
}

/// Where the variable of this name is bound: as near as possible around it.
fn local(token: &SyntaxToken) -> Option<SyntaxToken> {
    let start = token.text_range().start();
    for around in token.parent_ancestors() {
        let same = bound_in(&around).into_iter().filter(|name| name.text() == token.text());
        let (before, after): (Vec<_>, Vec<_>) = same.partition(|name| name.text_range().start() < start);
        // What a `for` or a group binds is also seen before it.
        if let Some(found) = before.into_iter().next_back().or_else(|| after.into_iter().next()) {
            return Some(found);
        }
    }
    None
}

/// The variables in sight in a node because of this node, in the order of the text.
pub(super) fn bound_in(node: &SyntaxNode) -> Vec<SyntaxToken> {
    let binds = |name: &SyntaxNode| name.kind() == SyntaxKind::Name && scope_of(name).as_ref() == Some(node);
    let names = node.descendants().filter(binds);
    names.filter_map(|name| name.first_token()).collect()
}

/// The node inside of which a bound name is seen.
fn scope_of(name: &SyntaxNode) -> Option<SyntaxNode> {
    use SyntaxKind as K;
    const ARROWS: &[K] =
        &[K::OnArrow, K::Yield, K::Arm, K::MatchArm, K::Branch, K::IfExpr, K::FnDecl, K::State];
    let near =
        |from: &SyntaxNode, kinds: &[K]| from.ancestors().skip(1).find(|node| kinds.contains(&node.kind()));
    let parent = name.parent()?;
    match parent.kind() {
        K::ForIn => parent.parent(),
        K::Param => parent.parent()?.parent(),
        K::Data => parent.parent(),
        K::Each => Some(parent),
        K::StepBind | K::Region => near(&parent, &[K::State]),
        K::FieldBind => near(&parent, ARROWS),
        K::Binding => match parent.parent()?.kind() {
            K::Outcomes | K::Cond => near(&parent, ARROWS),
            K::Each => near(&parent.parent()?, &[K::Region, K::State]),
            _ => near(&parent, &[K::Each, K::Region, K::State]),
        },
        _ => None,
    }
}
