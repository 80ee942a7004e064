//! One connection to the runtime, kept open over many calls: what a client does that has many of them.
//!
//! The library's own client opens a connection for each call, which would be measured with it. Leaves waiting for a runtime to its callers.
//! Invariant: one call at a time; after an error the connection is used no more.

use std::io;
use std::path::Path;

use outlast_protocol::error::ErrorBody;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::cannot;
use crate::failure::{Exit, Failure};

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    read: Vec<u8>,
}

impl Connection {
    /// Opens one.
    pub(super) async fn open(socket: &Path) -> io::Result<Connection> {
        let stream = outlast_runtime::socket::connect(socket).await?;
        Ok(Connection { stream, read: Vec::new() })
    }

    /// Posts JSON text and reads the answer.
    pub(super) async fn post<T: DeserializeOwned>(&mut self, path: &str, body: &str) -> Result<T, Failure> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.call(path, head + body).await
    }

    /// Gets an answer.
    pub(super) async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, Failure> {
        self.call(path, format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await
    }

    async fn call<T: DeserializeOwned>(&mut self, path: &str, request: String) -> Result<T, Failure> {
        let (status, length) = self.exchange(request).await.map_err(|error| cannot(path, &error))?;
        let body = &self.read[..length];
        let answer = match status {
            200..300 => serde_json::from_slice(body).map_err(|error| cannot(path, &error)),
            _ => Err(match serde_json::from_slice::<ErrorBody>(body) {
                Ok(body) => body.error.into(),
                Err(_) => Failure::new(Exit::Failed, format!("{path}: the runtime answered {status}")),
            }),
        };
        self.read.drain(..length);
        answer
    }

    /// Sends a request and reads the head and the whole body of the answer; returns its status and the length of the body.
    async fn exchange(&mut self, request: String) -> io::Result<(u16, usize)> {
        self.stream.write_all(request.as_bytes()).await?;
        let end = loop {
            if let Some(at) = self.read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at;
            }
            self.more().await?;
        };
        let head = head(&self.read[..end]).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "an answer with a length is expected")
        })?;
        self.read.drain(..end + 4);
        while self.read.len() < head.1 {
            self.more().await?;
        }
        Ok(head)
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the runtime closed the connection")),
            _ => Ok(()),
        }
    }
}

/// Returns the status of an answer and the length of its body.
fn head(bytes: &[u8]) -> Option<(u16, usize)> {
    let mut lines = std::str::from_utf8(bytes).ok()?.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })?;
    Some((status, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_a_status_and_a_length() {
        let answer = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 12";
        assert_eq!(head(answer), Some((201, 12)));
        for wrong in ["", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked", "HTTP/1.1 x\r\ncontent-length: 1"]
        {
            assert_eq!(head(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
