//! The loop of a batch: lines in, a bounded number of items at work, rows out, until nothing is left or it is time to leave.
//!
//! Invariant: what is held is bounded by the number of jobs, however long the input is; a signal is heard whatever else is waited for.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use outlast_runtime::batch::{Earlier, Item, Row};
use outlast_runtime::host::Session;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet, LocalSet};
use tokio::time::{Instant, sleep_until};

use super::item::{self, Ended, Parked, Plan};
use super::order::Order;
use super::progress::{Progress, Reached};
use super::sink::Sink;
use super::tally::Tally;
use super::{event, same_command};
use crate::failure::{Exit, Failure};
use crate::limits::ORDER_WINDOW_MIN;
use crate::out;
use crate::signals::Signals;

/// What a batch works with.
#[derive(Debug)]
pub(super) struct Drive {
    pub(super) session: Arc<Session>,
    pub(super) plan: Arc<Plan>,
    pub(super) jobs_max: usize,
    pub(super) ordered: bool,
    pub(super) deadline: Option<Duration>,
    pub(super) earlier: Earlier,
    pub(super) items: mpsc::Receiver<std::io::Result<Item>>,
    /// Where rows go.
    pub(super) results: Sink,
    /// Where events go.
    pub(super) events: Sink,
    pub(super) progress: Progress,
}

/// What the next turn of the loop is about.
enum Turn {
    Item(Option<std::io::Result<Item>>),
    Ended(Result<Job, JoinError>),
    Sent(Result<(), Failure>),
    Leave(Exit),
    EngineFailed(String),
    Tick,
}

type Job = Result<(u64, Ended), Failure>;

/// What changes while a batch is driven.
struct State<'a> {
    tally: &'a mut Tally,
    jobs: JoinSet<Job>,
    order: Order<Row>,
    reached: Reached,
    /// Whether all lines were read.
    all_read: bool,
    /// Items that only people could move, to be looked at again.
    again: VecDeque<Parked>,
    /// Whether anything ended since they were looked at.
    moved: bool,
    /// Whether everything else was worked on, so that what is at work now was told of before.
    is_last_look: bool,
    /// Whether events are wanted.
    tells: bool,
    /// Lines for the results and the events, in order.
    rows: VecDeque<String>,
    told: VecDeque<String>,
}

impl Drive {
    /// Works through the input.
    pub(super) async fn run(self, signals: Signals, tally: &mut Tally) -> Result<Exit, Failure> {
        // Items do little but wait, so one thread is enough for all of them.
        LocalSet::new().run_until(self.drive(signals, tally)).await
    }

    async fn drive(mut self, signals: Signals, tally: &mut Tally) -> Result<Exit, Failure> {
        let window = (self.jobs_max as u64 * 4).max(ORDER_WINDOW_MIN);
        let mut state = State {
            tally,
            jobs: JoinSet::new(),
            order: Order::new(self.ordered.then_some(window)),
            reached: Reached::default(),
            all_read: false,
            again: VecDeque::new(),
            moved: true,
            is_last_look: false,
            tells: self.events.is_open(),
            rows: VecDeque::new(),
            told: VecDeque::new(),
        };
        let ended = self.turns(signals, &mut state).await;
        // Runs whose items are dropped here stay, and the same command finds them.
        state.jobs.shutdown().await;
        let State { tally, .. } = state;
        match ended {
            Ok(None) => {
                self.results.close().await?;
                self.events.close().await?;
                out::status("");
                tally.tell(&same_command());
                Ok(tally.exit())
            }
            Ok(Some(exit)) => {
                self.leave(tally, exit).await;
                Ok(exit)
            }
            Err(failure) => {
                self.leave(tally, failure.exit()).await;
                Err(failure)
            }
        }
    }

    /// Writes what can be written at once, and says how to go on.
    async fn leave(&mut self, tally: &mut Tally, exit: Exit) {
        tally.stuck = !self.events.close_soon().await;
        self.results.close_soon().await;
        out::status("");
        out::say(&format!("{} lines: {}", tally.lines, tally.line()));
        match exit {
            Exit::Signal(_) | Exit::TimedOut | Exit::Unavailable | Exit::Failed => {
                out::say(&format!("its runs stay; to go on: {}", same_command()));
            }
            Exit::Done | Exit::Usage | Exit::Waiting | Exit::Cancelled | Exit::SomeFailed => {}
        }
    }

