//! Those who attached go on when their host ends: nobody waits for ever, nobody gives up too early.

use std::pin::pin;
use std::task::Poll;

use outlast_protocol::ApiError;

use super::*;
use crate::http::Admission;

async fn session(directory: &Path) -> Session {
    Session::open(Options::new(directory)).await.unwrap()
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

#[tokio::test]
async fn who_comes_before_a_host_listens_finds_what_it_deployed_by_then() {
    let dir = tempfile::tempdir().unwrap();
    let listener =
        Listener::tcp(([127, 0, 0, 1], 0).into(), Admission { token: None, stored: false }).await.unwrap();
    let address = listener.address().unwrap().to_string();
    let host = session(dir.path()).await;
    let early = Client::new(Address::Http(address), None);
    let mut flows = pin!(early.flows());
    assert!(poll_once(flows.as_mut()).await.is_pending());
    let file = outlast_protocol::requests::FileText {
        name: "a.flow".into(),
        text: "edition 1\nflow A() -> int { start S state S { choose if 1 > 0 -> end 1 else -> end 0 } }"
            .into(),
    };
    let request = outlast_protocol::requests::Deploy { files: vec![file], profile: None };
    host.call(async |client| client.deploy(&request).await).await.unwrap();
    host.listen(vec![listener]).await;
    assert_eq!(flows.await.unwrap().items[0].name, "A");
    host.close().await;
}
