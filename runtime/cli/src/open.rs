//! Opening the data directory for a command.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_protocol::profile::Profile;
use outlast_protocol::rates::Rate;
use outlast_runtime::host::{Options, Session};
use outlast_runtime::limits::MEMORY_BUDGET_MIB_MIN;
use outlast_runtime::telemetry::Collector;

use crate::configuration::Configuration;
use crate::environment::data_directory;
use crate::failure::{Exit, Failure};

/// Whether a command that hosts starts workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workers {
    /// It waits for runs, so somebody must do the work.
    Started,
    /// It looks or acts and leaves at once.
    None,
}

/// Hosts the data directory, or attaches to its host.
pub(crate) async fn session(
    data: Option<&Path>,
    workers: Workers,
    profile: Option<Profile>,
) -> Result<Arc<Session>, Failure> {
    Ok(Arc::new(Session::open(options(data, workers, profile)?).await?))
}

/// Returns how a data directory is opened.
pub(crate) fn options(
    data: Option<&Path>,
    workers: Workers,
    profile: Option<Profile>,
) -> Result<Options, Failure> {
    let program = match workers {
        Workers::None => None,
        Workers::Started => {
            let cannot = |error| Failure::new(Exit::Failed, format!("cannot find this program: {error}"));
            Some(std::env::current_exe().map_err(cannot)?)
        }
    };
    let memory_budget = memory_budget(std::env::var(MEMORY).ok().as_deref())?;
    // Without a working directory there is only the user's file.
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let set = Configuration::read(&here)?;
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let rates = rates(set.rates(), &|name| std::env::var(name).ok())?;
    let collector = collector(set.collector()?, &variable)?;
    let accept_clock = std::env::var_os(ACCEPT_CLOCK).is_some_and(|value| value == "1");
    let usual = Options::new(data_directory(data)?);
    Ok(Options { program, profile, memory_budget, accept_clock, rates, collector, ..usual })
}

/// The queue from which the stock model worker takes its tasks.
const MODEL_QUEUE: &str = "model";
const REQUESTS: &str = "OUTLAST_MODEL_REQUESTS_PER_MINUTE";
const TOKENS: &str = "OUTLAST_MODEL_TOKENS_PER_MINUTE";

/// Returns how fast queues give out their tasks: for models, variables win over what files say.
fn rates(
    mut rates: BTreeMap<String, Rate>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, Rate>, Failure> {
    let count = |name: &str| -> Result<Option<NonZeroU64>, Failure> {
        let count = outlast_workers::model::count(name, variable).map_err(Failure::usage)?;
        Ok(count.and_then(NonZeroU64::new))
    };
    let set = Rate { requests_per_minute: count(REQUESTS)?, tokens_per_minute: count(TOKENS)? };
    if set != Rate::default() {
        let model = rates.entry(MODEL_QUEUE.to_owned()).or_default();
        *model = set.or(*model);
    }
    Ok(rates)
}

/// The variables of OpenTelemetry: a base address, a whole one, and headers.
const OTLP: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const OTLP_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const OTLP_HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Returns where spans are sent: variables win over what files say. Those are set for many programs at once, so one that does not suit this
/// one is said and passed over.
fn collector(
    set: Option<Collector>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Collector>, Failure> {
    let whole = variable(OTLP_TRACES).map(|text| (OTLP_TRACES, Collector::exactly(&text)));
    let found = whole.or_else(|| variable(OTLP).map(|text| (OTLP, Collector::at(&text))));
    let collector = match found {
        None => set,
        Some((_, Ok(collector))) => Some(collector),
        Some((name, Err(error))) => {
            tracing::error!("{name}: {error}; no spans are sent there");
            set
        }
    };
    let headers = variable(OTLP_HEADERS).unwrap_or_default();
    let with_headers = collector.map(|collector| collector.with_headers(&headers)).transpose();
    with_headers.map_err(|error| Failure::usage(format!("{OTLP_HEADERS}: {error}")))
}

/// The variable that says, with `1`, that a store is right about the time, and not the clock that is far behind it.
const ACCEPT_CLOCK: &str = "OUTLAST_ACCEPT_CLOCK";

/// The variable that says how many MiB the states of runs may have in memory.
const MEMORY: &str = "OUTLAST_MEMORY_MIB";

fn memory_budget(mib: Option<&str>) -> Result<Option<usize>, Failure> {
    let Some(mib) = mib else { return Ok(None) };
    let bytes = mib
        .parse::<u64>()
        .ok()
        .filter(|mib| *mib >= MEMORY_BUDGET_MIB_MIN)
        .and_then(|mib| mib.checked_mul(1 << 20));
    match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(Failure::usage(format!(
            "{MEMORY}: a number of MiB from {MEMORY_BUDGET_MIB_MIN} on is expected, not {mib:?}"
        ))),
    }
}

/// Leaves the data directory. Tasks that still hold the session are those that the exit ends.
pub(crate) async fn close(session: Arc<Session>) {
    if let Some(session) = Arc::into_inner(session) {
        session.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_opentelemetry_win_unless_they_do_not_suit() {
        let at = |text: &str| Collector::at(text).unwrap();
        let set = || Some(at("http://file:1"));
        let one = |name: &'static str, value: &'static str| {
            move |asked: &str| (asked == name).then(|| value.to_owned())
        };
        assert_eq!(collector(set(), &|_| None).unwrap(), set());
        assert_eq!(collector(set(), &one(OTLP, "http://a:2")).unwrap(), Some(at("http://a:2")));
        let whole = Collector::exactly("http://a:2/x").unwrap();
        assert_eq!(collector(None, &one(OTLP_TRACES, "http://a:2/x")).unwrap(), Some(whole));
        assert_eq!(collector(set(), &one(OTLP, "grpc://a")).unwrap(), set());
        assert!(collector(set(), &one(OTLP_HEADERS, "no pair")).is_err());
    }

    #[test]
    fn variables_win_over_what_files_say_of_models() {
        let of = |requests, tokens| Rate {
            requests_per_minute: NonZeroU64::new(requests),
            tokens_per_minute: NonZeroU64::new(tokens),
        };
        let with = |set: &[(&str, &str)]| {
            let find = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, text)| (*text).to_owned());
            rates(BTreeMap::from([("model".to_owned(), of(60, 1_000)), ("q".to_owned(), of(1, 0))]), &find)
        };
        assert_eq!(with(&[]).unwrap()["model"], of(60, 1_000));
        let found = with(&[(REQUESTS, "7")]).unwrap();
        assert_eq!((found["model"], found["q"]), (of(7, 1_000), of(1, 0)));
        for wrong in ["0", "ten", "-1"] {
            assert!(with(&[(TOKENS, wrong)]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn memory_is_a_number_of_mebibytes_that_is_enough() {
        assert_eq!(memory_budget(None).ok(), Some(None));
        assert_eq!(memory_budget(Some("64")).ok(), Some(Some(64 << 20)));
        for wrong in ["", "8", "64MiB", "-1", "99999999999999999999"] {
            assert!(memory_budget(Some(wrong)).is_err(), "{wrong:?}");
        }
    }
}
