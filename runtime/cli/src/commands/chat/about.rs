//! What `/model`, `/tools` and `/compact` say: facts of a run's environment and flow, in lines.
//!
//! Invariant: pure; says how the rules rank instead of guessing what they make of a call that nobody has seen.

use outlast_dsl::machine::{EffectClass, Flow, Machine, Permission, ToolEffect};
use outlast_protocol::profile::{Endpoint, Model, Profile};
use serde_json::Value;

use crate::limits::PATTERNS_SHOWN_MAX;

/// How the model of a new run is chosen.
const NEW_RUN: &str = "A run keeps its model. For a new run set [model] in outlast.toml, OUTLAST_MODEL_URL, OUTLAST_MODEL or a provider's key, and start `outlast chat` \
                       again; OUTLAST_MODEL_PROVIDER=scripted takes the scripted model.";

/// Says which model answers in an environment.
pub(super) fn model(profile: &Profile) -> String {
    format!("{} answers; tools work in {}\n{NEW_RUN}", which(&profile.model), profile.directory.display())
}

fn which(model: &Model) -> String {
    let endpoint = |protocol: &str, endpoint: &Endpoint| {
        let key = match &endpoint.key_env {
            Some(name) => format!(", with the key in {name}"),
            None => String::new(),
        };
        let next = match &endpoint.fallback {
            Some(next) => format!(", or, where it does not, {}", which(next)),
            None => String::new(),
        };
        format!("{} at {} ({protocol}{key}){next}", endpoint.name, endpoint.url)
    };
    match model {
        Model::Scripted { script_name, .. } if script_name.is_empty() => "a scripted model".to_owned(),
        Model::Scripted { script_name, .. } => format!("the scripted model of {script_name}"),
        Model::Openai(found) => endpoint("openai", found),
        Model::OpenaiResponses(found) => endpoint("openai-responses", found),
        Model::Anthropic(found) => endpoint("anthropic", found),
    }
}

/// Lists the tools of a flow, and the rules of its run; if it has no catalogue, what its activities are.
pub(super) fn tools(machine: &Machine, config: &Value) -> String {
    let mut lines = Vec::new();
    for tool in machine.catalogues.iter().flat_map(|catalogue| &catalogue.tools) {
        let asks = match tool.permission {
            Permission::Allow => "no question",
            Permission::Ask => "asks",
        };
        let about = tool.description.lines().next().unwrap_or_default();
        lines.push(format!("{:<20} {:<11} {asks:<12} {about}", tool.name, effect(tool.effect)));
    }
    if lines.is_empty() {
        lines.push("the flow has no catalogue of tools; its activities:".to_owned());
        let activities = machine.activities.iter();
        lines.extend(activities.map(|found| {
            format!("{:<20} {:<11} of the queue {}", found.name, class(&found.effect), found.queue)
        }));
        return lines.join("\n");
    }
    let rules =
        [("denied", "deny"), ("asked about", "ask"), ("allowed", "allow"), ("always, by a person", "grants")];
    let rules: Vec<String> = rules.iter().filter_map(|(what, name)| rule(what, &config[name])).collect();
    if !rules.is_empty() {
        lines.push(
            "Rules of this run; the first kind that fits a call decides, else the list above:".to_owned(),
        );
        lines.extend(rules);
    }
    lines.join("\n")
}

fn rule(what: &str, patterns: &Value) -> Option<String> {
    let patterns: Vec<&str> = patterns.as_array()?.iter().filter_map(Value::as_str).collect();
    (!patterns.is_empty()).then(|| format!("  {what}: {}", grouped(&patterns).join("; ")))
}

