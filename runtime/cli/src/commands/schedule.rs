//! `outlast schedule`: runs that are started by the clock, as long as somebody hosts the data directory.
//!
//! Leaves rules and policies to the engine. Invariant: the same `add` again changes nothing.

use outlast_protocol::requests::Permissions;
use outlast_protocol::schedule::{CatchUp, Kept, Overlap, Schedule, ScheduleView};
use outlast_runtime::client::{Client, ClientError};
use serde_json::{Value, json};

use super::Context;
use super::act::again;
use super::run::deploy_chosen;
use crate::failure::{Exit, Failure};
use crate::flow_file::Named;
use crate::open::{self, Workers};
use crate::{input, out, show};

/// Arguments of `schedule`.
///
/// A schedule starts a run of its flow whenever one of its cron rules is due, under the id NAME@TIME: each time once. It is driven by whoever
/// hosts the data directory (`outlast serve`).
///
/// Rules have five fields: minute, hour, day of month, month, day of week. If neither day field is *, a day that fits either fits.
/// When clocks change, a rule whose hour field begins with * keeps its rhythm; any other is due once for each time that it names: in the
/// first pass of a doubled hour, and 02:30 becomes 03:30 where there is no 02:30.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Add a schedule, or change it
    Add(AddArguments),
    /// List schedules
    List,
    /// Show a schedule, its next times, and what was skipped and why
    Show(NameArguments),
    /// Start no more runs of a schedule
    Pause(NameArguments),
    /// Let a paused schedule go on
    Resume(NameArguments),
    /// Remove a schedule; its runs stay
    Remove(NameArguments),
    /// Start a run of a schedule now, whatever else runs
    RunNow(NameArguments),
}

#[derive(Debug, clap::Args)]
struct NameArguments {
    /// The schedule
    name: String,
}

#[derive(Debug, clap::Args)]
struct AddArguments {
    /// The schedule's name; its runs are NAME@TIME
    name: String,
    /// The flow: FILE or FILE:Flow [default: the built-in agent]
    #[arg(value_name = "FILE[:Flow]")]
    flow: Option<String>,
    /// When, such as '30 2 * * *'; may be given several times
    #[arg(long, value_name = "RULE", required = true)]
    cron: Vec<String>,
    /// The time zone of the rules, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,
    /// What to do when the run before has not ended
    #[arg(long, value_enum, default_value_t = OnOverlap::Skip)]
    overlap: OnOverlap,
    /// What to do about what was missed while nothing ran: none, last, or all:N for the newest N
    #[arg(long, value_name = "HOW", default_value = "last", value_parser = catch_up)]
    catch_up: CatchUp,
    /// The parameter `task`
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// The parameters: a JSON object, @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// A tool pattern that needs no question, such as 'shell(git *)'
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OnOverlap {
    /// Skip the new one
    Skip,
    /// Let one wait, skip more
    QueueOne,
    /// Let all wait, in their order
    QueueAll,
    /// Run them beside each other
    Allow,
    /// Cancel the run before
    CancelPrevious,
}

fn catch_up(text: &str) -> Result<CatchUp, String> {
    match (text, text.strip_prefix("all:").map(str::parse)) {
        ("none", _) => Ok(CatchUp::None),
        ("last", _) => Ok(CatchUp::Last),
        (_, Some(Ok(count))) => Ok(CatchUp::All(count)),
        (_, Some(Err(_)) | None) => Err("none, last, or all:N is expected".to_owned()),
    }
}

/// Does what is asked about schedules.
pub(crate) async fn schedule(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.what {
        What::Add(arguments) => add(context, arguments).await,
        What::List => list(context).await,
        What::Show(NameArguments { name }) => view(context, async |client| client.schedule(name).await).await,
        What::Pause(NameArguments { name }) => {
            view(context, async |client| client.pause_schedule(name).await).await
        }
        What::Resume(NameArguments { name }) => {
            view(context, async |client| client.resume_schedule(name).await).await
        }
        What::Remove(NameArguments { name }) => {
            let session = open::session(context.data, Workers::None, None).await?;
            session.call(async |client| client.remove_schedule(name).await).await?;
            open::close(session).await;
            out::say(&format!("schedule {name} is removed; its runs stay"));
            Ok(Exit::Done)
        }
        What::RunNow(NameArguments { name }) => {
            let session = open::session(context.data, Workers::None, None).await?;
            let run = session.call(async |client| client.run_schedule_now(name).await).await?;
            if context.json {
                out::json(&run)?;
            } else {
                out::result(&run.id)?;
                if session.is_host() {
                    let again = again(&run.id, &session, true);
                    out::say(&format!("nobody hosts this data directory now; to let it go on: {again}"));
                }
            }
            open::close(session).await;
            Ok(Exit::Done)
        }
    }
}

async fn add(context: Context<'_>, arguments: &AddArguments) -> Result<Exit, Failure> {
    let input = input::input(arguments.task.as_deref(), arguments.input.as_deref())?;
    let chosen = Named::new(arguments.flow.as_deref()).choose()?;
    let session = open::session(context.data, Workers::None, None).await?;
    let deployed = deploy_chosen(&session, &chosen).await?;
    let allow = arguments.allow.clone();
    let schedule = Schedule {
        flow: deployed.flow,
        input,
        cron: arguments.cron.clone(),
        time_zone: arguments.time_zone.clone(),
        overlap: match arguments.overlap {
            OnOverlap::Skip => Overlap::Skip,
            OnOverlap::QueueOne => Overlap::QueueOne,
            OnOverlap::QueueAll => Overlap::QueueAll,
            OnOverlap::Allow => Overlap::Allow,
            OnOverlap::CancelPrevious => Overlap::CancelPrevious,
        },
        catch_up: arguments.catch_up,
        profile: deployed.profile,
        permissions: (!allow.is_empty()).then(|| Permissions { allow, ..Permissions::default() }),
    };
    let kept = session.call(async |client| client.put_schedule(&arguments.name, &schedule).await).await?;
    if context.json {
        out::json(&kept)?;
    } else {
        let what = match kept.kept {
            Kept::Created => "is added",
            Kept::Changed => "is changed",
            Kept::Unchanged => "is as it was",
        };
        let next = kept.schedule.next.first().map_or("never", String::as_str);
        out::result(&format!("schedule {} {what}; next at {next}", arguments.name))?;
        if session.is_host() {
            out::say("nobody hosts this data directory now; schedules need one: outlast serve");
        }
    }
    open::close(session).await;
    Ok(Exit::Done)
}

async fn list(context: Context<'_>) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let list = session.call(async |client| client.schedules().await).await?;
    open::close(session).await;
    if context.json {
        out::json(&list)?;
        return Ok(Exit::Done);
    }
    for schedule in list.items {
        let next = match (schedule.paused, schedule.next.first()) {
            (true, _) => "paused",
            (false, Some(next)) => next,
            (false, None) => "never",
        };
        let (definition, rules) = (&schedule.definition, schedule.definition.cron.join(", "));
        let (name, flow, zone) = (&schedule.name, &definition.flow, &definition.time_zone);
        out::result(&format!("{name:<24} {flow:<16} {next:<24} {rules} {zone}"))?;
    }
    Ok(Exit::Done)
}

async fn view(
    context: Context<'_>,
    call: impl AsyncFn(&Client) -> Result<ScheduleView, ClientError>,
) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let schedule = session.call(call).await?;
    open::close(session).await;
    if context.json {
        out::json(&schedule)?;
    } else {
        out::result(&text(&schedule))?;
    }
    Ok(Exit::Done)
}

