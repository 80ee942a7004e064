//! One call of a server's tool, from the task to its answer.
//!
//! Leaves the connection to the keeper. Invariant: a `once` call that was sent and whose end nobody saw is broken off, never answered
//! for; any other call that lost its connection is made again a stated number of times with the same key; nothing is sent for a
//! definition that is not the recorded one.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelTaskParams, ClientRequest, GetTaskParams, GetTaskRequest,
    RequestMetaObject, ServerResult, UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::{Map, json};

use super::answer;
use super::catalogue::Offered;
use super::connection::Connection;
use super::handler::Under;
use super::pages;
use super::questions::{Answers, Question, Wanted};
use super::server::{Server, Unavailable};
use crate::Json;
use crate::limits::{
    INPUT_ROUNDS_MAX, LOST_CALLS_MAX, MCP_LAST_WORDS, TASK_ID_BYTES_MAX, TASK_POLL_MAX, TASK_POLL_MIN,
};
use crate::sdk::{TaskContext, duration_text};

/// By this argument a model answers what a server asks a person.
const ANSWERS: &str = "_answers";

/// What is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The tool as models know it.
    pub(crate) tool: &'a str,
    pub(crate) args: &'a Map<String, Json>,
    /// What people have answered to its server's questions; none: the flow cannot ask them, so the model is told to.
    pub(crate) answers: Option<&'a [Json]>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    /// The server, or this program in its place, answers: the text, and whether it is a result.
    Answer(String, bool),
    /// The server asks a person something that nobody has answered; it was told so, and the call is over.
    Asks(Wanted),
    /// The tool is not what was recorded, and approved, any more. Nothing was sent.
    Stale(String),
    /// The attempt was asked to end.
    Stopped,
}

/// Makes the call.
pub(super) async fn run(server: &Server, task: &TaskContext, asked: Asked<'_>) -> Result<End, Unavailable> {
    let mut lost = 0;
    loop {
        let connection = server.connection().await?;
        let call = match prepare(&connection, task, asked).await {
            Ok(call) => call,
            Err(Wrong::End(end)) => return Ok(end),
            Err(Wrong::Unavailable(why)) => return Err(Unavailable::new(&server.config.name, why)),
        };
        let limit = server.config.call;
        match call.run(limit).await {
            Ok(end) => return Ok(end),
            Err(Broken::NotSent(why)) => return Err(Unavailable::new(&server.config.name, why)),
            Err(Broken::NoLogin(why)) => return Err(Unavailable::no_login(&server.config.name, why)),
            Err(Broken::Stopped) => return Ok(End::Stopped),
            Err(Broken::Doubt) => task.break_off().await,
            Err(Broken::Lost(why)) => {
                let story = connection.story().await;
                if task.task().effect == "once" {
                    tracing::warn!(
                        server = server.config.name,
                        why,
                        story,
                        "a call was lost: it is in doubt"
                    );
                    task.break_off::<()>().await;
                }
                if lost >= LOST_CALLS_MAX {
                    let text = format!("the server was lost while it worked on this{story} ({why})");
                    return Ok(End::Answer(text, false));
                }
                lost += 1;
            }
        }
    }
}

/// Takes the end of a call whose server may not have been there. One of class `once` that an earlier attempt has begun is broken off
/// then: its task may go on at the server, and the next attempt looks after it.
pub(super) async fn ended(task: &TaskContext, ended: Result<End, Unavailable>) -> Result<End, Unavailable> {
    match ended {
        Err(unavailable) if task.task().effect == "once" && task_left(task).is_some() => {
            tracing::warn!(%unavailable, "a task of a server cannot be looked after now");
            tokio::select! {
                () = tokio::time::sleep(unavailable.wait) => task.break_off().await,
                _ = task.cancelled() => Ok(End::Stopped),
            }
        }
        other => other,
    }
}

/// The task at the server that an earlier attempt has left.
fn task_left(task: &TaskContext) -> Option<&str> {
    task.handle()?["mcp_task"].as_str()
}

/// Why a call is not made.
enum Wrong {
    End(End),
    Unavailable(String),
}

/// A call that can be sent.
struct Call<'a> {
    connection: &'a Connection,
    begin: Begin,
    under: Under,
    /// Whether the flow asks people what the server wants to know.
    asks_people: bool,
}

