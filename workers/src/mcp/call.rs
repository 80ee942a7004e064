//! One call of a server's tool, from the task to its answer.
//!
//! Leaves the connection to the keeper. Invariant: a `once` call that was sent and whose end nobody saw is broken off, never answered
//! for; any other call that lost its connection is made again a stated number of times with the same key; nothing is sent for a
//! definition that is not the recorded one.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelTaskParams, ClientRequest, GetTaskParams,
    RequestMetaObject, ServerResult, UpdateTaskParams,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::{Map, json};

use super::answer;
use super::catalogue::Offered;
use super::connection::{Connection, text_of};
use super::handler::{Answers, Under};
use super::server::{Server, Unavailable};
use crate::Json;
use crate::limits::{INPUT_ROUNDS_MAX, LOST_CALLS_MAX, TASK_POLL_MAX, TASK_POLL_MIN};
use crate::sdk::{TaskContext, duration_text};

/// By this argument a call answers what its server asks a person.
const ANSWERS: &str = "_answers";

/// What is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The tool as models know it.
    pub(crate) tool: &'a str,
    pub(crate) args: &'a Map<String, Json>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    /// The server, or this program in its place, answers: the text, and whether it is a result.
    Answer(String, bool),
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
            Ok((text, ok)) => return Ok(End::Answer(text, ok)),
            Err(Broken::NotSent(why)) => return Err(Unavailable::new(&server.config.name, why)),
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

/// Why a call is not made.
enum Wrong {
    End(End),
    Unavailable(String),
}

/// A call that can be sent.
struct Call<'a> {
    connection: &'a Connection,
    params: CallToolRequestParams,
    under: Under,
}

/// Finds the tool, and compares it with what the run has recorded.
async fn prepare<'a>(
    connection: &'a Connection,
    task: &TaskContext,
    asked: Asked<'_>,
) -> Result<Call<'a>, Wrong> {
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
    let mut args = asked.args.clone();
    let answers = match args.remove(ANSWERS) {
        Some(Json::Object(answers)) => answers,
        Some(_) | None => Answers::new(),
    };
    let params = CallToolRequestParams::new(tool.own_name.clone()).with_arguments(args);
    Ok(Call { connection, params, under: Under::new(task.clone(), answers) })
}

/// Why a call has no answer.
enum Broken {
    /// The server never got it.
    NotSent(String),
    /// Nobody knows how far it came.
    Lost(String),
    /// The attempt was asked to end, or ran out of time; the server was told.
    Stopped,
    /// It took longer than its entry allows, and must not be answered for.
    Doubt,
}

