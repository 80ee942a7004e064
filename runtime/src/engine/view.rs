//! A run as every surface shows it.
//!
//! Leaves the reason why it waits to `waiting`. Invariant: derived from the state and, for live reads, from what the dispatch knows.

use outlast_kernel::Json;
use outlast_kernel::State;
use outlast_kernel::event::Tokens;
use outlast_kernel::ids::{Millis, OpId, RunId, Seq};
use outlast_kernel::operation::{Operation, OperationKind, Outcome, Question};
use outlast_kernel::text::time_text;
use outlast_protocol::run::{OutcomeView, QuestionView, RunView, TokensView, WaitingFor};
use outlast_store::{Status, Summary};
use serde::Serialize;
use serde_json::json;

use super::dispatch::Dispatch;
use super::flows::Flows;
use super::waiting::{Motion, waiting_for};

/// What is true of a run from its first event on.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The flow's name.
    pub(crate) flow: String,
    /// The machine's hash.
    pub(crate) machine: String,
    /// When it started.
    pub(crate) started_at: Millis,
    /// Where it came from, as the contract shows it.
    pub(crate) parent: Option<Json>,
}

/// Shows where a spawned run came from.
pub(crate) fn spawned_from(run: &RunId, op: OpId) -> Json {
    json!({ "run": run, "at": op.0, "op": op.to_string() })
}

impl Facts {
    /// Returns the last event that a fork shares with its parent; none for other runs.
    pub(crate) fn forked_at(&self) -> Option<Seq> {
        let parent = self.parent.as_ref().filter(|parent| parent.get("op").is_none())?;
        parent["at"].as_u64().map(Seq)
    }

    /// Reads them from what the store keeps for lists.
    pub(crate) fn of(summary: Summary) -> Facts {
        Facts {
            flow: summary.flow,
            machine: summary.machine,
            started_at: summary.started_at,
            parent: summary.view.get("parent").cloned(),
        }
    }
}

/// What can move a run, and how that is called.
struct Standing {
    status: &'static str,
    waiting_for: Option<WaitingFor>,
    motion: Motion,
}

/// Says where a run stands. Without a `dispatch`: as lists show it, which know nothing of workers.
fn standing(
    facts: &Facts,
    state: &State,
    now: Millis,
    flows: &Flows,
    dispatch: Option<&Dispatch>,
) -> Standing {
    let (waiting_for, motion) = if let Some(blocked) = state.blocked() {
        let (line, expression) = flows.locate(&facts.machine, &blocked.place);
        let cause = blocked.cause.clone();
        (Some(WaitingFor::Blocked { event: blocked.event, line, expression, cause }), Motion::Still)
    } else if state.outcome().is_some() {
        (None, Motion::Still)
    } else {
        waiting_for(state.run(), &state.config().profile, state.operations(), now, dispatch)
    };
    let status = match (state.outcome(), state.blocked(), motion) {
        (Some(_), _, _) => "ended",
        (None, Some(_), _) => "blocked",
        (None, None, Motion::Moves) => "running",
        (None, None, Motion::Waits | Motion::People | Motion::Still) => "waiting",
    };
    Standing { status, waiting_for, motion }
}

/// Shows a run. Without a `dispatch`: as lists show it, which know nothing of workers.
pub(crate) fn view(
    facts: &Facts,
    state: &State,
    now: Millis,
    flows: &Flows,
    dispatch: Option<&Dispatch>,
) -> (RunView, Motion) {
    let Standing { status, waiting_for, motion } = standing(facts, state, now, flows, dispatch);
    let view = RunView {
        id: state.run().to_string(),
        flow: facts.flow.clone(),
        machine: facts.machine.clone(),
        status: status.into(),
        state: state.path(),
        waiting_for,
        outcome: state.outcome().map(outcome),
        questions: state.operations().filter_map(question).collect(),
        unread: state.unread().into_iter().map(|(id, name, value)| unread(&id, &name, &value)).collect(),
        cost: state.cost(),
        tokens: tokens(state.tokens()),
        events: state.last().0,
        started_at: time_text(facts.started_at),
        updated_at: time_text(state.time()),
        parent: facts.parent.clone(),
        profile: state.config().profile.clone(),
    };
    (view, motion)
}

