//! A collector of OpenTelemetry that keeps what it is sent.
//!
//! Leaves judging to the tests. Invariant: a body is kept before its sender is answered.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

/// What came with one request.
#[derive(Debug, Default)]
struct Kept {
    path: String,
    headers: Vec<String>,
    body: Value,
}

/// A collector; its thread ends with the test's process.
#[derive(Debug)]
pub struct Collector {
    url: String,
    kept: Arc<Mutex<Vec<Kept>>>,
}

impl Collector {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn start() -> Collector {
        Collector::begin(None)
    }

    /// Starts one that speaks TLS, with a certificate in PEM and its key.
    ///
    /// # Panics
    /// If they cannot be used.
    #[must_use]
    pub fn with_tls(certificate: &Path, key: &Path) -> Collector {
        let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
        let chain = chain.unwrap_or_else(|error| panic!("no certificate: {error}"));
        let key = PrivateKeyDer::from_pem_file(key).unwrap_or_else(|error| panic!("no key: {error}"));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        Collector::begin(Some(Arc::new(config.unwrap_or_else(|error| panic!("no TLS: {error}")))))
    }

    fn begin(tls: Option<Arc<ServerConfig>>) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener.local_addr().map(|at| at.to_string()).unwrap_or_default();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let kept = Arc::<Mutex<Vec<_>>>::default();
        let keeps = Arc::clone(&kept);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Who breaks off sends again, or not.
                let _broken_off = match &tls {
                    None => keep(stream, &keeps),
                    Some(tls) => ServerConnection::new(Arc::clone(tls))
                        .map_err(std::io::Error::other)
                        .and_then(|connection| keep(StreamOwned::new(connection, stream), &keeps)),
                };
            }
        });
        Collector { url: format!("{scheme}://{address}"), kept }
    }

    /// Returns its base address.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns the lines of the heads that came.
    #[must_use]
    pub fn headers(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().flat_map(|kept| kept.headers.clone()).collect()
    }

    /// Returns the bodies that came, each with its path.
    #[must_use]
    pub fn bodies(&self) -> Vec<(String, Value)> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(|kept| (kept.path.clone(), kept.body.clone())).collect()
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

fn keep(stream: impl Read + Write, keeps: &Mutex<Vec<Kept>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut kept, mut length) = (Kept::default(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if kept.path.is_empty() {
            line.split(' ').nth(1).unwrap_or_default().clone_into(&mut kept.path);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        if line.trim().is_empty() {
            break;
        }
        kept.headers.push(line.trim().to_owned());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    kept.body = serde_json::from_slice(&body).map_err(std::io::Error::other)?;
    keeps.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close";
    reader.get_mut().write_all(format!("{head}\r\n\r\n{{}}").as_bytes())?;
    reader.get_mut().flush()
}
