//! The kit against a runtime that goes away, comes back, cancels, drops and repeats.

#![expect(clippy::unwrap_used, reason = "a broken test bench should stop the test")]

mod fake;

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fake::Fake;
use outlast_protocol::error::Code;
use outlast_protocol::worker::{OutcomeKind, ReceiptStatus};
use outlast_workers::Json;
use outlast_workers::sdk::*;
use serde_json::json;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

type Attempt = Pin<Box<dyn Future<Output = Result<Done, Failure>> + Send>>;

/// An activity made of a closure.
struct Act<F>(&'static str, F);

#[async_trait::async_trait]
impl<F: Fn(TaskContext) -> Attempt + Send + Sync + 'static> Activity for Act<F> {
    fn offer(&self) -> Offer {
        Offer { name: self.0.to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        (self.1)(task).await
    }
}

fn act<R: Future<Output = Result<Done, Failure>> + Send + 'static>(
    name: &'static str,
    run: impl Fn(TaskContext) -> R + Send + Sync + 'static,
) -> Arc<dyn Activity> {
    Arc::new(Act(name, move |task| Box::pin(run(task)) as Attempt))
}

fn task(token: &str, activity: &str, input: Json) -> Task {
    Task {
        token: token.to_owned(),
        activity: activity.to_owned(),
        input,
        heartbeat_ms: 1_000,
        ..Task::default()
    }
}

/// A worker that serves until its guard is used or dropped.
struct Serving {
    leave: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Result<(), WorkerError>>,
}

impl Serving {
    fn start(
        fake: &Fake,
        activities: Vec<Arc<dyn Activity>>,
        more: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
    ) -> Serving {
        let builder = Worker::builder("test").connect(&fake.address()).concurrency(4);
        let worker =
            more(activities.into_iter().fold(builder, WorkerBuilder::shared_activity)).build().unwrap();
        let (leave, left) = oneshot::channel();
        let ended = tokio::spawn(worker.serve_until(async {
            let _dropped = left.await;
        }));
        Serving { leave: Some(leave), ended }
    }

    fn leave(&mut self) {
        self.leave.take();
    }

    async fn ended(self) -> Result<(), WorkerError> {
        tokio::time::timeout(Duration::from_secs(10), self.ended).await.expect("it ends").unwrap()
    }
}

/// An attempt that says when it has begun, and goes on when it may.
fn gated() -> (Arc<dyn Activity>, Arc<Notify>, Arc<Notify>) {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (say, wait) = (begun.clone(), go.clone());
    let activity = act("gated", move |_| {
        let (say, wait) = (say.clone(), wait.clone());
        async move {
            say.notify_one();
            wait.notified().await;
            Ok(Done::new("through"))
        }
    });
    (activity, begun, go)
}

fn stopped(why: StoppedWhy) -> OutcomeKind {
    OutcomeKind::Stopped { why }
}

fn through() -> OutcomeKind {
    OutcomeKind::Done { value: "through".into(), cost: None, usage: None }
}

#[tokio::test]
async fn attempts_end_with_results_failures_and_panics() {
    let fake = Fake::start();
    let activities = vec![
        act("echo", |task| async move {
            Ok(Done { cost: Some("0.10".into()), ..Done::new(task.input().clone()) })
        }),
        act("fail", |_| async {
            let failure =
                Failure::new("RateLimited", "slow").retryable().field("kind", "no").field("limit", 3);
            Err(Failure { retry_after: Some(Duration::from_millis(1_500)), ..failure })
        }),
        act("panic", |_| async { panic!("at the disco") }),
    ];
    let _serving = Serving::start(&fake, activities, |builder| builder);
    let once = Task { effect: "once".to_owned(), ..task("o", "panic", json!({})) };
    fake.world.change(|facts| {
        facts.tasks.extend([
            task("e", "echo", json!({"a": 1})),
            task("f", "fail", json!({})),
            task("p", "panic", json!({})),
            once,
            task("u", "unheard", json!({})),
        ]);
    });
    let done = OutcomeKind::Done { value: json!({"a": 1}), cost: Some("0.10".into()), usage: None };
    assert_eq!(fake.world.ended("e").await, done);
    let OutcomeKind::Failed { error, .. } = fake.world.ended("f").await else { panic!("a failure") };
    let expected = json!({"kind": "RateLimited", "text": "slow", "retryable": true, "retry_after": "1500ms", "limit": 3});
    assert_eq!(serde_json::to_value(error).unwrap(), expected);
    for (token, kind, text) in [("p", "Panicked", "at the disco"), ("u", "UnknownActivity", "unheard")] {
        let OutcomeKind::Failed { error, .. } = fake.world.ended(token).await else { panic!("a failure") };
        assert_eq!(error.kind, kind);
        assert!(error.text.contains(text), "{}", error.text);
    }
    // Nobody knows whether it has happened.
    assert_eq!(fake.world.ended("o").await, stopped(StoppedWhy::Leaving));
}

