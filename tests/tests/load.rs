//! Two hundred clients at once, whose connections break at any byte, and a runtime that is killed again and again: what was accepted is found
//! afterwards, once.
//!
//! `OUTLAST_LOAD_SECONDS` says for how long. Leaves single broken requests to `requests.rs`, and workers that die to `kills.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use outlast_tests::process::{Process, until};
use outlast_tests::random::Random;
use outlast_tests::socket::{Answer, request};
use outlast_tests::world::World;
use serde_json::{Value, json};

const CLIENTS: u64 = 200;

/// Orders of one run. A process that lives for a second has to get further than reading back what it finds.
const ORDERS_MAX: usize = 20;

/// For how long the clients go on.
fn duration() -> Duration {
    let seconds = std::env::var("OUTLAST_LOAD_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(5))
}

/// Whether a runtime listens: two hundred clients that knock at a closed door would leave no processor to the one who opens it.
#[derive(Debug, Default)]
struct Door {
    is_open: Mutex<bool>,
    changed: Condvar,
    /// How many orders were accepted in all.
    orders: AtomicU64,
}

impl Door {
    fn set(&self, is_open: bool) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = is_open;
        self.changed.notify_all();
    }

    /// Waits until it is open.
    fn wait(&self) {
        let closed = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(closed, |is_open| !*is_open));
    }
}

/// Somebody with a run of their own, and another one after that.
struct Client<'w> {
    world: &'w World,
    door: &'w Door,
    number: u64,
    /// How many runs have ended.
    ended: usize,
    run: String,
    random: Random,
    /// The orders of the run that were accepted and not refused by the clerk, in their order.
    taken: Vec<String>,
    /// The orders of the run that the clerk refused.
    refused: Vec<String>,
    /// The orders that were taken by runs that have ended.
    settled: Vec<String>,
    /// How many connections broke.
    cuts: u64,
}

impl<'w> Client<'w> {
    fn new((world, door): (&'w World, &'w Door), number: u64, seed: u64) -> Client<'w> {
        let random = Random::of(seed ^ (number << 32));
        let (taken, refused, settled) = (Vec::new(), Vec::new(), Vec::new());
        let run = String::new();
        Client { world, door, number, ended: 0, run, random, taken, refused, settled, cuts: 0 }
    }

    /// Orders, one after the other, until it is told to stop.
    fn go(&mut self, stop: &AtomicBool) {
        self.begin();
        while !stop.load(Ordering::Relaxed) {
            match self.random.below(12) {
                0 => self.watch_and_leave(),
                1 => self.babble(),
                _ => self.order(),
            }
            if self.taken.len() + self.refused.len() >= ORDERS_MAX {
                self.settle();
                self.begin();
            }
        }
    }

    fn begin(&mut self) {
        self.run = format!("c{}-{}", self.number, self.ended);
        let start = json!({"flow": "Collected", "id": self.run, "input": {}});
        self.insist("/v1/runs", &start);
    }

    fn order(&mut self) {
        let id = format!("{}-{}", self.run, self.taken.len() + self.refused.len());
        let asked = self.random.below(4) == 0;
        let message = json!({"type": "Order", "id": id, "value": {"id": id, "asked": asked}});
        self.insist(&format!("/v1/runs/{}/messages?wait=handled", self.run), &message);
        self.door.orders.fetch_add(1, Ordering::Relaxed);
        if !asked {
            return self.taken.push(id);
        }
        let says = if self.random.below(3) == 0 { "reject" } else { "approve" };
        let question = self.question();
        let answer = json!({"question": question["id"], "shown": question["shown"], "choice": says});
        self.insist(&format!("/v1/runs/{}/answers", self.run), &answer);
        if says == "reject" { self.refused.push(id) } else { self.taken.push(id) }
    }

    /// The question about the order that was handled last.
    fn question(&self) -> Value {
        let path = format!("/v1/runs/{}", self.run);
        let mut found = Value::Null;
        until("the question", || {
            // The result of a run that asks is that it asks: it comes as soon as it does.
            let _it_asks = self.get(&format!("{path}/result?wait=10s"));
            found = self.get(&path).map(|run| run["questions"][0].clone()).unwrap_or_default();
            found.is_object()
        });
        found
    }

    fn get(&self, path: &str) -> Option<Value> {
        self.door.wait();
        let answer = request(&self.world.socket(), "GET", path, &[], b"").ok()?;
        (answer.status == 200).then_some(answer.body)
    }

    /// Sends the same request until it is accepted; before, now and then, once or twice over a connection that breaks.
    fn insist(&mut self, path: &str, body: &Value) {
        while self.random.below(3) == 0 {
            self.send_and_leave(path, body);
        }
        let mut answer = None;
        until(path, || {
            self.door.wait();
            answer = self.world.try_post(path, body).ok().filter(|answer| !is_worth_repeating(answer));
            answer.is_some()
        });
        let answer = answer.unwrap();
        // An answer that got lost had been taken.
        let decided = answer.status == 409 && answer.body["error"]["code"] == "already_decided";
        assert!((200..300).contains(&answer.status) || decided, "{path} {body}: {answer:?}");
    }

    /// Sends a request, or a part of it, and does not stay for the answer.
    fn send_and_leave(&mut self, path: &str, body: &Value) {
        self.cuts += 1;
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
        let whole = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        // One in two is whole.
        let length = (self.random.below(2 * whole.len() as u64) as usize).min(whole.len());
        if let Ok(mut stream) = UnixStream::connect(self.world.socket()) {
            let _gone = stream.write_all(&whole.as_bytes()[..length]);
        }
    }

    fn watch_and_leave(&mut self) {
        self.cuts += 1;
        if let Ok(mut stream) = UnixStream::connect(self.world.socket()) {
            let head = format!("GET /v1/runs/{}/stream HTTP/1.1\r\nhost: localhost\r\n\r\n", self.run);
            let _gone = stream.write_all(head.as_bytes());
        }
    }

    fn babble(&mut self) {
        if let Ok(mut stream) = UnixStream::connect(self.world.socket()) {
            let _gone = stream.write_all(&self.random.number().to_be_bytes());
        }
    }

    /// Ends the run and compares what it has taken with what was accepted.
    fn settle(&mut self) {
        let closed = json!({"type": "closed", "id": format!("{}-closed", self.run)});
        self.insist(&format!("/v1/runs/{}/messages", self.run), &closed);
        let path = format!("/v1/runs/{}", self.run);
        let mut outcome = Value::Null;
        until("the end", || {
            let _it_ends = self.get(&format!("{path}/result?wait=10s"));
            outcome = self.get(&path).map(|run| run["outcome"].clone()).unwrap_or_default();
            outcome.is_object()
        });
        assert_eq!(outcome["kind"], "done", "{}: {outcome}", self.run);
        assert_eq!(outcome["value"]["orders"], json!(self.taken), "{}", self.run);
        assert_eq!(outcome["value"]["refused"], json!(self.refused), "{}", self.run);
        self.settled.append(&mut self.taken);
        self.refused.clear();
        self.ended += 1;
    }
}

