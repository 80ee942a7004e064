//! What a server may say and ask while calls are under way.
//!
//! Progress goes to the attempt that it belongs to; a change of the tools is noted; questions to a person are answered from the call's
//! own `_answers`, else with `cancel`, and the call's text says what was asked. Anything else that a server asks for is refused at
//! once by the library. Invariant: no request of a server is left without an answer.

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

use crate::Json;
use crate::limits::{INPUT_ROUNDS_MAX, REMARK_CHARS_MAX};
use crate::sdk::{Locked, TaskContext};
use crate::tools::quote;

/// Fields by which a call answers what its server asks a person.
pub(super) type Answers = serde_json::Map<String, Json>;

/// A call under way.
#[derive(Clone, Debug)]
pub(super) struct Under {
    pub(super) task: TaskContext,
    /// What it can answer.
    pub(super) answers: Arc<Answers>,
    /// What was asked and could not be answered.
    pub(super) unanswered: Arc<Locked<Vec<String>>>,
}

impl Under {
    pub(super) fn new(task: TaskContext, answers: Answers) -> Under {
        Under { task, answers: Arc::new(answers), unanswered: Arc::new(Locked::new(Vec::new())) }
    }

    /// Answers one question, or keeps it as one for a person.
    pub(super) fn answer(&self, question: &Json) -> Json {
        if let Some(content) = fitting(&self.answers, question) {
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
        let question = quote(&asked(question), REMARK_CHARS_MAX);
        let mut unanswered = self.unanswered.lock();
        if unanswered.len() < INPUT_ROUNDS_MAX as usize && !unanswered.contains(&question) {
            unanswered.push(question);
        }
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
        let mut able = under_way.values().filter(|call| fitting(&call.answers, &question).is_some());
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

/// The fields that a question asks for, out of the answers; none unless all that it needs are there.
fn fitting(answers: &Answers, question: &Json) -> Option<Json> {
    let schema = question.get("requestedSchema")?;
    let needed = schema.get("required").and_then(Json::as_array).cloned().unwrap_or_default();
    let all = needed.iter().filter_map(Json::as_str).all(|name| answers.contains_key(name));
    if answers.is_empty() || !all {
        return None;
    }
    let fields = schema.get("properties").and_then(Json::as_object)?;
    let content: Answers = answers
        .iter()
        .filter(|(name, _)| fields.contains_key(*name))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    (!content.is_empty()).then_some(Json::Object(content))
}

/// A question as a model reads it.
fn asked(question: &Json) -> String {
    let text = question.get("message").and_then(Json::as_str).unwrap_or("it does not say what");
    if let Some(url) = question.get("url").and_then(Json::as_str) {
        return format!("{text} (at {url})");
    }
    let fields = question.pointer("/requestedSchema/properties").and_then(Json::as_object);
    let fields: Vec<String> = fields
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let kind = schema.get("enum").or_else(|| schema.get("type")).cloned().unwrap_or_default();
            format!("{name}: {kind}")
        })
        .collect();
    format!("{text} ({})", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_is_answered_only_if_all_that_it_needs_is_there() {
        let question = json!({"message": "Which account?", "requestedSchema": {"type": "object", "required": ["account"],
            "properties": {"account": {"type": "string"}, "limit": {"type": "integer"}}}});
        for (answers, content) in [
            (json!({}), None),
            (json!({"limit": 3}), None),
            (json!({"account": "a", "other": 1}), Some(json!({"account": "a"}))),
            (json!({"account": "a", "limit": 3}), Some(json!({"account": "a", "limit": 3}))),
        ] {
            assert_eq!(fitting(answers.as_object().unwrap(), &question), content, "{answers}");
        }
        assert_eq!(asked(&question), r#"Which account? (account: "string", limit: "integer")"#);
        assert_eq!(asked(&json!({"message": "Log in", "url": "http://x"})), "Log in (at http://x)");
    }
}
