//! `outlast tools`: catalogues of tools, as `use tools` reads them.
//!
//! Leaves servers to the workers' crate and reading catalogues to the language. Invariant: the file is replaced as a whole; a server
//! that cannot be asked, or is disabled, leaves its tools in it as they were.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outlast_workers::mcp::{AtService, Catalogue, Change, Config};
use serde_json::{Value, json};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::{files, out, servers};

/// Arguments of `tools`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Ask MCP servers for their tools, write them into a catalogue, and show what changed
    ///
    /// The servers are those of .mcp.json in this directory. Each tool becomes SERVER__TOOL. Name, description and input are the
    /// server's; effect and permission follow its annotations (none: once, ask) until you write others into the file, which then
    /// stay. Only `allow` falls back to `ask` when the tool behind it has changed. Tools without a server are left alone.
    Pull(PullArguments),
    /// Log in at an MCP server that wants it (OAuth)
    ///
    /// Finds the authorization server, prints an address, and waits until you have opened it in a browser of this machine and said
    /// yes. The tokens go into a file of the data directory that only you can read; tool workers that share the directory use and
    /// renew them. `oauth` in the server's entry may say clientId, clientSecret, scopes and callbackPort.
    Login(LoginArguments),
    /// End the login at an MCP server
    ///
    /// Has the service end it, if that names a way to (RFC 7009), and removes the tokens here in any case. Ends with 1 if the service
    /// could not be told, and says why: its own settings end the login then.
    Logout(LogoutArguments),
}

/// Arguments of `tools login`.
#[derive(Debug, clap::Args)]
struct LoginArguments {
    /// The server
    #[arg(value_name = "SERVER")]
    server: String,
    /// The file that names the servers, an `mcpServers` JSON
    #[arg(long, value_name = "FILE", default_value = ".mcp.json")]
    mcp: PathBuf,
}

/// Arguments of `tools logout`.
#[derive(Debug, clap::Args)]
struct LogoutArguments {
    /// The server; it need not be in the file any more
    #[arg(value_name = "SERVER")]
    server: String,
    /// The file that names the servers, an `mcpServers` JSON
    #[arg(long, value_name = "FILE", default_value = ".mcp.json")]
    mcp: PathBuf,
}

/// Arguments of `tools pull`.
#[derive(Debug, clap::Args)]
struct PullArguments {
    /// Only these servers [default: all that are not disabled]
    #[arg(value_name = "SERVER")]
    servers: Vec<String>,
    /// The file that names the servers, an `mcpServers` JSON
    #[arg(long, value_name = "FILE", default_value = ".mcp.json")]
    mcp: PathBuf,
    /// The catalogue
    #[arg(long, value_name = "FILE", default_value = servers::PULLED)]
    out: PathBuf,
    /// Write nothing; end with 1 if something would change
    #[arg(long)]
    check: bool,
}

/// Does what was asked.
pub(crate) async fn tools(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.what {
        What::Pull(arguments) => pull(context, arguments).await,
        What::Login(arguments) => login(context, arguments).await,
        What::Logout(arguments) => logout(context, arguments).await,
    }
}

async fn login(context: Context<'_>, arguments: &LoginArguments) -> Result<Exit, Failure> {
    let failed = |why: String| Failure::new(Exit::Failed, why);
    let (server, servers) = (&arguments.server, servers::all(context.data, &arguments.mcp)?);
    let under_way = servers.log_in(server).await.map_err(failed)?;
    if context.json {
        out::json(&json!({"server": server, "open": under_way.address()}))?;
    } else {
        out::result(&format!("open this address in a browser of this machine:\n{}", under_way.address()))?;
    }
    let finished = under_way.finish().await;
    finished.map_err(|why| failed(format!("MCP server {server}: nobody is logged in: {why}")))?;
    if context.json {
        out::json(&json!({"server": server, "logged_in": true}))?;
    } else {
        out::result(&format!("logged in at {server}"))?;
    }
    Ok(Exit::Done)
}

