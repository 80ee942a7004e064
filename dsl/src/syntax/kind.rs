//! The kinds of tokens and nodes of the syntax tree.
//!
//! Leaves their order in a file to the parser and their reading to `ast`. Keywords have no kinds of their own:
//! words are contextual, so the parser compares their text. Invariant: `KINDS[k as usize] == k`.

/// What a token or a node of the tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
#[expect(missing_docs, reason = "the variants are the productions of the grammar, named as there")]
pub enum SyntaxKind {
    // Trivia: kept in the tree, never seen by the parser.
    Whitespace,
    Comment,
    Doc,
    Unknown,
    // Tokens.
    Upper,
    Lower,
    Int,
    Number,
    Dur,
    StringOpen,
    StringText,
    StringEscape,
    StringClose,
    HoleOpen,
    HoleClose,
    LBrace,
    RBrace,
    LParen,
    RParen,
    LBrack,
    RBrack,
    Lt,
    Gt,
    LtEq,
    GtEq,
    EqEq,
    NotEq,
    Eq,
    PlusEq,
    MinusEq,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Coalesce,
    Question,
    Arrow,
    FatArrow,
    Comma,
    Colon,
    Dot,
    Pipe,
    AmpAmp,
    PipePipe,
    Bang,
    Eof,
    // Files and declarations.
    File,
    Edition,
    Use,
    Import,
    TypeDecl,
    ErrorDecl,
    RetryDecl,
    RetryRule,
    Activity,
    FnDecl,
    Flow,
    Migrate,
    Test,
    Variant,
    FieldList,
    Field,
    Type,
    ParamList,
    Param,
    Name,
    NameRef,
    Binding,
    // Clauses of activities and flows.
    Raises,
    Within,
    InAll,
    Silent,
    RetryUse,
    Costs,
    Queue,
    EffectClass,
    Undo,
    UnknownHolds,
    FlowResult,
    Emits,
    Version,
    // Items of a flow.
    Message,
    Data,
    Limit,
    Measure,
    OnCancel,
    Start,
    State,
    Place,
    // Effects.
    Do,
    Run,
    Spawn,
    Steps,
    StepBind,
    Each,
    Parallel,
    Region,
    Yield,
    Await,
    Awaited,
    Ask,
    Show,
    Who,
    Bound,
    Choose,
    Branch,
    // Arrows.
    OnArrow,
    TimerArrow,
    Outcomes,
    OutcomeName,
    Guard,
    Cond,
    Arms,
    Arm,
    SetAct,
    Assign,
    Discard,
    Settle,
    AlsoDo,
    Emit,
    Goal,
    Pattern,
    FieldPatList,
    FieldBind,
    // Expressions.
    IfExpr,
    MatchExpr,
    MatchArm,
    Binary,
    Unary,
    IsExpr,
    FieldExpr,
    IndexExpr,
    NameExpr,
    Call,
    Construct,
    TypePath,
    InitList,
    Init,
    List,
    Map,
    MapEntry,
    ForIn,
    Paren,
    ArgList,
    Arg,
    Literal,
    StringExpr,
    Hole,
    // Steps of tests.
    StepStart,
    StepStub,
    StepAllow,
    StepSend,
    StepClose,
    StepCancel,
    StepAnswer,
    StepAdvance,
    StepCrash,
    StepLose,
    StepSettle,
    StepRelease,
    StepExpect,
    Reply,
    Path,
    /// Tokens that fit no production; already reported.
    Error,
}

impl SyntaxKind {
    /// Whether tokens of this kind stand between the tokens of the grammar and mean nothing to the parser.
    pub fn is_trivia(self) -> bool {
        matches!(self, Self::Whitespace | Self::Comment | Self::Doc | Self::Unknown)
    }