/// Tells whether a server that was too busy, or on its way up or down, said so.
fn is_worth_repeating(answer: &Answer) -> bool {
    matches!(answer.status, 429 | 503)
}

/// Lets a server live: now and then for a moment, else until it has accepted some more orders, however long its start took.
fn live(server: &mut Process, door: &Door, random: &mut Random) {
    if random.below(4) == 0 {
        server.work_for(Duration::from_millis(random.below(1_500)));
        return;
    }
    let enough = door.orders.load(Ordering::Relaxed) + 1 + random.below(3 * CLIENTS);
    while door.orders.load(Ordering::Relaxed) < enough && server.work_for(Duration::from_millis(10)) {}
}

#[test]
fn what_was_accepted_is_found_once_whatever_breaks() {
    let mut random = Random::from_environment(6);
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/collected.flow"]);
    let _workers = [world.worker("one", 32), world.worker("two", 32)];
    let door = Door::default();
    door.set(true);
    let seed = random.number();
    let mut clients: Vec<Client> =
        (0..CLIENTS).map(|number| Client::new((&world, &door), number, seed)).collect();
    let stop = AtomicBool::new(false);
    let mut kills = 0;
    std::thread::scope(|scope| {
        let clients: Vec<_> = clients.iter_mut().map(|client| scope.spawn(|| client.go(&stop))).collect();
        let end = Instant::now() + duration();
        // A client that has ended has found something.
        while Instant::now() < end && !clients.iter().any(ScopedJoinHandle::is_finished) {
            live(&mut server, &door, &mut random);
            door.set(false);
            server.murder();
            kills += 1;
            server = world.host(&["--no-workers"]);
            door.set(true);
        }
        stop.store(true, Ordering::Relaxed);
    });
    clients.iter_mut().for_each(Client::settle);
    let taken: usize = clients.iter().map(|client| client.settled.len()).sum();
    let (cuts, ended) =
        clients.iter().fold((0, 0), |(cuts, ended), client| (cuts + client.cuts, ended + client.ended));
    println!("{taken} orders in {ended} runs, {cuts} broken connections, {kills} kills");
    let ledger = world.ledger();
    let keys: BTreeSet<&str> = ledger.iter().map(|line| line.key.as_str()).collect();
    assert_eq!((ledger.len(), keys.len()), (taken, taken), "each order that was taken left its one line");
    let names: BTreeSet<&str> = ledger.iter().map(|line| line.name.as_str()).collect();
    let expected: BTreeSet<&str> =
        clients.iter().flat_map(|client| &client.settled).map(String::as_str).collect();
    assert_eq!(names, expected);
    drop(server);
}