async fn logout(context: Context<'_>, arguments: &LogoutArguments) -> Result<Exit, Failure> {
    let server = &arguments.server;
    let ended = servers::all(context.data, &arguments.mcp)?.log_out(server).await;
    let ended = ended.map_err(|why| Failure::new(Exit::Failed, why))?;
    let why = ended.iter().find_map(|told| match told {
        AtService::Failed(why) => Some(why.as_str()),
        AtService::Ended | AtService::NoWay => None,
    });
    if context.json {
        let at_service = match ended.first() {
            None => Value::Null,
            Some(_) if why.is_some() => json!("failed"),
            Some(_) if ended.contains(&AtService::NoWay) => json!("no_way"),
            Some(_) => json!("ended"),
        };
        let forgotten = !ended.is_empty();
        out::json(&json!({"server": server, "forgotten": forgotten, "at_service": at_service, "why": why}))?;
    } else if ended.is_empty() {
        out::result(&format!("there was no login at {server}"))?;
    } else if let Some(why) = why {
        out::result(&format!("the login at {server} is forgotten here"))?;
        out::say(&format!(
            "error: {server} could not be told to end it: {why}; end it in the settings of {server}"
        ));
    } else if ended.contains(&AtService::NoWay) {
        out::result(&format!(
            "the login at {server} is forgotten here; {server} names no way to end it, but for its own settings"
        ))?;
    } else {
        out::result(&format!("the login at {server} has ended, there and here"))?;
    }
    Ok(if why.is_some() { Exit::Failed } else { Exit::Done })
}

/// What a pull came to.
#[derive(Debug, Default)]
struct Pulled {
    changes: Vec<Change>,
    /// Servers that could not be asked, and why.
    failed: BTreeMap<String, String>,
}

async fn pull(context: Context<'_>, arguments: &PullArguments) -> Result<Exit, Failure> {
    let file = arguments.mcp.as_path();
    let config = Config::read(file).map_err(Failure::usage)?;
    let named = file.display();
    let asked: Vec<String> = match arguments.servers.as_slice() {
        [] => config.names().filter(|name| !config.is_disabled(name)).map(str::to_owned).collect(),
        some => some.to_vec(),
    };
    if let Some(strange) = asked.iter().find(|name| !config.names().any(|known| known == *name)) {
        let known: Vec<&str> = config.names().collect();
        return Err(Failure::usage(format!("{named} has no server {strange}"))
            .hint(format!("name one of: {}", known.join(", "))));
    }
    let path = &arguments.out;
    let before = if files::is_there(path) { files::read_text(path)? } else { String::new() };
    let mut catalogue = match before.as_str() {
        "" => Catalogue::default(),
        text => Catalogue::parse(text).map_err(|why| Failure::usage(format!("{}: {why}", path.display())))?,
    };
    if asked.is_empty() && catalogue.servers().is_empty() {
        return Err(Failure::usage(format!("{named} names no servers"))
            .hint(r#"write {"mcpServers": {"NAME": {"command": "PROGRAM", "args": []}}} into it"#));
    }
    let mut pulled = ask(context, file, asked, &mut catalogue).await?;
    if arguments.servers.is_empty() {
        for gone in
            catalogue.servers().into_iter().filter(|server| !config.names().any(|name| name == server))
        {
            pulled.changes.extend(catalogue.remove(&gone));
        }
    }
    let text = catalogue.text();
    let differs = !pulled.changes.is_empty() || (before.is_empty() && pulled.failed.is_empty());
    if differs && !arguments.check {
        files::replace(path, text.as_bytes()).map_err(|error| files::unwritable(path, &error))?;
    }
    show(context, path, &catalogue, &pulled)?;
    let wrong = !pulled.failed.is_empty() || (arguments.check && differs);
    Ok(if wrong { Exit::Failed } else { Exit::Done })
}

/// Puts what the servers offer into the catalogue.
async fn ask(
    context: Context<'_>,
    file: &Path,
    asked: Vec<String>,
    catalogue: &mut Catalogue,
) -> Result<Pulled, Failure> {
    let mut pulled = Pulled::default();
    for (name, listed) in servers::ask_all(context.data, file, asked).await? {
        match listed {
            Ok(listed) => {
                for warning in &listed.warnings {
                    out::say(&format!("warning: MCP server {name}: {warning}"));
                }
                pulled.changes.extend(catalogue.put(&name, listed.tools));
            }
            Err(why) => {
                out::say(&format!("error: {why}; its tools stay as they were"));
                pulled.failed.insert(name, why);
            }
        }
    }
    Ok(pulled)
}

fn show(context: Context<'_>, path: &Path, catalogue: &Catalogue, pulled: &Pulled) -> Result<(), Failure> {
    let lines: Vec<String> = pulled.changes.iter().map(ToString::to_string).collect();
    let (count, servers) = (catalogue.len(), catalogue.servers().len());
    if context.json {
        return out::json(&json!({
            "file": path, "tools": count, "servers": servers, "changes": lines, "failed": pulled.failed,
        }));
    }
    for line in &lines {
        out::result(line)?;
    }
    let changes = match lines.len() {
        0 => "nothing changed".to_owned(),
        1 => "1 change".to_owned(),
        more => format!("{more} changes"),
    };
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    out::result(&format!(
        "{}: {} of {}, {changes}",
        path.display(),
        plural(count, "tool"),
        plural(servers, "server")
    ))
}
