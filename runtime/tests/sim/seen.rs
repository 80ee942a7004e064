//! What was promised and seen so far, and must stay true: acknowledgements, histories, results, keys, effects.
//!
//! Invariant: facts are only added; each check compares what there is now with what was seen before.

use std::collections::{BTreeMap, BTreeSet};

use outlast_protocol::run::Frame;
use outlast_protocol::worker::Task;
use serde_json::{Value as Json, json};

use crate::copies::nobodys;

/// What went wrong, in words; `Ok` if nothing did.
pub(crate) type Verdict = Result<(), String>;

/// Fails with a text unless a condition holds.
pub(crate) fn demand(holds: bool, text: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(text()) }
}

/// Something that was done outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Effect {
    pub(crate) run: String,
    pub(crate) op: String,
    pub(crate) activity: String,
    pub(crate) x: Json,
}

type OpKey = (String, String);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Runs whose start was acknowledged.
    pub(crate) started: BTreeSet<String>,
    /// Runs whose cancel was acknowledged.
    pub(crate) cancelled: BTreeSet<String>,
    /// The longest history that was read of each run.
    pub(crate) histories: BTreeMap<String, Vec<Json>>,
    /// How runs ended.
    pub(crate) outcomes: BTreeMap<String, Json>,
    /// Events that were acknowledged: run, number, kind.
    acknowledged: Vec<(String, u64, &'static str)>,
    /// What streams showed, by run and id.
    shown: BTreeMap<(String, String), Frame>,
    /// Operations whose result was acknowledged.
    done: BTreeSet<OpKey>,
    /// The idempotency key of each operation.
    keys: BTreeMap<OpKey, String>,
    pub(crate) effects: Vec<Effect>,
    /// What each fork shares with its parent.
    shared: BTreeMap<String, Vec<Json>>,
    /// Runs whose deletion was acknowledged.
    pub(crate) deleted: BTreeSet<String>,
    /// Runs whose deletion was asked for.
    pub(crate) perhaps_deleted: BTreeSet<String>,
}

impl Seen {
    pub(crate) fn acknowledge(&mut self, run: &str, n: u64, kind: &'static str) {
        self.acknowledged.push((run.to_owned(), n, kind));
    }

    /// Whether a run is deleted, or may be.
    pub(crate) fn is_gone(&self, run: &str) -> bool {
        self.perhaps_deleted.contains(run)
    }

    /// A run was forked, and shares these events with its parent for ever.
    pub(crate) fn forked(&mut self, run: &str, events: Vec<Json>) -> Verdict {
        let events: Vec<Json> = events.iter().map(nobodys).collect();
        let known = self.shared.entry(run.to_owned()).or_insert_with(|| events.clone());
        demand(*known == events, || format!("{run} shares {known:?} with its parent, which has {events:?}"))
    }

    /// A stream showed something of an event, which therefore is there for ever.
    pub(crate) fn shown(&mut self, run: &str, frame: Frame) {
        if let Some(id) = frame.id.clone() {
            self.shown.insert((run.to_owned(), id), frame);
        }
    }

    /// All that streams showed of a run is what a stream shows at the end.
    pub(crate) fn check_shown(&self, run: &str, frames: &[Frame]) -> Verdict {
        for ((_, id), frame) in self.shown.iter().filter(|((of, _), _)| of == run) {
            demand(frames.contains(frame), || {
                let now = frames.iter().find(|other| other.id.as_ref() == Some(id));
                format!("a stream showed {frame:?} of {run}, which is {now:?}")
            })?;
        }
        Ok(())
    }

    pub(crate) fn is_done(&mut self, task: &Task) {
        if task.activity != "paid" {
            self.done.insert((task.run.clone(), task.op.clone()));
        }
    }

    /// An attempt is handed out: not of what is done, and under the key of its operation.
    pub(crate) fn handed_out(&mut self, task: &Task) -> Verdict {
        let op = (task.run.clone(), task.op.clone());
        demand(!self.done.contains(&op), || format!("{op:?} is handed out after its result was recorded"))?;
        if task.activity == "paid" {
            return Ok(());
        }
        let key = self.keys.entry(op.clone()).or_insert_with(|| task.key.clone());
        demand(*key == task.key, || format!("{op:?} had the key {key} and has {}", task.key))?;
        let others = self.keys.iter().filter(|(other, key)| **other != op && **key == task.key);
        demand(others.count() == 0, || format!("the key of {op:?} is that of another operation"))
    }

    /// An attempt is carried out: what must not be repeated is not.
    pub(crate) fn carried_out(&mut self, task: &Task) -> Verdict {
        let effect = Effect {
            run: task.run.clone(),
            op: task.op.clone(),
            activity: task.activity.clone(),
            x: task.input["x"].clone(),
        };
        let again = task.effect == "once" && self.effects.contains(&effect);
        self.effects.push(effect);
        demand(!again, || format!("{} {} {} was done twice", task.run, task.op, task.activity))
    }

