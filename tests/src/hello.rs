//! A worker in ten lines: it greets.
use outlast_workers::sdk::{Failure, TaskContext, Worker, activity};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    name: String,
}

async fn greet(input: Greet, _task: TaskContext) -> Result<String, Failure> {
    Ok(format!("hello {}", input.name))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let greet = activity("greet", greet).effect("pure");
    Ok(Worker::builder("hello").queues(["hello"]).activity(greet).build()?.serve().await?)
}
