//! The API over the data directory's socket, for tests that restart the runtime at will: one request, one connection, any bytes.
//!
//! Leaves meaning to the tests. Invariant: what a test wants to send is sent as it is, however broken.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::process::PATIENCE;
use crate::process::until;
use crate::world::World;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body, `null` if it is no JSON.
    pub body: Value,
}

/// Sends a request with these header lines and this body.
///
/// # Errors
/// If the runtime is gone.
pub fn request(
    socket: &Path,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> std::io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for header in headers {
        head = head + header + "\r\n";
    }
    head = head + &format!("content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    // A server may refuse a body before it has read all of it; what counts is its answer.
    let sent = stream.write_all(body);
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    match answer(&bytes) {
        Some(answer) => Ok(answer),
        None => Err(sent.and(read).err().unwrap_or_else(|| std::io::ErrorKind::UnexpectedEof.into())),
    }
}

fn answer(bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, body: serde_json::from_str(body).unwrap_or_default() })
}

impl World {
    /// Posts JSON.
    ///
    /// # Errors
    /// If the runtime is gone.
    pub fn try_post(&self, path: &str, body: &Value) -> std::io::Result<Answer> {
        let headers = ["content-type: application/json"];
        request(&self.socket(), "POST", path, &headers, body.to_string().as_bytes())
    }

    /// Posts JSON to a runtime that is there.
    ///
    /// # Panics
    /// If it is gone.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.try_post(path, body).unwrap_or_else(|error| panic!("POST {path}: {error}"))
    }

    /// Gets JSON from a runtime that is there.
    ///
    /// # Panics
    /// If it is gone, or does not answer with 200.
    #[must_use]
    pub fn get(&self, path: &str) -> Value {
        let answer = request(&self.socket(), "GET", path, &[], b"");
        let answer = answer.unwrap_or_else(|error| panic!("GET {path}: {error}"));
        assert_eq!(answer.status, 200, "GET {path}: {}", answer.body);
        answer.body
    }

    /// Starts a run under an id.
    ///
    /// # Panics
    /// If it is not started.
    pub fn begin(&self, flow: &str, id: &str, input: &Value) {
        let answer = self.post("/v1/runs", &json!({"flow": flow, "id": id, "input": input}));
        assert_eq!(answer.status, 201, "{}", answer.body);
    }

    /// Waits for a run's end and returns its outcome.
    ///
    /// # Panics
    /// If it does not end in time.
    #[must_use]
    pub fn outcome(&self, id: &str) -> Value {
        let seconds = PATIENCE.as_secs() - 5;
        let result = self.get(&format!("/v1/runs/{id}/result?wait={seconds}s"));
        assert_eq!(result["status"], "ended", "{id} did not end: {result}");
        result["outcome"].clone()
    }

    /// Waits until a run has so many open questions, and returns them.
    #[must_use]
    pub fn questions(&self, id: &str, count: usize) -> Vec<Value> {
        let mut found = Vec::new();
        until(&format!("{count} questions of {id}"), || {
            found = self.get(&format!("/v1/runs/{id}"))["questions"].as_array().cloned().unwrap_or_default();
            found.len() == count
        });
        found
    }

    /// Returns a run's history.
    #[must_use]
    pub fn history(&self, id: &str) -> Vec<Value> {
        let page = self.get(&format!("/v1/runs/{id}/events?limit=1000"));
        page["items"].as_array().cloned().unwrap_or_default()
    }
}
