//! The driver over pipes: requests on stdin, one to a line; answers and notifications on stdout, and nothing else.
//!
//! Leaves the methods to the server, which is asked over its socket whether it is in this process or another one; following runs is
//! done here, because only pipes carry notifications. Invariant: calls that may change something are made in the order in which they
//! came, and what comes after one sees what it did; whoever waits holds up nobody else. The end of the input ends no run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use outlast_kernel::Json;
use outlast_protocol::{ApiError, Code};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::{JoinSet, LocalSet};

use super::out::Out;
use super::watches::Watches;
use super::{Parsed, Request, RpcError, answer, methods, parse, refusal};
use crate::client::ClientError;
use crate::fresh;
use crate::host::{Session, SessionError};
use crate::limits::{RPC_LEAVE_MS_MAX, RPC_LINE_BYTES_MAX, RPC_LINES_MAX, RPC_REQUESTS_MAX};
use crate::lines::{self, Line};

/// In which environment runs are started that name none.
#[derive(Clone, Debug, Default)]
pub struct Profiles {
    /// Of flows that have one of their own.
    pub of_flow: BTreeMap<String, String>,
    /// Of all others.
    pub own: String,
}

/// Why the driver is left.
#[derive(Debug)]
pub enum Left {
    /// The input ended.
    InputClosed,
    /// Nobody reads the answers any more, or they cannot be written.
    OutputClosed(io::Error),
}

