//! Tests and their steps.
//!
//! Leaves running them to the test runner. Invariant: steps come in the order of the text.

use super::{
    ArgList, Ast, AstNode, Construct, DurLiteral, Expr, Init, InitList, IntLiteral, Literal, Name, NameRef,
    StringExpr, SyntaxKind, SyntaxNode, child, child_after, child_after_kind, children, has_word, nth_child,
    token,
};

/// `test "…" { … }`.
pub type Test = Ast<{ SyntaxKind::Test as u16 }>;
/// `start F(…)`.
pub type StepStart = Ast<{ SyntaxKind::StepStart as u16 }>;
/// `stub a gives [ … ]`.
pub type StepStub = Ast<{ SyntaxKind::StepStub as u16 }>;
/// `allow e`.
pub type StepAllow = Ast<{ SyntaxKind::StepAllow as u16 }>;
/// `send M { … }`.
pub type StepSend = Ast<{ SyntaxKind::StepSend as u16 }>;
/// `close`.
pub type StepClose = Ast<{ SyntaxKind::StepClose as u16 }>;
/// `cancel`.
pub type StepCancel = Ast<{ SyntaxKind::StepCancel as u16 }>;
/// `answer "…" reject { … } by "owner"`.
pub type StepAnswer = Ast<{ SyntaxKind::StepAnswer as u16 }>;
/// `advance D`.
pub type StepAdvance = Ast<{ SyntaxKind::StepAdvance as u16 }>;
/// `crash at P`.
pub type StepCrash = Ast<{ SyntaxKind::StepCrash as u16 }>;
/// `lose worker`.
pub type StepLose = Ast<{ SyntaxKind::StepLose as u16 }>;
/// `settle a as …`.
pub type StepSettle = Ast<{ SyntaxKind::StepSettle as u16 }>;
/// `release a`.
pub type StepRelease = Ast<{ SyntaxKind::StepRelease as u16 }>;
/// `expect …`.
pub type StepExpect = Ast<{ SyntaxKind::StepExpect as u16 }>;
/// What a stub gives.
pub type ReplyNode = Ast<{ SyntaxKind::Reply as u16 }>;
/// `S / F.S`.
pub type Path = Ast<{ SyntaxKind::Path as u16 }>;

/// A step of a test.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is documented at its type")]
pub enum Step {
    Start(StepStart),
    Stub(StepStub),
    Allow(StepAllow),
    Send(StepSend),
    Close(StepClose),
    Cancel(StepCancel),
    Answer(StepAnswer),
    Advance(StepAdvance),
    Crash(StepCrash),
    LoseWorker(StepLose),
    Settle(StepSettle),
    Release(StepRelease),
    Expect(StepExpect),
}

impl AstNode for Step {
    fn cast(node: SyntaxNode) -> Option<Self> {
        match node.kind() {
            SyntaxKind::StepStart => StepStart::cast(node).map(Self::Start),
            SyntaxKind::StepStub => StepStub::cast(node).map(Self::Stub),
            SyntaxKind::StepAllow => StepAllow::cast(node).map(Self::Allow),
            SyntaxKind::StepSend => StepSend::cast(node).map(Self::Send),
            SyntaxKind::StepClose => StepClose::cast(node).map(Self::Close),
            SyntaxKind::StepCancel => StepCancel::cast(node).map(Self::Cancel),
            SyntaxKind::StepAnswer => StepAnswer::cast(node).map(Self::Answer),
            SyntaxKind::StepAdvance => StepAdvance::cast(node).map(Self::Advance),
            SyntaxKind::StepCrash => StepCrash::cast(node).map(Self::Crash),
            SyntaxKind::StepLose => StepLose::cast(node).map(Self::LoseWorker),
            SyntaxKind::StepSettle => StepSettle::cast(node).map(Self::Settle),
            SyntaxKind::StepRelease => StepRelease::cast(node).map(Self::Release),
            SyntaxKind::StepExpect => StepExpect::cast(node).map(Self::Expect),
            _ => None,
        }
    }

    fn syntax(&self) -> &SyntaxNode {
        match self {
            Self::Start(node) => node.syntax(),
            Self::Stub(node) => node.syntax(),
            Self::Allow(node) => node.syntax(),
            Self::Send(node) => node.syntax(),
            Self::Close(node) => node.syntax(),
            Self::Cancel(node) => node.syntax(),
            Self::Answer(node) => node.syntax(),
            Self::Advance(node) => node.syntax(),
            Self::Crash(node) => node.syntax(),
            Self::LoseWorker(node) => node.syntax(),
            Self::Settle(node) => node.syntax(),
            Self::Release(node) => node.syntax(),
            Self::Expect(node) => node.syntax(),
        }
    }
}

impl Test {
    /// What it shows.
    pub fn name(&self) -> Option<StringExpr> {
        child(self)
    }

    /// The steps.
    pub fn steps(&self) -> impl Iterator<Item = Step> + use<> {
        children(self)
    }
}

impl StepStart {
    /// The flow.
    pub fn flow(&self) -> Option<NameRef> {
        child(self)
    }

    /// The arguments.
    pub fn args(&self) -> Option<ArgList> {
        child(self)
    }
}

impl StepStub {
    /// The activity.
    pub fn activity(&self) -> Option<NameRef> {
        child(self)
    }

    /// The names of the arguments, if it looks at them.
    pub fn params(&self) -> impl Iterator<Item = Name> + use<> {
        children(self)
    }