#[tokio::test]
async fn no_more_than_the_concurrency_is_taken() {
    let fake = Fake::start();
    let (gated, begun, go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder.concurrency(2));
    fake.world
        .change(|facts| facts.tasks.extend(["a", "b", "c"].map(|token| task(token, "gated", json!({})))));
    begun.notified().await;
    fake.world.until("two are taken", |facts| (facts.tasks.len() == 1).then_some(())).await;
    go.notify_one();
    fake.world.until("the third is taken", |facts| facts.tasks.is_empty().then_some(())).await;
    assert!(fake.world.facts().polls.iter().all(|poll| poll.max <= 2));
}

#[tokio::test]
async fn a_result_of_an_outage_is_delivered_to_the_next_runtime() {
    let mut fake = Fake::start();
    let (gated, begun, go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    fake.go_away();
    go.notify_one();
    fake.come_back();
    assert_eq!(fake.world.ended("t").await, through());
    let facts = fake.world.facts();
    assert_eq!(facts.registers[0].holding, Vec::<String>::new());
    assert_eq!(facts.registers[1].holding, ["t"], "it says what it holds");
    assert_eq!(facts.registers[0].boot, facts.registers[1].boot);
}

#[tokio::test]
async fn an_attempt_goes_on_through_a_restart_and_is_named() {
    let mut fake = Fake::start();
    let (gated, begun, go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    fake.go_away();
    fake.come_back();
    let again = |facts: &fake::Facts| facts.registers.get(1).map(|register| register.holding.clone());
    assert_eq!(fake.world.until("it registers again", again).await, ["t"]);
    go.notify_one();
    assert_eq!(fake.world.ended("t").await, through());
}

#[tokio::test]
async fn an_unknown_session_is_replaced() {
    let fake = Fake::start();
    let (gated, begun, go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.until("it registers", |facts| (!facts.polls.is_empty()).then_some(())).await;
    fake.world.change(|facts| {
        facts.first_session = 2;
        facts.tasks.push_back(task("t", "gated", json!({})));
    });
    begun.notified().await;
    go.notify_one();
    assert_eq!(fake.world.ended("t").await, through());
    assert_eq!(fake.world.facts().registers.len(), 2);
}

#[tokio::test]
async fn a_cancel_acts_at_once() {
    let fake = Fake::start();
    let (gated, begun, _go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    let asked = Instant::now();
    fake.world.change(|facts| facts.cancels.push("t".to_owned()));
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Cancelled));
    assert!(asked.elapsed() < Duration::from_millis(500), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn an_attempt_that_listens_may_tidy_up_and_even_finish() {
    let fake = Fake::start();
    let tidy = act("tidy", |task| async move {
        task.heartbeat();
        let why = task.cancelled().await;
        if task.arg("finish").is_some() {
            Ok(Done::new("through"))
        } else {
            Err(Failure::new("Over", format!("{why:?}")))
        }
    });
    let _serving = Serving::start(&fake, vec![tidy], |builder| builder);
    fake.world.change(|facts| {
        facts.tasks.extend([task("a", "tidy", json!({})), task("b", "tidy", json!({"finish": true}))]);
    });
    fake.world
        .until("both run", |facts| {
            ["a", "b"]
                .iter()
                .all(|token| facts.progress.iter().any(|sign| sign.token == *token))
                .then_some(())
        })
        .await;
    fake.world.change(|facts| facts.cancels.extend(["a".to_owned(), "b".to_owned()]));
    assert_eq!(fake.world.ended("a").await, stopped(StoppedWhy::Cancelled));
    assert_eq!(fake.world.ended("b").await, through());
}

#[tokio::test]
async fn an_attempt_is_over_only_when_its_processes_are() {
    let fake = Fake::start();
    let holds = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = holds.clone();
    let holder = act("holder", move |task| {
        kept.lock().unwrap().push(task.hold());
        async { std::future::pending().await }
    });
    let quick = act("quick", |_| async { Ok(Done::new("through")) });
    let _serving = Serving::start(&fake, vec![holder, quick], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "holder", json!({}))));
    fake.world.until("it runs", |facts| facts.progress.iter().find(|sign| sign.token == "t").cloned()).await;
    fake.world.change(|facts| {
        facts.cancels.push("t".to_owned());
        facts.tasks.push_back(task("q", "quick", json!({})));
    });
    fake.world.ended("q").await;
    assert!(fake.world.facts().outcomes.iter().all(|outcome| outcome.token == "q"), "not over yet");
    holds.lock().unwrap().clear();
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Cancelled));
}