/// Returns patterns with what several tools have in common said once: `write, edit: .git, .env`.
fn grouped(patterns: &[&str]) -> Vec<String> {
    let mut by_tool = Vec::<(&str, Vec<&str>)>::new();
    let mut groups = Vec::new();
    for pattern in patterns {
        match pattern.strip_suffix(')').and_then(|pattern| pattern.split_once('(')) {
            Some((tool, subject)) => match by_tool.iter_mut().find(|(known, _)| *known == tool) {
                Some((_, subjects)) => subjects.push(subject),
                None => by_tool.push((tool, vec![subject])),
            },
            None => groups.push((*pattern).to_owned()),
        }
    }
    let mut by_subjects = Vec::<(Vec<&str>, Vec<&str>)>::new();
    for (tool, subjects) in by_tool {
        match by_subjects.iter_mut().find(|(known, _)| *known == subjects) {
            Some((_, tools)) => tools.push(tool),
            None => by_subjects.push((subjects, vec![tool])),
        }
    }
    groups.extend(by_subjects.into_iter().map(|(subjects, tools)| {
        match (subjects.as_slice(), tools.as_slice()) {
            ([subject], [tool]) => format!("{tool}({subject})"),
            (_, _) => {
                let more = subjects.len().saturating_sub(PATTERNS_SHOWN_MAX);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let shown: Vec<&str> = subjects.into_iter().take(PATTERNS_SHOWN_MAX).collect();
                format!("{}: {}{more}", tools.join(", "), shown.join(", "))
            }
        }
    }));
    groups
}

fn effect(effect: ToolEffect) -> &'static str {
    match effect {
        ToolEffect::Pure => "pure",
        ToolEffect::Idempotent => "idempotent",
        ToolEffect::Once => "once",
    }
}

fn class(class: &EffectClass) -> &'static str {
    match class {
        EffectClass::Pure => "pure",
        EffectClass::Idempotent => "idempotent",
        EffectClass::Once(_) => "once",
        EffectClass::From(..) => "by the tool",
    }
}

/// Says how a flow that takes no message for it keeps its conversation short.
pub(super) fn compacts(flow: &Flow) -> String {
    let by_itself = flow.states.iter().any(|state| state.name == "Compact");
    let how = match by_itself {
        true => {
            "it does so by itself, in its state Compact, when the model says that the conversation is too long"
        }
        false => "what it tells its model is up to its text",
    };
    format!("{} takes no message Compact: {how}", flow.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::flow_file::Named;

    #[test]
    fn the_tools_of_the_agent_are_listed_with_class_permission_and_rules() {
        let agent = Named::new(None).choose().unwrap().flow.machine;
        let text = tools(&agent, &json!({ "deny": ["shell(rm *)"], "allow": [], "grants": ["write(a)"] }));
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(line("read ").contains("pure        no question"), "{text}");
        assert!(line("write ").contains("idempotent  asks"), "{text}");
        assert!(line("shell ").contains("once        asks"), "{text}");
        assert!(text.ends_with("  denied: shell(rm *)\n  always, by a person: write(a)"), "{text}");
        assert!(!tools(&agent, &Value::Null).contains("Rules"));
        assert!(compacts(agent.root()).contains("in its state Compact"));
    }

    #[test]
    fn rules_that_are_alike_are_told_once() {
        for (patterns, expected) in [
            (vec!["fetch", "shell(rm *)"], "fetch; shell(rm *)"),
            (vec!["write(a)", "edit(a)"], "write, edit: a"),
            (vec!["write(a)", "write(b)", "edit(a)", "edit(b)", "append(a)"], "write, edit: a, b; append(a)"),
            (
                vec!["w(1)", "w(2)", "w(3)", "w(4)", "w(5)", "w(6)", "w(7)", "w(8)", "w(9)"],
                "w: 1, 2, 3, 4, 5, 6, 7, 8 and 1 more",
            ),
        ] {
            assert_eq!(grouped(&patterns).join("; "), expected);
        }
    }

    #[test]
    fn a_model_is_told_with_what_is_needed_to_find_it() {
        let found = Endpoint {
            url: "http://h/v1".to_owned(),
            name: "m".to_owned(),
            key_env: Some("KEY".to_owned()),
            ..Endpoint::default()
        };
        let permissions = Default::default();
        let (environment, sandbox) = (Default::default(), Default::default());
        let model_found = Model::Anthropic(found);
        let profile = Profile {
            directory: "/d".into(),
            model: model_found,
            permissions,
            environment,
            sandbox,
            servers: None,
        };
        let text = model(&profile);
        assert!(
            text.starts_with("m at http://h/v1 (anthropic, with the key in KEY) answers; tools work in /d\n"),
            "{text}"
        );
    }
}