/// Makes what the store keeps for lists and look-ups, and tells what can move the run, as far as its history tells.
pub(crate) fn summary(facts: &Facts, state: &State, now: Millis, flows: &Flows) -> (Summary, Motion) {
    let standing = standing(facts, state, now, flows, None);
    let motion = standing.motion;
    // Work that waits for a worker may be in hand: whoever reads the list asks the dispatch.
    let for_worker = matches!(standing.waiting_for, Some(WaitingFor::Worker { .. }));
    let status = match (state.outcome(), state.blocked(), motion) {
        (Some(_), _, _) => Status::Ended,
        (None, Some(_), _) => Status::Blocked,
        (None, None, Motion::Moves) => Status::Running,
        (None, None, Motion::Waits | Motion::People | Motion::Still) if for_worker => Status::Running,
        (None, None, Motion::Waits | Motion::People | Motion::Still) => Status::Waiting,
    };
    let summary = Summary {
        run: state.run().clone(),
        flow: facts.flow.clone(),
        machine: facts.machine.clone(),
        profile: state.config().profile.clone(),
        status,
        started_at: facts.started_at,
        updated_at: state.time(),
        view: thin(facts, state, standing),
    };
    (summary, motion)
}

/// Makes what the store keeps of a view: not what the summary around it says too, nor what is as in most runs. It is written with every
/// step of every run. How many operations are in doubt stands there for the census alone.
fn thin(facts: &Facts, state: &State, Standing { status, waiting_for, .. }: Standing) -> Json {
    let mut fields = serde_json::Map::new();
    let mut keep = |name: &str, value: Json| drop(fields.insert(name.to_owned(), value));
    keep("status", status.into());
    keep("state", state.path().into());
    keep("events", state.last().0.into());
    if let Some(waiting_for) = waiting_for {
        keep("waiting_for", shown(waiting_for));
    }
    if let Some(ended) = state.outcome() {
        keep("outcome", shown(outcome(ended)));
    }
    let questions: Vec<Json> = state.operations().filter_map(question).map(shown).collect();
    let mail = state.unread().into_iter().map(|(id, name, value)| unread(&id, &name, &value));
    let usually =
        [("questions", questions.into()), ("unread", mail.collect()), ("cost", state.cost().into())];
    for (name, value) in usually {
        if usual(name).as_ref() != Some(&value) {
            keep(name, value);
        }
    }
    let tokens = tokens(state.tokens());
    if tokens != TokensView::default() {
        keep("tokens", shown(tokens));
    }
    if let Some(parent) = &facts.parent {
        keep("parent", parent.clone());
    }
    let doubts = state.in_doubt().count();
    if doubts > 0 {
        keep("in_doubt", doubts.into());
    }
    Json::Object(fields)
}

fn shown(part: impl Serialize) -> Json {
    serde_json::to_value(part).unwrap_or_default()
}

/// Returns what a field is in most runs.
fn usual(field: &str) -> Option<Json> {
    match field {
        "questions" | "unread" => Some(Json::Array(Vec::new())),
        "cost" => Some("0".into()),
        "tokens" => Some(json!(TokensView::default())),
        _ => None,
    }
}

/// Returns the view that the store keeps of a run, whole: earlier releases wrote it whole, and what stands there counts.
pub(crate) fn stored(summary: Summary) -> Result<RunView, serde_json::Error> {
    let Summary { run, flow, machine, profile, status: _, started_at, updated_at, mut view } = summary;
    if let Some(fields) = view.as_object_mut() {
        let mut fill = |name: &str, value: Json| {
            fields.entry(name).or_insert(value);
        };
        fill("id", json!(run));
        fill("flow", json!(flow));
        fill("machine", json!(machine));
        fill("profile", json!(profile));
        fill("started_at", json!(time_text(started_at)));
        fill("updated_at", json!(time_text(updated_at)));
        for name in ["questions", "unread", "cost", "tokens"] {
            fill(name, usual(name).unwrap_or_default());
        }
    }
    serde_json::from_value(view)
}

