//! What answers cost: tokens times a table of prices.
//!
//! The table `prices.json` stands for list prices of the day it was written; a file of the same form, named by
//! `OUTLAST_MODEL_PRICES`, is looked into before it; the `prices` of a profile's endpoint, if it has any, stand for both. Leaves
//! adding up and limits to the runtime. Invariant: money is a decimal, exact; a model that is in no table has no cost, never a guessed one.

use std::collections::BTreeMap;

use outlast_protocol::profile::Prices;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::json;

use crate::Json;
use crate::limits::PRICES_BYTES_MAX;

/// The environment variable that names a file of prices.
pub(crate) const PRICES_VARIABLE: &str = "OUTLAST_MODEL_PRICES";

const TABLE: &str = include_str!("prices.json");

/// What an answer took, as far as the server says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Tokens read, those of the cache included.
    pub(crate) input: Option<u64>,
    /// Of those, read from the provider's cache.
    pub(crate) cached: Option<u64>,
    /// Of those, written to the provider's cache.
    pub(crate) cache_written: Option<u64>,
    /// Tokens written, reasoning included.
    pub(crate) output: Option<u64>,
    /// Of those, reasoning.
    pub(crate) reasoning: Option<u64>,
}

impl Usage {
    /// For people, with the names under which it is shown.
    pub(crate) fn shown(&self) -> Json {
        let all = [
            ("input_tokens", self.input),
            ("cached_tokens", self.cached),
            ("cache_written_tokens", self.cache_written),
            ("output_tokens", self.output),
            ("reasoning_tokens", self.reasoning),
        ];
        all.into_iter().filter_map(|(name, count)| Some((name.to_owned(), json!(count?)))).collect()
    }
}

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    input: Decimal,
    cached: Decimal,
    cache_written: Decimal,
    output: Decimal,
}

impl Rates {
    /// Reads prices. What the cache gives costs as much as other input if nothing else is said.
    pub(crate) fn read(prices: &Prices) -> Result<Rates, String> {
        let read = |text: &str| match text.parse::<Decimal>() {
            Ok(price) if price.is_sign_negative() => Err(format!("the price {text:?} is negative")),
            Ok(price) => Ok(price),
            Err(error) => Err(format!("the price {text:?}: {error}")),
        };
        let input = read(&prices.input)?;
        let or_input = |text: &Option<String>| text.as_deref().map_or(Ok(input), read);
        Ok(Rates {
            input,
            cached: or_input(&prices.cached)?,
            cache_written: or_input(&prices.cache_written)?,
            output: read(&prices.output)?,
        })
    }

    /// The cost of an answer; `None` if the server did not say what it took.
    pub(crate) fn cost(&self, usage: &Usage) -> Option<String> {
        let (cached, written) = (usage.cached.unwrap_or(0), usage.cache_written.unwrap_or(0));
        let plain = usage.input?.saturating_sub(cached).saturating_sub(written);
        let mut sum = Decimal::ZERO;
        for (rate, count) in [
            (self.input, plain),
            (self.cached, cached),
            (self.cache_written, written),
            (self.output, usage.output?),
        ] {
            sum = sum.checked_add(rate.checked_mul(count.into())?)?;
        }
        Some(sum.checked_div(Decimal::from(1_000_000))?.normalize().to_string())
    }
}

/// Prices by model.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Table(BTreeMap<String, Prices>);

impl Table {
    fn read(text: &str) -> Result<Table, String> {
        let table: Table = serde_json::from_str(text).map_err(|error| {
            format!("{error}; expected {{\"MODEL\": {{\"input\": \"2.50\", \"output\": \"10\"}}, …}}, for a million tokens")
        })?;
        for (model, prices) in &table.0 {
            Rates::read(prices).map_err(|error| format!("{model}: {error}"))?;
        }
        Ok(table)
    }

    /// The prices of a model: of its name, or of the longest name of which it is a version (`NAME-20260101`).
    fn find(&self, model: &str) -> Option<&Prices> {
        // Gateways put the maker before the name.
        let names = [model, model.rsplit('/').next().unwrap_or(model)];
        names.iter().find_map(|name| {
            let is_version = |of: &str| name.strip_prefix(of).is_some_and(is_date);
            let fitting = self.0.iter().filter(|(of, _)| is_version(of));
            fitting.max_by_key(|(of, _)| of.len()).map(|(_, prices)| prices)
        })
    }
}

