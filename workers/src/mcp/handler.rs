//! What a server may say and ask while calls are under way.
//!
//! Progress goes to the attempt that it belongs to; a change of the tools is noted; questions to a person are answered from what the
//! call brings along, else with `cancel`, and kept for whoever makes the call again. A page whose address nobody should be shown
//! is an error. Anything else that a server asks for is refused at once by the library. Invariant: no request of a server is left
//! without an answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomNotification, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, TASKS_EXTENSION_ID, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::json;

use super::pages;
use super::questions::{self, Answers, Question};
use crate::Json;
use crate::limits::REMARK_CHARS_MAX;
use crate::sdk::{Locked, TaskContext};
use crate::tools::quote;

/// A call under way.
#[derive(Clone, Debug)]
pub(super) struct Under {
    pub(super) task: TaskContext,
    /// What it can answer.
    pub(super) answers: Arc<Answers>,
    /// What was asked and could not be answered.
    pub(super) unanswered: Arc<Locked<Vec<Question>>>,
    /// Why pages that were asked for are not shown to anybody.
    pub(super) refused: Arc<Locked<Vec<String>>>,
}

impl Under {
    pub(super) fn new(task: TaskContext, answers: Answers) -> Under {
        Under {
            task,
            answers: Arc::new(answers),
            unanswered: Arc::new(Locked::new(Vec::new())),
            refused: Arc::new(Locked::new(Vec::new())),
        }
    }

    /// Answers what a server asks, as it asks it.
    pub(super) fn respond(&self, asked: &Json) -> Json {
        match pages::with_form(asked) {
            Ok(question) => self.answer(&question),
            Err(why) => {
                self.refuse(why);
                json!({"action": "cancel"})
            }
        }
    }

    /// Answers one question, or keeps it as one for a person.
    fn answer(&self, question: &Json) -> Json {
        let Some(content) = self.answers.take(question) else {
            self.keep(question);
            return json!({"action": "cancel"});
        };
        match pages::page_of(question) {
            None => json!({"action": "accept", "content": content}),
            Some((address, _)) if content[address] == true => json!({"action": "accept"}),
            Some(_) => json!({"action": "decline"}),
        }
    }

    /// Keeps the pages without which a server does not do a call; one that a person does not want to open is not asked for again.
    pub(super) fn need(&self, needed: &[Json]) {
        for asked in needed {
            match pages::with_form(asked) {
                Ok(question) => {
                    let content = self.answers.take(&question).unwrap_or_default();
                    if pages::page_of(&question).is_none_or(|(address, _)| content[address] != false) {
                        self.keep(&question);
                    }
                }
                Err(why) => self.refuse(why),
            }
        }
    }

    /// Shows what the server says of its work.
    pub(super) fn progress(&self, message: &str) {
        self.task.progress(&format!("{}\n", quote(message, REMARK_CHARS_MAX)));
    }

    /// Keeps a question for a person.
    fn keep(&self, question: &Json) {
        let question = Question::read(question, &self.answers);
        questions::keep(&mut self.unanswered.lock(), question);
    }

    fn refuse(&self, why: String) {
        questions::keep(&mut self.refused.lock(), why);
    }
}

/// What the library calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Handler {
    under_way: Arc<tokio::sync::Mutex<HashMap<ProgressToken, Under>>>,
    changed: Arc<AtomicBool>,
}

impl Handler {
    /// The calls under way. Whoever sends one holds this until it is entered, so that no progress comes too early.
    pub(super) async fn under_way(&self) -> tokio::sync::MutexGuard<'_, HashMap<ProgressToken, Under>> {
        self.under_way.lock().await
    }

    /// Whether the server has said, since this was last asked, that its tools are others now.
    pub(super) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        let forms = ElicitationCapability::new().with_form(FormElicitationCapability::new());
        can.elicitation = Some(forms.with_url(UrlElicitationCapability::new()));
        can.extensions = Some([(TASKS_EXTENSION_ID.to_owned(), serde_json::Map::new())].into());
        let us = Implementation::new("outlast", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(can, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = serde_json::to_value(&request).unwrap_or_default();
        let under_way = self.under_way.lock().await;
        let question = pages::with_form(&asked).map_err(|why| {
            under_way.values().for_each(|call| call.refuse(why.clone()));
            ErrorData::invalid_params(format!("the url {why}"), None)
        })?;
        // The protocol does not say which call asks: it is the one that can answer, if only one can.
        let mut able = under_way.values().filter(|call| call.answers.can(&question));
        let answer = match (able.next(), able.next()) {
            (Some(call), None) => call.answer(&question),
            (_, _) => {
                for call in under_way.values() {
                    call.keep(&question);
                }
                json!({"action": "cancel"})
            }
        };
        Ok(serde_json::from_value(answer).unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel)))
    }

    /// Shows that a page has done its part. Nothing waits for it: whoever opened it says so.
    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        if notification.method == "notifications/elicitation/complete" {
            let under_way = self.under_way.lock().await;
            under_way
                .values()
                .for_each(|call| call.progress("the server says that what it wanted opened is done"));
        }
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let under_way = self.under_way.lock().await;
        let Some(call) = under_way.get(&progress.progress_token) else { return };
        if let Some(total) = progress.total.filter(|total| *total > 0.0) {
            call.task.percent((progress.progress / total * 100.0).clamp(0.0, 100.0));
        }
        match &progress.message {
            Some(message) => call.progress(message),
            None => call.task.heartbeat(),
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Release);
    }
}
