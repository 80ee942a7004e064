//! Telling what the checker found, to people or to tools.

use outlast_dsl::SourceFile;
use outlast_dsl::diag::{Colour, Diagnostic, Sources, json, render};

use crate::out;

/// Which diagnostics are told, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Errors, on stderr: the command has something else to show.
    Errors,
    /// All, on stderr.
    All,
    /// None: the caller writes them as JSON.
    Nothing,
}

/// Tells diagnostics and returns how many of them are errors.
pub(crate) fn tell(files: &[SourceFile], diagnostics: &[Diagnostic], told: Told) -> usize {
    let sources = sources(files);
    let colour = if out::colours() { Colour::Always } else { Colour::Never };
    for diagnostic in diagnostics {
        let wanted = match told {
            Told::Errors => diagnostic.is_error(),
            Told::All => true,
            Told::Nothing => false,
        };
        if wanted {
            out::say(render(diagnostic, &sources, colour).trim_end_matches('\n'));
        }
    }
    diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count()
}

/// Shows one diagnostic without colours, as part of a result.
pub(crate) fn shown(files: &[SourceFile], diagnostic: &Diagnostic) -> String {
    render(diagnostic, &sources(files), Colour::Never)
}

/// Shows diagnostics to people, as they are told.
pub(crate) fn shown_all(files: &[SourceFile], diagnostics: &[Diagnostic]) -> String {
    let sources = sources(files);
    let colour = if out::colours() { Colour::Always } else { Colour::Never };
    diagnostics.iter().map(|one| render(one, &sources, colour)).collect()
}

/// Returns diagnostics for tools.
pub(crate) fn as_json(files: &[SourceFile], diagnostics: &[Diagnostic]) -> serde_json::Value {
    json(diagnostics, &sources(files))
}

fn sources(files: &[SourceFile]) -> Sources {
    let mut sources = Sources::default();
    for file in files {
        sources.add(file.name.clone(), file.text.clone());
    }
    sources
}