#[tokio::test]
async fn what_the_runtime_drops_is_stopped_and_said() {
    let mut fake = Fake::start();
    let (gated, begun, _go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    fake.go_away();
    fake.world.change(|facts| facts.drop.push("t".to_owned()));
    fake.come_back();
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Cancelled));
}

#[tokio::test]
async fn the_time_of_an_attempt_is_enforced() {
    let fake = Fake::start();
    let (gated, _begun, _go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    let short = Task { budget_ms: Some(50), ..task("t", "gated", json!({})) };
    fake.world.change(|facts| facts.tasks.push_back(short));
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Timeout));
}

#[tokio::test]
async fn reports_are_repeated_until_they_are_taken_or_no_longer_count() {
    let fake = Fake::start();
    let quick = act("quick", |_| async { Ok(Done::new("through")) });
    let mut serving = Serving::start(&fake, vec![quick], |builder| builder);
    fake.world.change(|facts| {
        use ReceiptStatus::{Retry, Superseded, UnknownToken};
        facts.receipts.insert("a".to_owned(), [Retry, Retry].into());
        facts.receipts.insert("b".to_owned(), [Superseded].into());
        facts.receipts.insert("c".to_owned(), [UnknownToken].into());
        facts.tasks.extend(["a", "b", "c"].map(|token| task(token, "quick", json!({}))));
    });
    let count = |facts: &fake::Facts, token: &str| facts.outcomes.iter().filter(|o| o.token == token).count();
    fake.world.until("a came three times", |facts| (count(facts, "a") == 3).then_some(())).await;
    serving.leave();
    serving.ended().await.unwrap();
    assert_eq!(["a", "b", "c"].map(|token| count(&fake.world.facts(), token)), [3, 1, 1]);
}

#[tokio::test]
async fn a_result_that_the_runtime_will_not_take_becomes_a_failure() {
    let fake = Fake::start();
    let quick = act("quick", |_| async { Ok(Done::new("through")) });
    let _serving = Serving::start(&fake, vec![quick], |builder| builder);
    fake.world.change(|facts| {
        facts.deny_done = Some(Code::TooLarge);
        facts.tasks.extend(["a", "b"].map(|token| task(token, "quick", json!({}))));
    });
    for token in ["a", "b"] {
        let OutcomeKind::Failed { error, .. } = fake.world.ended(token).await else { panic!("a failure") };
        assert_eq!((error.kind.as_str(), error.retryable), ("BadResult", false));
    }
}

#[tokio::test]
async fn a_handle_is_durable_when_it_is_set() {
    let mut fake = Fake::start();
    let (set, was_set) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (go, say) = (set.clone(), was_set.clone());
    let job = act("job", move |task| {
        let (go, say) = (go.clone(), say.clone());
        async move {
            go.notified().await;
            task.set_handle(json!({"job": 7})).await?;
            say.notify_one();
            task.set_handle(json!({"job": 8})).await?;
            Ok(Done::new("through"))
        }
    });
    let _serving = Serving::start(&fake, vec![job], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "job", json!({}))));
    fake.world.until("it runs", |facts| facts.progress.first().cloned()).await;
    fake.go_away();
    set.notify_one();
    // The second handle comes after the operation was closed.
    fake.world.change(|facts| {
        facts.receipts.insert("t".to_owned(), [ReceiptStatus::Accepted, ReceiptStatus::Superseded].into());
    });
    fake.come_back();
    was_set.notified().await;
    assert_eq!(fake.world.facts().outcomes[0].kind, OutcomeKind::Handle { handle: json!({"job": 7}) });
    let OutcomeKind::Failed { error, .. } = fake.world.ended("t").await else { panic!("a failure") };
    assert_eq!(error.kind, "Superseded");
}

