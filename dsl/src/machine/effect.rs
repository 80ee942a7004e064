//! Effects: the one thing that a state does.

use serde::{Deserialize, Serialize};

use super::{Act, ActivityIx, Arm, Bind, Cond, Expr, FlowIx, Goal, MessageIx, Outcome, Payload, Slot, Type};

/// The effect of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Only timers and messages move the state on.
    Wait,
    /// `do a(x) as r`: arguments by position, defaults filled in; `r` is bound on `ok`.
    Do(ActivityIx, Vec<Expr>, Option<Slot>),
    /// `run F(x) within D as r`; `r` is bound on `ok`.
    Run(FlowIx, Vec<Expr>, Option<Wait>, Option<Slot>),
    /// `each x in xs …`
    Each(Box<Each>),
    /// `parallel { … } join …`
    Parallel(Box<Parallel>),
    /// `await M, N within D`
    Await(Await),
    /// `ask "…" …`
    Ask(Box<Ask>),
    /// `spawn F(x) named k …`
    Spawn(Box<Spawn>),
    /// `choose if … else …`: the first branch that holds; the last one always does.
    Choose(Vec<Branch>),
    /// `choose v { … }`: exhaustive, the first arm that fits.
    Match(Expr, Vec<Arm>),
}

impl Effect {
    /// Returns the flows that it runs inside the run, in text order; those that it spawns are runs of their own.
    #[must_use]
    pub fn runs(&self) -> Vec<FlowIx> {
        match self {
            Effect::Run(ix, ..) => vec![*ix],
            Effect::Each(each) => each.body.runs(),
            Effect::Parallel(parallel) => {
                parallel.regions.iter().flat_map(|region| region.body.runs()).collect()
            }
            Effect::Wait
            | Effect::Do(..)
            | Effect::Await(_)
            | Effect::Ask(_)
            | Effect::Spawn(_)
            | Effect::Choose(_)
            | Effect::Match(..) => Vec::new(),
        }
    }
}

impl EachBody {
    fn runs(&self) -> Vec<FlowIx> {
        match self {
            EachBody::Run(ix, ..) => vec![*ix],
            EachBody::Each(each) => each.body.runs(),
            EachBody::Do(..) | EachBody::Ask(_) | EachBody::Await(_) => Vec::new(),
        }
    }
}

/// How long an effect may wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// A duration from the opening.
    Within(Expr),
    /// A time.
    Until(Expr),
    /// No bound, written out.
    Forever,
}

/// Fan-out over a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Each {
    /// The item.
    pub item: Slot,
    /// Its position, 0-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Slot>,
    /// The list, evaluated once on entry.
    pub over: Expr,
    /// How many may be open at once; at least 1.
    pub at_most: Expr,
    /// Closes the group early when it holds; sees `result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Cond>,
    /// With `until`: open members may end by themselves.
    pub draining: bool,
    /// Settles all members, whatever happens to some.
    pub keep_going: bool,
    /// The deadline of the whole group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Wait>,
    /// What is done for each item.
    pub body: EachBody,
    /// Arrows of a member: what it yields; the first that fits.
    pub yields: Vec<Yield>,
    /// Where the results go: `list<T>` on `ok` without `keep going`, else `list<Slot<T>>`.
    pub result: Slot,
}

/// What is done for each item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EachBody {
    /// An activity; the slot is bound to its result in `yields`.
    Do(ActivityIx, Vec<Expr>, Option<Slot>),
    /// A flow.
    Run(FlowIx, Vec<Expr>, Option<Wait>, Option<Slot>),
    /// A question.
    Ask(Box<Ask>),
    /// Messages (regions of `parallel` only).
    Await(Await),
    /// A nested fan-out (regions of `parallel` only).
    Each(Box<Each>),
}

/// `on X yield v`: what a member counts as. Without one that fits, `ok` yields the result and everything else fails the member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Yield {
    /// The outcomes that it fits.
    pub on: Vec<Outcome>,
    /// What its payload is.
    pub payload: Payload,
    /// Where the payload goes.
    pub bind: Bind,
    /// A further condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Cond>,
    /// The value.
    pub value: Expr,
}

/// Regions that run side by side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parallel {
    /// The regions in text order.
    pub regions: Vec<Region>,
    /// How many must end well: all of them, or this many; or one by its index.
    pub join: Join,
    /// The deadline of the whole group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Wait>,
}

/// When a parallel group is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// All regions.
    All,
    /// This many regions.
    Count(u32),
    /// The region at this index.
    Region(u32),
}

/// One region of a parallel group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// Where its result goes: `T` on `ok` after `join all`, else `Slot<T>`.
    pub result: Slot,
    /// What it does.
    pub body: EachBody,
    /// What it yields.
    pub yields: Vec<Yield>,
}

/// Waits for messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Await {
    /// The message types, in text order.
    pub messages: Vec<MessageIx>,
    /// Whether `closed` is awaited.
    pub closed: bool,
    /// Handles of spawned runs whose end is awaited.
    pub ended: Vec<Expr>,
    /// How long.
    pub wait: Wait,
}

/// Asks people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The question.
    pub text: Expr,
    /// The value that is shown and, on `approve`, approved; `nothing` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show: Option<Expr>,
    /// The type of what is shown (of an edited value too).
    pub shown: Type,
    /// Whether the person may change what is shown.
    pub editable: bool,
    /// `for T`: the answer is a value of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Type>,
    /// Who must agree.
    pub to: Vec<Who>,
    /// How long.
    pub wait: Wait,
}

/// One party of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// How many people of the role.
    pub count: u32,
    /// The role, a text.
    pub role: Expr,
}

/// Starts a flow as its own run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// The flow.
    pub flow: FlowIx,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// The name, from which the run id is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<Expr>,
    /// Whether it is cancelled with its parent.
    pub cancel: bool,
    /// Where the handle goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<Slot>,
}

/// One branch of `choose if`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// The condition; none for `else`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cond: Option<Cond>,
    /// What it does first.
    pub acts: Vec<Act>,
    /// Where it leads.
    pub goal: Goal,
}
