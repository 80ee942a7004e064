//! The rules of the environment, looked at where it is known what a call really does.
//!
//! Leaves asking to the flow, whose policy has seen the call as the model wrote it. Invariant: a call whose path leads somewhere else
//! than it seems to, through a link or a way around, is held to the rules about where it leads.

use outlast_protocol::rules::{Call, Reading};
use serde_json::{Map, Value as Json, json};

use super::definition::Tool;
use super::{ToolError, Toolbox};

/// Who approved a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    /// A person, or the flow without asking the policy.
    Given,
    /// The policy: no question was needed.
    ByPolicy,
}

impl Toolbox {
    /// Refuses a call that the rules deny, or that a person should have been asked about.
    pub(super) fn permit(
        &self,
        tool: Tool,
        args: &Map<String, Json>,
        approval: Approval,
    ) -> Result<(), ToolError> {
        if self.rules.is_empty() {
            return Ok(());
        }
        let mut call = Call::new(tool.name(), &Json::Object(args.clone()), tool.class());
        if let Some(path) = args.get("path").and_then(Json::as_str) {
            call = call.at(&self.jail.shown(&self.jail.resolve(path)?));
        }
        if tool == Tool::Fetch {
            // As it will be asked, however it is written.
            let url = super::fetch::address(args.get("url").and_then(Json::as_str).unwrap_or_default())?;
            call = Call::new(tool.name(), &json!({ "url": url.as_str() }), tool.class());
        }
        self.held_to_rules(&call, approval)
    }

    /// Refuses a call of a server's tool in the same way. Such a tool is of the class that the run's catalogue says.
    pub(super) fn permit_of_server(
        &self,
        name: &str,
        args: &Json,
        class: &str,
        approval: Approval,
    ) -> Result<(), ToolError> {
        self.held_to_rules(&Call::new(name, args, class), approval)
    }

    fn held_to_rules(&self, call: &Call, approval: Approval) -> Result<(), ToolError> {
        if let Some(rule) = call.first(&self.rules.deny, Reading::Wide) {
            return Err(ToolError::new("Denied", format!("denied by the rule {rule}: {}", call.subject())));
        }
        match call.first(&self.rules.ask, Reading::Wide) {
            Some(rule) if approval == Approval::ByPolicy => {
                let text =
                    format!("a person must be asked (rule {rule}), and nobody was: {}", call.subject());
                Err(ToolError::new("Denied", text))
            }
            Some(_) | None => Ok(()),
        }
    }
}
