//! Work for workers: handing out, adopting, losing.

use outlast_dsl::machine::{EffectClass, Machine};
use outlast_kernel::event::LostWhy;
use outlast_kernel::ids::{Attempt, Millis, OpId};
use outlast_kernel::input::Input;
use outlast_kernel::operation::{ActivityOp, Class, Operation, Phase};
use outlast_kernel::text::time_text;
use outlast_protocol::worker::{Task, definition};
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};

use super::Shard;
use crate::engine::context::Context;
use crate::engine::dispatch::{InHand, WorkId};
use crate::engine::draft::{Draft, Failure};
use crate::engine::live::{Live, activity_of, may_be_handed_out};
use crate::engine::message::{Consequence, Delivery, Gone, Listed, Message, Reply, Taker};
use crate::engine::session::holder;
use crate::engine::token::Claim;
use crate::engine::waiting::lane_of;
use crate::limits;

/// What becomes of reserved work.
enum HandOut {
    /// It goes out, when this step is durable.
    Now(Box<(Option<Draft>, Task, InHand)>),
    /// It waits in its lane: its queue has not enough tokens left.
    Later,
    /// It is not wanted.
    Not,
}

impl Shard {
    /// Gives reserved work to a session, if it still may be handed out.
    pub(super) fn hand_out(&mut self, work: &WorkId, taker: &Taker, reply: Reply<Option<Task>>) {
        let _span =
            tracing::info_span!("hand_out", run = %work.run, op = %work.op, worker = taker.worker).entered();
        let found = self.try_hand_out(work, taker).unwrap_or_else(|error| {
            tracing::warn!(run = %work.run, op = %work.op, %error, "work cannot be handed out");
            HandOut::Not
        });
        let HandOut::Now(given) = found else {
            self.ctx.dispatch.uncome(work, matches!(found, HandOut::Later));
            // What could not be handed out only because the disk is full is offered again when there is room.
            if self.full_until.is_some() {
                self.forget_told(work);
            }
            // The poll may have ended meanwhile.
            return drop(reply.send(Ok(None)));
        };
        let (draft, task, in_hand) = *given;
        let begun = draft.is_some();
        let delivery = Delivery { work: work.clone(), task, in_hand, begun, reply };
        let delivery = Consequence::Deliver(Box::new(delivery));
        match draft {
            Some(draft) => self.keep(&work.run, draft, Vec::new(), vec![delivery]),
            None => self.after(&work.run, delivery),
        }
    }

    fn try_hand_out(&mut self, work: &WorkId, taker: &Taker) -> Result<HandOut, ApiError> {
        let now = self.ctx.clock.now();
        self.refuse_if_full(now)?;
        self.ready_for_input(&work.run, now)?;
        let ctx = self.ctx.clone();
        let live = self.hydrate(&work.run)?;
        let Some((operation, activity)) = activity_in(live, work.op) else { return Ok(HandOut::Not) };
        if !may_be_handed_out(activity, now) {
            return Ok(HandOut::Not);
        }
        if ctx.dispatch.counts_tokens(&activity.queue)
            && !ctx.dispatch.take_tokens(work, estimated_tokens(activity), now)
        {
            return Ok(HandOut::Later);
        }
        let profile = &live.state().config().profile;
        let in_hand = in_hand(&ctx, work, activity, profile, taker, now);
        let task = task(&ctx, live.state().machine(), work, operation, activity, &in_hand);
        if activity.class != Class::Once || breaks(Breakage::SkipBegun) {
            return Ok(HandOut::Now(Box::new((None, task, in_hand))));
        }
        let worker = holder(&taker.worker, &taker.boot);
        let mut draft = Draft::new(&live.fold, now, 0);
        match draft.input(&Input::Begin { op: work.op, attempt: in_hand.attempt, worker }) {
            Ok(_) => Ok(HandOut::Now(Box::new((Some(draft), task, in_hand)))),
            Err(Failure::Refused(_)) => Ok(HandOut::Not),
            Err(failure @ Failure::Broken(_)) => Err(self.failure(&work.run, failure)),
        }
    }

    pub(super) fn forget_told(&mut self, work: &WorkId) {
        if let Some(live) = self.live.get_mut(&work.run) {
            live.told.remove(&work.op);
        }
        self.revive.insert(work.run.clone());
        let again = self.ctx.clock.now().plus(limits::FULL_RETRY_MS);
        self.timers.note(again, &work.run);
    }

