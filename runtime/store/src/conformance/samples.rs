//! Sample batches and events for tests of stores.

use outlast_kernel::Json;
use outlast_kernel::event::{
    ChildrenOfFork, Choice, Config, Event, EventKind, Failure, LostWhy, Migrated, OnOpen, Receipt,
    Settlement, SpawnResult, Started, Tokens,
};
use outlast_kernel::ids::{Attempt, Millis, OpId, RunId, Seq};
use outlast_kernel::operation::Outcome;
use serde_json::json;

use crate::{Batch, Head, Index, RunWrite, Status, Store, StoreError, Summary};

/// Makes a run id of a text that is one.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn run(text: &str) -> RunId {
    RunId::new(text).unwrap_or_else(|e| panic!("{e}"))
}

/// Makes a message event whose value is a text.
#[must_use]
pub fn message(n: u64, text: &str) -> Event {
    let kind = EventKind::Message {
        id: format!("m{n}"),
        name: "Note".into(),
        value: json!({ "text": text }),
        from: "ann".into(),
    };
    Event {
        n: Seq(n),
        time: Millis(1_000 + n.cast_signed()),
        digest: n.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        kind,
    }
}

/// Makes `count` message events after a head.
#[must_use]
pub fn messages(before: &Head, count: u64) -> Vec<Event> {
    (1..=count).map(|i| message(before.seq.0 + i, &format!("text {}", before.seq.0 + i))).collect()
}

/// Makes a summary of a run that waits.
#[must_use]
pub fn summary(of: &RunId, started_at: i64) -> Summary {
    Summary {
        run: of.clone(),
        flow: "review".into(),
        machine: "c0ffee".into(),
        profile: "default".into(),
        status: Status::Waiting,
        started_at: Millis(started_at),
        updated_at: Millis(started_at + 5),
        view: json!({ "waiting_for": { "message": ["Note"] }, "depth": [1, 2.5, null, "x"] }),
    }
}

/// Makes a step of `count` messages without views.
#[must_use]
pub fn step(of: &RunId, before: Head, count: u64) -> RunWrite {
    RunWrite {
        run: of.clone(),
        before,
        events: messages(&before, count),
        index_before: Index::default(),
        index: Index::default(),
        summary: summary(of, 1_000).into(),
        snapshot: None,
        origin: None,
    }
}

/// Commits one step and returns the head after it.
///
/// # Errors
/// Those of [`Store::commit`].
pub fn commit(store: &dyn Store, write: RunWrite) -> Result<Head, StoreError> {
    let heads = store.commit(&Batch { runs: vec![write], ..Batch::default() })?;
    Ok(heads.first().copied().unwrap_or_default())
}