/// With what a call begins.
enum Begin {
    /// It is sent.
    Call(CallToolRequestParams),
    /// An earlier attempt has sent it; the task of this id is looked after.
    Follow(String),
}

/// Finds the tool, and compares it with what the run has recorded. A call that is under way at the server is followed, whatever its
/// tool is now.
async fn prepare<'a>(
    connection: &'a Connection,
    task: &TaskContext,
    asked: Asked<'_>,
) -> Result<Call<'a>, Wrong> {
    let mut args = asked.args.clone();
    let of_model = args.remove(ANSWERS).filter(Json::is_object);
    let of_people = asked.answers.unwrap_or_default().iter().cloned();
    let under = Under::new(task.clone(), Answers::new(of_model.into_iter().chain(of_people)));
    let asks_people = asked.answers.is_some();
    if let Some(id) = task_left(task) {
        return Ok(Call { connection, begin: Begin::Follow(id.to_owned()), under, asks_people });
    }
    let recorded = task.task().definition.as_deref();
    let fits =
        |tool: &Offered| tool.name == asked.tool && recorded.is_none_or(|hash| hash == tool.definition());
    let mut listing = connection.listing().await.map_err(Wrong::Unavailable)?;
    if !listing.tools.iter().any(fits) {
        listing = connection.listing_now().await.map_err(Wrong::Unavailable)?;
    }
    let Some(tool) = listing.tools.iter().find(|tool| tool.name == asked.tool) else {
        let text = format!("the server has no tool {} any more", asked.tool);
        let stale = recorded.is_some();
        return Err(Wrong::End(if stale { End::Stale(text) } else { End::Answer(text, false) }));
    };
    if !fits(tool) {
        let text =
            format!("{} is not what was recorded: its description or its input has changed", asked.tool);
        return Err(Wrong::End(End::Stale(text)));
    }
    let params = CallToolRequestParams::new(tool.own_name.clone()).with_arguments(args);
    Ok(Call { connection, begin: Begin::Call(params), under, asks_people })
}

/// Why a call has no answer.
enum Broken {
    /// The server never got it.
    NotSent(String),
    /// The server did not take it: a person has to log in.
    NoLogin(String),
    /// Nobody knows how far it came.
    Lost(String),
    /// The attempt was asked to end, or ran out of time; the server was told.
    Stopped,
    /// It took longer than its entry allows, and must not be answered for.
    Doubt,
}

impl Broken {
    /// The same for a request that was not the first of its call: the server has something of it.
    fn of_begun(self) -> Broken {
        match self {
            Broken::NotSent(why) | Broken::NoLogin(why) => Broken::Lost(why),
            Broken::Lost(_) | Broken::Stopped | Broken::Doubt => self,
        }
    }
}

