//! What a server may say and ask while calls are under way.
//!
//! Progress goes to the attempt that it belongs to; a change of the tools is noted; questions to a person are answered from what the
//! call brings along, else with `cancel`, and kept for whoever makes the call again. Anything else that a server asks for is refused
//! at once by the library. Invariant: no request of a server is left without an answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, TASKS_EXTENSION_ID,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

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
}

impl Under {
    pub(super) fn new(task: TaskContext, answers: Answers) -> Under {
        Under { task, answers: Arc::new(answers), unanswered: Arc::new(Locked::new(Vec::new())) }
    }

    /// Answers one question, or keeps it as one for a person.
    pub(super) fn answer(&self, question: &Json) -> Json {
        if let Some(content) = self.answers.take(question) {
            return serde_json::json!({"action": "accept", "content": content});
        }
        self.keep(question);
        serde_json::json!({"action": "cancel"})
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
        can.elicitation = Some(ElicitationCapability::new());
        can.extensions = Some([(TASKS_EXTENSION_ID.to_owned(), serde_json::Map::new())].into());
        let us = Implementation::new("outlast", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(can, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let question = serde_json::to_value(&request).unwrap_or_default();
        let under_way = self.under_way.lock().await;
        // The protocol does not say which call asks: it is the one that can answer, if only one can.
        let mut able = under_way.values().filter(|call| call.answers.can(&question));
        let answer = match (able.next(), able.next()) {
            (Some(call), None) => call.answer(&question),
            (_, _) => {
                for call in under_way.values() {
                    call.keep(&question);
                }
                Json::Null
            }
        };
        match answer.get("content") {
            Some(content) => Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content.clone())),
            None => Ok(ElicitResult::new(ElicitationAction::Cancel)),
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