    /// The bracket that closes this one.
    pub(crate) fn closer(self) -> Option<Self> {
        const PAIRS: [(SyntaxKind, SyntaxKind); 4] = [
            (SyntaxKind::LBrace, SyntaxKind::RBrace),
            (SyntaxKind::LParen, SyntaxKind::RParen),
            (SyntaxKind::LBrack, SyntaxKind::RBrack),
            (SyntaxKind::HoleOpen, SyntaxKind::HoleClose),
        ];
        PAIRS.iter().find(|(open, _)| *open == self).map(|(_, close)| *close)
    }

    /// Whether this token closes a bracket or a hole.
    pub(crate) fn is_closer(self) -> bool {
        matches!(self, Self::RBrace | Self::RParen | Self::RBrack | Self::HoleClose)
    }
}

/// Names the language to the tree library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowLanguage {}

impl rowan::Language for FlowLanguage {
    type Kind = SyntaxKind;

    fn kind_from_raw(raw: rowan::SyntaxKind) -> SyntaxKind {
        let Some(kind) = KINDS.get(usize::from(raw.0)) else {
            unreachable!("the tree holds only kinds that the parser gave it, found {}", raw.0)
        };
        *kind
    }

    fn kind_to_raw(kind: SyntaxKind) -> rowan::SyntaxKind {
        rowan::SyntaxKind(kind as u16)
    }
}

/// A node of the tree.
pub type SyntaxNode = rowan::SyntaxNode<FlowLanguage>;
/// A token of the tree.
pub type SyntaxToken = rowan::SyntaxToken<FlowLanguage>;
/// A node or a token of the tree.
pub type SyntaxElement = rowan::SyntaxElement<FlowLanguage>;

