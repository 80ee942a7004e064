//! TLS of a listener: the certificate and its key, read before anything listens, read again when asked for.
//!
//! Leaves requests to the server. Invariant: a client that speaks something else, or nothing, holds up nobody but itself, and not for long.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::server::Peer;
use crate::limits::TLS_HANDSHAKE_MS_MAX;

/// The first byte of every TLS connection: a handshake record.
const HANDSHAKE: u8 = 0x16;

/// What a client is told that speaks HTTP where TLS is spoken.
const PLAIN: &str =
    r#"{"error":{"code":"invalid","message":"this port speaks https","hint":"use https:// in the address"}}"#;

/// Why a certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file is missing, or is no PEM.
    #[error("{}: {what} is expected, in PEM: {detail}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What was found.
        detail: String,
    },
    /// The certificate cannot be used, or the key is another one's.
    #[error("{} and {} do not go together: {detail}", cert.display(), key.display())]
    Pair {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        detail: String,
    },
}

/// A certificate with its key. Clones are the same.
#[derive(Clone)]
pub struct Tls {
    files: Arc<(PathBuf, PathBuf)>,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads a certificate, with those that lead to its authority, and its key.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn load(cert: &Path, key: &Path) -> Result<Tls, TlsError> {
        let config = Arc::new(RwLock::new(Arc::new(read(cert, key)?)));
        Ok(Tls { files: Arc::new((cert.to_path_buf(), key.to_path_buf())), config })
    }

    /// Reads both files again, for connections from now on.
    ///
    /// # Errors
    /// [`TlsError`]: then the ones that were read before stay in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let fresh = Arc::new(read(&self.files.0, &self.files.1)?);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    /// Shakes hands; none if the client does not do its part in time.
    pub(super) async fn accept(&self, stream: TcpStream, peer: Peer) -> Option<TlsStream<TcpStream>> {
        let limit = Duration::from_millis(TLS_HANDSHAKE_MS_MAX);
        match tokio::time::timeout(limit, self.shake(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%peer, "no TLS: {error}");
                None
            }
            Err(_) => {
                tracing::debug!(%peer, "no TLS handshake in time");
                None
            }
        }
    }

    async fn shake(&self, mut stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if first[0].is_ascii_alphabetic() && first[0] != HANDSHAKE {
            let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let answer = format!("{head}content-length: {}\r\n\r\n{PLAIN}", PLAIN.len());
            stream.write_all(answer.as_bytes()).await?;
            stream.shutdown().await?;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it speaks HTTP"));
        }
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(config).accept(stream).await
    }
}

fn read(cert: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let wrong = |path: &Path, what, detail: String| TlsError::File { path: path.to_path_buf(), what, detail };
    let (a_cert, a_key) = ("a certificate", "a private key");
    let certs: Result<Vec<_>, _> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(|e| wrong(cert, a_cert, e.to_string()));
    let certs = certs?;
    if certs.is_empty() {
        return Err(wrong(cert, a_cert, "there is none".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| wrong(key, a_key, e.to_string()))?;
    let pair = |error: rustls::Error| TlsError::Pair {
        cert: cert.to_path_buf(),
        key: key.to_path_buf(),
        detail: error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(pair)?;
    let mut config = builder.with_no_client_auth().with_single_cert(certs, secret).map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