    /// Turns until nothing is left (none), or there is a reason to leave.
    async fn turns(&mut self, mut signals: Signals, state: &mut State<'_>) -> Result<Option<Exit>, Failure> {
        let session = Arc::clone(&self.session);
        let mut failed = pin!(session.failed());
        let deadline = self.deadline.and_then(|time| Instant::now().checked_add(time));
        let mut over = pin!(at(deadline));
        loop {
            self.begin_again(state);
            if state.is_over() {
                return Ok(None);
            }
            let free = state.jobs.len() < self.jobs_max && state.is_written();
            let reads = free && !state.all_read && state.order.has_room();
            let turn = tokio::select! {
                biased;
                exit = signals.next() => Turn::Leave(exit),
                () = &mut over => Turn::Leave(Exit::TimedOut),
                why = &mut failed => Turn::EngineFailed(why),
                () = self.progress.tick() => Turn::Tick,
                sent = self.results.send(&mut state.rows), if !state.rows.is_empty() => Turn::Sent(sent),
                sent = self.events.send(&mut state.told), if !state.told.is_empty() => Turn::Sent(sent),
                Some(ended) = state.jobs.join_next(), if state.is_written() => Turn::Ended(ended),
                item = self.items.recv(), if reads => Turn::Item(item),
            };
            match turn {
                Turn::Item(None) => state.all_read = true,
                Turn::Item(Some(item)) => {
                    let cannot =
                        |error| Failure::new(Exit::Failed, format!("cannot read the inputs: {error}"));
                    self.begin(item.map_err(cannot)?, state);
                }
                Turn::Ended(Ok(job)) => {
                    let (number, ended) = job?;
                    state.end(number, ended);
                }
                Turn::Ended(Err(error)) => {
                    return Err(Failure::new(Exit::Failed, format!("working on an item failed: {error}")));
                }
                Turn::Sent(sent) => sent?,
                Turn::Leave(exit) => return Ok(Some(exit)),
                Turn::EngineFailed(why) => return Err(Failure::new(Exit::Unavailable, why)),
                Turn::Tick => {
                    state.reached.running = state.jobs.len();
                    self.progress.show(state.tally, state.reached);
                }
            }
        }
    }

    /// Begins an item unless its row is there.
    fn begin(&self, item: Item, state: &mut State<'_>) {
        state.tally.lines += 1;
        (state.reached.bytes, state.reached.lines) = (item.end, item.line);
        if let Some(standing) = self.earlier.standing(&item.id) {
            state.tally.add_found(standing);
            return;
        }
        let number = state.order.begin();
        state.tell("begun", || json!({ "id": item.id, "line": item.line }));
        let (session, plan) = (Arc::clone(&self.session), Arc::clone(&self.plan));
        state.jobs.spawn_local(async move { Ok((number, item::work(session, plan, item).await?)) });
    }

    /// Looks again at items that only people could move, once nothing else is left: they may have been answered meanwhile.
    fn begin_again(&self, state: &mut State<'_>) {
        if state.all_read && state.jobs.is_empty() && state.again.is_empty() && state.moved {
            (state.moved, state.is_last_look) = (false, true);
            state.again = state.tally.take_parked().into();
        }
        while state.jobs.len() < self.jobs_max
            && let Some(parked) = state.again.pop_front()
        {
            let number = state.order.begin();
            let (session, plan) = (Arc::clone(&self.session), Arc::clone(&self.plan));
            state
                .jobs
                .spawn_local(async move { Ok((number, item::look_again(session, plan, parked).await?)) });
        }
    }
}

impl State<'_> {
    /// Whether all that ended was written, so that more may be taken.
    fn is_written(&self) -> bool {
        self.rows.is_empty() && self.told.is_empty()
    }

    fn is_over(&self) -> bool {
        self.all_read && self.jobs.is_empty() && self.again.is_empty() && !self.moved && self.is_written()
    }

    fn end(&mut self, number: u64, ended: Ended) {
        self.tally.before += u64::from(matches!(ended, Ended::Before(_)));
        let row = match ended {
            Ended::Row(row) | Ended::Before(row) => {
                self.moved = true;
                self.reached.ended += 1;
                if let Some(failure) = self.tally.add(&row) {
                    out::say(&failure);
                }
                Some(*row)
            }
            Ended::Parked(parked) => {
                let Parked { id, line, run, waiting } = &parked;
                if !self.is_last_look {
                    self.tell(
                        "waiting",
                        || json!({ "id": id, "line": line, "run": run, "waiting_for": waiting }),
                    );
                }
                self.tally.park(parked);
                None
            }
        };
        for row in self.order.end(number, row) {
            self.tell("result", || json!(row));
            self.rows.push_back(json_line(&row));
        }
    }

    fn tell(&mut self, kind: &str, fields: impl FnOnce() -> serde_json::Value) {
        if self.tells {
            self.told.push_back(event(kind, fields()));
        }
    }
}

fn json_line(row: &Row) -> String {
    serde_json::to_string(row).unwrap_or_default() + "\n"
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