/// Every kind at its own number: the way back from the library's raw kinds.
const KINDS: &[SyntaxKind] = &[
    SyntaxKind::Whitespace,
    SyntaxKind::Comment,
    SyntaxKind::Doc,
    SyntaxKind::Unknown,
    SyntaxKind::Upper,
    SyntaxKind::Lower,
    SyntaxKind::Int,
    SyntaxKind::Number,
    SyntaxKind::Dur,
    SyntaxKind::StringOpen,
    SyntaxKind::StringText,
    SyntaxKind::StringEscape,
    SyntaxKind::StringClose,
    SyntaxKind::HoleOpen,
    SyntaxKind::HoleClose,
    SyntaxKind::LBrace,
    SyntaxKind::RBrace,
    SyntaxKind::LParen,
    SyntaxKind::RParen,
    SyntaxKind::LBrack,
    SyntaxKind::RBrack,
    SyntaxKind::Lt,
    SyntaxKind::Gt,
    SyntaxKind::LtEq,
    SyntaxKind::GtEq,
    SyntaxKind::EqEq,
    SyntaxKind::NotEq,
    SyntaxKind::Eq,
    SyntaxKind::PlusEq,
    SyntaxKind::MinusEq,
    SyntaxKind::Plus,
    SyntaxKind::Minus,
    SyntaxKind::Star,
    SyntaxKind::Slash,
    SyntaxKind::Percent,
    SyntaxKind::Coalesce,
    SyntaxKind::Question,
    SyntaxKind::Arrow,
    SyntaxKind::FatArrow,
    SyntaxKind::Comma,
    SyntaxKind::Colon,
    SyntaxKind::Dot,
    SyntaxKind::Pipe,
    SyntaxKind::AmpAmp,
    SyntaxKind::PipePipe,
    SyntaxKind::Bang,
    SyntaxKind::Eof,
    SyntaxKind::File,
    SyntaxKind::Edition,
    SyntaxKind::Use,
    SyntaxKind::Import,
    SyntaxKind::TypeDecl,
    SyntaxKind::ErrorDecl,
    SyntaxKind::RetryDecl,
    SyntaxKind::RetryRule,
    SyntaxKind::Activity,
    SyntaxKind::FnDecl,
    SyntaxKind::Flow,
    SyntaxKind::Migrate,
    SyntaxKind::Test,
    SyntaxKind::Variant,
    SyntaxKind::FieldList,
    SyntaxKind::Field,
    SyntaxKind::Type,
    SyntaxKind::ParamList,
    SyntaxKind::Param,
    SyntaxKind::Name,
    SyntaxKind::NameRef,
    SyntaxKind::Binding,
    SyntaxKind::Raises,
    SyntaxKind::Within,
    SyntaxKind::InAll,
    SyntaxKind::Silent,
    SyntaxKind::RetryUse,
    SyntaxKind::Costs,
    SyntaxKind::Queue,
    SyntaxKind::EffectClass,
    SyntaxKind::Undo,
    SyntaxKind::UnknownHolds,
    SyntaxKind::FlowResult,
    SyntaxKind::Emits,
    SyntaxKind::Version,
    SyntaxKind::Message,
    SyntaxKind::Data,
    SyntaxKind::Limit,
    SyntaxKind::Measure,
    SyntaxKind::OnCancel,
    SyntaxKind::Start,
    SyntaxKind::State,
    SyntaxKind::Place,
    SyntaxKind::Do,
    SyntaxKind::Run,
    SyntaxKind::Spawn,
    SyntaxKind::Steps,
    SyntaxKind::StepBind,
    SyntaxKind::Each,
    SyntaxKind::Parallel,
    SyntaxKind::Region,
    SyntaxKind::Yield,
    SyntaxKind::Await,
    SyntaxKind::Awaited,
    SyntaxKind::Ask,
    SyntaxKind::Show,
    SyntaxKind::Who,
    SyntaxKind::Bound,
    SyntaxKind::Choose,
    SyntaxKind::Branch,
    SyntaxKind::OnArrow,
    SyntaxKind::TimerArrow,
    SyntaxKind::Outcomes,
    SyntaxKind::OutcomeName,
    SyntaxKind::Guard,
    SyntaxKind::Cond,
    SyntaxKind::Arms,
    SyntaxKind::Arm,
    SyntaxKind::SetAct,
    SyntaxKind::Assign,
    SyntaxKind::Discard,
    SyntaxKind::Settle,
    SyntaxKind::AlsoDo,
    SyntaxKind::Emit,
    SyntaxKind::Goal,
    SyntaxKind::Pattern,
    SyntaxKind::FieldPatList,
    SyntaxKind::FieldBind,
    SyntaxKind::IfExpr,
    SyntaxKind::MatchExpr,
    SyntaxKind::MatchArm,
    SyntaxKind::Binary,
    SyntaxKind::Unary,
    SyntaxKind::IsExpr,
    SyntaxKind::FieldExpr,
    SyntaxKind::IndexExpr,
    SyntaxKind::NameExpr,
    SyntaxKind::Call,
    SyntaxKind::Construct,
    SyntaxKind::TypePath,
    SyntaxKind::InitList,
    SyntaxKind::Init,
    SyntaxKind::List,
    SyntaxKind::Map,
    SyntaxKind::MapEntry,
    SyntaxKind::ForIn,
    SyntaxKind::Paren,
    SyntaxKind::ArgList,
    SyntaxKind::Arg,
    SyntaxKind::Literal,
    SyntaxKind::StringExpr,
    SyntaxKind::Hole,
    SyntaxKind::StepStart,
    SyntaxKind::StepStub,
    SyntaxKind::StepAllow,
    SyntaxKind::StepSend,
    SyntaxKind::StepClose,
    SyntaxKind::StepCancel,
    SyntaxKind::StepAnswer,
    SyntaxKind::StepAdvance,
    SyntaxKind::StepCrash,
    SyntaxKind::StepLose,
    SyntaxKind::StepSettle,
    SyntaxKind::StepRelease,
    SyntaxKind::StepExpect,
    SyntaxKind::Reply,
    SyntaxKind::Path,
    SyntaxKind::Error,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_stands_at_its_own_number() {
        for (number, kind) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, number, "{kind:?}");
        }
        assert_eq!(KINDS.last(), Some(&SyntaxKind::Error), "a new kind goes before `Error`");
    }
}
