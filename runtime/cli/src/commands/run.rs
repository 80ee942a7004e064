//! `outlast run` and `outlast result`: one run without a person, started or found again, waited for.

mod follow;
pub(crate) mod nudge;
pub(crate) mod policy;

use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::requests::{Permissions, Start};
use outlast_protocol::run::{RunView, WaitingFor};
use outlast_protocol::{ApiError, Code};
use outlast_runtime::client::{ClientError, Started};
use outlast_runtime::duration;
use outlast_runtime::host::{Session, SessionError};

use super::{Context, act};
use crate::failure::{Exit, Failure};
use crate::flow_file::{Chosen, Named};
use crate::open::{self, Workers};
use crate::{environment, input, out, servers, show};

pub(crate) use policy::OnAsk;

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// The result on stdout, what happens on stderr
    Text,
    /// One JSON object with id, status and outcome
    Json,
    /// A JSON line for everything that happens, and one for the result
    Jsonl,
}

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The flow: FILE or FILE:Flow [default: the built-in agent]
    #[arg(value_name = "FILE[:Flow]")]
    flow: Option<String>,
    #[command(flatten)]
    servers: servers::Given,
    /// The parameter `task`
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// The parameters: a JSON object, @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// The run's id. The same command with the same id continues the run, or shows its result again. A conversation that waits for
    /// a message is closed, since this command sends none
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// What to do when a person is asked
    #[arg(long, value_enum, default_value_t = OnAsk::Wait)]
    on_ask: OnAsk,
    /// A tool pattern that needs no question, such as 'shell(git *)'; with --on-ask approve
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<String>,
    /// How long to wait for the end, such as 30s or 5m; the run itself goes on later
    #[arg(long, value_name = "D", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

/// Runs a flow to its end.
pub(crate) async fn run(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let rules_fit = (arguments.on_ask == OnAsk::Approve) != arguments.allow.is_empty();
    if !rules_fit {
        return Err(Failure::usage(
            "--on-ask approve and --allow PATTERN belong together: rules say what is approved",
        ));
    }
    let output = if context.json { Output::Json } else { arguments.output };
    let given = input::input(arguments.task.as_deref(), arguments.input.as_deref())?;
    let only_id = arguments.flow.is_none() && arguments.task.is_none() && arguments.input.is_none();
    // Checked before anything is opened: a wrong flow leaves no trace.
    let chosen =
        if only_id && arguments.id.is_some() { None } else { Some(choose(context, arguments).await?) };
    let session = open::session(context.data, Workers::Started, None).await?;
    let started = match (chosen, &arguments.id) {
        (Some(chosen), _) => start(context, &session, &chosen, arguments, given).await,
        (None, Some(id)) => resume(&session, id).await,
        (None, None) => Err(Failure::usage("a flow or an id is expected")),
    };
    let waited = match started {
        Err(failure) => Err(failure),
        Ok(started) => {
            if output == Output::Text {
                let found = if started.existing { " (found again)" } else { "" };
                out::say(&format!("run {} of {}{found}", started.run.id, started.run.flow));
            }
            let waits_for_a_message = matches!(started.run.waiting_for, Some(WaitingFor::Message { .. }));
            let plan = follow::Plan {
                continues: started.existing && waits_for_a_message,
                run: started.run.id,
                output,
                on_ask: arguments.on_ask,
                timeout: arguments.timeout,
                closes: true,
            };
            follow::wait(&session, &plan).await
        }
    };
    open::close(session).await;
    waited
}

async fn choose(context: Context<'_>, arguments: &Arguments) -> Result<Chosen, Failure> {
    match arguments.servers.agent(context.data).await? {
        Some(agent) => Ok(agent),
        None => Named::new(arguments.flow.as_deref()).choose(),
    }
}

/// Deploys the flow and starts the run, or finds it.
async fn start(
    context: Context<'_>,
    session: &Session,
    chosen: &Chosen,
    arguments: &Arguments,
    given: serde_json::Value,
) -> Result<Started, Failure> {
    let id = match &arguments.id {
        Some(id) => id.clone(),
        None => act::fresh_id(&chosen.flow.name.to_lowercase())?,
    };
    // A run that is there goes on whatever servers do, and shows its result.
    if arguments.id.is_none() || session.call(async |client| client.run(&id).await).await.is_err() {
        servers::demand(context.data, &chosen.flow.machine, chosen.file.servers.as_deref()).await?;
    }
    let permissions = (arguments.on_ask == OnAsk::Approve)
        .then(|| Permissions { allow: arguments.allow.clone(), ..Permissions::default() });
    let start = Start { id: Some(id), input: given, permissions, ..Start::default() };
    start_chosen(session, chosen, start).await
}

