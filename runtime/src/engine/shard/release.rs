//! What happens when steps are durable, or refused.

use std::sync::Arc;

use outlast_kernel::ids::RunId;
use outlast_protocol::worker::ReceiptStatus;
use outlast_store::breakage::{self, Breakage, breaks};
use tokio::sync::mpsc;

use super::Shard;
use crate::engine::committer::{Done, Refused};
use crate::engine::errors;
use crate::engine::message::{Consequence, Delivery, Message, Reply, Subscribe, Subscription};
use crate::engine::outbox::Withheld;
use crate::limits;

impl Shard {
    /// Lets go what waited for steps that are durable now; takes back those that were refused.
    pub(super) fn released(&mut self, done: Done) {
        for ticket in done.tickets {
            let Some(withheld) = self.outbox.take(ticket) else { continue };
            let run = withheld.run.clone();
            self.work_on(&run, |shard| match &done.result {
                Ok(()) => {
                    shard.durable(withheld);
                    shard.desk.trust(&run);
                }
                Err(refused) => shard.refused(withheld, refused),
            });
        }
    }

    /// Returns what must wait until a step is durable: all that follows from it, unless a promise is broken on purpose.
    pub(super) fn withhold(&mut self, run: &RunId, consequences: Vec<Consequence>) -> Vec<Consequence> {
        if !breakage::ENABLED {
            return consequences;
        }
        let early = |consequence: &Consequence| match consequence {
            Consequence::Accepted(..)
            | Consequence::Migrated(..)
            | Consequence::Started(..)
            | Consequence::Receipt(..) => breaks(Breakage::AnswerEarly),
            Consequence::Deliver(_) => breaks(Breakage::HandOutEarly),
            Consequence::Frames(_) => breaks(Breakage::ShowEarly),
            Consequence::Acknowledge(..) => breaks(Breakage::AcknowledgeNewsEarly),
            Consequence::Offer(..)
            | Consequence::Close(_)
            | Consequence::Unhand(..)
            | Consequence::Changed(_)
            | Consequence::Look(..)
            | Consequence::Unread(..)
            | Consequence::Subscribe(..)
            | Consequence::OfferAgain(_)
            | Consequence::Settle(..)
            | Consequence::Gone(_)
            | Consequence::Delete(_)
            | Consequence::Send(_) => false,
            Consequence::Deleted(_) => breaks(Breakage::AnswerEarly),
        };
        let (let_go, withheld): (Vec<_>, Vec<_>) = consequences.into_iter().partition(early);
        for consequence in let_go {
            self.perform(run, consequence);
        }
        withheld
    }

    fn durable(&mut self, withheld: Withheld) {
        let Withheld { run, head, consequences, .. } = withheld;
        let _span = tracing::info_span!("durable", run = %run).entered();
        tracing::debug!("a step is on the disk");
        if let Some(live) = self.live.get_mut(&run)
            && Arc::ptr_eq(&live.head, &head)
        {
            live.pending = live.pending.saturating_sub(1);
            live.input = None;
        }
        self.starting.remove(&run.as_str().to_ascii_lowercase());
        for consequence in consequences {
            self.perform(&run, consequence);
        }
    }

    /// Forgets a run's state, which is ahead of a disk that will not follow; it is read again when it is needed.
    fn refused(&mut self, withheld: Withheld, refused: &Refused) {
        let Withheld { run, head, deletes, consequences, .. } = withheld;
        if deletes {
            // The run stays as it is, on the disk and here.
            return consequences
                .into_iter()
                .for_each(|consequence| self.take_back(&run, consequence, refused));
        }
        let now = self.ctx.clock.now();
        self.starting.remove(&run.as_str().to_ascii_lowercase());
        if self.live.get(&run).is_some_and(|live| Arc::ptr_eq(&live.head, &head)) {
            self.live.remove(&run);
        }
        self.reports.forget(&run);
        match refused {
            Refused::Full(_) => {
                let again = now.plus(limits::FULL_RETRY_MS);
                self.full_until = Some(again);
                self.revive.insert(run.clone());
                self.timers.note(again, &run);
            }
            Refused::Invalid(why) => {
                self.break_run(&run, why);
            }
            Refused::Failed(_) => {}
        }
        for consequence in consequences {
            self.take_back(&run, consequence, refused);
        }
    }

