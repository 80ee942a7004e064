//! `outlast doctor`: are the checkpoints on disk, is there a way back in, what side effects are unfinished?

use outlast_protocol::run::{RunView, WaitingFor};
use outlast_runtime::client::Wanted;
use outlast_runtime::host::Session;
use serde_json::{Value, json};

use super::{Context, act};
use crate::failure::{Exit, Failure};
use crate::limits::RUNS_PAGE;
use crate::open::{self, Workers};
use crate::{out, show};

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only this run
    id: Option<String>,
}

/// What the doctor says of one run.
#[derive(Debug, serde::Serialize)]
struct Advice {
    run: RunView,
    /// The command that lets it go on, by mode.
    resume: Value,
    /// The command that a person has to give, if it waits for one.
    act: Option<String>,
}

/// Examines the store and every run that has not ended.
pub(crate) async fn doctor(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let report = session.call(async |client| client.doctor().await).await?;
    let status = session.call(async |client| client.status().await).await?;
    let runs = match &arguments.id {
        Some(id) => vec![session.call(async |client| client.run(id).await).await.map_err(Failure::from)?],
        None => unfinished(&session).await?,
    };
    let option = act::data_option(&session);
    let advice: Vec<Advice> = runs.into_iter().map(|run| advise(run, &option)).collect();
    let findings = report["check"]["findings"].as_array().map_or(0, Vec::len);
    if context.json {
        out::json(&json!({ "store": report, "host": status, "runs": advice }))?;
    } else {
        out::result(&store(&report, &status, session.is_host()))?;
        for one in &advice {
            out::result(&describe(one))?;
        }
        if advice.is_empty() {
            out::result("\nno unfinished runs")?;
        }
    }
    open::close(session).await;
    Ok(if findings == 0 { Exit::Done } else { Exit::Failed })
}

async fn unfinished(session: &Session) -> Result<Vec<RunView>, Failure> {
    let mut runs = Vec::new();
    for status in ["running", "waiting", "blocked"] {
        let mut cursor = None;
        loop {
            let status = Some(status.to_owned());
            let wanted = Wanted { status, cursor, limit: Some(RUNS_PAGE), ..Wanted::default() };
            let page = session.call(async |client| client.runs(&wanted).await).await?;
            runs.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(runs)
}

fn advise(run: RunView, option: &str) -> Advice {
    let id = &run.id;
    let resume = json!({
        "interactive": format!("outlast{option} chat --resume {id}"),
        "batch": format!("outlast{option} run --id {id}"),
        "rpc": format!("outlast{option} serve"),
    });
    let act = match &run.waiting_for {
        Some(WaitingFor::Question { id: question }) => {
            Some(format!("outlast{option} answer {id} {question} approve|reject"))
        }
        Some(WaitingFor::Held { op, .. }) => Some(format!(
            "outlast{option} settle {id} {op} happened --result JSON | not_happened | fail, or outlast{option} release {id} {op}"
        )),
        Some(WaitingFor::Message { types }) => {
            Some(format!("outlast{option} send {id} {} JSON", types.join("|")))
        }
        Some(WaitingFor::Blocked { .. }) => Some(format!("outlast{option} cancel {id}, or terminate {id}")),
        Some(
            WaitingFor::Worker { .. }
            | WaitingFor::Activity { .. }
            | WaitingFor::Rate { .. }
            | WaitingFor::Retry { .. }
            | WaitingFor::Timer { .. }
            | WaitingFor::Child { .. }
            | WaitingFor::Budget { .. }
            | WaitingFor::Environment { .. },
        )
        | None => None,
    };
    Advice { act, resume, run }
}

fn describe(advice: &Advice) -> String {
    let run = &advice.run;
    let state = if run.state.is_empty() { String::new() } else { format!(" in {}", run.state) };
    let mut lines =
        vec![format!("\nrun {} of {}: {}{state}, {} events", run.id, run.flow, run.status, run.events)];
    if let Some(waiting) = &run.waiting_for {
        lines.push(format!("  now          {}", show::waiting_for(&run.id, waiting)));
    }
    if run.outcome.is_none() {
        for mode in ["interactive", "batch", "rpc"] {
            lines.push(format!("  {mode:<12} {}", advice.resume[mode].as_str().unwrap_or_default()));
        }
    }
    if let Some(act) = &advice.act {
        lines.push(format!("  to decide    {act}"));
    }
    lines.join("\n")
}

fn store(report: &Value, status: &Value, hosted_here: bool) -> String {
    let (opened, stats, check) = (&report["opened"], &report["stats"], &report["check"]);
    let owner =
        if hosted_here { "nobody but this command".to_owned() } else { format!("process {}", status["pid"]) };
    let torn = opened["torn_bytes"].as_u64().unwrap_or_default();
    let mut lines = vec![
        format!("store        {}", opened["directory"].as_str().unwrap_or_default()),
        format!(
            "owner        {owner}, release {}, protocol {}",
            text(&status["version"]),
            status["protocol"]
        ),
        format!("last commit  number {}, mark {}", stats["commit_last"], mark(&opened["mark"])),
        format!(
            "sync         last {} us, slowest {} us, over {} commits since it was opened",
            stats["commit_us_last"], stats["commit_us_max"], stats["commits"]
        ),
        format!("size         {} bytes, {} bytes free", stats["bytes"], stats["free_bytes"]),
        format!("journal scan {} bytes, {}", opened["journal_bytes"], torn_tail(torn)),
        format!(
            "check        {} runs, {} events, {}",
            check["runs"],
            check["events"],
            found(&check["findings"])
        ),
    ];
    if stats["nearly_full"] == json!(true) {
        lines.push("disk         nearly full: new runs are refused; make room".to_owned());
    }
    lines.extend(status["engine"]["rates"].as_array().into_iter().flatten().map(rate));
    for run in status["engine"]["quarantined"].as_array().into_iter().flatten() {
        lines.push(format!("  ! run {} is quarantined: it ended the process again and again", text(run)));
    }
    for finding in check["findings"].as_array().into_iter().flatten() {
        lines.push(format!("  ! {}", text(finding)));
    }
    lines.join("\n")
}

fn rate(rate: &Value) -> String {
    let most = |name: &str, of: &str| rate[name].as_u64().map(|most| format!("{most} {of}"));
    let most = [most("requests_per_minute", "requests"), most("tokens_per_minute", "tokens")];
    let most: Vec<String> = most.into_iter().flatten().collect();
    let next =
        rate["held_until"].as_str().map(|at| format!(", the next goes out at {at}")).unwrap_or_default();
    format!(
        "rate         queue {}: {} a minute; {} tasks wait{next}",
        text(&rate["queue"]),
        most.join(" and "),
        rate["waiting"]
    )
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), out::tame)
}

fn mark(mark: &Value) -> String {
    if mark.is_null() {
        "missing (a new store, or a lost file)".to_owned()
    } else {
        format!("{mark}, which is there")
    }
}

fn torn_tail(bytes: u64) -> String {
    if bytes == 0 {
        "no torn tail".to_owned()
    } else {
        format!("{bytes} bytes of a torn tail were cut: a commit that nobody was told of")
    }
}

fn found(findings: &Value) -> String {
    match findings.as_array().map_or(0, Vec::len) {
        0 => "all well".to_owned(),
        1 => "1 finding".to_owned(),
        n => format!("{n} findings"),
    }
}
