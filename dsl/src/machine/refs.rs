//! A walk over everything in a machine that names something else.
//!
//! Leaves to its callers what to do with a name: the linker numbers it, the validator looks it up. Invariant: every index of a
//! definition is visited, in the order in which the text uses it, and nothing is visited twice.

use super::{
    Act, Activity, ActivityIx, Arm, Arrow, Ask, Await, Bind, CatalogueIx, Cond, DataIx, Each, EachBody,
    Effect, EffectClass, Expr, FieldDef, Flow, FlowIx, ForIn, Function, FunctionIx, Goal, Limit, MatchArm,
    Measure, MessageIx, Migration, Outcome, RetryIx, Slot, Spawn, StateDef, StateIx, Then, TimerArrow, Type,
    TypeDef, TypeIx, TypeKind, Wait, Yield,
};

/// Something that a definition names.
#[derive(Debug)]
pub enum Ref<'a> {
    /// A flow of the machine.
    Flow(&'a mut FlowIx),
    /// An activity of the machine.
    Activity(&'a mut ActivityIx),
    /// A function of the machine.
    Function(&'a mut FunctionIx),
    /// A retry policy of the machine.
    Retry(&'a mut RetryIx),
    /// A type of the machine.
    Type(&'a mut TypeIx),
    /// A catalogue of the machine.
    Catalogue(&'a mut CatalogueIx),
    /// A state of the same flow.
    State(&'a mut StateIx),
    /// A message of the same flow.
    Message(&'a mut MessageIx),
    /// A data field of the same flow.
    Data(&'a mut DataIx),
    /// A variable of the frame.
    Slot(&'a mut Slot),
    /// A parameter of the state.
    Arg(u32),
    /// A parameter of the flow.
    Param(u32),
}

/// What is done with each name.
pub type Visit<'v> = dyn FnMut(Ref<'_>) + 'v;

/// Visits what a flow itself names, in its own frame; its states are left to [`state`], its migrations to [`migration`].
pub fn flow(flow: &mut Flow, visit: &mut Visit<'_>) {
    fields(&mut flow.params, visit);
    ty(&mut flow.result, visit);
    flow.raises.iter_mut().for_each(|error| visit(Ref::Type(error)));
    flow.emits.iter_mut().for_each(|emits| ty(emits, visit));
    flow.messages.iter_mut().for_each(|message| fields(&mut message.fields, visit));
    for data in &mut flow.data {
        ty(&mut data.ty, visit);
        expr(&mut data.init, visit);
    }
    flow.limits.iter_mut().for_each(|one| limit(one, visit));
    flow.arrows.iter_mut().for_each(|one| arrow(one, visit));
    flow.on_cancel.iter_mut().for_each(|cancel| goal(&mut cancel.goal, visit));
    visit(Ref::State(&mut flow.start.state));
    exprs(&mut flow.start.args, visit);
}

/// Visits what a migration names, in its frame.
pub fn migration(migration: &mut Migration, visit: &mut Visit<'_>) {
    fields(&mut migration.params, visit);
    for assign in &mut migration.sets {
        visit(Ref::Data(&mut assign.data));
        expr(&mut assign.value, visit);
    }
    visit(Ref::State(&mut migration.to.state));
    exprs(&mut migration.to.args, visit);
}

/// Visits what a state names, in its frame.
pub fn state(state: &mut StateDef, visit: &mut Visit<'_>) {
    fields(&mut state.params, visit);
    effect(&mut state.effect, visit);
    state.arrows.iter_mut().for_each(|one| arrow(one, visit));
    for TimerArrow { kind: _, due, acts: does, goal: to } in &mut state.timers {
        expr(due, visit);
        acts(does, visit);
        goal(to, visit);
    }
}

/// Visits what an activity names.
pub fn activity(activity: &mut Activity, visit: &mut Visit<'_>) {
    fields(&mut activity.params, visit);
    ty(&mut activity.result, visit);
    activity.raises.iter_mut().for_each(|error| visit(Ref::Type(error)));
    activity.retry.iter_mut().for_each(|retry| visit(Ref::Retry(retry)));
    match &mut activity.effect {
        EffectClass::Pure | EffectClass::Idempotent => {}
        EffectClass::Once(verify) => verify.iter_mut().for_each(|by| visit(Ref::Activity(by))),
        EffectClass::From(catalogue, _, verify) => {
            visit(Ref::Catalogue(catalogue));
            verify.iter_mut().for_each(|by| visit(Ref::Activity(by)));
        }
    }
    activity.undo.iter_mut().for_each(|(by, _)| visit(Ref::Activity(by)));
}

/// Visits what a function names, in its frame.
pub fn function(function: &mut Function, visit: &mut Visit<'_>) {
    expr(&mut function.body, visit);
}

/// Visits what a named type names.
pub fn type_def(def: &mut TypeDef, visit: &mut Visit<'_>) {
    match &mut def.kind {
        TypeKind::Record(all) | TypeKind::Error(all) => fields(all, visit),
        TypeKind::Union(variants) => {
            variants.iter_mut().for_each(|variant| fields(&mut variant.fields, visit));
        }
    }
}

/// Visits what a type names.
pub fn ty(of: &mut Type, visit: &mut Visit<'_>) {
    match of {
        Type::Nothing
        | Type::Text
        | Type::Int
        | Type::Float
        | Type::Decimal
        | Type::Bool
        | Type::Time
        | Type::Duration
        | Type::Bytes
        | Type::Json
        | Type::Secret
        | Type::Problem => {}
        Type::List(of)
        | Type::Map(of)
        | Type::Option(of)
        | Type::Approved(of)
        | Type::Slot(of)
        | Type::Verdict(of)
        | Type::Ended(of)
        | Type::Doubt(of) => ty(of, visit),
        Type::Named(ix) => visit(Ref::Type(ix)),
        Type::Handle(ix) => visit(Ref::Flow(ix)),
    }
}

fn fields(all: &mut [FieldDef], visit: &mut Visit<'_>) {
    for field in all {
        ty(&mut field.ty, visit);
        field.default.iter_mut().for_each(|default| expr(default, visit));
    }
}

fn limit(limit: &mut Limit, visit: &mut Visit<'_>) {
    match &mut limit.measure {
        Measure::Visits(of, since) => {
            visit(Ref::State(of));
            since.iter_mut().for_each(|since| visit(Ref::State(since)));
        }
        Measure::Data(data) => visit(Ref::Data(data)),
        Measure::Cost | Measure::Age => {}
    }
    expr(&mut limit.max, visit);
    acts(&mut limit.acts, visit);
    goal(&mut limit.goal, visit);
}

/// Visits what an effect names.
pub fn effect(effect: &mut Effect, visit: &mut Visit<'_>) {
    match effect {
        Effect::Wait => {}
        Effect::Do(ix, args, result) => {
            visit(Ref::Activity(ix));
            exprs(args, visit);
            slot(result, visit);
        }
        Effect::Run(ix, args, bound, result) => {
            visit(Ref::Flow(ix));
            exprs(args, visit);
            bound.iter_mut().for_each(|bound| wait(bound, visit));
            slot(result, visit);
        }
        Effect::Each(one) => each(one, visit),
        Effect::Parallel(parallel) => {
            for region in &mut parallel.regions {
                body(&mut region.body, visit);
                region.yields.iter_mut().for_each(|one| yielded(one, visit));
                visit(Ref::Slot(&mut region.result));
            }
            parallel.within.iter_mut().for_each(|bound| wait(bound, visit));
        }
        Effect::Await(one) => awaited(one, visit),
        Effect::Ask(one) => ask(one, visit),
        Effect::Spawn(spawn) => {
            let Spawn { flow, args, named, cancel: _, handle } = spawn.as_mut();
            visit(Ref::Flow(flow));
            exprs(args, visit);
            named.iter_mut().for_each(|named| expr(named, visit));
            slot(handle, visit);
        }
        Effect::Choose(branches) => {
            for branch in branches {
                guard(&mut branch.cond, visit);
                acts(&mut branch.acts, visit);
                goal(&mut branch.goal, visit);
            }
        }
        Effect::Match(subject, all) => {
            expr(subject, visit);
            arms(all, visit);
        }
    }
}

fn each(each: &mut Each, visit: &mut Visit<'_>) {
    expr(&mut each.over, visit);
    expr(&mut each.at_most, visit);
    visit(Ref::Slot(&mut each.item));
    slot(&mut each.index, visit);
    body(&mut each.body, visit);
    each.yields.iter_mut().for_each(|one| yielded(one, visit));
    guard(&mut each.until, visit);
    each.within.iter_mut().for_each(|bound| wait(bound, visit));
    visit(Ref::Slot(&mut each.result));
}

fn body(body: &mut EachBody, visit: &mut Visit<'_>) {
    match body {
        EachBody::Do(ix, args, result) => {
            visit(Ref::Activity(ix));
            exprs(args, visit);
            slot(result, visit);
        }
        EachBody::Run(ix, args, bound, result) => {
            visit(Ref::Flow(ix));
            exprs(args, visit);
            bound.iter_mut().for_each(|bound| wait(bound, visit));
            slot(result, visit);
        }
        EachBody::Ask(one) => ask(one, visit),
        EachBody::Await(one) => awaited(one, visit),
        EachBody::Each(one) => each(one, visit),
    }
}

fn yielded(one: &mut Yield, visit: &mut Visit<'_>) {
    outcomes(&mut one.on, visit);
    bind(&mut one.bind, visit);
    guard(&mut one.guard, visit);
    expr(&mut one.value, visit);
}

fn awaited(one: &mut Await, visit: &mut Visit<'_>) {
    one.messages.iter_mut().for_each(|message| visit(Ref::Message(message)));
    exprs(&mut one.ended, visit);
    wait(&mut one.wait, visit);
}

fn ask(ask: &mut Ask, visit: &mut Visit<'_>) {
    expr(&mut ask.text, visit);
    ask.show.iter_mut().for_each(|show| expr(show, visit));
    ty(&mut ask.shown, visit);
    ask.answer.iter_mut().for_each(|answer| ty(answer, visit));
    ask.to.iter_mut().for_each(|who| expr(&mut who.role, visit));
    wait(&mut ask.wait, visit);
}

fn wait(wait: &mut Wait, visit: &mut Visit<'_>) {
    match wait {
        Wait::Within(bound) | Wait::Until(bound) => expr(bound, visit),
        Wait::Forever => {}
    }
}

fn arrow(arrow: &mut Arrow, visit: &mut Visit<'_>) {
    outcomes(&mut arrow.on, visit);
    bind(&mut arrow.bind, visit);
    guard(&mut arrow.guard, visit);
    acts(&mut arrow.acts, visit);
    match &mut arrow.then {
        Then::Goal(to) => goal(to, visit),
        Then::Arms(all) => arms(all, visit),
    }
}

fn arms(all: &mut [Arm], visit: &mut Visit<'_>) {
    for arm in all {
        arm.fields.iter_mut().for_each(|(_, slot)| visit(Ref::Slot(slot)));
        guard(&mut arm.guard, visit);
        acts(&mut arm.acts, visit);
        goal(&mut arm.goal, visit);
    }
}

fn outcomes(on: &mut [Outcome], visit: &mut Visit<'_>) {
    for outcome in on {
        match outcome {
            Outcome::Error(error) => visit(Ref::Type(error)),
            Outcome::Message(message) => visit(Ref::Message(message)),
            Outcome::Ok
            | Outcome::Failed
            | Outcome::Timeout
            | Outcome::Problem
            | Outcome::Unknown
            | Outcome::Closed
            | Outcome::Ended
            | Outcome::Approve
            | Outcome::Answer
            | Outcome::Reject
            | Outcome::Exists
            | Outcome::UndoFailed => {}
        }
    }
}

fn bind(bind: &mut Bind, visit: &mut Visit<'_>) {
    slot(&mut bind.whole, visit);
    bind.fields.iter_mut().for_each(|(_, slot)| visit(Ref::Slot(slot)));
}

fn slot(slot: &mut Option<Slot>, visit: &mut Visit<'_>) {
    slot.iter_mut().for_each(|slot| visit(Ref::Slot(slot)));
}

fn acts(acts: &mut [Act], visit: &mut Visit<'_>) {
    for act in acts {
        match act {
            Act::Set(assign) => {
                visit(Ref::Data(&mut assign.data));
                expr(&mut assign.value, visit);
            }
            Act::Discard(message) => visit(Ref::Message(message)),
            Act::Settle(doubt, verdict) => {
                expr(doubt, visit);
                expr(verdict, visit);
            }
            Act::AlsoDo(ix, args) => {
                visit(Ref::Activity(ix));
                exprs(args, visit);
            }
            Act::Emit(value) => expr(value, visit),
        }
    }
}

fn goal(goal: &mut Goal, visit: &mut Visit<'_>) {
    match goal {
        Goal::State(to, args) => {
            visit(Ref::State(to));
            exprs(args, visit);
        }
        Goal::Stay => {}
        Goal::End(value) | Goal::Fail(value) => expr(value, visit),
    }
}

fn guard(cond: &mut Option<Cond>, visit: &mut Visit<'_>) {
    cond.iter_mut().for_each(|cond| condition(cond, visit));
}

fn condition(cond: &mut Cond, visit: &mut Visit<'_>) {
    expr(&mut cond.test, visit);
    slot(&mut cond.bind, visit);
}

fn exprs(all: &mut [Expr], visit: &mut Visit<'_>) {
    all.iter_mut().for_each(|one| expr(one, visit));
}

fn named(all: &mut [(String, Expr)], visit: &mut Visit<'_>) {
    all.iter_mut().for_each(|(_, one)| expr(one, visit));
}

fn for_in(one: &mut ForIn, visit: &mut Visit<'_>) {
    expr(&mut one.over, visit);
    visit(Ref::Slot(&mut one.item));
    slot(&mut one.key, visit);
    guard(&mut one.cond, visit);
}

/// Visits what an expression names.
pub fn expr(of: &mut Expr, visit: &mut Visit<'_>) {
    match of {
        Expr::Lit(_) => {}
        Expr::Local(slot) => visit(Ref::Slot(slot)),
        Expr::Param(at) => visit(Ref::Param(*at)),
        Expr::Arg(at) => visit(Ref::Arg(*at)),
        Expr::Data(data) => visit(Ref::Data(data)),
        Expr::Text(all) | Expr::List(all) | Expr::Builtin(_, all) => exprs(all, visit),
        Expr::Map(all) => all.iter_mut().for_each(|(key, value)| {
            expr(key, visit);
            expr(value, visit);
        }),
        Expr::ListFor(over, body) | Expr::Fold(_, over, body) => {
            for_in(over, visit);
            expr(body, visit);
        }
        Expr::MapFor(over, key, value) => {
            for_in(over, visit);
            expr(key, visit);
            expr(value, visit);
        }
        Expr::Record(ix, all) | Expr::Variant(ix, _, all) => {
            visit(Ref::Type(ix));
            named(all, visit);
        }
        Expr::BuiltinRecord(_, all) => named(all, visit),
        Expr::Field(of, _) | Expr::Not(of) | Expr::Neg(of) | Expr::ToJson(of) => expr(of, visit),
        Expr::Index(left, right) | Expr::Binary(_, left, right) | Expr::Else(left, right) => {
            expr(left, visit);
            expr(right, visit);
        }
        Expr::If(cond, yes, no) => {
            condition(cond, visit);
            expr(yes, visit);
            expr(no, visit);
        }
        Expr::Match(subject, arms) => {
            expr(subject, visit);
            arms.iter_mut().for_each(|arm| match_arm(arm, visit));
        }
        Expr::Is(subject, _, binds) => {
            expr(subject, visit);
            binds.iter_mut().for_each(|(_, slot)| visit(Ref::Slot(slot)));
        }
        Expr::Call(ix, args) => {
            visit(Ref::Function(ix));
            exprs(args, visit);
        }
        Expr::FromJson(of, value) => {
            ty(of, visit);
            expr(value, visit);
        }
        Expr::Schemas(ix) => visit(Ref::Catalogue(ix)),
        Expr::Allow(ix, call) => {
            visit(Ref::Catalogue(ix));
            expr(call, visit);
        }
    }
}

fn match_arm(arm: &mut MatchArm, visit: &mut Visit<'_>) {
    arm.fields.iter_mut().for_each(|(_, slot)| visit(Ref::Slot(slot)));
    guard(&mut arm.guard, visit);
    expr(&mut arm.body, visit);
}
