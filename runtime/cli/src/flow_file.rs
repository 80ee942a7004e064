//! Flow files as a command line names them: `FILE`, `FILE:Flow`, or nothing for the built-in agent.
//!
//! Leaves their meaning to the language. Invariant: what is deployed is what was checked here, file by file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outlast_dsl::{Checked, CheckedFlow, SourceFile, check, gather};
use outlast_protocol::requests::{Deploy, FileText};

use crate::diagnostics::{self, Told};
use crate::environment::Script;
use crate::failure::{Exit, Failure};
use crate::files::read_text;

/// The built-in agent.
const AGENT: &str = include_str!("../../../examples/agent.flow");
/// The catalogue that it uses.
const AGENT_TOOLS: &str = include_str!("../../../examples/dev.tools.json");
/// The name under which it does.
const AGENT_CATALOGUE: &str = "dev.tools.json";
/// The name of its file.
const AGENT_NAME: &str = "agent.flow";

/// A flow file and what it uses, read but not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowFile {
    /// As the user named it.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
    /// The files that it uses, directly or through others, by their paths.
    pub(crate) attachments: BTreeMap<String, String>,
    /// The file of MCP servers whose tools it was given, if it is not that of the directory.
    pub(crate) servers: Option<PathBuf>,
    /// The scripted model that belongs to it.
    script: Option<Script>,
}

/// A checked flow file, and the flow of it that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// The file.
    pub(crate) file: FlowFile,
    /// The flow.
    pub(crate) flow: CheckedFlow,
}

/// What a command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    path: Option<PathBuf>,
    flow: Option<String>,
}

impl Named {
    /// Reads `FILE[:Flow]`; nothing names the built-in agent.
    pub(crate) fn new(text: Option<&str>) -> Named {
        let Some(text) = text else { return Named { path: None, flow: None } };
        if let Some((path, flow)) = text.rsplit_once(':')
            && flow.starts_with(|c: char| c.is_ascii_uppercase())
            && flow.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !path.is_empty()
        {
            return Named { path: Some(path.into()), flow: Some(flow.to_owned()) };
        }
        Named { path: Some(text.into()), flow: None }
    }

    /// Names a flow of the file where none is named.
    pub(crate) fn or_flow(mut self, flow: &str) -> Named {
        self.flow.get_or_insert_with(|| flow.to_owned());
        self
    }

    /// Reads, checks and chooses; diagnostics are told.
    pub(crate) fn choose(&self) -> Result<Chosen, Failure> {
        let file = match &self.path {
            None => FlowFile::agent(),
            Some(path) => FlowFile::read(path)?,
        };
        self.choose_of(file)
    }

    /// Checks a file that was read and chooses of it; diagnostics are told.
    fn choose_of(&self, file: FlowFile) -> Result<Chosen, Failure> {
        let flows = file.checked(Told::Errors)?;
        let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
        let missing = match &self.flow {
            Some(flow) => format!("{} has no flow {flow}; it has {}", file.name, names.join(", ")),
            None => format!("{} has no flow", file.name),
        };
        let wanted = |flow: &CheckedFlow| self.flow.as_ref().is_none_or(|name| *name == flow.name);
        let flow = flows.into_iter().find(wanted).ok_or_else(|| Failure::usage(missing))?;
        Ok(Chosen { file, flow })
    }
}

impl Chosen {
    /// Returns the built-in agent with this catalogue, whose servers stand in this file.
    pub(crate) fn agent_with(catalogue: String, servers: PathBuf) -> Result<Chosen, Failure> {
        let attachments = [(AGENT_CATALOGUE.to_owned(), catalogue)].into();
        let file = FlowFile { attachments, servers: Some(servers), ..FlowFile::agent() };
        Named::new(None).choose_of(file)
    }
}

impl FlowFile {
    /// Returns the built-in agent.
    pub(crate) fn agent() -> FlowFile {
        let attachments = [(AGENT_CATALOGUE.to_owned(), AGENT_TOOLS.to_owned())].into();
        let script = Some(agent_script());
        let (name, text) = (AGENT_NAME.to_owned(), AGENT.to_owned());
        FlowFile { name, text, attachments, servers: None, script }
    }

    /// Returns the text of the built-in agent's catalogue.
    pub(crate) fn agent_tools() -> &'static str {
        AGENT_TOOLS
    }

    /// Reads a file, the files that it uses, and its script.
    pub(crate) fn read(path: &Path) -> Result<FlowFile, Failure> {
        let name = path.display().to_string();
        let text = read_text(path)?;
        let source = SourceFile { name: name.clone(), text };
        // What is missing or unreadable is the checker's to say, with the place.
        let attachments = gather(std::slice::from_ref(&source), |used| read_text(Path::new(used)).ok());
        let script = path.with_extension("script.json");
        let script = match script.is_file() {
            false => None,
            true => Some(Script { name: script.display().to_string(), text: read_text(&script)? }),
        };
        Ok(FlowFile { name, text: source.text, attachments, servers: None, script })
    }

    /// Returns its flows if there is no error in it; tells what is to be said.
    pub(crate) fn checked(&self, told: Told) -> Result<Vec<CheckedFlow>, Failure> {
        let checked = self.check();
        let errors = diagnostics::tell(&checked.files, &checked.diagnostics, told);
        if errors == 0 { Ok(checked.flows) } else { Err(Failure::silent(Exit::Usage)) }
    }

    /// Returns what checking it finds.
    pub(crate) fn check(&self) -> Checked {
        let source = SourceFile { name: self.name.clone(), text: self.text.clone() };
        check(&[source], &self.attachments)
    }

    /// Returns the request that deploys it.
    pub(crate) fn deploy(&self, profile: Option<String>) -> Deploy {
        let own = [(&self.name, &self.text)].into_iter();
        let files = own.chain(&self.attachments);
        Deploy { files: files.map(|(n, t)| FileText { name: n.clone(), text: t.clone() }).collect(), profile }
    }

    /// Returns its scripted model; that of the built-in agent, which has something to say to everything, if it has none of its own.
    pub(crate) fn script(&self) -> Script {
        self.script.clone().unwrap_or_else(agent_script)
    }
}

fn agent_script() -> Script {
    Script { name: "the built-in agent".to_owned(), text: outlast_workers::model::AGENT_SCRIPT.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_may_follow_the_file() {
        for (text, path, flow) in [
            (None, None, None),
            (Some("a.flow"), Some("a.flow"), None),
            (Some("a.flow:Report"), Some("a.flow"), Some("Report")),
            (Some("c:/a.flow"), Some("c:/a.flow"), None),
            (Some("a:b/C.flow"), Some("a:b/C.flow"), None),
            (Some(":Report"), Some(":Report"), None),
        ] {
            let expected = Named { path: path.map(PathBuf::from), flow: flow.map(str::to_owned) };
            assert_eq!(Named::new(text), expected, "{text:?}");
        }
    }
}
