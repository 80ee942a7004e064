//! `outlast delete`, `retention`: which runs are kept, and how long.

use outlast_protocol::requests::Retention;
use serde_json::json;

use super::Context;
use crate::failure::{Exit, Failure};
use crate::open::{self, Workers};
use crate::out;

/// Arguments of `delete`.
#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArguments {
    /// Runs that have ended
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// Deletes runs with their histories.
pub(crate) async fn delete(context: Context<'_>, arguments: &DeleteArguments) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let mut deleted = Vec::new();
    let mut failed = None;
    for id in &arguments.ids {
        let answer = session.call(async |client| client.delete(id).await).await;
        if let Err(error) = answer {
            failed = Some(Failure::from(error).of_run(id));
            break;
        }
        if !context.json {
            out::result(&format!("run {id} is deleted"))?;
        }
        deleted.push(id);
    }
    if context.json && !deleted.is_empty() {
        out::json(&json!({ "deleted": deleted }))?;
    }
    open::close(session).await;
    failed.map_or(Ok(Exit::Done), Err)
}

/// Arguments of `retention`.
#[derive(Debug, clap::Args)]
pub(crate) struct RetentionArguments {
    /// How long ended runs are kept: a time such as 30d, or `forever`; with --flow also `default` [default: shows it]
    #[arg(value_name = "TIME")]
    time: Option<String>,
    /// Only the runs of this flow
    #[arg(long, value_name = "F", requires = "time")]
    flow: Option<String>,
}

/// Shows or says how long ended runs are kept.
pub(crate) async fn retention(context: Context<'_>, arguments: &RetentionArguments) -> Result<Exit, Failure> {
    let session = open::session(context.data, Workers::None, None).await?;
    let mut retention = session.call(async |client| client.retention().await).await?;
    if let Some(time) = &arguments.time {
        change(&mut retention, time, arguments.flow.as_deref())?;
        retention = session.call(async |client| client.put_retention(&retention).await).await?;
    }
    open::close(session).await;
    if context.json {
        out::json(&retention)?;
    } else {
        let shown = |time: Option<&str>| time.unwrap_or("forever").to_owned();
        out::result(&format!("{:<24} {}", "ended runs are kept", shown(retention.keep.as_deref())))?;
        for (flow, time) in &retention.flows {
            out::result(&format!("{:<24} {}", format!("of {flow}"), shown(time.as_deref())))?;
        }
    }
    Ok(Exit::Done)
}

fn change(retention: &mut Retention, time: &str, flow: Option<&str>) -> Result<(), Failure> {
    let keep = (time != "forever").then(|| time.to_owned());
    match (flow, time) {
        (Some(flow), "default") => drop(retention.flows.remove(flow)),
        (Some(flow), _) => drop(retention.flows.insert(flow.to_owned(), keep)),
        (None, "default") => {
            return Err(Failure::usage(
                "`default` is for a flow: name it with --flow; else `forever` or a time",
            ));
        }
        (None, _) => retention.keep = keep,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_has_a_time_of_its_own_until_it_has_that_of_all_again() {
        let mut retention = Retention::default();
        for (time, flow, expected) in [
            ("30d", None, r#"{"keep":"30d"}"#),
            ("7d", Some("F"), r#"{"keep":"30d","flows":{"F":"7d"}}"#),
            ("forever", Some("F"), r#"{"keep":"30d","flows":{"F":null}}"#),
            ("forever", None, r#"{"flows":{"F":null}}"#),
            ("default", Some("F"), "{}"),
        ] {
            change(&mut retention, time, flow).unwrap_or_else(|e| panic!("{e:?}"));
            assert_eq!(serde_json::to_string(&retention).unwrap_or_default(), expected, "{time} {flow:?}");
        }
        assert!(change(&mut retention, "default", None).is_err());
    }
}