    /// Judges a token that a worker lists when it registers: its task stays with it if this very attempt is still wanted and nobody
    /// else has it.
    pub(super) fn adopt(&mut self, claim: &Claim, token: String, taker: &Taker, reply: Reply<Listed>) {
        let work = WorkId { run: claim.run.clone(), op: claim.op };
        let now = self.ctx.clock.now();
        let listed = match self.still_wanted(claim, &work, taker) {
            Ok(Some(mut task)) => {
                task.token = token;
                task.named_at = now;
                // Its worker is back before the disk had room for its loss.
                self.todo.retain(|message| !is_loss_of(message, &work, task.attempt));
                self.ctx.dispatch.hand(&work, task).map_or(Listed::Dropped, |()| Listed::Kept)
            }
            Ok(None) => Listed::Dropped,
            Err(error) if error.code == Code::NotFound => Listed::Dropped,
            Err(error) => {
                tracing::warn!(run = %work.run, op = %work.op, %error, "a task of a worker cannot be judged");
                Listed::Unseen
            }
        };
        // Whoever registers may be gone.
        let _ = reply.send(Ok(listed));
    }

    fn still_wanted(
        &mut self,
        claim: &Claim,
        work: &WorkId,
        taker: &Taker,
    ) -> Result<Option<InHand>, ApiError> {
        let ctx = self.ctx.clone();
        let now = ctx.clock.now();
        if let Some(task) = ctx.dispatch.held_by(work) {
            // It never left the hand of this process.
            return Ok((task.session == taker.session && task.attempt == claim.attempt).then_some(task));
        }
        let live = self.hydrate(&work.run)?;
        let Some((_, activity)) = activity_in(live, work.op) else { return Ok(None) };
        let wanted = match (&activity.phase, activity.class) {
            (Phase::Begun { worker }, Class::Once) => *worker == holder(&taker.worker, &claim.boot),
            (Phase::Ready | Phase::RetryAt(_), Class::Pure | Class::Idempotent) => true,
            (
                Phase::Ready
                | Phase::RetryAt(_)
                | Phase::Begun { .. }
                | Phase::Verifying(_)
                | Phase::Held(_)
                | Phase::Budget,
                _,
            ) => false,
        };
        let this_one = activity.attempt == claim.attempt || breaks(Breakage::AdoptStaleAttempt);
        if !wanted || !this_one {
            return Ok(None);
        }
        let profile = &live.state().config().profile;
        Ok(Some(InHand { adopted: true, ..in_hand(&ctx, work, activity, profile, taker, now) }))
    }

    /// Takes note that an attempt will never answer.
    pub(super) fn lost(&mut self, work: &WorkId, attempt: Attempt, why: LostWhy) {
        self.about_attempt(Gone { work: work.clone(), attempt, why: Some(why) });
    }

    /// Takes note that a begun attempt never reached its worker.
    pub(super) fn void(&mut self, work: &WorkId, attempt: Attempt) {
        self.about_attempt(Gone { work: work.clone(), attempt, why: None });
    }

    fn about_attempt(&mut self, gone: Gone) {
        let Gone { work, attempt, why } = gone.clone();
        let _span = tracing::info_span!("lose", run = %work.run, op = %work.op).entered();
        let (op, run) = (work.op, &work.run);
        let input = match why {
            Some(why) => Input::Lost { op, attempt, why },
            None => Input::Void { op, attempt },
        };
        let now = self.ctx.clock.now();
        let random = self.random.number();
        let tried = self.ready_for_input(run, now).and_then(|()| {
            let mut draft = Draft::new(&self.hydrate(run)?.fold, now, random);
            match draft.input(&input) {
                Ok(_) => Ok((!draft.events.is_empty()).then_some(draft)),
                // It answered, or was closed, before it was missed.
                Err(Failure::Refused(_)) => Ok(None),
                Err(failure @ Failure::Broken(_)) => Err(self.failure(run, failure)),
            }
        });
        match tried {
            Ok(Some(draft)) => self.keep(run, draft, Vec::new(), vec![Consequence::Gone(gone)]),
            Ok(None) => self.after(run, Consequence::OfferAgain(work.clone())),
            Err(error) => {
                tracing::error!(run = %run, op = %work.op, %error, "the loss of an attempt is not kept");
            }
        }
    }

    /// Sees to work of which only the end of what is in hand is awaited: if nobody has it, nobody will. What was opened before this process
    /// may have been in hand of a worker that did not come back: whether it happened is not known. What was opened since was never
    /// handed out; otherwise its end would have been told.
    pub(super) fn settle(&mut self, work: &WorkId, attempt: Attempt, now: Millis) {
        let ctx = self.ctx.clone();
        if ctx.dispatch.held_by(work).is_some() {
            return;
        }
        let Ok(live) = self.hydrate(&work.run) else { return };
        let Some((operation, activity)) = activity_in(live, work.op) else { return };
        let is_old = operation.opened_at < ctx.opened_at;
        let could_be_out = is_old && could_be_handed_out(activity, ctx.opened_at);
        if is_old && now < ctx.dispatch.adoption_until() {
            // A worker of the last epoch may come back with it.
            return self.forget_told(work);
        }
        ctx.dispatch.close(work, now);
        self.todo.push_back(match could_be_out {
            true => Message::Lost(work.clone(), attempt, LostWhy::Restart),
            false => Message::Void(work.clone(), attempt),
        });
    }

