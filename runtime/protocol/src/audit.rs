//! What a history says about who did what: one record for each fact that an auditor asks about.

use serde::{Deserialize, Serialize};

/// A fact of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// When it was accepted.
    pub time: String,
    /// The run.
    pub run: String,
    /// The event's number.
    pub n: u64,
    /// What happened: the event's kind.
    pub what: String,
    /// Who, where it was somebody: `local`, `loopback`, `token`, `token:NAME`, `policy`, `schedule`, `run:ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The role in which somebody answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// The activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// The tool that it called, if it calls tools by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Its effect class: `pure`, `idempotent` or `once`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Which attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Why the attempt before this one was not the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// The rest: a flow, a message's type, a choice, an error, a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
