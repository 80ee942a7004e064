//! The tools as activities: each by itself for flows, and all behind `tool` for models.
//!
//! Leaves the work to the tool modules. Invariant: through `tool`, whatever a model asked for is answered with a `ToolResult`. A
//! failure is only what the flow has to see: a broken task (no call at all), and of servers' tools a server that cannot be had
//! (`ServerUnavailable`, to be tried again), a call that is not what was approved any more (`ApprovalStale`), and one that the
//! runtime has stopped (`Stopped`).

use std::sync::Arc;

use outlast_protocol::worker::Offer;
use serde::Deserialize;
use serde_json::{Map, json};

use super::definition::{Tool, time};
use super::files::{self, Trace};
use super::output::{Capture, Captured, Reader, in_short_lines, quote};
use super::permission::Approval;
use super::{ToolError, Toolbox, fetch, search, seen, shell};
use crate::Json;
use crate::limits::{ENTRIES_KEPT_MAX, ENTRIES_MAX, QUOTE_CHARS_MAX};
use crate::mcp::{self, Asked, End, Wanted};
use crate::model::NOT_RUN;
use crate::sdk::{Activity, Done, Failure, TaskContext, is_name};

/// All activities of a toolbox.
pub(super) fn all(toolbox: &Arc<Toolbox>) -> Vec<Arc<dyn Activity>> {
    let direct =
        Tool::ALL.map(|tool| Arc::new(Direct { tool, toolbox: toolbox.clone() }) as Arc<dyn Activity>);
    let mut all = Vec::from(direct);
    all.push(Arc::new(AppendEffect { toolbox: toolbox.clone() }));
    all.push(Arc::new(Called { toolbox: toolbox.clone() }));
    all.push(Arc::new(CalledEffect { toolbox: toolbox.clone() }));
    all.push(Arc::new(Looked { toolbox: toolbox.clone() }));
    all
}

/// A call as a model made it.
#[derive(Clone, Debug, Deserialize)]
struct ToolCall {
    id: String,
    name: String,
    args: Json,
    /// What it rested on when a person was asked; none if nobody looked.
    #[serde(default)]
    seen: Option<Json>,
    #[serde(skip, default = "given")]
    approval: Approval,
}

fn given() -> Approval {
    Approval::Given
}

impl ToolCall {
    /// Reads `call`, approved (`{"value": {…}, "by": […]}`) or bare.
    fn of(task: &TaskContext) -> Result<ToolCall, Failure> {
        let call = task.arg("call").ok_or_else(|| Failure::bad_input("call is missing"))?;
        let by = call.get("by");
        let bare = if by.is_some() { call.get("value").unwrap_or(call) } else { call };
        let approval = if by == Some(&json!(["policy"])) { Approval::ByPolicy } else { Approval::Given };
        let call = ToolCall::deserialize(bare)
            .map_err(|error| Failure::bad_input(format!("call is no ToolCall: {error}")))?;
        Ok(ToolCall { approval, ..call })
    }

    /// Whether it is a call of an MCP server's tool.
    fn is_of_server(&self) -> bool {
        mcp::server_of(&self.name).is_some()
    }

    /// Whether it changes the very file that was looked at.
    fn rests_on_its_file(&self) -> bool {
        let changes = [Tool::Write, Tool::Edit].map(Tool::name).contains(&self.name.as_str());
        changes && self.seen.is_some()
    }

    /// The arguments, if they are any.
    fn args(&self) -> Result<&Map<String, Json>, ToolError> {
        match &self.args {
            Json::Object(args) => Ok(args),
            // The model worker says so where it knows why the arguments are none.
            Json::String(text) if text.starts_with(NOT_RUN) => {
                Err(ToolError::new("BadArguments", quote(text, QUOTE_CHARS_MAX * 2)))
            }
            other => {
                let shown = quote(&other.to_string(), QUOTE_CHARS_MAX);
                let text = format!("{NOT_RUN} the arguments are no JSON object: {shown}");
                Err(ToolError::new("BadArguments", text))
            }
        }
    }