/// Returns a policy as it is written after its option: `skip`, `all:3`.
fn word(policy: &Value) -> String {
    match policy {
        Value::Object(fields) => fields.iter().map(|(name, value)| format!("{name}:{value}")).collect(),
        Value::String(text) => text.replace('_', "-"),
        other => other.to_string(),
    }
}

fn text(schedule: &ScheduleView) -> String {
    let definition = &schedule.definition;
    let mut lines = vec![
        format!("schedule {}{}", schedule.name, if schedule.paused { " (paused)" } else { "" }),
        format!("flow     {} {}", definition.flow, show::short(&definition.input)),
        format!("rules    {} in {}", definition.cron.join(", "), definition.time_zone),
        format!("overlap  {}", word(&json!(definition.overlap))),
        format!("catch-up {}", word(&json!(definition.catch_up))),
    ];
    let next = if schedule.paused { &[] } else { schedule.next.as_slice() };
    let lists = [("next", next), ("active", &schedule.active), ("queued", &schedule.queue)];
    for (name, list) in lists {
        let names = list
            .iter()
            .enumerate()
            .map(|(at, item)| format!("{:<8} {item}", if at == 0 { name } else { "" }));
        lines.extend(names);
    }
    lines.extend(schedule.skipped.iter().map(|skipped| {
        let until = if skipped.count > 1 {
            format!(" to {}, {} times", skipped.to, skipped.count)
        } else {
            String::new()
        };
        format!("skipped  {}{until}: {}", skipped.from, out::tame(&skipped.reason))
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catch_up_policies_are_words() {
        for (text, policy) in [
            ("none", Some(CatchUp::None)),
            ("last", Some(CatchUp::Last)),
            ("all:3", Some(CatchUp::All(3))),
            ("all", None),
            ("all:x", None),
            ("some", None),
        ] {
            assert_eq!(catch_up(text).ok(), policy, "{text}");
        }
    }
}