/// Serves one client until its input ends or nobody reads its output.
///
/// # Errors
/// If there are no threads to read and write from.
pub async fn serve(
    session: Arc<Session>,
    profiles: Profiles,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<Left> {
    let (out, mut written) = Out::start(output)?;
    let (leave, leaving) = watch::channel(false);
    let (sender, read) = mpsc::channel(RPC_LINES_MAX);
    let reading = move || read_lines(input, &sender, &leave);
    std::thread::Builder::new().name("requests".to_owned()).spawn(reading)?;
    let desk = Rc::new(Desk {
        session,
        profiles,
        out,
        room: Arc::new(Semaphore::new(RPC_REQUESTS_MAX)),
        watches: Watches::default(),
        tasks: RefCell::new(JoinSet::new()),
    });
    let local = LocalSet::new();
    let left = local
        .run_until(async {
            tokio::select! {
                () = Rc::clone(&desk).work(read, leaving) => None,
                written = &mut written => Some(written),
            }
        })
        .await;
    // All clones of the output go with the tasks; then the writer ends by itself.
    drop((local, desk));
    let written = match left {
        Some(written) => written,
        None => match tokio::time::timeout(Duration::from_millis(RPC_LEAVE_MS_MAX), written).await {
            Ok(written) => written,
            Err(_) => return Ok(Left::InputClosed),
        },
    };
    match written {
        Ok(Err(error)) => Ok(Left::OutputClosed(error)),
        Ok(Ok(())) | Err(_) => Ok(Left::InputClosed),
    }
}

/// What all tasks of one client share.
struct Desk {
    session: Arc<Session>,
    profiles: Profiles,
    out: Out,
    /// Requests that may be in hand.
    room: Arc<Semaphore>,
    watches: Watches,
    tasks: RefCell<JoinSet<()>>,
}

/// A request on its way.
struct Work {
    request: Request,
    reply: oneshot::Sender<Reply>,
    _room: OwnedSemaphorePermit,
}

/// An answer, and what may begin once it was sent.
#[derive(Default)]
struct Reply {
    answer: Option<Json>,
    then: Option<oneshot::Sender<()>>,
}

impl Desk {
    /// Reads and answers until the input ends; then waits for what is in hand, for a moment.
    async fn work(self: Rc<Desk>, mut read: mpsc::Receiver<Line>, leaving: watch::Receiver<bool>) {
        let (lane, works) = mpsc::channel(RPC_REQUESTS_MAX);
        self.spawn(Rc::clone(&self).in_order(works, leaving.clone()));
        let answering = async {
            while let Some(line) = read.recv().await {
                self.line(line, &lane).await;
            }
            drop(lane);
            // Whoever has room for all requests knows that none is in hand.
            drop(self.room.acquire_many(RPC_REQUESTS_MAX as u32).await);
        };
        let late = async {
            left(leaving).await;
            tokio::time::sleep(Duration::from_millis(RPC_LEAVE_MS_MAX)).await;
        };
        tokio::select! {
            () = answering => {}
            () = late => {}
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(task);
    }

    async fn line(self: &Rc<Desk>, line: Line, lane: &mpsc::Sender<Work>) {
        let text = match line {
            Line::Text(text) if text.trim_ascii().is_empty() => return,
            Line::Text(text) => text,
            Line::TooLong => {
                let what = format!("the line is over {RPC_LINE_BYTES_MAX} bytes");
                return self.out.send(&refusal(ApiError::new(Code::TooLarge, what).into())).await;
            }
        };
        match parse(&text) {
            Parsed::One(request) => {
                let reply = self.begin(request, lane);
                match reply {
                    Err(answer) => self.out.send(&answer).await,
                    Ok(reply) => {
                        let out = self.out.clone();
                        self.spawn(async move { give(&out, reply.await.unwrap_or_default()).await });
                    }
                }
            }
            Parsed::Many(requests) => {
                let replies: Vec<_> = requests.into_iter().map(|request| self.begin(request, lane)).collect();
                let out = self.out.clone();
                self.spawn(async move { give_all(&out, replies).await });
            }
        }
    }

    /// Puts a request on its way, or returns its refusal.
    fn begin(
        &self,
        request: Result<Request, Json>,
        lane: &mpsc::Sender<Work>,
    ) -> Result<oneshot::Receiver<Reply>, Json> {
        let request = request?;
        let (reply, replied) = oneshot::channel();
        let id = request.id.clone();
        let room = Arc::clone(&self.room).try_acquire_owned();
        let full = || {
            let what = format!("{RPC_REQUESTS_MAX} requests are in hand");
            let error = ApiError::new(Code::Overloaded, what).hint("wait for an answer, then try again");
            answer(&id.unwrap_or_default(), Err(error.into()))
        };
        let Ok(_room) = room else { return Err(full()) };
        match lane.try_send(Work { request, reply, _room }) {
            Ok(()) => Ok(replied),
            Err(_) => Err(full()),
        }
    }

    /// Does what changes something in its order, and begins what only looks in between.
    async fn in_order(self: Rc<Desk>, mut works: mpsc::Receiver<Work>, leaving: watch::Receiver<bool>) {
        while let Some(work) = works.recv().await {
            let (desk, leaving) = (Rc::clone(&self), leaving.clone());
            let writes = methods::writes(&work.request.method, &work.request.params);
            let doing = async move {
                let Work { request, reply, _room } = work;
                let id = request.id.clone();
                let called = tokio::select! {
                    called = desk.call(request) => called,
                    () = left(leaving) => (Err(gone().into()), None),
                };
                let (result, then) = called;
                // The client may have gone.
                let _ = reply.send(Reply { answer: id.map(|id| answer(&id, result)), then });
            };
            if writes { doing.await } else { self.spawn(doing) }
        }
    }

    async fn call(
        self: &Rc<Desk>,
        request: Request,
    ) -> (Result<Json, RpcError>, Option<oneshot::Sender<()>>) {
        match request.method.as_str() {
            "runs.watch" => {
                let (begin, begun) = oneshot::channel();
                let watched = self.watches.watch(&self.session, &self.out, request.params, begun).await;
                match watched {
                    Ok((result, following)) => {
                        self.spawn(following);
                        (Ok(result), Some(begin))
                    }
                    Err(error) => (Err(error.into()), None),
                }
            }
            "runs.unwatch" => (self.watches.unwatch(request.params).map_err(RpcError::from), None),
            _ => (self.forward(request).await, None),
        }
    }

    /// Asks the server.
    async fn forward(&self, mut request: Request) -> Result<Json, RpcError> {
        // The server need not answer notifications, but we want to know when it has done them.
        request.id = Some(json!(1));
        self.complete(&mut request).map_err(RpcError::from)?;
        let json = request.json();
        match self.session.call(async |client| client.rpc(&json).await).await {
            Ok(result) => result,
            Err(SessionError::Call(ClientError::Refused(error))) => Err(error.into()),
            Err(error) => Err(ApiError::new(Code::NotReady, error.to_string()).into()),
        }
    }

    /// Adds what makes a request repeatable when the host is lost on the way, and the environment of new runs.
    fn complete(&self, request: &mut Request) -> Result<(), ApiError> {
        let has_id = request.params.get("id").is_some_and(|id| !id.is_null());
        if matches!(request.method.as_str(), "runs.start" | "runs.message" | "runs.fork") && !has_id {
            let cannot = |error| ApiError::new(Code::Internal, format!("no random numbers: {error}"));
            let id = fresh::id().map_err(cannot)?;
            request.params.insert("id".to_owned(), json!(id));
        }
        if request.method == "runs.start" && !request.params.contains_key("profile") {
            let flow = request.params.get("flow").and_then(Json::as_str).unwrap_or_default();
            let profile = self.profiles.of_flow.get(flow).unwrap_or(&self.profiles.own);
            request.params.insert("profile".to_owned(), json!(profile));
        }
        Ok(())
    }
}

/// Reads to the end of the input, in a thread of its own: it may be silent for ever.
fn read_lines(input: impl Read, lines: &mpsc::Sender<Line>, leave: &watch::Sender<bool>) {
    let mut reader = BufReader::new(input);
    while let Ok(Some(line)) = lines::read(&mut reader, RPC_LINE_BYTES_MAX, |_| {}) {
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
    leave.send_replace(true);
}

/// Waits until the input has ended and what is in hand had its time.
async fn left(mut leaving: watch::Receiver<bool>) {
    // The reader goes when the input has ended, and after it said so.
    let _ended = leaving.wait_for(|leaving| *leaving).await;
    tokio::time::sleep(Duration::from_millis(RPC_LEAVE_MS_MAX)).await;
}

fn gone() -> ApiError {
    ApiError::new(Code::NotReady, "the input has ended, so nothing is waited for any more")
        .hint("the run stays: ask again from anywhere")
}

async fn give(out: &Out, reply: Reply) {
    if let Some(answer) = &reply.answer {
        out.send(answer).await;
    }
    if let Some(then) = reply.then {
        // It may have been stopped already.
        let _ = then.send(());
    }
}

/// Gives the answers of a batch in one array.
async fn give_all(out: &Out, replies: Vec<Result<oneshot::Receiver<Reply>, Json>>) {
    let (mut answers, mut begins) = (Vec::new(), Vec::new());
    for reply in replies {
        match reply {
            Err(refusal) => answers.push(refusal),
            Ok(reply) => {
                let Reply { answer, then } = reply.await.unwrap_or_default();
                answers.extend(answer);
                begins.extend(then);
            }
        }
    }
    let answer = (!answers.is_empty()).then_some(Json::Array(answers));
    give(out, Reply { answer, then: None }).await;
    for begin in begins {
        let _ = begin.send(());
    }
}
