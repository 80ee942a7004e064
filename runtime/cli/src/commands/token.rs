//! `outlast token`: who may call the API over TCP, and what they may do there.
//!
//! Leaves rights to the runtime. Invariant: a secret is written to stdout once, when it is made, and never again.

use outlast_protocol::access::{MadeToken, NewToken, Scope, TokenView};
use outlast_runtime::host::SessionError;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::open::{self, Workers};
use crate::out;

/// Arguments of `token`.
///
/// Tokens are for callers on TCP, of `outlast serve --listen ADDR --tokens`. The store keeps a hash of each; the secret is shown once.
///
/// Scopes: read (look), start (runs), send (messages), answer (questions), control (cancel, terminate, fork, settle, release, migrate,
/// export), deploy (flows, schedules), work (what workers call), admin (all, and tokens).
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a token and show it, this once
    Add(AddArguments),
    /// List tokens, without their secrets
    List,
    /// Revoke a token, for good
    Revoke(RevokeArguments),
}

#[derive(Debug, clap::Args)]
struct AddArguments {
    /// Who has it: what it does stands in histories as token:NAME
    name: String,
    /// What it may do: read, start, send, answer, control, deploy, work or admin; several with commas or several times
    #[arg(long, value_name = "SCOPE", required = true, value_delimiter = ',')]
    scope: Vec<Scope>,
    /// Only runs of this flow; may be given several times [default: all flows]
    #[arg(long, value_name = "FLOW")]
    flow: Vec<String>,
    /// A role in which it may answer, '*' for all; scope answer needs one; may be given several times
    #[arg(long, value_name = "ROLE")]
    role: Vec<String>,
    /// How long it holds, such as 30d [default: until it is revoked]
    #[arg(long, value_name = "DURATION")]
    expires: Option<String>,
}

#[derive(Debug, clap::Args)]
struct RevokeArguments {
    /// The token's id or name
    #[arg(value_name = "ID|NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    which: String,
}

/// Does what is asked about tokens.
pub(crate) async fn token(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.what {
        What::Add(arguments) => add(context, arguments).await,
        What::List => list(context).await,
        What::Revoke(RevokeArguments { which }) => revoke(context, which).await,
    }
}

async fn add(context: Context<'_>, arguments: &AddArguments) -> Result<Exit, Failure> {
    let request = NewToken {
        name: arguments.name.clone(),
        scopes: arguments.scope.clone(),
        flows: arguments.flow.clone(),
        roles: arguments.role.clone(),
        expires: arguments.expires.clone(),
    };
    let session = open::session(context.data, Workers::None, None).await?;
    // Made once: an answer that is lost takes the secret with it, and the name stays taken.
    let made = session.client().add_token(&request).await.map_err(SessionError::Call);
    open::close(session).await;
    let made = made?;
    if context.json {
        out::json(&made)?;
        return Ok(Exit::Done);
    }
    out::result(&made.token)?;
    out::say(&told(&made));
    Ok(Exit::Done)
}

/// Says what a token is for and how it is used.
fn told(MadeToken { view, token: _ }: &MadeToken) -> String {
    let TokenView { id, name, .. } = view;
    let until =
        view.expires_at.as_deref().map_or("until it is revoked".to_owned(), |at| format!("until {at}"));
    let rights = rights(view);
    format!(
        "token {name} ({id}) has {rights}; it holds {until}. It is shown this once.\n\
         Send it as a header to `outlast serve --listen ADDR --tokens`:\n  \
         curl -H \"Authorization: Bearer $TOKEN\" http://ADDR/v1/status\n\
         Take it back with: outlast token revoke {name}"
    )
}

fn rights(view: &TokenView) -> String {
    let scopes: Vec<&str> = view.scopes.iter().map(|scope| scope.name()).collect();
    let mut rights = scopes.join(",");
    for (what, items) in [("flows", &view.flows), ("roles", &view.roles)] {
        if !items.is_empty() {
            rights = format!("{rights} {what}={}", items.join(","));
        }
    }
    out::tame(&rights)
}

async fn list(context: Context<'_>) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let list = session.call(async |client| client.tokens().await).await;
    open::close(session).await;
    let list = list?;
    if context.json {
        out::json(&list)?;
        return Ok(Exit::Done);
    }
    for view in list.items {
        let until = match (&view.revoked_at, &view.expires_at) {
            (Some(at), _) => format!("since {at}"),
            (None, Some(at)) => format!("until {at}"),
            (None, None) => String::new(),
        };
        let line =
            format!("{:<18} {:<20} {:<8} {until:<30} {}", view.id, view.name, view.status, rights(&view));
        out::result(line.trim_end())?;
    }
    Ok(Exit::Done)
}

async fn revoke(context: Context<'_>, which: &str) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let revoked = session.call(async |client| client.revoke_token(which).await).await;
    open::close(session).await;
    let view = revoked?;
    if context.json {
        out::json(&view)?;
    } else {
        out::say(&format!("token {} ({}) is revoked", view.name, view.id));
    }
    Ok(Exit::Done)
}
