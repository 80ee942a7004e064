//! A real language model, SmolLM2 with 135 million parameters, behind OpenAI's chat completions: for tests of true streaming.
//!
//! `outlast-real-model MODEL.gguf` prints `listening on http://127.0.0.1:PORT`, and ends when its input is closed, so that it does not
//! outlive a test. `GET /answers` tells of each answer so far how many tokens were made and how it ended. Leaves fetching the model to
//! `tests/real_model/run`. Invariant: the same conversation gets the same answer, token by token, whatever else is asked at the time;
//! what the model cannot do is refused and not passed over.

#![expect(clippy::print_stdout, reason = "who starts the server reads its address there")]

use std::error::Error;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use crate::model::Model;
use crate::serving::Server;

mod chat;
mod http;
mod limits;
mod llama;
mod model;
mod record;
mod serving;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Box<dyn Error + Send + Sync>> {
    let path: PathBuf = std::env::args_os()
        .nth(1)
        .ok_or("expected the model's file: outlast-real-model MODEL.gguf; tests/real_model/run fetches it")?
        .into();
    let model = Model::load(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let server = Arc::new(Server::new(model));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("listening on http://{}", listener.local_addr()?);
    std::thread::spawn(|| {
        let _closed = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    for stream in listener.incoming().flatten() {
        let server = Arc::clone(&server);
        std::thread::spawn(move || server.answer(stream));
    }
    Ok(())
}
