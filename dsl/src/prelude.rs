//! The standard library: Flow text that is compiled in. The prelude is in sight everywhere; the other parts are named by
//! `use std "PART" { … }`.
//!
//! Leaves what cannot be written in Flow to the builtins of the edition. Invariant: its files check without a diagnostic.

/// The files of the prelude.
pub(crate) const FILES: &[&str] = &[
    include_str!("prelude/types.flow"),
    include_str!("prelude/conversation.flow"),
    include_str!("prelude/tools.flow"),
];

/// The other parts: name and text.
pub(crate) const PARTS: &[(&str, &str)] = &[
    ("agents", include_str!("../../examples/agent.flow")),
    ("approvals", include_str!("std/approvals.flow")),
    ("models", include_str!("std/models.flow")),
];

/// The catalogues of the parts, by the name written there.
const CATALOGUES: &[(&str, &str)] = &[("dev.tools.json", include_str!("../../examples/dev.tools.json"))];

/// The text of a part.
pub(crate) fn part(name: &str) -> Option<&'static str> {
    PARTS.iter().find(|(one, _)| *one == name).map(|(_, text)| *text)
}

/// The text of a catalogue of a part.
pub(crate) fn catalogue(name: &str) -> Option<&'static str> {
    CATALOGUES.iter().find(|(one, _)| *one == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::diag::{Colour, Sources, render};
    use crate::syntax::ast::Decl;
    use crate::{SourceFile, check};

    #[test]
    fn every_part_checks_without_a_diagnostic() {
        let catalogues: BTreeMap<String, String> =
            CATALOGUES.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        for (name, text) in PARTS {
            let source = SourceFile { name: format!("{name}.flow"), text: (*text).to_owned() };
            let checked = check(&[source], &catalogues);
            let mut sources = Sources::default();
            checked.files.iter().for_each(|file| {
                sources.add(&file.name, &file.text);
            });
            let told: String =
                checked.diagnostics.iter().map(|one| render(one, &sources, Colour::Never)).collect();
            assert!(told.is_empty(), "{told}");
        }
    }

    /// The names that a text declares.
    fn declared(text: &str) -> Vec<String> {
        let tree = crate::syntax::parse(crate::diag::FileId(0), text).file();
        let name = |decl: Decl| match decl {
            Decl::Type(decl) => decl.name(),
            Decl::Error(decl) => decl.name(),
            Decl::Retry(decl) => decl.name(),
            Decl::Activity(decl) => decl.name(),
            Decl::Fn(decl) => decl.name(),
            Decl::Flow(decl) => decl.name(),
            Decl::Migrate(_) | Decl::Test(_) => None,
        };
        tree.decls().filter_map(name).map(|name| name.text()).collect()
    }

    #[test]
    fn all_that_a_part_declares_can_be_used() {
        for (name, text) in PARTS {
            let text = format!("use std \"{name}\" {{ {} }}\n", declared(text).join(", "));
            let checked = check(&[SourceFile { name: "x.flow".to_owned(), text }], &BTreeMap::new());
            assert!(checked.diagnostics.iter().all(|one| !one.is_error()), "{:?}", checked.diagnostics);
            assert!(checked.flows.is_empty(), "what is only used is not for running");
        }
    }

    #[test]
    fn all_that_a_part_declares_is_in_the_reference() {
        for (name, text) in PARTS {
            let row = format!("| `{name}` | ");
            let row = include_str!("../REFERENCE.md").lines().find(|line| line.starts_with(&row));
            let row = row.unwrap_or_else(|| panic!("REFERENCE.md has no row of `{name}`"));
            let missing: Vec<String> =
                declared(text).into_iter().filter(|one| !row.contains(&format!("`{one}`"))).collect();
            assert!(missing.is_empty(), "`{name}` declares {missing:?} too");
        }
    }
}
