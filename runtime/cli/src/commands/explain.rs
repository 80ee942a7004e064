//! `outlast explain`: what a code of the checker means, with an example of what is refused and of what is not.
//!
//! Leaves the words to the catalogue of the language.

use std::fmt::Write as _;

use outlast_dsl::diag::{Code, catalogue, closest, example};
use serde_json::{Value, json};

use super::Context;
use crate::failure::{Exit, Failure};
use crate::out;

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A code such as F0401; all codes are listed if it is left out
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

/// Explains one code, or lists all of them.
pub(crate) fn explain(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.code {
        None if context.json => out::json(&catalogue::entries().map(entry_json).collect::<Vec<_>>())?,
        None => out::result(list().trim_end())?,
        Some(word) => {
            let entry = find(word)?;
            if context.json { out::json(&entry_json(entry))? } else { out::result(page(entry).trim_end())? }
        }
    }
    Ok(Exit::Done)
}

fn find(word: &str) -> Result<&'static catalogue::Entry, Failure> {
    if let Some(entry) = Code::parse(word).and_then(catalogue::find) {
        return Ok(entry);
    }
    let codes: Vec<String> = catalogue::entries().map(|entry| entry.code.to_string()).collect();
    let near = closest(&word.to_ascii_uppercase(), codes.iter().map(String::as_str));
    let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
    Err(Failure::usage(format!("there is no code {word}; {near}`outlast explain` lists all of them")))
}

/// The codes with their titles, area by area.
fn list() -> String {
    let mut text = String::new();
    for (area, entries) in catalogue::areas() {
        let _ = writeln!(text, "{area}");
        for entry in entries {
            let _ = writeln!(text, "  {}  {}", entry.code, entry.title);
        }
        text.push('\n');
    }
    text.push_str("`outlast explain CODE` says more.\n");
    text
}

fn page(entry: &catalogue::Entry) -> String {
    let mut text = format!("{}: {}\n\n{}\n", entry.code, entry.title, entry.explanation);
    if let Some(example) = example(entry.code) {
        let _ =
            write!(text, "\nWrong:\n\n{}\nRight:\n\n{}", indented(example.wrong), indented(example.right));
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n").collect()
}

fn entry_json(entry: &catalogue::Entry) -> Value {
    let example = example(entry.code);
    json!({
        "code": entry.code,
        "title": entry.title,
        "explanation": entry.explanation,
        "wrong": example.map(|example| example.wrong),
        "right": example.map(|example| example.right),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_in_the_list_and_has_a_page() {
        let list = list();
        for entry in catalogue::entries() {
            assert!(list.contains(&format!("  {}  {}\n", entry.code, entry.title)), "{}", entry.code);
            let page = page(entry);
            assert!(page.starts_with(&entry.code.to_string()) && page.contains(entry.explanation), "{page}");
        }
    }

    #[test]
    fn a_code_is_found_in_any_case_and_an_unknown_one_gets_a_hint() {
        assert_eq!(find("f0401").map(|entry| entry.code.to_string()).ok().as_deref(), Some("F0401"));
        for (word, hint) in [
            ("F041", "did you mean F0141?"),
            ("E0401", "did you mean F0401?"),
            ("banana", "there is no code banana; `outlast explain` lists"),
        ] {
            let failure = find(word).err().map(|failure| format!("{failure:?}")).unwrap_or_default();
            assert!(failure.contains(hint), "{word}: {failure}");
        }
    }
}
