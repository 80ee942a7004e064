//! The command line: what there is and how it is called. What commands do stands in `commands`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::{
    act, audit, batch, bench, carry, chat, check, doctor, explain, fmt, fork, graph, keep, look, migrate,
    rpc, run, schedule, serve, test, token, tools, worker,
};

/// Runs long agent tasks as durable state machines.
///
/// Kill any process at any moment: the task goes on from its last event, and only activities that never finished run again. Any
/// command may come first; it hosts the engine, and the others attach to it through the data directory.
#[derive(Debug, Parser)]
#[command(name = "outlast", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// The data directory [default: the user's, such as ~/.local/share/outlast]
    #[arg(long, global = true, env = "OUTLAST_DATA", hide_env_values = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Write results and errors as JSON, for machines
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What there is.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check flow files and show everything that is wrong with them
    Check(check::Arguments),
    /// Explain a code of the checker, or list all codes
    Explain(explain::Arguments),
    /// Run the tests of flow files, with a crash before and after every event
    Test(test::Arguments),
    /// Lay out flow files in the one way there is
    Fmt(fmt::Arguments),
    /// Draw a flow as a diagram
    Graph(graph::Arguments),
    /// Run a flow to its end (batch)
    Run(run::Arguments),
    /// Run a flow for each line of a file (batch)
    Batch(batch::Arguments),
    /// Talk with an agent (interactive)
    Chat(chat::Arguments),
    /// Serve the HTTP API (RPC)
    Serve(serve::Arguments),
    /// Serve one program over stdin and stdout with JSON-RPC (RPC)
    Rpc(rpc::Arguments),
    /// Start runs by the clock
    Schedule(schedule::Arguments),
    /// Say who may call the HTTP API, and what they may do there
    Token(token::Arguments),
    /// List runs, newest first
    Runs(look::RunsArguments),
    /// Show a run
    Show(look::ShowArguments),
    /// Show a run's history
    Events(look::EventsArguments),
    /// Show who did what, and what was done again
    Audit(audit::Arguments),
    /// Show a run's result, or wait for it
    Result(run::ResultArguments),
    /// Send a message to a run
    Send(act::SendArguments),
    /// Answer a question of a run
    Answer(act::AnswerArguments),
    /// Stop a run with its clean-up
    Cancel(act::RunArguments),
    /// Stop a run at once, without clean-up
    Terminate(act::RunArguments),
    /// Say what became of an operation in doubt
    Settle(act::SettleArguments),
    /// Give a held operation fresh attempts
    Release(act::ReleaseArguments),
    /// Begin another run from an event of one, which stays as it is
    Fork(fork::ForkArguments),
    /// Show a run, what it was forked from, and its forks
    Tree(fork::TreeArguments),
    /// Show how two versions of a file differ, and which runs could go on with the new one
    Diff(migrate::DiffArguments),
    /// Let runs go on with a new version of their flow
    Migrate(migrate::MigrateArguments),
    /// Write a run with its whole history, its flow and its environment as JSON lines
    Export(carry::ExportArguments),
    /// Keep a run that `export` wrote, here or elsewhere; the same file again changes nothing
    Import(carry::ImportArguments),
    /// Fetch what a text of a run names as blob:HASH, such as the whole output of a tool
    Blob(carry::BlobArguments),
    /// Copy the whole store into a new directory, also while it is in use
    Backup(carry::BackupArguments),
    /// Delete runs that have ended, with their histories
    Delete(keep::DeleteArguments),
    /// Show or say how long ended runs are kept
    Retention(keep::RetentionArguments),
    /// Show how many bytes runs take
    Du(carry::DuArguments),
    /// Check the store, and show how to resume each run and what is in doubt
    Doctor(doctor::Arguments),
    /// Make catalogues of the tools of MCP servers
    Tools(tools::Arguments),
    /// Measure how fast this build is on this machine, beside the least that its disk allows
    Bench(bench::Arguments),
    /// Run a stock worker
    Worker(worker::Arguments),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Command lines, and whether they are understood.
    const LINES: &[(&str, bool)] = &[
        ("check a.flow b.flow --json", true),
        ("check a.flow --fix", true),
        ("check", false),
        ("explain", true),
        ("explain F0401 --json", true),
        ("explain F0401 F0402", false),
        ("test a.flow b.flow --filter agent --junit out.xml --json", true),
        ("test a.flow --coverage-min 80", true),
        ("test a.flow --coverage-min 101", false),
        ("test", false),
        ("fmt a.flow - --check", true),
        ("fmt --expand a.flow", true),
        ("fmt --expand --check a.flow", false),
        ("fmt", false),
        ("graph a.flow:Report --format mermaid", true),
        ("graph a.flow --format pdf", false),
        ("run", true),
        ("run a.flow:Report --input @in.json --id r-1 --output jsonl --on-ask deny --timeout 5m", true),
        ("run --task x --on-ask approve --allow shell(git*) --allow read", true),
        ("run --timeout 5", false),
        ("run --on-ask sometimes", false),
        ("batch a.flow:F --inputs in.jsonl", true),
        ("batch a.flow --inputs - --out out.jsonl --jobs 4 --id-field id --ordered --retry-failed", true),
        ("batch a.flow --inputs - --item-timeout 5m --timeout 1h --on-ask deny --output jsonl", true),
        ("batch a.flow", false),
        ("batch --inputs -", false),
        ("batch a.flow --inputs - --jobs 0", false),
        ("chat --continue", true),
        ("chat --resume r-1", true),
        ("chat --continue --resume r-1", false),
        ("serve a.flow --listen 127.0.0.1:0 --no-workers --token-env TOKEN", true),
        ("serve --listen 127.0.0.1:0 --tokens", true),
        ("serve --tokens", false),
        ("token add ci --scope read,start --scope send --flow F --role owner --expires 30d --json", true),
        ("token add ci", false),
        ("token add ci --scope fly", false),
        ("token list --json", true),
        ("audit", true),
        ("audit r-1 --since 24h --by ci --json", true),
        ("token revoke ci", true),
        ("token", false),
        ("rpc", true),
        ("rpc a.flow", true),
        ("schedule list", true),
        (
            "schedule add nightly a.flow:F --cron @daily --cron @hourly --time-zone Asia/Tokyo --overlap queue-all",
            true,
        ),
        ("schedule add nightly --task x --cron @daily --catch-up all:3 --allow read", true),
        ("schedule add nightly a.flow", false),
        ("schedule run-now nightly", true),
        ("schedule", false),
        ("runs --status waiting --flow Agent --json", true),
        ("show r-1 --json", true),
        ("events r-1", true),
        ("result r-1 --wait 1h", true),
        ("send r-1 Say {}", true),
        ("send r-1", false),
        ("answer r-1 approve", true),
        ("answer r-1 17.0 reject --note no", true),
        ("answer r-1", false),
        ("cancel r-1", true),
        ("terminate r-1", true),
        ("settle r-1 17.0 happened --result {}", true),
        ("settle r-1 17.0 perhaps", false),
        ("release r-1 17.0", true),
        ("fork r-1", true),
        ("fork r-1@17 --id r-2", true),
        ("fork r-1@x", false),
        ("tree r-1 --json", true),
        ("chat --fork r-1@17", true),
        ("chat --fork r-1 --resume r-2", false),
        ("export r-1 --out r-1.jsonl", true),
        ("import", false),
        ("import r-1.jsonl --json", true),
        ("blob 00ff --out x.bin", true),
        ("blob", false),
        ("backup /b", true),
        ("delete r-1 r-2 --json", true),
        ("delete", false),
        ("retention", true),
        ("retention 30d", true),
        ("retention default --flow F --json", true),
        ("retention --flow F", false),
        ("du", true),
        ("du r-1", true),
        ("diff a.flow b.flow --runs", true),
        ("migrate r-1 r-2 --to b.flow --open again", true),
        ("migrate --flow F --to b.flow", true),
        ("migrate r-1", false),
        ("migrate --to b.flow", false),
        ("doctor", true),
        ("tools pull", true),
        ("tools pull fs git --out dev.tools.json --check --json", true),
        ("tools", false),
        ("bench", true),
        ("bench steps idle --scale 0.01 --dir /tmp --json", true),
        ("bench --scale 0", false),
        ("bench --scale 2", false),
        ("bench swim", false),
        ("worker bench --concurrency 4", true),
        ("worker model --connect unix:/d/socket --supervised --profile p --boot b", true),
        ("worker gpu", false),
        ("fly", false),
    ];

    #[test]
    fn command_lines_of_the_contract_are_understood() {
        for (line, fits) in LINES {
            let words = std::iter::once("outlast").chain(line.split(' '));
            assert_eq!(Cli::try_parse_from(words).is_ok(), *fits, "{line}");
        }
    }
}