    /// The tool and its arguments, if both exist and fit.
    fn resolve(&self) -> Result<(Tool, Map<String, Json>), ToolError> {
        let Some(tool) = Tool::named(&self.name) else {
            let names = Tool::ALL.map(Tool::name).join(", ");
            let name = quote(&self.name, QUOTE_CHARS_MAX);
            return Err(ToolError::new(
                "NoSuchTool",
                format!("there is no tool {name:?}; there are {names}"),
            ));
        };
        let args = self.args()?;
        tool.check(args)?;
        Ok((tool, args.clone()))
    }

    fn answer(&self, text: String, ok: bool) -> Json {
        json!({"id": self.id, "text": text, "ok": ok})
    }
}

/// What a tool gave.
enum Output {
    Text(String),
    Entries(Vec<String>),
    /// Text that may have to be kept beside the result.
    Taken(Captured),
    Command(shell::CommandEnd),
}

/// Arguments that were checked.
struct Args<'a>(&'a Map<String, Json>);

impl Args<'_> {
    fn text(&self, name: &str) -> &str {
        self.may_text(name).unwrap_or_default()
    }

    fn may_text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Json::as_str)
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Json::as_u64)
    }
}

impl Toolbox {
    async fn run(
        self: &Arc<Self>,
        tool: Tool,
        args: &Map<String, Json>,
        task: &TaskContext,
        reader: Reader,
    ) -> Result<Output, ToolError> {
        let arg = Args(args);
        match tool {
            Tool::Shell => {
                let timeout = args.get("timeout").and_then(time);
                shell::run(self, task, arg.text("command"), timeout, reader).await.map(Output::Command)
            }
            Tool::Edit => self.edit(&arg, task).await.map(Output::Text),
            Tool::Read if is_name(arg.text("path")) => read_on(&arg, task, reader).await.map(Output::Taken),
            Tool::Fetch => {
                let timeout = args.get("timeout").and_then(time);
                fetch::fetch(self, task, arg.text("url"), timeout, reader).await.map(Output::Text)
            }
            Tool::Read | Tool::Write | Tool::Append | Tool::List | Tool::Find | Tool::Grep => {
                let (toolbox, args, task) = (self.clone(), args.clone(), task.clone());
                let hold = task.hold();
                let work = tokio::task::spawn_blocking(move || {
                    let result = toolbox.run_blocking(tool, &Args(&args), &task, reader);
                    drop(hold);
                    result
                });
                work.await.unwrap_or_else(|error| Err(ToolError::new("ToolError", error.to_string())))
            }
        }
    }

    fn run_blocking(
        &self,
        tool: Tool,
        arg: &Args,
        task: &TaskContext,
        reader: Reader,
    ) -> Result<Output, ToolError> {
        let (jail, ended) = (&self.jail, || task.is_cancelled());
        let path = arg.may_text("path").unwrap_or(".");
        // What a model does not see of them is kept; a flow gets them as a list.
        let most = if reader == Reader::Model { ENTRIES_KEPT_MAX } else { ENTRIES_MAX };
        match tool {
            Tool::Read => {
                let (offset, limit) = (arg.count("offset"), arg.count("limit"));
                files::read(jail, path, offset, limit, reader, task.mask()).map(Output::Taken)
            }
            Tool::Write => files::write(jail, path, arg.text("text")).map(Output::Text),
            Tool::Append => files::append(jail, path, arg.text("line"), task.key()).map(Output::Text),
            Tool::List => search::list(jail, path, most).map(Output::Entries),
            Tool::Find => search::find(jail, arg.text("pattern"), path, most, &ended).map(Output::Entries),
            Tool::Grep => {
                let look = search::Look { path, glob: arg.may_text("glob"), most, mask: task.mask() };
                search::grep(jail, arg.text("pattern"), look, &ended).map(Output::Entries)
            }
            Tool::Edit | Tool::Shell | Tool::Fetch => {
                unreachable!("{} does not run on a thread of its own", tool.name())
            }
        }
    }