/// Makes one event of every kind, numbered from 1, with every optional field once present and once absent.
#[must_use]
pub fn every_kind() -> Vec<(&'static str, Event)> {
    let kinds = runs().into_iter().chain(attempts()).chain(people()).chain(others()).chain(later());
    let event = |(i, (name, kind)): (usize, (&'static str, EventKind))| {
        let n = i as u64 + 1;
        let time = Millis(1_700_000_000_000 + n.cast_signed());
        (name, Event { n: Seq(n), time, digest: n << 56 | 0xfeed, kind })
    };
    kinds.enumerate().map(event).collect()
}

fn value() -> Json {
    json!({
        "text": "grün \u{1f600} \u{0}",
        "list": [0, -1, 127, 128, 65_536, i64::MAX, i64::MIN, u64::MAX],
        "float": [0.5, -1e300, 5e-324],
        "none": null, "yes": true, "no": false, "empty": [{}, [], ""],
    })
}

fn runs() -> Vec<(&'static str, EventKind)> {
    let list = |items: &[&str]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
    let config = Config {
        profile: "default".into(),
        deny: list(&["shell(rm *)"]).into(),
        ask: list(&["shell(git push*)"]).into(),
        allow: list(&["read(*)", "grep(*)"]).into(),
        grants: list(&["write(./notes.md)"]),
        deny_asks: false,
    };
    let started = |config: &Config, parent| {
        EventKind::Started(Box::new(Started {
            flow: "review".into(),
            machine: "c0ffee".into(),
            edition: 1,
            input: value(),
            seed: u64::MAX,
            config: config.clone(),
            parent,
            ancestors: Vec::new(),
            by: String::new(),
        }))
    };
    let by = || "ann".to_owned();
    vec![
        ("started", started(&config, Some((run("parent~1"), OpId(Seq(7), 2))))),
        ("started-bare", started(&Config::default(), None)),
        (
            "forked",
            EventKind::Forked {
                parent: run("a.b-c"),
                at: Seq(12),
                begun: vec![OpId(Seq(3), 0), OpId(Seq(9), 1)],
                children: ChildrenOfFork::Unknown,
                by: by(),
            },
        ),
        ("configured", EventKind::Configured { config }),
        ("closed", EventKind::Closed),
        ("cancelled", EventKind::Cancelled { by: by() }),
        ("terminated", EventKind::Terminated { by: by() }),
    ]
}

/// What other runs say, and the change of a machine. Last, because the number of a sample is in its golden file.
fn others() -> Vec<(&'static str, EventKind)> {
    let op = OpId(Seq(5), 3);
    let started = EventKind::Started(Box::new(Started {
        flow: "review".into(),
        machine: "c0ffee".into(),
        edition: 1,
        input: value(),
        seed: 7,
        config: Config::default(),
        parent: Some((run("parent~1"), op)),
        ancestors: vec![run("first"), run("parent~1")],
        by: String::new(),
    }));
    let forked = |children| EventKind::Forked {
        parent: run("r"),
        at: Seq(4),
        begun: Vec::new(),
        children,
        by: "ann".into(),
    };
    let ended = |outcome| EventKind::ChildEnded { op, outcome };
    let migrated = |map| {
        let (from, to) = ("c0ffee".into(), "decade".into());
        EventKind::Migrated(Box::new(Migrated { from, to, map, by: "ann".into() }))
    };
    vec![
        ("started-spawned", started),
        ("forked-share", forked(ChildrenOfFork::Share)),
        ("forked-again", forked(ChildrenOfFork::Again)),
        ("spawned-run", EventKind::Spawned { op, result: SpawnResult::Run(run("child~5.3")) }),
        ("spawned-exists", EventKind::Spawned { op, result: SpawnResult::Exists }),
        ("child-ended-done", ended(Outcome::Done(value()))),
        ("child-ended-failed", ended(Outcome::Failed(value()))),
        ("child-ended-cancelled", ended(Outcome::Cancelled)),
        ("child-ended-terminated", ended(Outcome::Terminated)),
        ("delivered-ok", EventKind::Delivered { op, receipt: Receipt::Ok }),
        ("delivered-refused", EventKind::Delivered { op, receipt: Receipt::Refused("it has ended".into()) }),
        ("migrated", migrated(vec![(op, OnOpen::Cut), (OpId(Seq(6), 0), OnOpen::Again)])),
        ("migrated-bare", migrated(Vec::new())),
    ]
}

fn attempts() -> Vec<(&'static str, EventKind)> {
    let (op, attempt) = (OpId(Seq(5), 3), Attempt(2));
    let activity = || "edit".to_owned();
    let failure = Failure {
        kind: "RateLimited".into(),
        text: "slow down".into(),
        retryable: true,
        retry_after_ms: Some(1_500),
        fields: value().as_object().cloned().unwrap_or_default(),
    };
    let cost = || Some("0.0125".to_owned());
    let tokens = Tokens::default();
    let done = |value, cost| EventKind::Done { op, activity: activity(), attempt, value, cost, tokens };
    let failed = |error, retry_at, cost| EventKind::Failed {
        op,
        activity: activity(),
        attempt,
        error,
        retry_at,
        cost,
        tokens,
    };
    let lost = |why| EventKind::Lost { op, attempt, why };
    vec![
        ("done", done(value(), cost())),
        ("done-bare", done(Json::Null, None)),
        ("failed", failed(failure, Some(Millis(1_700_000_001_500)), cost())),
        ("failed-bare", failed(Failure::default(), None, None)),
        ("begun", EventKind::Begun { op, attempt, worker: "w-1".into() }),
        ("lost-gone", lost(LostWhy::WorkerGone)),
        ("lost-lease", lost(LostWhy::Lease)),
        ("lost-timeout", lost(LostWhy::Timeout)),
        ("lost-restart", lost(LostWhy::Restart)),
        ("void", EventKind::Void { op, attempt }),
        ("handle", EventKind::Handle { op, attempt, handle: value() }),
        ("timer-fired", EventKind::TimerFired { op, due: Millis(-1) }),
    ]
}

/// Kinds with fields that came later: at the end, since a sample's place is in its bytes.
fn later() -> Vec<(&'static str, EventKind)> {
    let (op, activity, attempt, cost) = (OpId(Seq(5), 3), "model".to_owned(), Attempt(2), None);
    let tokens = Tokens { input: 1_200, output: 34 };
    let (name, error, retry_at) = (activity.clone(), Failure::default(), None);
    let failed = EventKind::Failed { op, activity: name, attempt, error, retry_at, cost: None, tokens };
    let done = EventKind::Done { op, activity, attempt, value: value(), cost, tokens };
    let broken_off = EventKind::Lost { op, attempt, why: LostWhy::BrokenOff };
    vec![("done-counted", done), ("failed-counted", failed), ("lost-broken-off", broken_off)]
}

fn people() -> Vec<(&'static str, EventKind)> {
    let op = OpId(Seq(u64::MAX), u32::MAX);
    let by = || "ann".to_owned();
    let settled = |verdict| EventKind::Settled { op, verdict, by: by() };
    let answered = |choice, value, note: &str, role| EventKind::Answered {
        op,
        choice,
        value,
        note: note.into(),
        by: by(),
        role,
    };
    vec![
        ("settled-happened", settled(Settlement::Happened(value()))),
        ("settled-not-happened", settled(Settlement::NotHappened)),
        ("settled-fail", settled(Settlement::Fail)),
        ("released", EventKind::Released { op, by: by() }),
        ("message", EventKind::Message { id: "7".into(), name: "Note".into(), value: value(), from: by() }),
        ("withdrawn", EventKind::Withdrawn { id: "7".into() }),
        ("answered", answered(Choice::Answer, Some(value()), "edited", Some("owner".into()))),
        ("answered-null", answered(Choice::Answer, Some(Json::Null), "", None)),
        ("answered-approve", answered(Choice::Approve, None, "", None)),
        ("answered-reject", answered(Choice::Reject, None, "no", None)),
    ]
}