impl Call<'_> {
    async fn run(self, limit: Option<Duration>) -> Result<(String, bool), Broken> {
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
            Ok(Ended::Answered(result)) => answer::text_of(&result),
            Ok(Ended::Error(text)) => (text, false),
            Ok(Ended::TooSlow) if self.under.task.task().effect == "once" => return Err(Broken::Doubt),
            Ok(Ended::TooSlow) => (format!("it took longer than {limit} and was told to stop"), false),
            Err(broken) => return Err(broken),
        };
        let unanswered = std::mem::take(&mut *self.under.unanswered.lock());
        if unanswered.is_empty() {
            return Ok((text, ok));
        }
        let asked = unanswered.join("; ");
        let note = format!(
            "[the server asks a person: {asked}. It was told that nobody can answer during the call. Ask the person, then call \
             again with the same arguments and \"{ANSWERS}\": an object with these fields]"
        );
        Ok((format!("{text}\n{note}"), ok))
    }

    /// Sends the call, and again with what the server asks for in between.
    async fn rounds(&self, mut over: impl Future<Output = ()> + Unpin) -> Result<Ended, Broken> {
        if let Some(id) = self.under.task.handle().and_then(|handle| handle["mcp_task"].as_str()) {
            return self.follow(id.to_owned(), &mut over).await;
        }
        let mut params = self.params.clone();
        for _round in 0..INPUT_ROUNDS_MAX {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            let result = match self.send(request, &mut over).await? {
                Ok(result) => result,
                Err(end) => return Ok(end),
            };
            match result {
                ServerResult::CreateTaskResult(created) => {
                    let id = created.task.task_id;
                    // Durable before anything is waited for: whoever comes after a crash looks after this task.
                    if self.under.task.set_handle(json!({"mcp_task": id})).await.is_err() {
                        return Err(Broken::Stopped);
                    }
                    return self.follow(id, &mut over).await;
                }
                ServerResult::InputRequiredResult(wanted) => {
                    params.input_responses = Some(self.responses(json!(wanted.input_requests)));
                    params.request_state = wanted.request_state;
                }
                other => return Ok(Ended::Answered(serde_json::to_value(&other).unwrap_or_default())),
            }
        }
        Ok(Ended::Error("the server asks for more and more and does not answer".to_owned()))
    }

    /// Answers to what a server asks before it goes on.
    fn responses(&self, requests: Json) -> BTreeMap<String, Json> {
        let Json::Object(requests) = requests else { return BTreeMap::new() };
        let answer = |request: &Json| match request["method"].as_str() {
            Some("elicitation/create") => self.under.answer(&request["params"]),
            Some("roots/list") => json!({"roots": []}),
            Some(_) | None => json!({"action": "cancel"}),
        };
        requests.iter().map(|(name, request)| (name.clone(), answer(request))).collect()
    }

    /// Looks after a task of the server until it ends.
    async fn follow(&self, id: String, mut over: impl Future<Output = ()> + Unpin) -> Result<Ended, Broken> {
        loop {
            let request =
                ClientRequest::GetTaskRequest(rmcp::model::GetTaskRequest::new(GetTaskParams::new(&id)));
            let result = match self.send(request, &mut over).await {
                Ok(Ok(result)) => json!(result),
                Ok(Err(Ended::TooSlow)) => {
                    self.cancel(&id).await;
                    return Ok(Ended::TooSlow);
                }
                Ok(Err(end)) => return Ok(end),
                Err(Broken::Stopped) => {
                    self.cancel(&id).await;
                    return Err(Broken::Stopped);
                }
                Err(broken) => return Err(broken),
            };
            if let Some(message) = result["statusMessage"].as_str() {
                self.under.task.progress(&format!("{message}\n"));
            }
            match result["status"].as_str() {
                Some("completed") => return Ok(Ended::Answered(result["result"].clone())),
                Some("cancelled") => return Ok(Ended::Error("the server has cancelled its task".to_owned())),
                Some("failed") => {
                    let why = result["error"]["message"].as_str().unwrap_or("it does not say why");
                    return Ok(Ended::Error(format!("the server's task failed: {why}")));
                }
                Some("input_required") => {
                    let responses = self.responses(result["inputRequests"].clone());
                    let update = self.connection.peer().update_task(UpdateTaskParams::new(&id, responses));
                    if let Err(error) = update.await {
                        return Ok(Ended::Error(text_of(&error)));
                    }
                }
                Some(_) | None => {}
            }
            let wait = result["pollIntervalMs"].as_u64().map_or(TASK_POLL_MIN, Duration::from_millis);
            tokio::select! {
                () = tokio::time::sleep(wait.clamp(TASK_POLL_MIN, TASK_POLL_MAX)) => {}
                _ = self.under.task.cancelled() => {
                    self.cancel(&id).await;
                    return Err(Broken::Stopped);
                }
                () = &mut over => {
                    self.cancel(&id).await;
                    return Ok(Ended::TooSlow);
                }
            }
        }
    }

    async fn cancel(&self, id: &str) {
        // A server that does not hear it may go on; the class of the call says what that means.
        let _unheard = self.connection.peer().cancel_task(CancelTaskParams::new(id)).await;
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
        let mut handle = sent.map_err(|error| Broken::NotSent(text_of(&error)))?;
        let token = handle.progress_token.clone();
        under_way.insert(token.clone(), self.under.clone());
        drop(under_way);
        let ended = tokio::select! {
            answer = &mut handle.rx => received(answer.unwrap_or(Err(ServiceError::TransportClosed))),
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

fn received(answer: Result<ServerResult, ServiceError>) -> Result<Result<ServerResult, Ended>, Broken> {
    match answer {
        Ok(result) => Ok(Ok(result)),
        Err(error @ ServiceError::McpError(_)) => Ok(Err(Ended::Error(text_of(&error)))),
        Err(ServiceError::TransportSend(error)) => {
            let text = crate::sdk::error_chain(&error);
            Err(if refused_connection(&error) { Broken::NotSent(text) } else { Broken::Lost(text) })
        }
        Err(error) => Err(Broken::Lost(text_of(&error))),
    }
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
    if let Err(error) = handle.cancel(Some(why.to_owned())).await {
        tracing::debug!(%error, "a server could not be told to stop");
    }
}
