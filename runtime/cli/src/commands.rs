//! The commands, one module for each kind.

pub(crate) mod act;
pub(crate) mod audit;
pub(crate) mod batch;
pub(crate) mod bench;
pub(crate) mod carry;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod fork;
pub(crate) mod graph;
pub(crate) mod keep;
pub(crate) mod look;
pub(crate) mod migrate;
pub(crate) mod rpc;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod test;
pub(crate) mod token;
pub(crate) mod tools;
pub(crate) mod worker;

use std::path::Path;

use crate::arguments::{Cli, Command};
use crate::failure::{Exit, Failure};

/// What all commands know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// The data directory that was asked for.
    pub(crate) data: Option<&'a Path>,
    /// Whether results are for machines.
    pub(crate) json: bool,
}

/// Runs the command.
pub(crate) async fn run(cli: Cli) -> Result<Exit, Failure> {
    let context = Context { data: cli.data.as_deref(), json: cli.json };
    match cli.command {
        Command::Check(arguments) => check::check(context, &arguments),
        Command::Explain(arguments) => explain::explain(context, &arguments),
        Command::Test(arguments) => test::test(context, &arguments),
        Command::Graph(arguments) => graph::graph(context, &arguments).await,
        Command::Fmt(arguments) => fmt::fmt(context, &arguments),
        Command::Run(arguments) => run::run(context, &arguments).await,
        Command::Batch(arguments) => batch::batch(context, &arguments).await,
        Command::Chat(arguments) => chat::chat(context, &arguments).await,
        Command::Schedule(arguments) => schedule::schedule(context, &arguments).await,
        Command::Serve(arguments) => serve::serve(context, &arguments).await,
        Command::Audit(arguments) => audit::audit(context, &arguments).await,
        Command::Token(arguments) => token::token(context, &arguments).await,
        Command::Rpc(arguments) => rpc::rpc(context, &arguments).await,
        Command::Runs(arguments) => look::runs(context, &arguments).await,
        Command::Show(arguments) => look::show(context, &arguments).await,
        Command::Events(arguments) => look::events(context, &arguments).await,
        Command::Result(arguments) => run::result(context, &arguments).await,
        Command::Send(arguments) => act::send(context, &arguments).await,
        Command::Answer(arguments) => act::answer(context, &arguments).await,
        Command::Cancel(arguments) => act::cancel(context, &arguments).await,
        Command::Terminate(arguments) => act::terminate(context, &arguments).await,
        Command::Settle(arguments) => act::settle(context, &arguments).await,
        Command::Release(arguments) => act::release(context, &arguments).await,
        Command::Fork(arguments) => fork::fork(context, &arguments).await,
        Command::Tree(arguments) => fork::tree(context, &arguments).await,
        Command::Diff(arguments) => migrate::diff(context, &arguments).await,
        Command::Migrate(arguments) => migrate::migrate(context, &arguments).await,
        Command::Export(arguments) => carry::export(context, &arguments).await,
        Command::Import(arguments) => carry::import(context, &arguments).await,
        Command::Blob(arguments) => carry::blob(context, &arguments).await,
        Command::Backup(arguments) => carry::backup(context, &arguments).await,
        Command::Delete(arguments) => keep::delete(context, &arguments).await,
        Command::Retention(arguments) => keep::retention(context, &arguments).await,
        Command::Du(arguments) => carry::du(context, &arguments).await,
        Command::Doctor(arguments) => doctor::doctor(context, &arguments).await,
        Command::Tools(arguments) => tools::tools(context, &arguments).await,
        Command::Bench(arguments) => bench::bench(context, &arguments).await,
        Command::Worker(arguments) => worker::worker(context.data, &arguments).await,
    }
}
