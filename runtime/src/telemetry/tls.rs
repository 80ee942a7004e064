//! TLS to a collector: whom this machine trusts, it trusts.
//!
//! Leaves HTTP to the client. Invariant: a certificate that leads to no authority of this machine, or is another host's, gets nothing.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use rustls::pki_types::ServerName;

/// Reads the authorities that this machine trusts: those of `SSL_CERT_FILE` or `SSL_CERT_DIR` if they are set.
pub(super) async fn trusted() -> Result<Arc<ClientConfig>, String> {
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(error.to_string()))
}

fn read() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(format!(
            "no certificate authority is known here{why}; name a file of them with SSL_CERT_FILE"
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config =
        versions.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Shakes hands with a host.
pub(super) async fn shake<S: AsyncRead + AsyncWrite + Unpin>(
    trust: Arc<ClientConfig>,
    host: &ServerName<'static>,
    stream: S,
) -> Result<TlsStream<S>, String> {
    let shaken = TlsConnector::from(trust).connect(host.clone(), stream).await;
    shaken.map_err(|error| format!("no TLS: {error}"))
}