/// Whether this is what stands behind a model's name to tell its versions apart. A shorter number would be another model.
fn is_date(suffix: &str) -> bool {
    let digits = suffix.chars().filter(char::is_ascii_digit).count();
    let plain =
        suffix.starts_with(['-', '@']) && suffix.chars().all(|c| c.is_ascii_digit() || "-@".contains(c));
    suffix.is_empty() || suffix == "-latest" || (plain && digits == 8)
}

/// Finds the rates of a model: `given`, else those of the file that the environment names, else those of the table.
///
/// # Errors
/// What is wrong with the prices or the file.
pub(crate) fn rates(
    model: &str,
    given: Option<&Prices>,
    file: Option<&str>,
) -> Result<Option<Rates>, String> {
    if let Some(given) = given {
        return Rates::read(given).map(Some);
    }
    let own = file.map(read_file).transpose()?;
    let stock = Table::read(TABLE).map_err(|error| format!("the table of prices: {error}"))?;
    let found = own.iter().chain([&stock]).find_map(|table| table.find(model));
    found.map(Rates::read).transpose()
}

fn read_file(path: &str) -> Result<Table, String> {
    let size = std::fs::metadata(path).map_err(|error| format!("{PRICES_VARIABLE}: {path}: {error}"))?.len();
    if size > PRICES_BYTES_MAX {
        return Err(format!("{PRICES_VARIABLE}: {path} has more than {PRICES_BYTES_MAX} bytes"));
    }
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{PRICES_VARIABLE}: {path}: {error}"))?;
    Table::read(&text).map_err(|error| format!("{PRICES_VARIABLE}: {path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices(input: &str, output: &str) -> Prices {
        Prices { input: input.into(), output: output.into(), cached: None, cache_written: None }
    }

    #[test]
    fn costs_are_exact() {
        let usage = |input, output| Usage { input: Some(input), output: Some(output), ..Usage::default() };
        let rates = Rates::read(&prices("2.50", "10")).unwrap();
        assert_eq!(rates.cost(&usage(1_000, 100)).as_deref(), Some("0.0035"));
        assert_eq!(rates.cost(&usage(0, 0)).as_deref(), Some("0"));
        assert_eq!(rates.cost(&Usage { output: None, ..usage(1, 1) }), None);
        let cache =
            Prices { cached: Some("0.25".into()), cache_written: Some("5".into()), ..prices("2", "10") };
        let of_cache = Usage { cached: Some(600), cache_written: Some(300), ..usage(1_000, 0) };
        assert_eq!(Rates::read(&cache).unwrap().cost(&of_cache).as_deref(), Some("0.00185"));
        for wrong in [prices("cheap", "10"), prices("-1", "10")] {
            assert!(Rates::read(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn versions_have_the_price_of_their_model() {
        let table = Table::read(
            r#"{"m": {"input": "1", "output": "1"}, "m-mini": {"input": "2", "output": "1"}, "m-4": {"input": "3", "output": "1"}}"#,
        )
        .unwrap();
        for (name, input) in [
            ("m", Some("1")),
            ("m-20260101", Some("1")),
            ("m-latest", Some("1")),
            ("maker/m-mini", Some("2")),
            ("m-mini-2026-01-01", Some("2")),
            ("m-4", Some("3")),
            ("m-large", None),
            ("m-5", None),
            ("mm", None),
        ] {
            assert_eq!(table.find(name).map(|prices| prices.input.as_str()), input, "{name}");
        }
    }

    #[test]
    fn the_table_can_be_read_and_a_file_stands_before_it() {
        assert!(!Table::read(TABLE).unwrap().0.is_empty());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), r#"{"gpt-5": {"input": "7", "output": "8"}}"#).unwrap();
        let path = file.path().to_str();
        assert_eq!(rates("gpt-5", None, path), Rates::read(&prices("7", "8")).map(Some));
        assert_eq!(rates("gpt-5", Some(&prices("1", "2")), path), Rates::read(&prices("1", "2")).map(Some));
        assert!(rates("gpt-5-mini", None, path).unwrap().is_some());
        assert_eq!(rates("a model of my own", None, path), Ok(None));
        std::fs::write(file.path(), r#"{"gpt-5": {"input": 7}}"#).unwrap();
        let error = rates("gpt-5", None, path).unwrap_err();
        assert!(error.contains("expected") && error.contains(path.unwrap()), "{error}");
        assert!(rates("gpt-5", None, Some("/no/such/file")).is_err());
    }
}