#[tokio::test]
async fn partial_output_comes_in_order_and_coalesced() {
    let fake = Fake::start();
    let (go, wait) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let end = go.clone();
    let writer = act("writer", move |task| {
        let end = end.clone();
        async move {
            for _ in 0..1_000 {
                task.progress("日本");
            }
            task.percent(50.0);
            end.notified().await;
            Ok(Done::new("through"))
        }
    });
    let _serving = Serving::start(&fake, vec![writer], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "writer", json!({}))));
    let chars = |facts: &fake::Facts| -> u64 {
        facts
            .progress
            .iter()
            .filter_map(|sign| sign.text.as_ref())
            .map(|text| text.chars().count() as u64)
            .sum()
    };
    fake.world.until("all has come", |facts| (chars(facts) == 2_000).then_some(())).await;
    {
        let facts = fake.world.facts();
        let mut at = 0;
        for sign in facts.progress.iter().filter(|sign| sign.text.is_some()) {
            assert_eq!(sign.offset, Some(at));
            at += sign.text.as_ref().unwrap().chars().count() as u64;
        }
        assert!(facts.progress.len() < 10, "{} calls for 1,000 pieces", facts.progress.len());
        assert!(facts.progress.iter().any(|sign| sign.percent == Some(50.0)));
    }
    drop(wait);
    go.notify_one();
    fake.world.ended("t").await;
}

#[tokio::test]
async fn attempts_end_before_the_lease_when_the_runtime_is_away() {
    let mut fake = Fake::start();
    fake.world.change(|facts| facts.lease_ms = 600);
    let dropped = Arc::new(Notify::new());
    struct Falls(Arc<Notify>);
    impl Drop for Falls {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let falling = dropped.clone();
    let endless = act("endless", move |_| {
        let falls = Falls(falling.clone());
        async move {
            std::future::pending::<()>().await;
            drop(falls);
            Ok(Done::new("never"))
        }
    });
    let _serving = Serving::start(&fake, vec![endless], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "endless", json!({}))));
    fake.world.until("it runs", |facts| facts.progress.first().cloned()).await;
    let before = Instant::now();
    // Three leases long the runtime is there, and nothing is ended.
    fake.world.until("signs come", |facts| (facts.progress.len() > 18).then_some(())).await;
    assert!(before.elapsed() > Duration::from_millis(600));
    assert!(fake.world.facts().outcomes.is_empty());
    let away = Instant::now();
    fake.go_away();
    tokio::time::timeout(Duration::from_secs(5), dropped.notified()).await.expect("it is ended");
    assert!(away.elapsed() < Duration::from_millis(590), "{:?}", away.elapsed());
    fake.come_back();
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Leaving));
    assert_eq!(fake.world.facts().registers.last().unwrap().holding, ["t"], "it did arrive");
}

#[tokio::test]
async fn a_leaving_worker_finishes_what_it_has_and_takes_no_more() {
    let fake = Fake::start();
    let (gated, begun, go) = gated();
    let mut serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    serving.leave();
    fake.world.until("it says so", |facts| facts.polls.iter().any(|poll| poll.leaving).then_some(())).await;
    fake.world.change(|facts| facts.tasks.push_back(task("late", "gated", json!({}))));
    go.notify_one();
    serving.ended().await.unwrap();
    assert_eq!(fake.world.ended("t").await, through());
    assert_eq!(fake.world.facts().tasks.len(), 1);
}

#[tokio::test]
async fn a_leaving_worker_hands_over_what_takes_too_long() {
    let fake = Fake::start();
    let (gated, begun, _go) = gated();
    let mut serving =
        Serving::start(&fake, vec![gated], |builder| builder.drain_max(Duration::from_millis(50)));
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    serving.leave();
    serving.ended().await.unwrap();
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Leaving));
}

