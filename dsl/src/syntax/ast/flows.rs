//! Flows and their items.
//!
//! Leaves effects and arrows to their files. Invariant: items come in the order of the text.

use super::{
    Acts, Arrow, Ast, AstNode, DurLiteral, Effect, Expr, Field, FieldList, Goal, IntLiteral, Name, NameRef,
    Param, ParamList, Place, Raises, SyntaxKind, SyntaxNode, Type, Variant, child, child_after, children,
    has_word,
};
use crate::diag::TextSpan;

/// `flow F(…) -> R { … }`.
pub type Flow = Ast<{ SyntaxKind::Flow as u16 }>;
/// What a flow ends with.
pub type FlowResult = Ast<{ SyntaxKind::FlowResult as u16 }>;
/// `emits T`.
pub type Emits = Ast<{ SyntaxKind::Emits as u16 }>;
/// `version 3`.
pub type Version = Ast<{ SyntaxKind::Version as u16 }>;
/// `message M { … } now`.
pub type Message = Ast<{ SyntaxKind::Message as u16 }>;
/// `data d: T = e`.
pub type Data = Ast<{ SyntaxKind::Data as u16 }>;
/// `limit m <= e else -> …`.
pub type Limit = Ast<{ SyntaxKind::Limit as u16 }>;
/// `visits(S) since T`, a counter, `cost`, `age`.
pub type Measure = Ast<{ SyntaxKind::Measure as u16 }>;
/// `on cancel within D -> S`.
pub type OnCancel = Ast<{ SyntaxKind::OnCancel as u16 }>;
/// `start S(…)`.
pub type Start = Ast<{ SyntaxKind::Start as u16 }>;
/// `state S(…) { … }`.
pub type State = Ast<{ SyntaxKind::State as u16 }>;
/// `S(…)`, a state that is entered.
pub type PlaceNode = Ast<{ SyntaxKind::Place as u16 }>;

/// An item of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// `message`.
    Message(Message),
    /// `data`.
    Data(Data),
    /// `limit`.
    Limit(Limit),
    /// An arrow of all states.
    Arrow(Arrow),
    /// `on cancel`.
    OnCancel(OnCancel),
    /// `start`.
    Start(Start),
    /// `state`.
    State(State),
}

impl AstNode for Item {
    fn cast(node: SyntaxNode) -> Option<Self> {
        match node.kind() {
            SyntaxKind::Message => Message::cast(node).map(Self::Message),
            SyntaxKind::Data => Data::cast(node).map(Self::Data),
            SyntaxKind::Limit => Limit::cast(node).map(Self::Limit),
            SyntaxKind::OnCancel => OnCancel::cast(node).map(Self::OnCancel),
            SyntaxKind::Start => Start::cast(node).map(Self::Start),
            SyntaxKind::State => State::cast(node).map(Self::State),
            _ => Arrow::cast(node).map(Self::Arrow),
        }
    }

    fn syntax(&self) -> &SyntaxNode {
        match self {
            Self::Message(node) => node.syntax(),
            Self::Data(node) => node.syntax(),
            Self::Limit(node) => node.syntax(),
            Self::Arrow(node) => node.syntax(),
            Self::OnCancel(node) => node.syntax(),
            Self::Start(node) => node.syntax(),
            Self::State(node) => node.syntax(),
        }
    }
}

impl Flow {
    /// Whether it is a `saga flow`.
    pub fn is_saga(&self) -> bool {
        has_word(self, "saga")
    }

    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// The parameters.
    pub fn params(&self) -> impl Iterator<Item = Param> + use<> {
        child::<ParamList>(self).into_iter().flat_map(|list| list.params())
    }

    /// What it ends with; nothing if there is no `->`.
    pub fn result(&self) -> Option<FlowResult> {
        child(self)
    }

    /// The errors after `raises`.
    pub fn raises(&self) -> impl Iterator<Item = NameRef> + use<> {
        child::<Raises>(self).into_iter().flat_map(|clause| clause.errors())
    }

    /// The type after `emits`.
    pub fn emits(&self) -> Option<Type> {
        child::<Emits>(self).and_then(|clause| child(&clause))
    }

