//! What Prometheus would read: the exposition format 0.0.4, read as strictly as it is defined.
//!
//! Leaves what the samples should be to the tests. Invariant: text that is not exactly of the format is no scrape.

use std::collections::{BTreeMap, BTreeSet};

/// A scrape: samples by name and labels, as they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    samples: BTreeMap<String, f64>,
    /// Families by name, each with its type.
    families: BTreeMap<String, String>,
}

impl Scrape {
    /// Reads a scrape.
    ///
    /// # Errors
    /// The first line that is not of the format, and why.
    pub fn read(text: &str) -> Result<Scrape, String> {
        let mut scrape = Scrape::default();
        let mut helped = BTreeSet::new();
        let mut family = String::new();
        if !text.ends_with('\n') {
            return Err("the last line has no end".to_owned());
        }
        for line in text.lines() {
            let wrong = |why: &str| format!("{why}: {line}");
            if let Some(help) = line.strip_prefix("# HELP ") {
                let Some((name, said)) = help.split_once(' ') else {
                    return Err(wrong("help without words"));
                };
                if said.is_empty() || !is_name(name) || !helped.insert(name.to_owned()) {
                    return Err(wrong("help that says nothing, or was given before"));
                }
                name.clone_into(&mut family);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let kind = kind.strip_prefix(&format!("{family} "));
                let Some(kind @ ("counter" | "gauge" | "histogram")) = kind else {
                    return Err(wrong("a type that does not follow its help"));
                };
                if kind == "counter" && !family.ends_with("_total") {
                    return Err(wrong("a counter that is not called a total"));
                }
                scrape.families.insert(family.clone(), kind.to_owned());
            } else {
                scrape.sample(&family, line).map_err(|why| wrong(&why))?;
            }
        }
        Ok(scrape)
    }

    fn sample(&mut self, family: &str, line: &str) -> Result<(), String> {
        let (series, value) = line.rsplit_once(' ').ok_or("no value")?;
        let value: f64 = value.parse().map_err(|_| "the value is no number")?;
        let (name, labels) = series.split_once('{').map_or((series, None), |(name, it)| (name, Some(it)));
        let kind = self.families.get(family).ok_or("no type")?;
        let of_family = match (kind.as_str(), name.strip_prefix(family)) {
            ("histogram", Some("_bucket" | "_sum" | "_count")) => true,
            (_, Some("")) => kind != "histogram",
            _ => false,
        };
        if !of_family || !is_name(name) {
            return Err("not of the family above it".to_owned());
        }
        if let Some(labels) = labels {
            are_labels(labels.strip_suffix('}').ok_or("labels without an end")?)?;
        }
        if value < 0.0 || self.samples.insert(series.to_owned(), value).is_some() {
            return Err("below 0, or there before".to_owned());
        }
        Ok(())
    }

    /// Returns a sample by its name and labels, such as `a{b="c"}`; 0 if it is not there.
    #[must_use]
    pub fn get(&self, series: &str) -> f64 {
        self.samples.get(series).copied().unwrap_or_default()
    }

    /// Returns the names of families.
    #[must_use]
    pub fn families(&self) -> BTreeSet<&str> {
        self.families.keys().map(String::as_str).collect()
    }

    /// Returns the names of samples with the labels that they have.
    pub fn series(&self) -> impl Iterator<Item = &str> {
        self.samples.keys().map(String::as_str)
    }
}

fn is_name(text: &str) -> bool {
    let fits = |at: usize, letter: char| {
        letter.is_ascii_lowercase() || letter == '_' || (at > 0 && letter.is_ascii_digit())
    };
    !text.is_empty() && text.chars().enumerate().all(|(at, letter)| fits(at, letter))
}

/// Reads `name="value",…`.
fn are_labels(mut text: &str) -> Result<(), String> {
    let mut names = BTreeSet::new();
    loop {
        let (name, rest) = text.split_once("=\"").ok_or("a label without a value")?;
        if !is_name(name) || !names.insert(name) {
            return Err("a label that is there twice, or has no proper name".to_owned());
        }
        let mut is_escaped = false;
        let end = rest.find(|letter| {
            let ends = letter == '"' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            ends
        });
        match rest[end.ok_or("a value without an end")? + 1..].strip_prefix(',') {
            Some(more) => text = more,
            None if rest.len() == end.unwrap_or_default() + 1 => return Ok(()),
            None => return Err("no comma between labels".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_format_is_a_scrape() {
        let head = "# HELP a_total All.\n# TYPE a_total counter\n";
        for (text, fits) in [
            ("a_total 1\n", true),
            ("a_total{b=\"x,\\\"y\",c=\"\"} 1\na_total 2\n", true),
            ("a_total 1", false),
            ("a_total 1\na_total 1\n", false),
            ("a_total{b=\"x\",b=\"y\"} 1\n", false),
            ("a_total{b=x} 1\n", false),
            ("a_total -1\n", false),
            ("b_total 1\n", false),
            ("# HELP a_total All.\n", false),
        ] {
            let read = Scrape::read(&format!("{head}{text}"));
            assert_eq!(read.is_ok(), fits, "{text}: {read:?}");
        }
    }
}
