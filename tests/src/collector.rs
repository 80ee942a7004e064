//! A collector of OpenTelemetry that keeps what it is sent.
//!
//! Leaves judging to the tests. Invariant: a body is kept before its sender is answered.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// A collector; its thread ends with the test's process.
#[derive(Debug)]
pub struct Collector {
    address: String,
    kept: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener.local_addr().map(|at| at.to_string()).unwrap_or_default();
        let kept = Arc::<Mutex<Vec<_>>>::default();
        let keeps = Arc::clone(&kept);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Who breaks off sends again, or not.
                let _broken_off = keep(stream, &keeps);
            }
        });
        Collector { address, kept }
    }

    /// Returns its base address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the bodies that came, each with its path.
    #[must_use]
    pub fn bodies(&self) -> Vec<(String, Value)> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the spans that came.
    #[must_use]
    pub fn spans(&self) -> Vec<Value> {
        let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let resources = self.bodies().into_iter().flat_map(|(_, body)| all(&body["resourceSpans"]));
        let scopes = resources.flat_map(|resource| all(&resource["scopeSpans"]));
        scopes.flat_map(|scope| all(&scope["spans"])).collect()
    }
}

fn keep(mut stream: TcpStream, keeps: &Mutex<Vec<(String, Value)>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if path.is_empty() {
            line.split(' ').nth(1).unwrap_or_default().clone_into(&mut path);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).map_err(std::io::Error::other)?;
    keeps.lock().unwrap_or_else(PoisonError::into_inner).push((path, body));
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
}
