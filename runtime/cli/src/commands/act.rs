//! `outlast send`, `answer`, `cancel`, `terminate`, `settle`, `release`: what people and programs do to a run.

use outlast_protocol::requests::{Accepted, Answer, Release, Send, Settle};
use outlast_runtime::client::{Client, ClientError};
use outlast_runtime::host::Session;
use serde_json::Value;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::open::{self, Workers};
use crate::{input, out};

/// Arguments of `send`.
#[derive(Debug, clap::Args)]
pub(crate) struct SendArguments {
    /// The run
    id: String,
    /// The message's type, or `closed` to say that no more will come
    #[arg(value_name = "TYPE")]
    name: String,
    /// Its fields: JSON, @FILE, or - for stdin
    #[arg(value_name = "JSON", default_value = "{}")]
    value: String,
    /// An id of yours: the same message sent twice counts once
    #[arg(long, value_name = "ID")]
    message_id: Option<String>,
}

/// Sends a message.
pub(crate) async fn send(context: Context<'_>, arguments: &SendArguments) -> Result<Exit, Failure> {
    let value = json(&input::text(&arguments.value)?)?;
    // With an id of its own the request may be repeated when the host is lost on the way.
    let id = arguments.message_id.clone().map_or_else(|| fresh_id("m"), Ok)?;
    let send = Send { name: arguments.name.clone(), value, id: Some(id) };
    act(context, &arguments.id, async |client| client.message(&arguments.id, &send).await).await
}

/// Arguments of `answer`.
#[derive(Debug, clap::Args)]
pub(crate) struct AnswerArguments {
    /// The run
    id: String,
    /// The question, then the choice: approve, reject or answer. The question may be left out if only one is open
    #[arg(value_name = "[QUESTION] CHOICE", required = true, num_args = 1..=2)]
    words: Vec<String>,
    /// What to tell the flow with it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// The edited or given value: JSON, @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    value: Option<String>,
    /// The role in which you answer
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
}

/// Answers a question.
pub(crate) async fn answer(context: Context<'_>, arguments: &AnswerArguments) -> Result<Exit, Failure> {
    let (question, choice) = match arguments.words.as_slice() {
        [question, choice] => (Some(question.clone()), choice),
        [choice] => (None, choice),
        [] | [..] => return Err(Failure::usage("a choice is expected: approve, reject or answer")),
    };
    let value = arguments.value.as_deref().map(|given| json(&input::text(given)?)).transpose()?;
    let answer = Answer {
        question,
        choice: choice_of(choice)?.to_owned(),
        value,
        note: arguments.note.clone(),
        role: arguments.role.clone(),
        shown: None,
        always: None,
    };
    act(context, &arguments.id, async |client| client.answer(&arguments.id, &answer).await).await
}

fn choice_of(word: &str) -> Result<&'static str, Failure> {
    match word {
        "approve" | "yes" | "y" => Ok("approve"),
        "reject" | "no" | "n" => Ok("reject"),
        "answer" => Ok("answer"),
        other => Err(Failure::usage(format!("approve, reject or answer is expected, not {other:?}"))),
    }
}

/// Arguments of `cancel` and `terminate`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArguments {
    /// The run
    id: String,
}

/// Stops a run with its clean-up.
pub(crate) async fn cancel(context: Context<'_>, arguments: &RunArguments) -> Result<Exit, Failure> {
    act(context, &arguments.id, async |client| client.cancel(&arguments.id).await).await
}

/// Stops a run at once.
pub(crate) async fn terminate(context: Context<'_>, arguments: &RunArguments) -> Result<Exit, Failure> {
    act(context, &arguments.id, async |client| client.terminate(&arguments.id).await).await
}

/// Arguments of `settle`.
#[derive(Debug, clap::Args)]
pub(crate) struct SettleArguments {
    /// The run
    id: String,
    /// The operation, as `outlast doctor` shows it
    #[arg(value_name = "OP")]
    op: String,
    /// What became of it
    #[arg(value_enum)]
    verdict: Verdict,
    /// The result, if it happened: JSON, @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    result: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum Verdict {
    /// It happened, with the result given by --result
    Happened,
    /// It did not happen: run it
    #[value(alias = "not-happened")]
    NotHappened,
    /// Let it fail
    Fail,
}

/// Settles a doubt.
pub(crate) async fn settle(context: Context<'_>, arguments: &SettleArguments) -> Result<Exit, Failure> {
    let verdict = match arguments.verdict {
        Verdict::Happened => "happened",
        Verdict::NotHappened => "not_happened",
        Verdict::Fail => "fail",
    };
    let result = arguments.result.as_deref().map(|given| json(&input::text(given)?)).transpose()?;
    let settle = Settle { op: arguments.op.clone(), verdict: verdict.to_owned(), result };
    act(context, &arguments.id, async |client| client.settle(&arguments.id, &settle).await).await
}

/// Arguments of `release`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArguments {
    /// The run
    id: String,
    /// The held operation [default: the run, which is quarantined]
    #[arg(value_name = "OP", default_value = "")]
    op: String,
}

/// Gives a held operation fresh attempts, or lets a quarantined run go on.
pub(crate) async fn release(context: Context<'_>, arguments: &ReleaseArguments) -> Result<Exit, Failure> {
    let release = Release { op: arguments.op.clone() };
    act(context, &arguments.id, async |client| client.release(&arguments.id, &release).await).await
}

/// Makes the call and says what became of it.
async fn act(
    context: Context<'_>,
    run: &str,
    call: impl AsyncFn(&Client) -> Result<Accepted, ClientError>,
) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let accepted = session.call(call).await.map_err(|error| Failure::from(error).of_run(run))?;
    if context.json {
        out::json(&accepted)?;
    } else {
        out::result(&format!("accepted as event {} of run {run}", accepted.accepted))?;
        if session.is_host() {
            out::say(&format!("nobody runs it now; to let it go on: {}", again(run, &session, false)));
        }
    }
    open::close(session).await;
    Ok(Exit::Done)
}

/// Returns the command that lets a run go on and shows its result: as a batch if it was one.
pub(crate) fn again(run: &str, session: &Session, batch: bool) -> String {
    let command = if batch { format!("run --id {run}") } else { format!("result {run} --wait 1h") };
    format!("outlast{} {command}", data_option(session))
}

/// Returns the option that names the session's data directory, if the next command would use another one.
pub(crate) fn data_option(session: &Session) -> String {
    let asked = std::env::var_os("OUTLAST_DATA").map(std::path::PathBuf::from);
    let usual = crate::environment::data_directory(asked.as_deref()).ok();
    match usual.as_deref() == Some(session.directory()) {
        true => String::new(),
        false => format!(" --data {}", session.directory().display()),
    }
}

fn json(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::usage(format!("{text:?} is not JSON: {error}")))
}

/// Returns a new id that is no other's.
pub(crate) fn fresh_id(prefix: &str) -> Result<String, Failure> {
    let cannot = |error| Failure::new(Exit::Failed, format!("no random numbers: {error}"));
    let id = outlast_runtime::fresh::id().map_err(cannot)?;
    Ok(format!("{prefix}-{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_have_short_forms() {
        for (word, choice) in
            [("approve", Some("approve")), ("y", Some("approve")), ("no", Some("reject")), ("maybe", None)]
        {
            assert_eq!(choice_of(word).ok(), choice, "{word}");
        }
    }
}
