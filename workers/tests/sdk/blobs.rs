//! Bytes beside a result: brought before it, without secrets, also to a runtime that was away meanwhile.

use std::sync::Arc;

use outlast_protocol::worker::{OutcomeKind, Task};
use outlast_workers::sdk::*;
use serde_json::json;
use tokio::sync::Notify;

use crate::fake::Fake;
use crate::support::{Serving, act, task};

#[tokio::test]
async fn bytes_are_brought_without_secrets_to_a_runtime_that_comes_back() {
    let mut fake = Fake::start();
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (say, wait) = (begun.clone(), go.clone());
    let keeps = act("keeps", move |task| {
        let (say, wait) = (say.clone(), wait.clone());
        async move {
            say.notify_one();
            wait.notified().await;
            let name = task.put_blob(b"so: canary-7731!".to_vec()).await.unwrap();
            let again = task.blob(&name).await.unwrap();
            Ok(Done::new(json!([name, String::from_utf8_lossy(&again)])))
        }
    });
    let secrets = Secrets::new(["TOKEN"], &|_| Some("canary-7731".to_owned()));
    let _serving = Serving::start(&fake, vec![keeps], |builder| builder.secrets(secrets));
    fake.world.change(|facts| facts.tasks.push_back(task("t", "keeps", json!({}))));
    begun.notified().await;
    fake.go_away();
    go.notify_one();
    fake.come_back();
    let OutcomeKind::Done { value, .. } = fake.world.ended("t").await else { panic!("no result") };
    let facts = fake.world.facts();
    let (hash, bytes) = facts.blobs.first_key_value().unwrap();
    assert_eq!(bytes, b"so: [secret TOKEN]!");
    assert_eq!(value, json!([format!("blob:{hash}"), "so: [secret TOKEN]!"]));
}

#[tokio::test]
async fn what_cannot_be_kept_or_fetched_is_told_with_its_reason() {
    let fake = Fake::start();
    let refused = act("refused", |task| async move {
        let missing = format!("blob:{}", "0".repeat(64));
        let too_many = task.put_blob(vec![0; (32 << 20) + 1]).await;
        Ok(Done::new(json!([
            too_many.unwrap_err().to_string(),
            task.blob(&missing).await.unwrap_err().to_string(),
            task.blob("blob:/etc/passwd").await.unwrap_err().to_string(),
        ])))
    });
    let _serving = Serving::start(&fake, vec![refused], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "refused", json!({}))));
    let OutcomeKind::Done { value, .. } = fake.world.ended("t").await else { panic!("no result") };
    for (told, expected) in value.as_array().unwrap().iter().zip([
        "33554433 bytes are too many to keep: 33554432 are allowed",
        "the test says so",
        "\"blob:/etc/passwd\" is not blob: and 64 hexadecimal digits",
    ]) {
        assert_eq!(told, expected);
    }
    let alone = TaskContext::alone(Task::default());
    assert_eq!(alone.put_blob(Vec::new()).await, Err(BlobError::NoRuntime));
}