    /// Does what was withheld. Whoever waits for an answer may be gone; that changes nothing.
    pub(super) fn perform(&mut self, run: &RunId, consequence: Consequence) {
        let now = self.ctx.clock.now();
        match consequence {
            Consequence::Offer(work, lane) => self.ctx.dispatch.offer(work, lane, false),
            Consequence::Close(work) => {
                self.ctx.dispatch.close(&work, now);
                self.watchers.closed(run, work.op);
            }
            Consequence::Unhand(work, attempt) => {
                self.ctx.dispatch.unhand(&work, attempt);
            }
            Consequence::Frames(frames) => self.watchers.send(run, &frames),
            Consequence::Changed(motion) => self.watchers.tell_changed(run, motion),
            Consequence::Accepted(reply, answer) => drop(reply.send(answer)),
            Consequence::Migrated(reply, answer) => drop(reply.send(answer)),
            Consequence::Started(reply, answer) => drop(reply.send(*answer)),
            Consequence::Look(reply, look) => drop(reply.send(Ok(*look))),
            Consequence::Unread(reply, answer) => drop(reply.send(answer)),
            Consequence::Receipt(reply, status) => drop(reply.send(Ok(status))),
            Consequence::Deliver(delivery) => self.deliver(*delivery),
            Consequence::Subscribe(reply, subscribe) => self.subscribed(run, reply, *subscribe),
            Consequence::OfferAgain(work) => self.offer_again(&work, now),
            Consequence::Settle(work, attempt) => self.settle(&work, attempt, now),
            Consequence::Gone(_) => {}
            Consequence::Delete(reply) => self.delete(run, reply),
            Consequence::Deleted(reply) => self.deleted(run, reply),
            Consequence::Send(op) => self.send(run, op),
            Consequence::Acknowledge(sender, input) => {
                self.ctx.post.send(sender.run.clone(), Message::Receipt(sender.run, input));
            }
        }
    }

    /// Says that something withheld will not be.
    fn take_back(&mut self, run: &RunId, consequence: Consequence, refused: &Refused) {
        let error = errors::refused(refused).of_run(run);
        match consequence {
            Consequence::Offer(..)
            | Consequence::Close(_)
            | Consequence::Unhand(..)
            | Consequence::Frames(_)
            | Consequence::Changed(_)
            | Consequence::OfferAgain(_)
            | Consequence::Settle(..)
            | Consequence::Send(_) => {}
            Consequence::Gone(gone) => self.unkept.entry(run.clone()).or_default().push(gone),
            Consequence::Acknowledge(sender, _) => {
                self.ctx.post.send(sender.run.clone(), Message::Undelivered(sender));
            }
            Consequence::Accepted(reply, _) => drop(reply.send(Err(error))),
            Consequence::Delete(reply) | Consequence::Deleted(reply) => self.not_deleted(run, reply, error),
            Consequence::Migrated(reply, _) => drop(reply.send(Err(error))),
            Consequence::Started(reply, _) => drop(reply.send(Err(error))),
            Consequence::Look(reply, _) => drop(reply.send(Err(error))),
            Consequence::Unread(reply, _) => drop(reply.send(Err(error))),
            Consequence::Subscribe(reply, _) => drop(reply.send(Err(error))),
            Consequence::Receipt(reply, _) => drop(reply.send(Ok(ReceiptStatus::Retry))),
            Consequence::Deliver(delivery) => {
                self.ctx.dispatch.uncome(&delivery.work, true);
                drop(delivery.reply.send(Ok(None)));
            }
        }
    }

    /// Gives a task to its worker. If nobody is there to take it, it was never handed out.
    fn deliver(&mut self, delivery: Delivery) {
        let Delivery { work, task, in_hand, begun, reply } = delivery;
        let (attempt, lane, now) = (in_hand.attempt, in_hand.lane.clone(), in_hand.named_at);
        if self.ctx.dispatch.hand(&work, in_hand).is_some() {
            if reply.send(Ok(Some(task))).is_ok() {
                self.ctx.counters.handed_out(&work, attempt, &lane, now);
                tracing::debug!(run = %work.run, op = %work.op, %attempt, activity = lane.activity, "handed out");
                return;
            }
            self.ctx.dispatch.unhand(&work, attempt);
        } else {
            drop(reply.send(Ok(None)));
        }
        if begun {
            self.todo.push_back(Message::Void(work, attempt));
        } else {
            self.ctx.dispatch.put_back(work, lane);
        }
    }

    fn subscribed(&mut self, run: &RunId, reply: Reply<Subscription>, subscribe: Subscribe) {
        let Subscribe { after, current, ended } = subscribe;
        // Nothing comes after the end: the watcher gets a channel that is closed.
        let (frames, partials) =
            if ended { (mpsc::channel(1).1, Vec::new()) } else { self.watchers.subscribe(run) };
        drop(reply.send(Ok(Subscription { after, current, partials, frames, ended })));
    }
}