impl Call<'_> {
    async fn run(self, limit: Option<Duration>) -> Result<End, Broken> {
        let over = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(over);
        let ended = self.rounds(&mut over).await;
        let limit = duration_text(limit.unwrap_or_default());
        let (text, ok) = match ended {
            Ok(Ended::Answered(result)) => {
                let (text, ok) = answer::text_of(self.under.task.mask().json(result));
                (text.kept(&self.under.task).await, ok)
            }
            Ok(Ended::Error(text)) => (text, false),
            Ok(Ended::TooSlow) if self.under.task.task().effect == "once" => return Err(Broken::Doubt),
            Ok(Ended::TooSlow) => (format!("it took longer than {limit} and was told to stop"), false),
            Err(broken) => return Err(broken),
        };
        let refused = std::mem::take(&mut *self.under.refused.lock());
        if !refused.is_empty() {
            let refused = refused.join("; ");
            let note = format!(
                "[the server wants a person to open a page that nobody is shown: its address {refused}]"
            );
            return Ok(End::Answer(format!("{text}\n{note}"), false));
        }
        let unanswered = std::mem::take(&mut *self.under.unanswered.lock());
        if unanswered.is_empty() {
            return Ok(End::Answer(text, ok));
        }
        if self.asks_people {
            return Ok(End::Asks(Wanted::new(self.connection.server(), &unanswered, text)));
        }
        let asked: Vec<String> = unanswered.iter().map(Question::in_words).collect();
        let asked = asked.join("; ");
        let note = format!(
            "[the server asks a person: {asked}. It was told that nobody can answer during the call. Ask the person, then call \
             again with the same arguments and \"{ANSWERS}\": an object with these fields]"
        );
        Ok(End::Answer(format!("{text}\n{note}"), ok))
    }

    /// Sends the call, and again with what the server asks for in between.
    async fn rounds(&self, mut over: impl Future<Output = ()> + Unpin) -> Result<Ended, Broken> {
        let mut params = match &self.begin {
            Begin::Call(params) => params.clone(),
            Begin::Follow(id) => return self.follow(id, &mut over).await,
        };
        for round in 0..INPUT_ROUNDS_MAX {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            let sent = self.send(request, &mut over).await;
            let result = match sent.map_err(|broken| if round == 0 { broken } else { broken.of_begun() })? {
                Ok(result) => result,
                Err(end) => return Ok(end),
            };
            match result {
                ServerResult::CreateTaskResult(created) => {
                    return self.began(&created.task.task_id, &mut over).await;
                }
                ServerResult::InputRequiredResult(wanted) => {
                    params.input_responses = Some(self.responses(json!(wanted.input_requests)));
                    params.request_state = wanted.request_state;
                }
                ServerResult::CustomResult(answer) => return Ok(Ended::Answered(answer.0)),
                other => return Ok(Ended::Answered(serde_json::to_value(&other).unwrap_or_default())),
            }
        }
        Ok(Ended::Error("the server asks for more and more and does not answer".to_owned()))
    }

    /// Answers to what a server asks before it goes on.
    fn responses(&self, requests: Json) -> BTreeMap<String, Json> {
        let Json::Object(requests) = requests else { return BTreeMap::new() };
        let answer = |request: &Json| match request["method"].as_str() {
            Some("elicitation/create") => self.under.respond(&request["params"]),
            Some("roots/list") => json!({"roots": []}),
            Some(_) | None => json!({"action": "cancel"}),
        };
        requests.iter().map(|(name, request)| (name.clone(), answer(request))).collect()
    }

    /// Takes over a task that the server has begun.
    async fn began(&self, id: &str, over: impl Future<Output = ()> + Unpin) -> Result<Ended, Broken> {
        let broken = if id.len() > TASK_ID_BYTES_MAX {
            let text = format!("the id of the server's task is longer than {TASK_ID_BYTES_MAX} bytes");
            Broken::Lost(text)
        // Durable before anything is waited for: whoever comes after a crash looks after this task.
        } else if self.under.task.set_handle(json!({"mcp_task": id})).await.is_err() {
            Broken::Stopped
        } else {
            return self.follow(id, over).await;
        };
        self.give_up(id).await;
        Err(broken)
    }

    /// Looks after a task of the server until it ends; tells the server when nobody waits for it any more.
    async fn follow(&self, id: &str, over: impl Future<Output = ()> + Unpin) -> Result<Ended, Broken> {
        let ended = self.watch(id, over).await;
        if matches!(ended, Ok(Ended::TooSlow) | Err(Broken::Stopped)) {
            self.give_up(id).await;
        }
        ended.map_err(Broken::of_begun)
    }

    /// Tells the server to end a task. One that does not hear it may go on; the class of the call says what that means.
    async fn give_up(&self, id: &str) {
        let told = self.connection.peer().cancel_task(CancelTaskParams::new(id));
        let _unheard = tokio::time::timeout(MCP_LAST_WORDS, told).await;
    }

    async fn watch(&self, id: &str, mut over: impl Future<Output = ()> + Unpin) -> Result<Ended, Broken> {
        let mut shown = None;
        loop {
            let look = ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(id)));
            let result = match self.send(look, &mut over).await? {
                Ok(result) => json!(result),
                Err(end) => return Ok(end),
            };
            let said = result["statusMessage"].as_str().map(str::to_owned);
            if said != shown {
                self.under.progress(said.as_deref().unwrap_or_default());
                shown = said;
            }
            match result["status"].as_str() {
                Some("completed") => return Ok(Ended::Answered(result["result"].clone())),
                Some("cancelled") => return Ok(Ended::Error("the server has cancelled its task".to_owned())),
                Some("failed") => {
                    let why = result["error"]["message"].as_str().unwrap_or("it does not say why");
                    let text = format!("the server's task failed: {why}");
                    return Ok(Ended::Error(self.connection.shown(&text)));
                }
                Some("input_required") => {
                    let responses = self.responses(result["inputRequests"].clone());
                    let update = UpdateTaskRequest::new(UpdateTaskParams::new(id, responses));
                    let sent = self.send(ClientRequest::UpdateTaskRequest(update), &mut over).await?;
                    if let Err(end) = sent {
                        return Ok(end);
                    }
                }
                Some(_) | None => {}
            }
            let wait = result["pollIntervalMs"].as_u64().map_or(TASK_POLL_MIN, Duration::from_millis);
            tokio::select! {
                () = tokio::time::sleep(wait.clamp(TASK_POLL_MIN, TASK_POLL_MAX)) => {}
                _ = self.under.task.cancelled() => return Err(Broken::Stopped),
                () = &mut over => return Ok(Ended::TooSlow),
            }
        }
    }

    /// Sends one request and waits for its end; tells the server when nobody waits any more.
    async fn send(
        &self,
        request: ClientRequest,
        mut over: impl Future<Output = ()> + Unpin,
    ) -> Result<Result<ServerResult, Ended>, Broken> {
        let options = PeerRequestOptions::no_options().with_meta(self.meta());
        let handler = self.connection.handler();
        let mut under_way = handler.under_way().await;
        let sent = self.connection.peer().send_request_with_option(request, options).await;
        let mut handle = sent.map_err(|error| Broken::NotSent(self.connection.text_of(&error)))?;
        let token = handle.progress_token.clone();
        under_way.insert(token.clone(), self.under.clone());
        drop(under_way);
        let ended = tokio::select! {
            answer = &mut handle.rx => self.received(answer.unwrap_or(Err(ServiceError::TransportClosed))),
            _ = self.under.task.cancelled() => {
                tell(handle, "the call was cancelled").await;
                Err(Broken::Stopped)
            }
            () = &mut over => {
                tell(handle, "the call took too long").await;
                Ok(Err(Ended::TooSlow))
            }
        };
        handler.under_way().await.remove(&token);
        ended
    }

    fn received(
        &self,
        answer: Result<ServerResult, ServiceError>,
    ) -> Result<Result<ServerResult, Ended>, Broken> {
        let error = match answer {
            Ok(result) => return Ok(Ok(result)),
            Err(error) => error,
        };
        if let Some(why) = self.connection.wants_login(&error) {
            return Err(Broken::NoLogin(why));
        }
        let text = self.connection.text_of(&error);
        match &error {
            ServiceError::McpError(error) => {
                if error.code.0 == pages::NEEDED {
                    self.under.need(&pages::needed(error.data.as_ref()));
                }
                Ok(Err(Ended::Error(text)))
            }
            ServiceError::TransportSend(error) if refused_connection(error) => Err(Broken::NotSent(text)),
            _ => Err(Broken::Lost(text)),
        }
    }

    /// What a server is told of the call beside its arguments: by the key it can know one that it has seen.
    fn meta(&self) -> RequestMetaObject {
        let task = &self.under.task;
        let mut meta = RequestMetaObject::new();
        for (name, value) in [
            ("outlast/run", json!(task.run())),
            ("outlast/op", json!(task.op())),
            ("outlast/attempt", json!(task.attempt())),
            ("outlast/idempotency-key", json!(task.key())),
        ] {
            meta.0.insert(name.to_owned(), value);
        }
        meta
    }
}

/// How a request ended.
enum Ended {
    Answered(Json),
    /// The server said no.
    Error(String),
    /// It took longer than its server's entry allows; the server was told.
    TooSlow,
}

/// Whether the error says that there was no connection to send anything through.
fn refused_connection(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        if inner.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect) {
            return true;
        }
        cause = inner.source();
    }
    false
}

async fn tell(handle: RequestHandle<RoleClient>, why: &str) {
    let told = tokio::time::timeout(MCP_LAST_WORDS, handle.cancel(Some(why.to_owned()))).await;
    if !matches!(told, Ok(Ok(_))) {
        tracing::debug!("a server could not be told to stop");
    }
}