/// Shows how a run ended.
pub(crate) fn outcome(outcome: &Outcome) -> OutcomeView {
    let (kind, value, error) = match outcome {
        Outcome::Done(value) => ("done", Some(value.clone()), None),
        Outcome::Failed(error) => ("failed", None, Some(error.clone())),
        Outcome::Cancelled => ("cancelled", None, None),
        Outcome::Terminated => ("terminated", None, None),
    };
    OutcomeView { kind: kind.into(), value, error }
}

/// Shows an open question; none if the operation is something else.
pub(crate) fn question(operation: &Operation) -> Option<QuestionView> {
    let OperationKind::Question(asked) = &operation.kind else { return None };
    let Question { text, show, shown, to, wanted, editable, agreed: _ } = &**asked;
    let role = |(count, role): &(u32, String)| match count {
        1 => role.clone(),
        count => format!("{count} of {role}"),
    };
    Some(QuestionView {
        id: operation.id.to_string(),
        text: text.clone(),
        show: show.clone(),
        shown: shown.clone(),
        to: to.iter().map(role).collect(),
        wanted: wanted.clone(),
        editable: *editable,
        due: operation.due.map(time_text),
        opened_at: time_text(operation.opened_at),
        path: operation.path.clone(),
    })
}

fn unread(id: &str, name: &str, value: &Json) -> Json {
    json!({ "id": id, "type": name, "value": value })
}

/// Shows a run that the kernel cannot go on with: its last durable view, blocked.
pub(crate) fn broken(summary: &Summary, cause: &str) -> RunView {
    let mut view = stored(summary.clone()).unwrap_or_else(|_| empty(&summary.run, summary));
    view.status = "blocked".into();
    let blocked = WaitingFor::Blocked {
        event: view.events.saturating_add(1),
        line: String::new(),
        expression: String::new(),
        cause: cause.to_owned(),
    };
    view.waiting_for = Some(blocked);
    view
}

fn tokens(Tokens { input, output }: Tokens) -> TokensView {
    TokensView { input, output }
}

fn empty(run: &RunId, summary: &Summary) -> RunView {
    RunView {
        id: run.to_string(),
        flow: summary.flow.clone(),
        machine: summary.machine.clone(),
        status: String::new(),
        state: String::new(),
        waiting_for: None,
        outcome: None,
        questions: Vec::new(),
        unread: Vec::new(),
        cost: "0".into(),
        tokens: TokensView::default(),
        events: 0,
        started_at: time_text(summary.started_at),
        updated_at: time_text(summary.updated_at),
        parent: None,
        profile: summary.profile.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            run: RunId::new("r-1").unwrap(),
            flow: "F".into(),
            machine: "m".into(),
            profile: "p".into(),
            status: Status::Waiting,
            started_at: Millis(0),
            updated_at: Millis(1_000),
            view: Json::Null,
        }
    }

    fn view() -> RunView {
        RunView {
            state: "S".into(),
            status: "waiting".into(),
            events: 7,
            ..empty(&summary().run, &summary())
        }
    }

    #[test]
    fn a_view_that_was_stored_thin_is_read_whole() {
        let thin = json!({ "status": "waiting", "state": "S", "events": 7 });
        assert_eq!(stored(Summary { view: thin.clone(), ..summary() }).unwrap(), view());
        let mut asked = thin;
        asked["unread"] = json!([1]);
        asked["cost"] = json!("0.5");
        let shown = RunView { unread: vec![json!(1)], cost: "0.5".into(), ..view() };
        assert_eq!(stored(Summary { view: asked, ..summary() }).unwrap(), shown);
    }

    #[test]
    fn a_view_that_was_stored_whole_is_read_as_it_stands() {
        let shown = RunView { id: "r-0".into(), updated_at: "then".into(), ..view() };
        let whole = serde_json::to_value(&shown).unwrap();
        assert_eq!(stored(Summary { view: whole, ..summary() }).unwrap(), shown);
        assert!(stored(summary()).is_err());
    }
}
