//! HTTP/1.1 for one request on each connection: the request is read, the answer is whole or comes in chunks.
//!
//! Leaves what is asked to others. Invariant: no more is read than the limits say.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::limits::{BODY_BYTES_MAX, HEAD_BYTES_MAX, REQUEST_SECONDS_MAX};

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    /// Method and path, such as `GET /answers`.
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
}

/// A client that waits for its answer.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
}

impl Client {
    pub(crate) fn new(stream: TcpStream) -> Client {
        Client { stream }
    }

    /// Reads the request; none if it is no request, or the client went away.
    pub(crate) fn request(&mut self) -> std::io::Result<Option<Request>> {
        self.stream.set_read_timeout(Some(Duration::from_secs(REQUEST_SECONDS_MAX)))?;
        // Each token is a piece of its own, and goes at once.
        self.stream.set_nodelay(true)?;
        let mut reader = BufReader::new(&self.stream);
        let mut head = (&mut reader).take(HEAD_BYTES_MAX);
        let mut line = String::new();
        head.read_line(&mut line)?;
        let mut words = line.split(' ');
        let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
        let target = format!("{method} {path}");
        let mut length = 0;
        loop {
            let mut line = String::new();
            head.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().unwrap_or(0);
                }
                Some(_) => {}
                None => break,
            }
        }
        if length > BODY_BYTES_MAX {
            return Ok(None);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Some(Request { target, body }))
    }

    /// Gives a whole answer.
    pub(crate) fn whole(&mut self, status: u16, body: &str) -> std::io::Result<()> {
        let reason = if status == 200 { "OK" } else { "Refused" };
        write!(
            self.stream,
            "HTTP/1.1 {status} {reason}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    /// Begins an answer that comes as events.
    pub(crate) fn begin_events(&mut self) -> std::io::Result<()> {
        write!(
            self.stream,
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
             cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
        )
    }

    /// Sends one event.
    pub(crate) fn event(&mut self, data: &str) -> std::io::Result<()> {
        let event = format!("data: {data}\n\n");
        // One write for one chunk: it is one packet.
        self.stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
    }

    /// Ends an answer that came as events.
    pub(crate) fn end_events(&mut self) -> std::io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")
    }

    /// Whether the client has closed its connection.
    pub(crate) fn is_gone(&self) -> bool {
        let looked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let back = self.stream.set_nonblocking(false);
        match looked {
            Ok(read) => read == 0 || back.is_err(),
            Err(error) => error.kind() != ErrorKind::WouldBlock || back.is_err(),
        }
    }
}
