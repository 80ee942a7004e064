//! What the tests of the kit share: activities made of closures, workers that serve until they are told to leave.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::worker::OutcomeKind;
use outlast_workers::Json;
use outlast_workers::sdk::*;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::fake::Fake;

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

pub(crate) fn act<R: Future<Output = Result<Done, Failure>> + Send + 'static>(
    name: &'static str,
    run: impl Fn(TaskContext) -> R + Send + Sync + 'static,
) -> Arc<dyn Activity> {
    Arc::new(Act(name, move |task| Box::pin(run(task)) as Attempt))
}

pub(crate) fn task(token: &str, activity: &str, input: Json) -> Task {
    Task {
        token: token.to_owned(),
        activity: activity.to_owned(),
        input,
        heartbeat_ms: 1_000,
        ..Task::default()
    }
}

/// A worker that serves until its guard is used or dropped.
pub(crate) struct Serving {
    leave: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Result<(), WorkerError>>,
}

impl Serving {
    pub(crate) fn start(
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

    pub(crate) fn leave(&mut self) {
        self.leave.take();
    }

    pub(crate) async fn ended(self) -> Result<(), WorkerError> {
        tokio::time::timeout(Duration::from_secs(10), self.ended).await.expect("it ends").unwrap()
    }
}

/// An attempt that says when it has begun, and goes on when it may.
pub(crate) fn gated() -> (Arc<dyn Activity>, Arc<Notify>, Arc<Notify>) {
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

pub(crate) fn stopped(why: StoppedWhy) -> OutcomeKind {
    OutcomeKind::Stopped { why }
}

pub(crate) fn through() -> OutcomeKind {
    OutcomeKind::Done { value: "through".into(), cost: None, usage: None }
}
