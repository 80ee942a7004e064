//! What to do about an option that a command does not have: which command has it, or where the options stand.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _};

use crate::arguments::Cli;

/// Puts a tip that helps in the place of the usual one, which proposes that an unknown option is a file named like it.
pub(crate) fn helpful(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return error };
    let has = commands_with(option.split('=').next().unwrap_or(option));
    let tip = if !has.is_empty() {
        error.remove(ContextKind::SuggestedArg);
        format!("{} has such an option", has.join(", "))
    } else if error.get(ContextKind::SuggestedArg).is_some() {
        return error;
    } else {
        let command = called(&error).unwrap_or_else(|| "outlast".to_owned());
        format!("`{command} --help` lists the options; a value that begins with `-` is written after `--`")
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    error
}

/// Returns the commands that have an option, as one calls them.
fn commands_with(option: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(long) = option.strip_prefix("--") {
        collect(&Cli::command(), "outlast", long, &mut found);
    }
    found
}

fn collect(command: &Command, called: &str, long: &str, found: &mut Vec<String>) {
    if command.get_arguments().any(|known| known.get_long() == Some(long)) {
        found.push(format!("`{called}`"));
    }
    for below in command.get_subcommands() {
        collect(below, &format!("{called} {}", below.get_name()), long, found);
    }
}

/// Returns the command that was called, as far as the usage names it.
fn called(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return None };
    let usage = usage.to_string();
    let is_word =
        |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    let words: Vec<&str> =
        usage.split_whitespace().skip_while(|word| *word != "outlast").take_while(is_word).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn unknown_options_are_answered_with_what_helps() {
        for (line, tip) in [
            ("run --inputs x", "tip: `outlast batch` has such an option"),
            ("run --cron x", "tip: `outlast schedule add` has such an option"),
            ("run --verbose", "tip: `outlast run --help` lists the options;"),
            ("run a.flow -v", "tip: `outlast run --help` lists the options;"),
            ("run --tmeout 5m", "tip: a similar argument exists: '--timeout'"),
            ("token add x --flows A", "tip: a similar argument exists: '--flow'"),
            ("token add x --zzz=1", "tip: `outlast token add --help` lists the options;"),
            ("--zzz", "tip: `outlast --help` lists the options;"),
        ] {
            let words = std::iter::once("outlast").chain(line.split(' '));
            let text = helpful(Cli::try_parse_from(words).unwrap_err()).to_string();
            assert!(text.contains(tip) && !text.contains("as a value, use"), "{line}: {text}");
            assert_eq!(text.matches("tip: ").count(), 1, "{line}: {text}");
        }
    }
}