    /// Looks at what a call rests on now.
    async fn look_at(self: &Arc<Self>, call: &ToolCall, task: &TaskContext) -> Result<Json, Failure> {
        let (toolbox, call, hold) = (self.clone(), call.clone(), task.hold());
        let look = move || {
            let _until_done = hold;
            match (call.is_of_server(), call.resolve()) {
                (true, _) => toolbox.look_at_server(&call.name),
                (false, Ok((tool, args))) => toolbox.look(tool, &args),
                // What does not fit is refused when it is called; it rests on nothing.
                (false, Err(_)) => Json::Object(Map::new()),
            }
        };
        let looked = tokio::task::spawn_blocking(look).await;
        looked.map_err(|error| Failure::new("ToolError", error.to_string()))
    }

    /// Refuses a call that rests on something else than when a person was asked about it. One of which an earlier attempt has left a
    /// handle was compared then; what it has changed since is its own doing, and so is the content that a `write` has made.
    async fn is_as_seen(self: &Arc<Self>, call: &ToolCall, task: &TaskContext) -> Result<(), Failure> {
        let Some(then) = call.seen.as_ref().filter(|_| task.handle().is_none()) else { return Ok(()) };
        let now = self.look_at(call, task).await?;
        let changed = seen::changes(then, &now);
        if changed.is_empty() || self.has_written(call) {
            return Ok(());
        }
        let text = format!(
            "not run: since a person was asked about it, this has changed: {}. Call it again to have it asked about as it is now",
            changed.join(", ")
        );
        Err(Failure::new("ApprovalStale", text))
    }