    /// Offers work that is in nobody's hand any more and still may be handed out.
    pub(super) fn offer_again(&mut self, work: &WorkId, now: Millis) {
        let ctx = self.ctx.clone();
        let Ok(live) = self.hydrate(&work.run) else { return };
        if let Some((_, activity)) = activity_in(live, work.op)
            && may_be_handed_out(activity, now)
        {
            let lane = lane_of(activity, &live.state().config().profile);
            ctx.dispatch.offer(work.clone(), lane, false);
        }
    }
}

fn is_loss_of(message: &Message, work: &WorkId, attempt: Attempt) -> bool {
    matches!(message, Message::Lost(of, lost, _) if of == work && *lost == attempt)
}

/// Tells whether an attempt may have been handed out before a moment without a trace in the history.
fn could_be_handed_out(activity: &ActivityOp, before: Millis) -> bool {
    let is_traced = activity.class == Class::Once;
    !is_traced
        && match activity.phase {
            Phase::Ready => true,
            Phase::RetryAt(at) => at < before,
            Phase::Begun { .. } | Phase::Verifying(_) | Phase::Held(_) | Phase::Budget => false,
        }
}

fn activity_in(live: &Live, op: OpId) -> Option<(&Operation, &ActivityOp)> {
    let operation = live.state().operation(op)?;
    Some((operation, activity_of(operation)?))
}

/// Guesses how many tokens an activity will take: as many as its input has.
fn estimated_tokens(activity: &ActivityOp) -> u64 {
    activity.input.to_string().len() as u64 / limits::TOKEN_BYTES
}

fn in_hand(
    ctx: &Context,
    work: &WorkId,
    activity: &ActivityOp,
    profile: &str,
    taker: &Taker,
    now: Millis,
) -> InHand {
    let claim = Claim {
        run: work.run.clone(),
        op: work.op,
        attempt: activity.attempt,
        epoch: ctx.epoch,
        boot: taker.boot.clone(),
        class: activity.class,
    };
    InHand {
        session: taker.session.clone(),
        attempt: activity.attempt,
        token: ctx.key.issue(&claim),
        lane: lane_of(activity, profile),
        tokens: 0,
        named_at: now,
        attempt_until: activity.attempt_ms.map(|ms| now.plus(ms)),
        silent_ms: activity.silent_ms,
        stop: None,
        adopted: false,
    }
}

fn task(
    ctx: &Context,
    machine: &Machine,
    work: &WorkId,
    operation: &Operation,
    activity: &ActivityOp,
    in_hand: &InHand,
) -> Task {
    let due = [operation.due, in_hand.attempt_until].into_iter().flatten().min();
    let effect = match activity.class {
        Class::Pure => "pure",
        Class::Idempotent => "idempotent",
        Class::Once => "once",
    };
    let key = match breaks(Breakage::ChangeKeyWithAttempt) {
        true => format!("{}/{}", activity.key, activity.attempt),
        false => activity.key.clone(),
    };
    let lease = activity.silent_ms.map_or(ctx.lease_ms, |ms| ms.min(ctx.lease_ms));
    Task {
        token: in_hand.token.clone(),
        run: work.run.to_string(),
        op: work.op.to_string(),
        activity: activity.activity.clone(),
        attempt: activity.attempt.0,
        key,
        effect: effect.into(),
        input: activity.input.clone(),
        due: due.map(time_text),
        budget_ms: due.map(|due| u64::try_from(due.0.saturating_sub(in_hand.named_at.0)).unwrap_or(0)),
        // Two signs of life may be lost before a lease ends.
        heartbeat_ms: (lease / 3).max(1),
        handle: activity.handle.clone(),
        definition: definition_of(machine, activity),
    }
}

/// Returns the definition of the tool that an activity calls, as the run's catalogue has it.
fn definition_of(machine: &Machine, activity: &ActivityOp) -> Option<String> {
    let declared = machine.activities.iter().find(|declared| declared.name == activity.activity)?;
    let EffectClass::From(catalogue, param, _) = declared.effect else { return None };
    let arg = &activity.input[&declared.params.get(param as usize)?.name];
    let name = arg.get("value").unwrap_or(arg).get("name")?.as_str()?;
    let tool = machine.catalogues.get(catalogue.at())?.tools.iter().find(|tool| tool.name == name)?;
    Some(definition(&tool.name, &tool.description, &tool.input))
}
