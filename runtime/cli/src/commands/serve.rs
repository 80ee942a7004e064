//! `outlast serve`: the HTTP API for other programs, until a signal comes.

use std::net::SocketAddr;
use std::path::PathBuf;

use outlast_runtime::host::Session;
use outlast_runtime::http::{Listener, Token};
use serde_json::json;

use super::Context;
use crate::diagnostics::Told;
use crate::failure::{Exit, Failure};
use crate::flow_file::FlowFile;
use crate::open::{self, Workers};
use crate::signals::Signals;
use crate::{environment, out};

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Flow files to deploy; flows that were deployed before are there anyway
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Also listen on TCP, such as 127.0.0.1:7878; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// The environment variable that holds the token which callers on TCP must send; needed beyond loopback
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
    /// Start no workers: they are started elsewhere
    #[arg(long)]
    no_workers: bool,
}

/// Serves until a signal comes.
pub(crate) async fn serve(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let mut files = Vec::new();
    for path in &arguments.files {
        let file = FlowFile::read(path)?;
        file.checked(Told::Errors)?;
        files.push(file);
    }
    let listeners = listeners(arguments).await?;
    let tcp = listeners.first().and_then(Listener::address);
    let script = files.first().map_or_else(|| FlowFile::agent().script(), FlowFile::script);
    let profile = environment::profile(&script)?;
    if files.is_empty() {
        environment::announce(&profile);
    }
    let workers = if arguments.no_workers { Workers::None } else { Workers::Started };
    let session = Session::host(open::options(context.data, workers, Some(profile))?, listeners).await?;
    for file in &files {
        // Each file brings its own script, if the model is scripted.
        let profile = environment::profile(&file.script())?;
        environment::announce(&profile);
        let name = session.call(async |client| client.put_profile(&profile).await).await?;
        let request = file.deploy(Some(name));
        let flows = session.call(async |client| client.deploy(&request).await).await?;
        let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
        out::say(&format!("deployed {} of {}", names.join(", "), file.name));
    }
    announce(context, &session, tcp)?;
    let left = tokio::select! {
        exit = signals.next() => Ok(exit),
        why = session.failed() => Err(Failure::new(Exit::Unavailable, why)),
    };
    session.close().await;
    left
}

/// Returns the TCP listener that was asked for. It is opened first: a port that is taken should be told before anything is started.
async fn listeners(arguments: &Arguments) -> Result<Vec<Listener>, Failure> {
    let token = match &arguments.token_env {
        None => None,
        Some(name) => match std::env::var(name) {
            Ok(text) if !text.is_empty() => Some(Token::new(&text)),
            Ok(_) | Err(_) => return Err(Failure::usage(format!("--token-env: {name} is not set"))),
        },
    };
    let Some(listen) = &arguments.listen else { return Ok(Vec::new()) };
    let cannot = |error: std::io::Error| {
        Failure::usage(format!("cannot listen on {listen}: {error}"))
            .hint("name a free address, such as 127.0.0.1:0, and a --token-env if others can reach it")
    };
    let addresses = tokio::net::lookup_host(listen.as_str()).await.map_err(cannot)?;
    let Some(address) = addresses.into_iter().next() else {
        return Err(Failure::usage(format!("--listen: {listen} has no address")));
    };
    Ok(vec![Listener::tcp(address, token).await.map_err(cannot)?])
}

/// Says where it listens: the line that tells a script that it may begin.
fn announce(context: Context<'_>, session: &Session, tcp: Option<SocketAddr>) -> Result<(), Failure> {
    let socket = session.directory().join("socket");
    let url = tcp.map(|address| format!("http://{address}"));
    if context.json {
        return out::json(&json!({ "listening": url, "socket": socket, "pid": std::process::id() }));
    }
    out::result(&format!("listening on {}", url.unwrap_or_else(|| format!("unix:{}", socket.display()))))
}
