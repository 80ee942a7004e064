//! One connection for each request: a runtime that was restarted is met afresh, and nothing is kept that could go stale.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Method, Response, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::ClientError;
use crate::limits::{ANSWER_BYTES_MAX, CONNECT_MS_MAX};
use crate::socket;

/// A request with its whole body.
pub(crate) type Request = hyper::Request<Full<Bytes>>;

/// Where a runtime is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Its socket in the data directory.
    Unix(PathBuf),
    /// Host and port.
    Http(String),
}

/// Says why text is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an address: `unix:PATH` or `http://HOST:PORT` is expected")]
pub struct InvalidAddress {
    /// The refused text.
    pub text: String,
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Address, InvalidAddress> {
        let wrong = || InvalidAddress { text: text.to_owned() };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(Address::Unix(path.into())) };
        }
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let authority: axum::http::uri::Authority = rest.parse().map_err(|_| wrong())?;
        if authority.host().is_empty() || rest.contains('@') {
            return Err(wrong());
        }
        let port = authority.port_u16().unwrap_or(80);
        Ok(Address::Http(format!("{}:{port}", authority.host())))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Http(authority) => write!(f, "http://{authority}"),
        }
    }
}

/// Writes a request down.
pub(crate) fn request(
    address: &Address,
    method: Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<Request, axum::http::Error> {
    let host = match address {
        Address::Unix(_) => "localhost",
        Address::Http(authority) => authority,
    };
    let request = hyper::Request::builder().method(method).uri(path).header(header::HOST, host);
    match body {
        None => request.body(Full::default()),
        Some(body) => {
            request.header(header::CONTENT_TYPE, "application/json").body(Full::new(Bytes::from(body)))
        }
    }
}

/// Sends a request and returns the head of the answer.
pub(crate) async fn send(address: &Address, request: Request) -> Result<Response<Incoming>, ClientError> {
    exchange(address, reach(address).await?, request).await
}

/// Opens a connection.
pub(crate) async fn reach(address: &Address) -> Result<Box<dyn Stream>, ClientError> {
    let opened = open(address);
    let stream = tokio::time::timeout(Duration::from_millis(CONNECT_MS_MAX), opened).await;
    match stream {
        Ok(opened) => opened.map_err(|error| unreachable(address, error)),
        Err(_) => Err(unreachable(address, "it does not take the connection")),
    }
}

/// Sends a request over a connection and returns the head of the answer.
pub(crate) async fn exchange(
    address: &Address,
    stream: impl Stream + 'static,
    request: Request,
) -> Result<Response<Incoming>, ClientError> {
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| unreachable(address, error))?;
    // Ends with the exchange: the connection is closed when both the sender and the body of the answer are dropped.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a connection ended early: {error}");
        }
    });
    sender.send_request(request).await.map_err(|error| unreachable(address, error))
}

/// Reads the whole body of an answer.
pub(super) async fn read(address: &Address, body: Incoming) -> Result<Bytes, ClientError> {
    let collected = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    collected.map(http_body_util::Collected::to_bytes).map_err(|error| unreachable(address, error))
}

/// Makes the error of a server that is not there, or no more.
pub(super) fn unreachable(address: &Address, detail: impl fmt::Display) -> ClientError {
    ClientError::Unreachable { address: address.to_string(), detail: detail.to_string() }
}

/// What a request can be sent over.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn open(address: &Address) -> std::io::Result<Box<dyn Stream>> {
    match address {
        Address::Unix(path) => Ok(Box::new(socket::connect(path).await?)),
        Address::Http(authority) => {
            let stream = TcpStream::connect(authority.as_str()).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_sockets_or_urls_without_a_path() {
        for (text, expected) in [
            ("unix:/a/socket", Some("unix:/a/socket")),
            ("http://localhost:7878", Some("http://localhost:7878")),
            ("http://127.0.0.1/", Some("http://127.0.0.1:80")),
            ("http://[::1]:1", Some("http://[::1]:1")),
            ("unix:", None),
            ("https://a", None),
            ("http://", None),
            ("http://a/b", None),
            ("http://user@a", None),
            ("localhost:1", None),
            ("", None),
        ] {
            let read = text.parse::<Address>().ok().map(|address| address.to_string());
            assert_eq!(read.as_deref(), expected, "{text:?}");
        }
    }
}
