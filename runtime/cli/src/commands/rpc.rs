//! `outlast rpc`: JSON-RPC over stdin and stdout for one program, until its input ends.
//!
//! Leaves the protocol to the library. Invariant: stdout carries the protocol and nothing else; leaving ends no run.

use std::path::PathBuf;
use std::sync::Arc;

use outlast_runtime::host::Session;
use outlast_runtime::rpc::stdio::{self, Left, Profiles};

use super::Context;
use crate::diagnostics::Told;
use crate::failure::{Exit, Failure};
use crate::flow_file::FlowFile;
use crate::open::{self, Workers};
use crate::signals::Signals;
use crate::{environment, out};

/// Arguments of `rpc`.
///
/// One JSON-RPC 2.0 request or batch to a line, one answer to a line. Parameters are those of the HTTP API, by name, with the run's id as
/// `run`. The end of the input ends the command; its runs stay.
///
/// Methods: flows.deploy, flows.list; runs.start, runs.list, runs.get, runs.result, runs.events, runs.tree, runs.watch, runs.unwatch,
/// runs.message, runs.withdraw, runs.answer, runs.settle, runs.release, runs.fork, runs.cancel, runs.terminate, runs.delete;
/// schedules.list, schedules.get, schedules.put, schedules.remove, schedules.pause, schedules.resume, schedules.run_now; retention.get,
/// retention.put.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Flow files to deploy; flows that were deployed before are there anyway
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Serves until the input ends or a signal comes.
pub(crate) async fn rpc(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let mut files = Vec::new();
    for path in &arguments.files {
        let file = FlowFile::read(path)?;
        file.checked(Told::Errors)?;
        files.push(file);
    }
    let script = files.first().map_or_else(|| FlowFile::agent().script(), FlowFile::script);
    let profile = environment::profile(&script)?;
    environment::announce(&profile);
    let session = open::session(context.data, Workers::Started, Some(profile.clone())).await?;
    let left = match prepare(&session, &files).await {
        Err(failure) => Err(failure),
        Ok(mut profiles) => match session.call(async |client| client.put_profile(&profile).await).await {
            Err(error) => Err(error.into()),
            Ok(own) => {
                session.bring_model(&own, &profile).await;
                profiles.own = own;
                serve(&session, profiles, &mut signals).await
            }
        },
    };
    open::close(session).await;
    left
}

/// Deploys the files; returns the environments of their flows.
async fn prepare(session: &Session, files: &[FlowFile]) -> Result<Profiles, Failure> {
    let mut profiles = Profiles::default();
    for file in files {
        let profile = environment::profile(&file.script())?;
        let name = session.call(async |client| client.put_profile(&profile).await).await?;
        session.bring_model(&name, &profile).await;
        let request = file.deploy(Some(name.clone()));
        let flows = session.call(async |client| client.deploy(&request).await).await?;
        for flow in flows {
            out::say(&format!("deployed {} of {}", flow.name, file.name));
            profiles.of_flow.insert(flow.name, name.clone());
        }
    }
    Ok(profiles)
}

async fn serve(session: &Arc<Session>, profiles: Profiles, signals: &mut Signals) -> Result<Exit, Failure> {
    let serving = stdio::serve(Arc::clone(session), profiles, std::io::stdin(), std::io::stdout());
    let left = tokio::select! {
        left = serving => left,
        exit = signals.next() => return Ok(exit),
        why = session.failed() => return Err(Failure::new(Exit::Unavailable, why)),
    };
    match left {
        Ok(Left::InputClosed) => Ok(Exit::Done),
        Ok(Left::OutputClosed(error)) => Err(out::lost(&error)),
        Err(error) => Err(Failure::new(Exit::Failed, format!("cannot serve: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::Arguments;

    #[test]
    fn the_help_names_every_method() {
        let document: serde_json::Value = serde_json::from_str(outlast_protocol::OPENAPI).unwrap();
        let help = Arguments::augment_args(clap::Command::new("rpc")).render_long_help().to_string();
        let words: Vec<&str> =
            help.split([' ', '\n', ',', ';']).map(|word| word.trim_end_matches('.')).collect();
        for method in document["paths"]["/v1/rpc"]["post"]["x-scopes"].as_object().unwrap().keys() {
            assert!(words.contains(&method.as_str()), "{method}");
        }
    }
}
