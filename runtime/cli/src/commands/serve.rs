//! `outlast serve`: the HTTP API for other programs, until a signal comes.

use std::net::SocketAddr;
use std::path::PathBuf;

use outlast_runtime::host::{Options, Session};
use outlast_runtime::http::{AccessLog, Admission, Listener, Tls, TlsError, Token};
use serde_json::json;

use super::Context;
use crate::diagnostics::Told;
use crate::failure::{Exit, Failure};
use crate::flow_file::FlowFile;
use crate::limits::TOKEN_CHARS_MIN;
use crate::open::{self, Workers};
use crate::signals::{Heard, Signals};
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
    /// Callers on TCP must send a token of `outlast token add`, also on loopback; this or --token-env is needed beyond loopback
    #[arg(long, requires = "listen")]
    tokens: bool,
    /// The environment variable that holds a token, 16 characters or more, which allows callers on TCP everything
    #[arg(long, value_name = "NAME", requires = "listen")]
    token_env: Option<String>,
    /// Speak TLS on TCP, with this certificate in PEM, followed by those that lead to its authority
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "listen")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Add a line of JSON for each request to this file; SIGHUP opens it anew, and reads the certificate again
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
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
    let fresh = Fresh { tls: tls(arguments)?, log: access_log(arguments)? };
    let listeners = listeners(arguments, fresh.tls.as_ref()).await?;
    let tcp = listeners.first().and_then(Listener::address);
    let script = files.first().map_or_else(|| FlowFile::agent().script(), FlowFile::script);
    let profile = environment::profile(&script)?;
    if files.is_empty() {
        environment::announce(&profile);
    }
    let workers = if arguments.no_workers { Workers::None } else { Workers::Started };
    let options = open::options(context.data, workers, Some(profile))?;
    let session =
        Session::host(Options { access_log: fresh.log.clone(), schedules: true, ..options }).await?;
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
    // Whoever comes now finds the flows of these files, not those of before.
    session.listen(listeners).await;
    if arguments.tokens {
        let tokens = session.call(async |client| client.tokens().await).await?;
        if tokens.items.iter().all(|token| token.status != "active") {
            out::say("no token holds now: outlast token add NAME --scope SCOPE makes one");
        }
    }
    announce(context, &session, (tcp, arguments))?;
    let left = tokio::select! {
        () = fresh.until_told_to_leave(&mut signals) => Ok(Exit::Done),
        why = session.failed() => Err(Failure::new(Exit::Unavailable, why)),
    };
    session.close().await;
    if left.is_ok() {
        out::say("stopped: the runs stay, and go on with the next one that hosts them");
    }
    if let Some(log) = &fresh.log {
        log.close();
    }
    left
}

/// What is read again when the terminal hangs up, which is how a server is told that its files were changed.
struct Fresh {
    tls: Option<Tls>,
    log: Option<AccessLog>,
}

impl Fresh {
    async fn until_told_to_leave(&self, signals: &mut Signals) {
        if self.tls.is_none() && self.log.is_none() {
            let _whichever = signals.next().await;
            return;
        }
        loop {
            match signals.heard().await {
                Heard::Leave(_) => return,
                Heard::HangUp => self.refresh(),
            }
        }
    }

    fn refresh(&self) {
        if let Some(log) = &self.log {
            log.reopen();
        }
        if let Some(tls) = &self.tls {
            match tls.reload() {
                Ok(()) => out::say("the certificate was read again"),
                Err(error) => out::say(&format!("the certificate stays as it was: {error}")),
            }
        }
    }
}

fn tls(arguments: &Arguments) -> Result<Option<Tls>, Failure> {
    let (Some(cert), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) else { return Ok(None) };
    let cannot = |error: TlsError| {
        Failure::usage(error.to_string())
            .hint("--tls-cert takes the certificate, followed by those that lead to its authority; --tls-key its key")
    };
    Tls::load(cert, key).map(Some).map_err(cannot)
}

fn access_log(arguments: &Arguments) -> Result<Option<AccessLog>, Failure> {
    let Some(path) = &arguments.access_log else { return Ok(None) };
    let cannot = |error| Failure::usage(format!("--access-log: cannot open {}: {error}", path.display()));
    AccessLog::open(path).map(Some).map_err(cannot)
}

/// Returns the TCP listener that was asked for. It is opened first: a port that is taken should be told before anything is started.
async fn listeners(arguments: &Arguments, tls: Option<&Tls>) -> Result<Vec<Listener>, Failure> {
    let token = arguments.token_env.as_deref().map(own_token).transpose()?;
    let admission = Admission { token, stored: arguments.tokens };
    let Some(listen) = &arguments.listen else { return Ok(Vec::new()) };
    let cannot = |error: std::io::Error| {
        Failure::usage(format!("cannot listen on {listen}: {error}")).hint(
            "name a free address, such as 127.0.0.1:0, and --tokens or --token-env if others can reach it",
        )
    };
    let addresses = tokio::net::lookup_host(listen.as_str()).await.map_err(cannot)?;
    let Some(address) = addresses.into_iter().next() else {
        return Err(Failure::usage(format!("--listen: {listen} has no address")));
    };
    let listener = Listener::tcp(address, admission).await.map_err(cannot)?;
    Ok(vec![match tls {
        None => listener,
        Some(tls) => listener.with_tls(tls.clone()),
    }])
}

/// Returns the token that a variable of the environment holds.
fn own_token(variable: &str) -> Result<Token, Failure> {
    let text = std::env::var(variable).unwrap_or_default();
    let text = text.trim();
    let refused = |what: &str| {
        Err(Failure::usage(format!("--token-env: {variable} {what}"))
            .hint(format!("set it to {TOKEN_CHARS_MIN} or more random characters, or use --tokens")))
    };
    match text.chars().count() {
        0 => refused("is not set"),
        1..TOKEN_CHARS_MIN => refused("holds a token that can be guessed"),
        // What cannot be sent in a header is no caller's token.
        _ if text.chars().any(|c| !c.is_ascii_graphic()) => {
            refused("holds characters that no token has: visible ASCII is expected")
        }
        _ => Ok(Token::new(text)),
    }
}

/// Says where it listens: the line that tells a script that it may begin.
fn announce(
    context: Context<'_>,
    session: &Session,
    (tcp, arguments): (Option<SocketAddr>, &Arguments),
) -> Result<(), Failure> {
    let socket = session.directory().join("socket");
    let (scheme, callers) = (if arguments.tls_cert.is_some() { "https" } else { "http" }, callers(arguments));
    let url = tcp.map(|address| format!("{scheme}://{address}"));
    if context.json {
        let pid = std::process::id();
        return out::json(&json!({ "listening": url, "socket": socket, "pid": pid, "callers": callers }));
    }
    let place = url.unwrap_or_else(|| format!("unix:{}", socket.display()));
    out::result(&format!("listening on {place} for {callers}"))
}

/// Says who may call.
fn callers(arguments: &Arguments) -> String {
    match (&arguments.listen, arguments.tokens, &arguments.token_env) {
        (None, ..) => "its owner".to_owned(),
        (Some(_), false, None) => "programs on this machine".to_owned(),
        (Some(_), true, None) => "holders of a token (outlast token)".to_owned(),
        (Some(_), false, Some(name)) => format!("holders of the token in {name}"),
        (Some(_), true, Some(name)) => format!("holders of a token (outlast token) or of the one in {name}"),
    }
}
