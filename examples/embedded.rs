//! A program with the runtime inside: kill it, start it again, and it goes on where it was.
//!
//! `cargo run --example embedded DIRECTORY`. What was greeted before a kill is not greeted again.

use async_trait::async_trait;
use outlast_protocol::requests::{Deploy, Start};
use outlast_runtime::host::{Options, Session};
use outlast_workers::sdk::{Activity, Done, Failure, Offer, TaskContext, Worker};
use serde_json::json;

const FLOW: &str = r#"
edition 1
activity greet(name: text) -> text within 1m queue "mine" effect idempotent

flow Greet(names: list<text>) -> list<text> {
  start All
  state All {
    each name in names at most 1 as said { do greet(name) }
    on ok      -> end said
    on problem -> end []
  }
}
"#;

struct Greeter;

#[async_trait]
impl Activity for Greeter {
    fn offer(&self) -> Offer {
        Offer { name: "greet".to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        println!("greeting {}", task.text("name")?);
        // Time for a kill.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        Ok(Done::new(format!("Hello, {}!", task.text("name")?)))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "data".to_owned());
    let session = Session::open(Options::new(directory)).await?;
    session.client().deploy(&Deploy::file("greet.flow", FLOW)).await?;
    let worker = Worker::builder("greeter").connect(&session.address()).queues(["mine"]).activity(Greeter);
    let worker = tokio::spawn(worker.build()?.serve());
    let names = json!({"names": ["Ada", "Grace", "Alan"]});
    session.client().start(&Start::new("Greet", "greet-1", names)).await?;
    let mut frames = session.follow("greet-1", None).await?;
    while let Some(frame) = frames.next().await? {
        println!("{}: {}", frame.event.name(), frame.data);
    }
    worker.abort();
    session.close().await;
    Ok(())
}
