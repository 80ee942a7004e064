//! Streams: whole, in order, resumable anywhere.

use outlast_protocol::Code;
use outlast_protocol::run::FrameKind;
use serde_json::json;

use super::world::{World, approve, code, frames};

async fn ended_runs() -> World {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("two", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    worker.done(&task, json!(2)).await;
    let task = worker.task().await;
    worker.done(&task, json!(3)).await;
    world.start("ask", "Ask", json!({ "x": 1 })).await;
    world.engine.answer("ask", approve(), "ann").await.expect("it is taken");
    world.start("chat", "Chat", json!({ "topic": "a" })).await;
    for i in 0..5 {
        world.say("chat", "Say", json!({ "text": i.to_string() })).await.expect("it is taken");
    }
    world.say("chat", "closed", json!(null)).await.expect("it is taken");
    world
}

/// Case RPL-09: who resumes from an event gets what came after it, and nothing twice.
#[tokio::test]
async fn a_stream_resumed_at_every_cut_equals_the_whole() {
    let world = ended_runs().await;
    for run in ["two", "ask", "chat"] {
        let whole = frames(&world.engine, run, Some(&format!("{run}/0.0"))).await;
        assert_eq!(whole.last().unwrap().event, FrameKind::Ended);
        for (at, frame) in whole.iter().enumerate() {
            let rest = frames(&world.engine, run, frame.id.as_deref()).await;
            assert_eq!(rest, whole[at + 1..], "{run} after {:?}", frame.id);
        }
        let mut with_current = frames(&world.engine, run, None).await;
        let current = with_current.remove(0);
        assert_eq!((current.id, current.data["current"].clone()), (None, json!(true)));
        assert_eq!(with_current, whole);
    }
    let kinds = |frames: &[outlast_protocol::run::Frame]| -> Vec<&'static str> {
        frames.iter().map(|frame| frame.event.name()).collect()
    };
    let ask = frames(&world.engine, "ask", Some("ask/0.0")).await;
    assert_eq!(kinds(&ask), ["state", "question", "answered", "ended"]);
}

#[tokio::test]
async fn a_live_stream_has_no_gap_and_equals_the_replayed_one() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let mut watch = world.engine.watch("r", Some("r/0.0")).await.unwrap();
    let live = tokio::spawn(async move {
        let mut frames = Vec::new();
        while let Some(frame) = watch.next().await {
            frames.push(frame);
        }
        frames
    });
    let task = worker.task().await;
    worker.progress(&[(&task, Some("hal"))]).await;
    worker.progress(&[(&task, Some("lo"))]).await;
    world.settle().await;
    worker.done(&task, json!(2)).await;
    let task = worker.task().await;
    worker.done(&task, json!(3)).await;
    let (partial, durable): (Vec<_>, Vec<_>) =
        live.await.unwrap().into_iter().partition(|frame| frame.event == FrameKind::Partial);
    assert_eq!(durable, frames(&world.engine, "r", Some("r/0.0")).await);
    let text: String = partial.iter().map(|frame| frame.data["text"].as_str().unwrap()).collect();
    assert_eq!(text, "hallo");
    assert!(partial.iter().all(|frame| frame.id.is_none() && frame.data["op"] == json!("1.0")));
}

#[tokio::test]
async fn a_watcher_that_comes_late_sees_the_partial_output_so_far() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    worker.progress(&[(&task, Some("half a "))]).await;
    worker.progress(&[(&task, Some("word"))]).await;
    world.settle().await;
    let mut watch = world.engine.watch("r", Some("r/1.9")).await.unwrap();
    let frame = watch.next().await.unwrap();
    assert_eq!((frame.event, frame.data["text"].clone()), (FrameKind::Partial, json!("half a word")));
    worker.fails(&task, "Busy").await;
    world.advance(2_000).await;
    let task = worker.task().await;
    worker.progress(&[(&task, Some("again"))]).await;
    let restart = watch.next().await.unwrap();
    assert_eq!((restart.data["restart"].clone(), restart.data["attempt"].clone()), (json!(true), json!(2)));
    assert_eq!(watch.next().await.unwrap().data["text"], json!("again"));
}

#[tokio::test]
async fn cursors_of_elsewhere_are_refused() {
    let world = World::new().await;
    world.start("r", "Ask", json!({ "x": 1 })).await;
    for id in ["other/1.0", "1.0", "r/", "r/99.0", ""] {
        assert_eq!(code(world.engine.watch("r", Some(id)).await), Code::InvalidCursor, "{id:?}");
    }
    assert_eq!(code(world.engine.watch("nobody", None).await), Code::NotFound);
}

#[tokio::test]
async fn a_watcher_that_is_too_slow_resumes_by_itself() {
    let world = World::new().await;
    world.start("r", "Chat", json!({ "topic": "a" })).await;
    let mut watch = world.engine.watch("r", Some("r/0.0")).await.unwrap();
    for i in 0..2_000 {
        world.say("r", "Say", json!({ "text": i.to_string() })).await.unwrap();
    }
    world.say("r", "closed", json!(null)).await.unwrap();
    let mut said = Vec::new();
    while let Some(frame) = watch.next().await {
        if frame.event == FrameKind::Emit {
            said.push(frame.data["value"].as_str().unwrap().parse::<u32>().unwrap());
        }
    }
    assert_eq!(said, (0..2_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn events_come_in_pages_with_emits_behind_their_cause() {
    let world = ended_runs().await;
    let whole = world.engine.events("chat", 0, 1_000).await.unwrap();
    assert_eq!(whole.next, None);
    let mut paged = Vec::new();
    let mut after = 0;
    loop {
        let page = world.engine.events("chat", after, 2).await.unwrap();
        paged.extend(page.items);
        match page.next {
            Some(next) => after = next.parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(paged, whole.items);
    assert_eq!((paged[1]["kind"].clone(), paged[2]["kind"].clone()), (json!("message"), json!("emit")));
}
