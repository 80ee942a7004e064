//! Requests of drivers and clients.

use std::collections::BTreeMap;

use outlast_kernel::Json;
use outlast_kernel::rules::{self, InvalidRule};
use serde::{Deserialize, Serialize};

/// `POST /v1/flows`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deploy {
    /// Flow files, and the files that they use. The flows of those that no other one uses are deployed.
    pub files: Vec<FileText>,
    /// The environment profile of runs of these flows that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

impl Deploy {
    /// Deploys one file that uses no others.
    #[must_use]
    pub fn file(name: impl Into<String>, text: impl Into<String>) -> Deploy {
        Deploy { files: vec![FileText { name: name.into(), text: text.into() }], profile: None }
    }
}

/// A file by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileText {
    /// Its path: other files are found from it, and messages show it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// `POST /v1/runs/{id}/cancel`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Why, in a word such as `item_timeout`: it is kept with who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A deployed flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowView {
    /// Its name.
    pub name: String,
    /// Its `version`.
    pub version: u32,
    /// The hash of its machine.
    pub machine: String,
    /// The environment profile of its runs that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// `POST /v1/runs`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The flow's name.
    pub flow: String,
    /// The arguments by name.
    #[serde(default)]
    pub input: Json,
    /// The run id; made up if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// First messages, accepted with the start. Those with ids go to the run also if an equal request has begun it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Send>,
    /// A machine's hash, if not the newest deployed one is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The environment profile; the server's own if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Permission rules of the run: `deny`, `ask`, `allow` lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
}

impl Start {
    /// Starts a flow as the run `id`, with its arguments by name. The same request again finds the same run.
    #[must_use]
    pub fn new(flow: impl Into<String>, id: impl Into<String>, input: Json) -> Start {
        Start { flow: flow.into(), id: Some(id.into()), input, ..Start::default() }
    }
}

/// Permission rules: tool patterns such as `shell(git *)`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Refused.
    pub deny: Vec<String>,
    /// A person is asked.
    pub ask: Vec<String>,
    /// No question.
    pub allow: Vec<String>,
    /// Nobody is asked: what would be is refused.
    pub deny_asks: bool,
}

impl Permissions {
    /// Tells whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Permissions::default()
    }

    /// Checks that all rules can be read.
    ///
    /// # Errors
    /// [`InvalidRule`].
    pub fn check(&self) -> Result<(), InvalidRule> {
        self.deny.iter().chain(&self.ask).chain(&self.allow).try_for_each(|rule| rules::check(rule))
    }

    /// Adds other rules.
    #[must_use]
    pub fn and(mut self, other: Permissions) -> Permissions {
        self.deny.extend(other.deny);
        self.ask.extend(other.ask);
        self.allow.extend(other.allow);
        self.deny_asks |= other.deny_asks;
        self
    }
}

/// `POST /v1/runs/{id}/messages`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// The message type's name, or `closed` for the end of messages.
    #[serde(rename = "type")]
    pub name: String,
    /// Its fields.
    #[serde(default)]
    pub value: Json,
    /// The sender's id for it: repeated requests count once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// `POST /v1/runs/{id}/withdraw`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withdraw {
    /// The message's id.
    pub id: String,
}

/// `POST /v1/runs/{id}/answers`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The question's id; may be left out if exactly one is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// `approve`, `reject` or `answer`.
    pub choice: String,
    /// The edited or given value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    /// What the person adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The role in which they answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The hash of what they were shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// Also allow this exact tool pattern for the rest of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
}

/// `POST /v1/runs/{id}/settle`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// The operation in doubt.
    pub op: String,
    /// `happened`, `not_happened` or `fail`.
    pub verdict: String,
    /// The result of `happened`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
}

/// `POST /v1/runs/{id}/release`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The held operation; empty for a run that is quarantined as a whole.
    #[serde(default)]
    pub op: String,
}

/// `POST /v1/runs/{id}/migrate`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Migrate {
    /// The hash of the machine, as deploying its flow gave it.
    pub machine: String,
    /// What happens to open operations that do not fit: `cut` or `again`; the run stays as it is if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
}

/// `POST /v1/runs/{id}/compatibility`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compatibility {
    /// The canonical text of the machine; it need not be deployed.
    pub machine: String,
}

/// `PUT /v1/retention`: how long ended runs are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// The time after a run's end, as in `30d`; for ever if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<String>,
    /// Other times for the runs of some flows; `null`: for ever.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub flows: BTreeMap<String, Option<String>>,
}

/// `POST /v1/runs/{id}/fork`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fork {
    /// The last event that both share; the newest at which no `once` operation is open if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The fork's id; made up if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What becomes of the runs that the parent spawned and that had not ended at the fork point: `unknown` (they are the parent's
    /// alone), `share` (the fork learns of their end, too) or `again` (it spawns its own); `unknown` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<String>,
}

/// The answer to what became event `accepted`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The event's number.
    pub accepted: u64,
}

/// A list with a cursor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct List<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// The cursor of the next page; none at the end.
    pub next: Option<String>,
}