    /// The number after `version`.
    pub fn version(&self) -> Option<IntLiteral> {
        child::<Version>(self).and_then(|clause| child(&clause))
    }

    /// All items.
    pub fn items(&self) -> impl Iterator<Item = Item> + use<> {
        children(self)
    }

    /// The messages.
    pub fn messages(&self) -> impl Iterator<Item = Message> + use<> {
        children(self)
    }

    /// The data.
    pub fn data(&self) -> impl Iterator<Item = Data> + use<> {
        children(self)
    }

    /// The limits.
    pub fn limits(&self) -> impl Iterator<Item = Limit> + use<> {
        children(self)
    }

    /// The arrows of all states.
    pub fn arrows(&self) -> impl Iterator<Item = Arrow> + use<> {
        children(self)
    }

    /// `on cancel`; a second one is for the checker to refuse.
    pub fn on_cancels(&self) -> impl Iterator<Item = OnCancel> + use<> {
        children(self)
    }

    /// `start`; a second one is for the checker to refuse.
    pub fn starts(&self) -> impl Iterator<Item = Start> + use<> {
        children(self)
    }

    /// The states.
    pub fn states(&self) -> impl Iterator<Item = State> + use<> {
        children(self)
    }
}

impl FlowResult {
    /// The type, if it is one and not variants.
    pub fn ty(&self) -> Option<Type> {
        child(self)
    }

    /// The variants; one of them is a record of that name.
    pub fn variants(&self) -> impl Iterator<Item = Variant> + use<> {
        children(self)
    }
}

impl Message {
    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// The fields; none without braces.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<> {
        child::<FieldList>(self).into_iter().flat_map(|list| list.fields())
    }

    /// Whether it is taken at once or not at all.
    pub fn is_now(&self) -> bool {
        has_word(self, "now")
    }
}

impl Data {
    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// The type.
    pub fn ty(&self) -> Option<Type> {
        child(self)
    }

    /// The first value.
    pub fn value(&self) -> Option<Expr> {
        child(self)
    }
}

impl Limit {
    /// What is limited.
    pub fn measure(&self) -> Option<Measure> {
        child(self)
    }

    /// The limit.
    pub fn bound(&self) -> Option<Expr> {
        child(self)
    }

    /// What is done when it is broken.
    pub fn acts(&self) -> Acts {
        Acts::of(self)
    }

    /// Where the flow goes when it is broken.
    pub fn goal(&self) -> Option<Goal> {
        child(self)
    }
}

impl Measure {
    /// The state `S` of `visits(S)`.
    pub fn visits(&self) -> Option<NameRef> {
        child::<NameRef>(self).filter(NameRef::is_upper)
    }

    /// The state after `since`.
    pub fn since(&self) -> Option<NameRef> {
        child_after(self, "since")
    }

    /// A counter of the flow, `cost` or `age`.
    pub fn counter(&self) -> Option<NameRef> {
        child::<NameRef>(self).filter(|name| !name.is_upper())
    }
}

impl OnCancel {
    /// How long the clean-up may take.
    pub fn within(&self) -> Option<DurLiteral> {
        child(self)
    }

    /// Where it begins.
    pub fn goal(&self) -> Option<Goal> {
        child(self)
    }
}

impl Start {
    /// The first state.
    pub fn place(&self) -> Option<Place> {
        child(self)
    }
}

impl State {
    /// The name.
    pub fn name(&self) -> Option<Name> {
        child(self)
    }

    /// The name in the version before.
    pub fn was(&self) -> Option<NameRef> {
        child_after(self, "was")
    }

    /// The parameters.
    pub fn params(&self) -> impl Iterator<Item = Param> + use<> {
        child::<ParamList>(self).into_iter().flat_map(|list| list.params())
    }

    /// The effect; a second one was reported.
    pub fn effect(&self) -> Option<Effect> {
        child(self)
    }

    /// The arrows.
    pub fn arrows(&self) -> impl Iterator<Item = Arrow> + use<> {
        children(self)
    }

    /// The name, or the word `state` if it has none: where to point at the state as a whole.
    pub fn head_span(&self) -> TextSpan {
        self.name().map_or_else(|| self.span(), |name| name.span())
    }
}
