//! Those who attached go on when their host ends: nobody waits for ever, nobody gives up too early.

use std::pin::pin;
use std::task::Poll;

use outlast_protocol::ApiError;

use super::*;

async fn session(directory: &Path) -> Session {
    let options =
        Options { directory: directory.to_path_buf(), program: None, profile: None, access_log: None };
    Session::open(options).await.unwrap()
}

/// Polls a future a single time, as a `select!` does whose other arm is ready then.
async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

#[tokio::test]
async fn who_waits_for_a_failure_stands_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let (host, attached) = (session(dir.path()).await, session(dir.path()).await);
    assert!(host.is_host() && !attached.is_host());
    let mut failed = pin!(attached.failed());
    assert!(poll_once(failed.as_mut()).await.is_pending());
    host.close().await;
    let mut reopening = pin!(attached.reopen());
    assert!(poll_once(reopening.as_mut()).await.is_pending(), "now it is in the lock's queue, or has it");
    assert!(poll_once(failed.as_mut()).await.is_pending());
    // Neither is polled any more.
    attached.call(async |client| client.status().await).await.unwrap();
    assert!(attached.is_host());
    reopening.await.unwrap();
    assert!(poll_once(failed).await.is_pending(), "the engine hosted now is well");
}

#[tokio::test]
async fn a_host_that_says_that_it_stops_is_followed_by_one_who_attached() {
    let dir = tempfile::tempdir().unwrap();
    let (host, attached) = (session(dir.path()).await, session(dir.path()).await);
    let host = Mutex::new(Some(host));
    let answer = attached.call(async |client| {
        if let Some(host) = host.lock().await.take() {
            host.close().await;
            return Err(ApiError::new(Code::NotReady, "the engine is stopping").into());
        }
        client.status().await
    });
    assert_eq!(answer.await.unwrap()["pid"], std::process::id());
    assert!(attached.is_host());
}