    /// A history was read: it goes on from what was read before.
    pub(crate) fn read(&mut self, run: &str, events: Vec<Json>) -> Verdict {
        let before = self.histories.entry(run.to_owned()).or_default();
        let kept = events.len() >= before.len() && events.starts_with(before);
        demand(kept, || format!("the history of {run} was {before:?} and is {events:?}"))?;
        *before = events;
        let shared = self.shared.get(run).map(Vec::as_slice).unwrap_or_default();
        let is_shared = before.iter().map(nobodys).take(shared.len()).eq(shared.iter().cloned());
        demand(is_shared, || format!("{run} shared {shared:?} with its parent and has {before:?}"))?;
        demand(!self.deleted.contains(run), || format!("{run} was deleted and is there"))?;
        let early = before
            .iter()
            .find(|event| event["kind"] == "timer_fired" && event["due"].as_str() > event["time"].as_str());
        demand(early.is_none(), || format!("a timer of {run} fired before it was due: {early:?}"))?;
        let last = before.last().and_then(|event| event["n"].as_u64());
        let shown = self.shown.keys().filter(|(of, _)| of == run).filter_map(|(_, id)| event_of(id)).max();
        demand(shown <= last, || format!("a stream showed event {shown:?} of {run}, which has {last:?}"))
    }

    /// An outcome was read: it is the one that was read before, and what was cancelled did not succeed.
    pub(crate) fn ended(&mut self, run: &str, outcome: Json) -> Verdict {
        let first = self.outcomes.entry(run.to_owned()).or_insert_with(|| outcome.clone());
        demand(*first == outcome, || format!("{run} had ended with {first} and now with {outcome}"))?;
        let succeeded = self.cancelled.contains(run) && outcome["kind"] == "done";
        demand(!succeeded, || format!("{run} was cancelled and is done"))
    }

    /// All that was acknowledged is in the histories; each child was spawned once.
    pub(crate) fn check_histories(&self) -> Verdict {
        for run in &self.started {
            demand(self.histories.contains_key(run), || format!("the start of {run} is lost"))?;
        }
        for (run, n, kind) in &self.acknowledged {
            let events = self.histories.get(run).map(Vec::as_slice).unwrap_or_default();
            // A mailbox is closed once, and a run cancelled once: when it is done again, the answer is where the run stands.
            let once = ["closed", "cancelled"].contains(kind);
            let fits = |at: u64| at == *n || (once && at < *n);
            let found =
                events.iter().any(|event| event["kind"] == *kind && event["n"].as_u64().is_some_and(fits));
            demand(found, || {
                format!("event {n} of {run}, {kind}, was acknowledged and is lost: {events:?}")
            })?;
        }
        for (run, op) in &self.done {
            let events = self.histories.get(run).map(Vec::as_slice).unwrap_or_default();
            let count = events.iter().filter(|event| event["kind"] == "done" && event["op"] == **op).count();
            demand(count == 1, || {
                format!("{count} results of {op} of {run} where one was acknowledged: {events:?}")
            })?;
        }
        let spawned = self.histories.values().flatten().filter(|event| event["kind"] == "spawned");
        let children: Vec<&str> = spawned.filter_map(|event| event["child"].as_str()).collect();
        let distinct: BTreeSet<&str> = children.iter().copied().collect();
        demand(children.len() == distinct.len(), || format!("a child was spawned twice: {children:?}"))?;
        let missing = distinct.iter().find(|child| !self.histories.contains_key(**child));
        demand(missing.is_none(), || format!("{missing:?} was spawned and is not there"))
    }

    /// What a talk heard is what was accepted, in that order, up to what it left unread.
    pub(crate) fn check_talk(&self, run: &str) -> Verdict {
        let (Some(events), Some(outcome)) = (self.histories.get(run), self.outcomes.get(run)) else {
            return Ok(());
        };
        let said = events.iter().filter(|event| event["kind"] == "message" && event["type"] == "Say");
        let said: Vec<&str> = said.filter_map(|event| event["value"]["text"].as_str()).collect();
        let heard = outcome["value"].as_str().unwrap_or_default();
        let heard: Vec<&str> = heard.split_whitespace().collect();
        let fits = outcome["kind"] != "done" || said.starts_with(&heard);
        demand(fits, || format!("{run} was told {said:?} and heard {heard:?}"))
    }

    /// What a trip booked is undone, the last first.
    pub(crate) fn check_trip(&self, run: &str) -> Verdict {
        let of_run = |name: &str| -> Vec<&Json> {
            let all = self.effects.iter().filter(|effect| effect.run == run && effect.activity == name);
            let mut xs: Vec<&Json> = all.map(|effect| &effect.x).collect();
            xs.dedup();
            xs
        };
        let (booked, mut undone) = (of_run("book"), of_run("unbook"));
        let missing: Vec<&&Json> = booked.iter().filter(|x| !undone.contains(x)).collect();
        demand(missing.is_empty(), || format!("{run} booked {booked:?} and undid {undone:?}"))?;
        undone.reverse();
        let order: Vec<&Json> = undone.iter().filter(|x| booked.contains(x)).copied().collect();
        let first_of_each: BTreeSet<String> = booked.iter().map(ToString::to_string).collect();
        let ordered =
            order.len() != first_of_each.len() || order == booked || booked.len() != first_of_each.len();
        demand(ordered, || format!("{run} booked {booked:?} and undid, backwards, {order:?}"))
    }

    /// All that was seen, without times: the same deeds give the same.
    pub(crate) fn digest(&self) -> String {
        let timeless = |event: &Json| {
            let mut event = event.clone();
            if let Some(fields) = event.as_object_mut() {
                fields.remove("time");
            }
            event
        };
        let histories: BTreeMap<&String, Vec<Json>> =
            self.histories.iter().map(|(run, events)| (run, events.iter().map(timeless).collect())).collect();
        json!({ "histories": histories, "outcomes": self.outcomes }).to_string()
    }
}

/// The number of the event that a frame's id names, `RUN/n.k`.
fn event_of(id: &str) -> Option<u64> {
    id.rsplit_once('/')?.1.split_once('.')?.0.parse().ok()
}