    /// Whether a call of `write` has nothing to do any more.
    fn has_written(&self, call: &ToolCall) -> bool {
        match call.resolve() {
            Ok((Tool::Write, args)) => {
                let arg = Args(&args);
                files::has_content(&self.jail, arg.text("path"), arg.text("text")).unwrap_or(false)
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Calls a tool of an MCP server.
    async fn call_server(&self, call: &ToolCall, task: &TaskContext) -> Result<(String, bool), Failure> {
        let args = match call.args() {
            Ok(args) => args,
            Err(error) => return Ok((error.text, false)),
        };
        // A flow that gives answers, also none yet, asks people itself.
        let answers = task.arg("answers").and_then(Json::as_array).map(Vec::as_slice);
        match self.servers.call(task, Asked { tool: &call.name, args, answers }).await {
            Ok(End::Answer(text, ok)) => Ok((text, ok)),
            Ok(End::Asks(Wanted { question, form, said })) => {
                let failure = Failure::new("ServerAsks", question.clone()).field("question", question);
                Err(failure.field("form", form).field("said", said))
            }
            Ok(End::Stale(text)) => Err(Failure::new("ApprovalStale", text)),
            Ok(End::Stopped) => Err(Failure::new("Stopped", "the call was stopped")),
            // A name that a model made up: neither the run's catalogue nor the configuration knows it.
            Err(unavailable) if task.task().definition.is_none() && !unavailable.configured => {
                let name = quote(&call.name, QUOTE_CHARS_MAX);
                Ok((format!("there is no tool {name:?}: {unavailable}"), false))
            }
            Err(unavailable) => {
                let mut failure = Failure::new("ServerUnavailable", unavailable.to_string()).retryable();
                failure.retry_after = Some(unavailable.wait);
                Err(failure.field("server", unavailable.server))
            }
        }
    }

    /// Edits a file. What it was and will be is left as a handle first, so a second attempt knows whether the first one did it.
    async fn edit(&self, arg: &Args<'_>, task: &TaskContext) -> Result<String, ToolError> {
        let (path, old, new) = (arg.text("path"), arg.text("old"), arg.text("new"));
        // Two edits of one file in one turn follow each other instead of refusing one.
        let _one_at_a_time = self.editing.lock().await;
        if let Some(handle) = task.handle() {
            let now = files::digest_of(&self.jail, path)?;
            if handle["after"] == now.as_str() {
                return Ok(format!("edited {path}"));
            }
            if handle["before"] != now.as_str() {
                return Err(files::changed(path));
            }
        }
        let change = files::plan_edit(&self.jail, path, old, new)?;
        let handle = json!({"before": files::digest(&change.before), "after": files::digest(&change.after)});
        if task.handle() != Some(&handle) {
            let superseded =
                |error: crate::sdk::NoLongerWanted| ToolError::new("Superseded", error.to_string());
            task.set_handle(handle).await.map_err(superseded)?;
        }
        files::make_edit(&self.jail, path, &change)
    }
}

/// Reads what was kept beside an earlier result, in lines that are never too long to be shown.
async fn read_on(arg: &Args<'_>, task: &TaskContext, reader: Reader) -> Result<Captured, ToolError> {
    let name = arg.text("path");
    let bytes = task.blob(name).await;
    let bytes = bytes.map_err(|error| ToolError::new("NotFound", format!("{name}: {error}")))?;
    let (lines, some) = (in_short_lines(&bytes), (arg.count("offset"), arg.count("limit")));
    files::some_lines(lines.as_slice(), name, some, Capture::new(reader, task.mask()))
}

fn in_lines(entries: &[String], task: &TaskContext) -> Captured {
    let mut capture = Capture::new(Reader::Model, task.mask());
    for (at, entry) in entries.iter().enumerate() {
        if at > 0 {
            capture.push(b"\n");
        }
        capture.push(entry.as_bytes());
    }
    capture.finish()
}

/// One tool as an activity of its own.
struct Direct {
    tool: Tool,
    toolbox: Arc<Toolbox>,
}

#[async_trait::async_trait]
impl Activity for Direct {
    fn offer(&self) -> Offer {
        Offer {
            name: self.tool.name().to_owned(),
            input: self.tool.input_schema(),
            output: self.tool.output_schema(),
            effect: self.tool.effect().to_owned(),
        }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let Json::Object(args) = task.input().clone() else { return Err(Failure::bad_input("no arguments")) };
        self.tool.check(&args)?;
        Ok(match self.toolbox.run(self.tool, &args, &task, Reader::Flow).await? {
            Output::Text(text) => Done::new(text),
            Output::Entries(entries) => Done::new(entries),
            Output::Taken(taken) => Done::new(taken.kept(&task).await),
            Output::Command(end) => Done::new(end.for_flow()?),
        })
    }
}

/// Tells whether an `append` has happened.
struct AppendEffect {
    toolbox: Arc<Toolbox>,
}

#[async_trait::async_trait]
impl Activity for AppendEffect {
    fn offer(&self) -> Offer {
        Offer {
            name: "append_effect".to_owned(),
            input: Tool::Append.input_schema(),
            output: Json::Null,
            effect: "pure".to_owned(),
        }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let (path, line) = (task.text("path")?, task.text("line")?);
        let trace = files::trace_of_append(&self.toolbox.jail, path, line, task.key())?;
        Ok(Done::new(verdict(trace, || format!("appended to {path}").into())))
    }
}

/// `tool(call)`: whatever a model asks for.
struct Called {
    toolbox: Arc<Toolbox>,
}

#[async_trait::async_trait]
impl Activity for Called {
    fn offer(&self) -> Offer {
        // The class is the catalogue's, call by call.
        Offer { name: "tool".to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let call = ToolCall::of(&task)?;
        // Of two approved changes of one file, the second is compared with what the first one has made.
        let _one_at_a_time = match call.rests_on_its_file() {
            true => Some(self.toolbox.comparing.lock().await),
            false => None,
        };
        self.toolbox.is_as_seen(&call, &task).await?;
        if call.is_of_server() {
            let class = &task.task().effect;
            let permitted = self.toolbox.permit_of_server(&call.name, &call.args, class, call.approval);
            let (text, ok) = match permitted {
                Ok(()) => self.toolbox.call_server(&call, &task).await?,
                Err(error) => (error.text, false),
            };
            return Ok(Done::new(call.answer(text, ok)));
        }
        let result = match call.resolve() {
            Ok((tool, args)) => match self.toolbox.permit(tool, &args, call.approval) {
                Ok(()) => self.toolbox.run(tool, &args, &task, Reader::Model).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        let (text, ok) = match result {
            Ok(Output::Text(text)) if text.is_empty() => ("(empty)".to_owned(), true),
            Ok(Output::Text(text)) => (text, true),
            Ok(Output::Entries(entries)) if entries.is_empty() => ("(nothing found)".to_owned(), true),
            Ok(Output::Entries(entries)) => (in_lines(&entries, &task).kept(&task).await, true),
            Ok(Output::Taken(taken)) if taken.is_empty() => ("(empty)".to_owned(), true),
            Ok(Output::Taken(taken)) => (taken.kept(&task).await, true),
            Ok(Output::Command(end)) => end.for_model(),
            Err(error) => (error.text, false),
        };
        Ok(Done::new(call.answer(text, ok)))
    }
}

/// Tells whether a `tool` call has happened, where the directory shows it.
struct CalledEffect {
    toolbox: Arc<Toolbox>,
}

#[async_trait::async_trait]
impl Activity for CalledEffect {
    fn offer(&self) -> Offer {
        Offer { name: "tool_effect".to_owned(), effect: "pure".to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let call = ToolCall::of(&task)?;
        if call.is_of_server() {
            // A server cannot be asked what became of a call.
            return Ok(Done::new(verdict(Trace::CannotTell, || Json::Null)));
        }
        // What does not fit was never run.
        let Ok((tool, args)) = call.resolve() else {
            return Ok(Done::new(verdict(Trace::NotHappened, || Json::Null)));
        };
        let (jail, arg) = (&self.toolbox.jail, Args(&args));
        let path = arg.text("path");
        let trace = match tool {
            Tool::Write => files::has_content(jail, path, arg.text("text"))
                .map(|same| if same { Trace::Happened } else { Trace::NotHappened }),
            Tool::Edit => files::trace_of_edit(jail, path, arg.text("old"), arg.text("new")),
            Tool::Append => files::trace_of_append(jail, path, arg.text("line"), task.key()),
            // Running them again changes nothing.
            Tool::Read | Tool::List | Tool::Find | Tool::Grep | Tool::Fetch => Ok(Trace::NotHappened),
            Tool::Shell => Ok(Trace::CannotTell),
        };
        // What cannot be looked at cannot be told.
        let trace = trace.unwrap_or(Trace::CannotTell);
        Ok(Done::new(verdict(trace, || call.answer(format!("{} of {path}: done", tool.name()), true))))
    }
}

/// Tells what a `tool` call rests on now, so that a person can be asked about it with that.
struct Looked {
    toolbox: Arc<Toolbox>,
}

#[async_trait::async_trait]
impl Activity for Looked {
    fn offer(&self) -> Offer {
        Offer { name: "tool_look".to_owned(), effect: "pure".to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let call = ToolCall::of(&task)?;
        Ok(Done::new(self.toolbox.look_at(&call, &task).await?))
    }
}

fn verdict(trace: Trace, result: impl FnOnce() -> Json) -> Json {
    match trace {
        Trace::Happened => json!({"type": "Happened", "result": result()}),
        Trace::NotHappened => json!({"type": "NotHappened"}),
        Trace::CannotTell => json!({"type": "CannotTell"}),
    }
}
