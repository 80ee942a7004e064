//! The guard as a program of its own, for programs other than `outlast` that embed the tool worker (`outlast` has it as a
//! subcommand).

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    // The tool worker names the subcommand, so that both programs are called alike.
    match args.next() {
        Some(word) if word == outlast_workers::tools::guard::SUBCOMMAND => {
            outlast_workers::tools::guard::run(args)
        }
        Some(_) | None => ExitCode::from(2),
    }
}