    /// Which calls it answers; all if left out.
    pub fn guard(&self) -> Option<Expr> {
        child_after(self, "if")
    }

    /// Whether its replies stand in brackets: each is used once.
    pub fn is_list(&self) -> bool {
        token(self, SyntaxKind::LBrack).is_some()
    }

    /// What its attempts give, one after the other.
    pub fn replies(&self) -> impl Iterator<Item = ReplyNode> + use<> {
        children(self)
    }
}

/// What a stubbed attempt gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// A result.
    Value(Expr),
    /// A declared error.
    Fail(Option<Construct>),
    /// A failure that is not declared, with its text.
    FailText(StringExpr),
    /// No report in time.
    Timeout,
    /// No report, and nobody knows.
    Unknown,
}

impl ReplyNode {
    /// Which it is; nothing if the text does not say.
    pub fn reply(&self) -> Option<Reply> {
        if has_word(self, "fail") {
            match child_after(self, "fail") {
                Some(text) => Some(Reply::FailText(text)),
                None => Some(Reply::Fail(child(self))),
            }
        } else if has_word(self, "timeout") {
            Some(Reply::Timeout)
        } else if has_word(self, "unknown") {
            Some(Reply::Unknown)
        } else {
            let before = usize::from(self.after().is_some()) + usize::from(self.costs().is_some());
            children(self).nth(before).map(Reply::Value)
        }
    }

    /// How long it takes, if that is said.
    pub fn after(&self) -> Option<DurLiteral> {
        child_after(self, "after")
    }

    /// What it costs, if that is said.
    pub fn costs(&self) -> Option<Literal> {
        child_after(self, "costs")
    }
}

impl StepSettle {
    /// The activity.
    pub fn activity(&self) -> Option<NameRef> {
        child(self)
    }

    /// The verdict; nothing for `fail`.
    pub fn verdict(&self) -> Option<Construct> {
        child(self)
    }
}

impl StepRelease {
    /// The activity.
    pub fn activity(&self) -> Option<NameRef> {
        child(self)
    }
}

impl StepAllow {
    /// What is allowed.
    pub fn value(&self) -> Option<Expr> {
        child(self)
    }
}

impl StepSend {
    /// The message.
    pub fn message(&self) -> Option<Construct> {
        child(self)
    }
}

impl StepAnswer {
    /// The question, if it is named.
    pub fn question(&self) -> Option<StringExpr> {
        let by = self.by();
        child(self).filter(|question| Some(question) != by.as_ref())
    }

    /// `approve`, `reject` or `answer`.
    pub fn choice(&self) -> Option<NameRef> {
        child(self)
    }

    /// The fields; none without braces.
    pub fn inits(&self) -> impl Iterator<Item = Init> + use<> {
        child::<InitList>(self).into_iter().flat_map(|list| list.inits())
    }

    /// Who answers.
    pub fn by(&self) -> Option<StringExpr> {
        child_after(self, "by")
    }
}

impl StepAdvance {
    /// How far.
    pub fn by(&self) -> Option<DurLiteral> {
        child(self)
    }
}

impl StepCrash {
    /// Where.
    pub fn path(&self) -> Option<Path> {
        child(self)
    }
}

/// What is expected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// `at P`.
    At(Option<Path>),
    /// `path S -> T`.
    Path(Vec<NameRef>),
    /// `calls a == n`.
    Calls(Option<NameRef>, Option<IntLiteral>),
    /// `attempts a == n`.
    Attempts(Option<NameRef>, Option<IntLiteral>),
    /// `end e`.
    End(Option<Expr>),
    /// `fail E { … }`.
    Fail(Option<Construct>),
    /// `cancelled`.
    Cancelled,
    /// `data x == e`.
    Data(Option<NameRef>, Option<Expr>),
    /// `waiting w`.
    Waiting(Option<NameRef>),
    /// `emits e`.
    Emits(Option<Expr>),
    /// `asked "…"`.
    Asked(Option<StringExpr>),
    /// `refused f`.
    Refused(Option<NameRef>),
}

impl StepExpect {
    /// Which it is; nothing if the text does not say.
    pub fn check(&self) -> Option<Check> {
        // The word of the check is the second one; names stand in nodes of their own.
        let word = super::tokens(self).filter(|token| token.kind() == SyntaxKind::Lower).nth(1)?;
        Some(match word.text() {
            "at" => Check::At(child(self)),
            "path" => Check::Path(children(self).collect()),
            "calls" => Check::Calls(child(self), child(self)),
            "attempts" => Check::Attempts(child(self), child(self)),
            "end" => Check::End(child(self)),
            "fail" => Check::Fail(child(self)),
            "cancelled" => Check::Cancelled,
            "data" => Check::Data(child(self), child_after_kind(self, SyntaxKind::EqEq)),
            "waiting" => Check::Waiting(child(self)),
            "emits" => Check::Emits(child(self)),
            "asked" => Check::Asked(child(self)),
            "refused" => Check::Refused(child(self)),
            _ => return None,
        })
    }
}

impl Path {
    /// The state of the outermost flow.
    pub fn state(&self) -> Option<NameRef> {
        nth_child(self, 0)
    }

    /// Each flow that runs inside, and its state.
    pub fn inner(&self) -> Vec<(NameRef, Option<NameRef>)> {
        let mut names = children::<NameRef>(self).skip(1);
        let mut inner = Vec::new();
        while let Some(flow) = names.next() {
            inner.push((flow, names.next()));
        }
        inner
    }
}
