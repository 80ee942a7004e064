//! Failures as values: problems, declared errors, doubts.
//!
//! Invariant: every failure has a `Problem`, whatever else it is.

use outlast_dsl::machine::{Activity, Machine, Outcome as On, Type, TypeIx, TypeKind};

use super::parts::{Completion, NodeId};
use super::turn::Turn;
use crate::Json;
use crate::event::Failure;
use crate::fault::Fault;
use crate::ids::OpId;
use crate::json::{Mismatch, Reader, Unknown, canonical_text, value_to_json};
use crate::limits::QUOTE_CHARS_MAX;
use crate::text::duration_text;
use crate::value::Value;

/// Makes a `Problem`.
pub(super) fn problem(
    text: &str,
    kind: &str,
    activity: Option<&str>,
    retry_after_ms: Option<u64>,
    attempts: u32,
) -> Result<Value, Fault> {
    Ok(Value::record(
        None,
        [
            ("text", Value::text(text)),
            ("kind", Value::text(kind)),
            ("activity", activity.map_or(Value::None, Value::text)),
            ("retry_after", retry_after_ms.map_or(Value::None, Value::Duration)),
            ("attempts", Value::Int(i64::from(attempts))),
        ],
    )?)
}

/// Returns the declared error that a failure names.
pub(crate) fn declared(machine: &Machine, activity: &Activity, kind: &str) -> Option<TypeIx> {
    activity.raises.iter().copied().find(|ix| machine.type_def(*ix).name == kind)
}

/// Reads the fields of a declared error. A text field that the worker left out gets the failure's text, a duration field the
/// wait that was asked for, so that a worker needs to know a failure's name only.
pub(crate) fn error_value(reader: &Reader<'_>, ix: TypeIx, error: &Failure) -> Result<Value, Mismatch> {
    let mut fields = error.fields.clone();
    let def = reader.machine.type_def(ix);
    if let TypeKind::Error(known) = &def.kind {
        for field in known.iter().filter(|field| field.default.is_none()) {
            let filler = match (&field.ty, error.retry_after_ms) {
                (Type::Text, _) => Json::from(error.text.as_str()),
                (Type::Duration, Some(ms)) => Json::from(duration_text(ms)),
                _ => continue,
            };
            fields.entry(field.name.clone()).or_insert(filler);
        }
    }
    fields.insert("type".to_owned(), Json::from(def.name.as_str()));
    reader.read(&Type::Named(ix), &Json::Object(fields))
}

impl Turn<'_> {
    /// Returns the outcome of a failed activity.
    pub(super) fn failed_completion(
        &self,
        activity: &Activity,
        error: &Failure,
        attempts: u32,
    ) -> Result<Completion, Fault> {
        let problem =
            problem(&error.text, &error.kind, Some(&activity.name), error.retry_after_ms, attempts)?;
        let machine = &self.program.machine;
        let reader = Reader { machine, shapes: &self.program.shapes, unknown: Unknown::Drop };
        let declared = declared(machine, activity, &error.kind);
        let value = declared.and_then(|ix| Some((ix, error_value(&reader, ix, error).ok()?)));
        let (outcome, payload) = match value {
            Some((ix, value)) => (On::Error(ix), value),
            None if error.kind == "timeout" => (On::Timeout, problem.clone()),
            None => (On::Failed, problem.clone()),
        };
        Ok(Completion { problem: Some(problem), ..Completion::new(outcome, payload) })
    }

    /// Returns the outcome of a flow that failed with an error.
    pub(super) fn flow_failed(&self, id: NodeId, error: Value) -> Result<Completion, Fault> {
        let flow = self.program.flow(self.flow(id)?.flow);
        let tag = error.tag().unwrap_or("failed").to_owned();
        let raised = flow.raises.iter().copied().find(|ix| self.program.machine.type_def(*ix).name == tag);
        let text = error.field("text").or_else(|| error.field("detail")).and_then(Value::as_text);
        let text = match text {
            Some(text) => text.to_owned(),
            None => canonical_text(&value_to_json(&error)).chars().take(QUOTE_CHARS_MAX).collect(),
        };
        let retry_after = match error.field("retry_after") {
            Some(Value::Duration(ms)) => Some(*ms),
            Some(_) | None => None,
        };
        let problem = problem(&text, &tag, None, retry_after, 0)?;
        let outcome = raised.map_or(On::Failed, On::Error);
        Ok(Completion { problem: Some(problem), ..Completion::new(outcome, error) })
    }

    /// Returns the outcome of an operation that nobody knows the outcome of.
    ///
    /// The doubt about an operation that a saga may undo names it, so that an arrow can settle it.
    pub(super) fn unknown_completion(
        &self,
        activity: &Activity,
        named: Option<OpId>,
        attempts: u32,
    ) -> Result<Completion, Fault> {
        let text = "whether it happened is unknown";
        let fields = [
            ("text", Value::text(text)),
            ("kind", Value::text("unknown")),
            ("activity", Value::text(&activity.name)),
        ];
        let doubt = match named {
            Some(op) => {
                let [text, kind, activity] = fields;
                Value::record(None, [text, kind, activity, ("op", Value::text(&op.to_string()))])?
            }
            None => Value::record(None, fields)?,
        };
        let problem = problem(text, "unknown", Some(&activity.name), None, attempts)?;
        Ok(Completion { problem: Some(problem), ..Completion::new(On::Unknown, doubt) })
    }
}