/// Starts a run of a checked flow in the environment of this process.
pub(crate) async fn start_chosen(
    session: &Session,
    chosen: &Chosen,
    mut start: Start,
) -> Result<Started, Failure> {
    let deployed = deploy_chosen(session, chosen).await?;
    (start.flow, start.machine, start.profile) = (deployed.flow, deployed.machine, deployed.profile);
    let started = session.call(async |client| client.start(&start).await).await;
    let started = started.map_err(|error| refused(error, start.id.as_deref()))?;
    if started.existing && start.machine.as_ref().is_some_and(|machine| *machine != started.run.machine) {
        let RunView { id, flow, .. } = &started.run;
        let kept = format!("run {id} keeps the version of {flow} that it was started with");
        out::say(&format!("{kept}; `outlast migrate` is what changes it"));
    }
    Ok(started)
}

/// Deploys a checked flow in the environment of this process; returns what its runs are started with.
pub(crate) async fn deploy_chosen(session: &Session, chosen: &Chosen) -> Result<Start, Failure> {
    let mut profile = environment::profile(&chosen.file.script())?;
    profile.servers.clone_from(&chosen.file.servers);
    if chosen.flow.machine.activities.iter().any(|activity| activity.queue != "tool") {
        environment::announce(&profile);
    }
    let deploy = chosen.file.deploy(None);
    let flows = session.call(async |client| client.deploy(&deploy).await).await?;
    let deployed = flows.into_iter().find(|flow| flow.name == chosen.flow.name);
    let missing = || Failure::new(Exit::Failed, format!("the runtime did not deploy {}", chosen.flow.name));
    let deployed = deployed.ok_or_else(missing)?;
    let name = session.call(async |client| client.put_profile(&profile).await).await?;
    session.bring_model(&name, &profile).await;
    let (flow, machine) = (deployed.name, Some(deployed.machine));
    Ok(Start { flow, machine, profile: Some(name), ..Start::default() })
}

/// Says what to do about a start that is refused.
fn refused(error: SessionError, id: Option<&str>) -> Failure {
    let conflict =
        matches!(&error, SessionError::Call(ClientError::Refused(ApiError { code: Code::Conflict, .. })));
    let failure = Failure::from(error);
    match id {
        Some(id) if conflict => failure.of_run(id).hint(format!(
            "the id names a run with another flow or input: choose another --id, or see `outlast show {id}`"
        )),
        Some(_) | None => failure,
    }
}

/// Finds the run of that id, whatever its flow.
async fn resume(session: &Session, id: &str) -> Result<Started, Failure> {
    match session.call(async |client| client.run(id).await).await {
        Ok(run) => Ok(Started { run, existing: true }),
        Err(error) => {
            let missing = matches!(
                &error,
                SessionError::Call(ClientError::Refused(ApiError { code: Code::NotFound, .. }))
            );
            let failure = Failure::from(error).of_run(id);
            Err(if missing {
                failure.hint("to start it, name a flow file or give a --task")
            } else {
                failure
            })
        }
    }
}

/// Arguments of `result`.
#[derive(Debug, clap::Args)]
pub(crate) struct ResultArguments {
    /// The run
    id: String,
    /// How long to wait for its end, such as 30s or 5m; the run goes on meanwhile
    #[arg(long, value_name = "D", value_parser = duration::parse)]
    wait: Option<Duration>,
}

/// Shows a result, or waits for it.
pub(crate) async fn result(context: Context<'_>, arguments: &ResultArguments) -> Result<Exit, Failure> {
    let output = if context.json { Output::Json } else { Output::Text };
    let workers = if arguments.wait.is_some() { Workers::Started } else { Workers::None };
    let session = open::session(context.data, workers, None).await?;
    let exit = match arguments.wait {
        Some(wait) => {
            let run = arguments.id.clone();
            let plan = follow::Plan {
                run,
                output,
                on_ask: OnAsk::Wait,
                timeout: Some(wait),
                closes: false,
                continues: true,
            };
            follow::wait(&session, &plan).await
        }
        None => at_once(&session, &arguments.id, output).await,
    };
    open::close(session).await;
    exit
}

async fn at_once(session: &Arc<Session>, run: &str, output: Output) -> Result<Exit, Failure> {
    let found = session.call(async |client| client.result(run, Duration::ZERO).await).await;
    let found = found.map_err(|error| Failure::from(error).of_run(run))?;
    if output != Output::Text {
        out::json(&found)?;
    }
    match (&found.outcome, &found.waiting_for) {
        (Some(outcome), _) => follow::show_outcome(run, outcome, output),
        (None, waiting) => {
            if output == Output::Text {
                let why = waiting.as_ref().map(|waiting| show::waiting_for(run, waiting)).unwrap_or_default();
                let stands = if why.is_empty() { found.status } else { why };
                out::say(&format!("run {run} has no result yet: {stands}"));
            }
            Ok(Exit::Waiting)
        }
    }
}
