//! HTTP as a program would speak it that has nothing but a TCP connection: requests as text, answers read to their end, streams line by line.
//!
//! Leaves JSON bodies' meaning to the tests. Invariant: one connection for each request, so a server that was restarted is met afresh.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::process::PATIENCE;

/// A server's address, such as `127.0.0.1:7878`, and who calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    address: String,
    token: Option<String>,
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Headers, their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body, without the encoding of its transfer.
    pub body: String,
}

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Where it stands; frames that are no part of the history have none.
    pub id: Option<String>,
    /// Its kind.
    pub event: String,
    /// Its data.
    pub data: String,
}

/// A stream of events, read as it comes.
#[derive(Debug)]
pub struct Frames {
    body: BufReader<Body>,
}

impl Api {
    /// Reads the address out of `http://HOST:PORT`, whatever is said after it.
    #[must_use]
    pub fn at(url: &str) -> Api {
        let url = url.split_whitespace().next().unwrap_or_default();
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Api { address, token: None }
    }

    /// Returns the same server for whoever has a token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Api {
        Api { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Returns the address of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Gets.
    #[must_use]
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    /// Posts JSON.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[("content-type", "application/json")], &body.to_string())
    }

    /// Sends a request with these headers and this body.
    ///
    /// # Panics
    /// If there is no whole answer in time.
    #[must_use]
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let (status, headers, mut reader) = self.begin(method, path, headers, body);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        Answer { status, headers, body: text }
    }

    /// Follows a run's stream, from the frame after `last` on.
    ///
    /// # Panics
    /// If the server refuses.
    #[must_use]
    pub fn stream(&self, run: &str, last: Option<&str>) -> Frames {
        let headers: Vec<(&str, &str)> = last.map(|id| ("last-event-id", id)).into_iter().collect();
        let (status, _, body) = self.begin("GET", &format!("/v1/runs/{run}/stream"), &headers, "");
        assert_eq!(status, 200, "the stream of {run} from {last:?} is refused");
        Frames { body: BufReader::new(body) }
    }

    fn begin(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, BTreeMap<String, String>, Body) {
        let failed = |error: std::io::Error| -> ! { panic!("{method} {path} at {}: {error}", self.address) };
        let mut stream = TcpStream::connect(&self.address).unwrap_or_else(|error| failed(error));
        stream.set_read_timeout(Some(PATIENCE)).unwrap_or_else(|error| failed(error));
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        let token = self.token.iter().map(|token| ("authorization", format!("Bearer {token}")));
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned()));
        for (name, value) in headers.chain(token) {
            let _infallible = write!(head, "{name}: {value}\r\n");
        }
        if method != "GET" {
            let _infallible = write!(head, "content-length: {}\r\n", body.len());
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).unwrap_or_else(|error| failed(error));
        // A server that refuses a body may answer before it has read all of it.
        let _refused = stream.write_all(body.as_bytes());
        let mut reader = BufReader::new(stream);
        let (first, headers) = read_head(&mut reader);
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.unwrap_or_else(|| panic!("{method} {path}: no status in {first:?}"));
        let chunked = headers.get("transfer-encoding").is_some_and(|encoding| encoding == "chunked");
        (status, headers, Body { reader, chunked, left: 0, ended: false })
    }
}

impl Answer {
    /// Reads the body as JSON.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl Iterator for Frames {
    type Item = Frame;

    /// The next frame; none when the stream has ended, or broke.
    fn next(&mut self) -> Option<Frame> {
        let mut frame = Frame::default();
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", id)) => frame.id = Some(id.to_owned()),
                Some(("event", event)) => event.clone_into(&mut frame.event),
                Some(("data", data)) => data.clone_into(&mut frame.data),
                Some(_) => {}
                // Comments are signs of life; an empty line ends a frame that has something in it.
                None if line.trim().is_empty() && !frame.event.is_empty() => return Some(frame),
                None => {}
            }
        }
    }
}

/// The rest of an answer, with the encoding of its transfer taken off.
#[derive(Debug)]
struct Body {
    reader: BufReader<TcpStream>,
    chunked: bool,
    left: usize,
    ended: bool,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if !self.chunked {
            return self.reader.read(buffer);
        }
        while self.left == 0 && !self.ended {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            if line == "\r\n" {
                continue;
            }
            let size = usize::from_str_radix(line.trim(), 16);
            self.left = size.map_err(|_| std::io::Error::other(format!("no chunk: {line:?}")))?;
            self.ended = self.left == 0;
        }
        let most = buffer.len().min(self.left);
        let read = self.reader.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

/// Reads the first line and the headers of a request or an answer.
pub(crate) fn read_head(reader: &mut impl std::io::BufRead) -> (String, BTreeMap<String, String>) {
    let (mut first, mut headers) = (String::new(), BTreeMap::new());
    let _closed = reader.read_line(&mut first);
    loop {
        let mut line = String::new();
        let _closed = reader.read_line(&mut line);
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
            None => return (first.trim_end().to_owned(), headers),
        };
    }
}