#[tokio::test]
async fn an_orphan_ends_itself_when_nothing_is_in_hand() {
    let mut fake = Fake::start();
    let (gated, begun, go) = gated();
    let orphan = |builder: WorkerBuilder| builder.orphan_after(Duration::from_millis(100));
    let serving = Serving::start(&fake, vec![gated], orphan);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    fake.go_away();
    let gone = Instant::now();
    go.notify_one();
    serving.ended().await.unwrap();
    // The result that nobody took made it wait ten times as long.
    assert!(gone.elapsed() >= Duration::from_millis(500), "{:?}", gone.elapsed());
    let unsupervised =
        Serving::start(&fake, vec![act("x", |_| async { Ok(Done::new(1)) })], |builder| builder);
    fake.come_back();
    fake.world.until("the other one is still there", |facts| (facts.registers.len() > 1).then_some(())).await;
    drop(unsupervised);
}

#[tokio::test]
async fn an_orphan_does_not_stay_for_what_nobody_wants() {
    let mut fake = Fake::start();
    // Neither the word that it stopped nor a result in spite of the cancel is a reason.
    let stubborn = act("stubborn", |task| async move {
        task.heartbeat();
        task.cancelled().await;
        if task.arg("finish").is_some() { Ok(Done::new("through")) } else { Err(Failure::new("Over", "")) }
    });
    let orphan = |builder: WorkerBuilder| builder.orphan_after(Duration::from_millis(500)).concurrency(2);
    let serving = Serving::start(&fake, vec![stubborn], orphan);
    fake.world.change(|facts| {
        for token in ["a", "b"] {
            facts.receipts.insert(token.to_owned(), [ReceiptStatus::Retry; 1_000].into());
        }
        facts
            .tasks
            .extend([task("a", "stubborn", json!({})), task("b", "stubborn", json!({"finish": true}))]);
    });
    fake.world
        .until("both run", |facts| {
            let runs = |token| facts.progress.iter().any(|sign| sign.token == token);
            (runs("a") && runs("b")).then_some(())
        })
        .await;
    fake.world.change(|facts| facts.cancels.extend(["a".to_owned(), "b".to_owned()]));
    fake.world.ended("a").await;
    fake.world.ended("b").await;
    fake.go_away();
    let gone = Instant::now();
    serving.ended().await.unwrap();
    assert!(gone.elapsed() < Duration::from_millis(4_000), "{:?}", gone.elapsed());
}

#[tokio::test]
async fn a_worker_that_the_runtime_will_not_have_ends_with_the_reason() {
    let fake = Fake::start();
    fake.world.change(|facts| facts.deny_register = Some(Code::Invalid));
    let serving = Serving::start(&fake, vec![act("x", |_| async { Ok(Done::new(1)) })], |builder| builder);
    let error = serving.ended().await.unwrap_err();
    assert!(matches!(error, WorkerError::Refused(_)), "{error}");
}

#[test]
fn what_cannot_work_is_said_by_the_builder() {
    let quick = || act("x", |_| async { Ok(Done::new(1)) });
    for (builder, problem) in [
        (Worker::builder("w").connect("unix:/x"), "offers nothing"),
        (Worker::builder("w").connect("localhost:1").shared_activity(quick()), "neither http"),
        (
            Worker::builder("w").connect("unix:/x").shared_activity(quick()).shared_activity(quick()),
            "offered twice",
        ),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[tokio::test]
async fn a_profile_is_fetched_from_the_runtime() {
    use outlast_workers::{ModelConfig, Profile};
    let fake = Fake::start();
    let address = fake.address();
    let fetch = |name: &'static str| Profile::fetch(&address, None, name);
    let expected = ModelConfig::Scripted { script: "{}".to_owned(), script_name: Some("s".to_owned()) };
    let found = fetch("here").await.unwrap();
    assert_eq!((found.name.as_str(), found.model), ("here", expected));
    assert!(matches!(fetch("elsewhere").await, Err(WorkerError::Refused(_))));
    assert!(matches!(fetch("../x").await, Err(WorkerError::Configuration(_))));
}
