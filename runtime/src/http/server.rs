//! Listening, accepting and stopping.
//!
//! Invariant: the number of connections is bounded, and every task ends when the server stops.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use outlast_kernel::Json;
use outlast_store::Store;
use rustix::fs::Mode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::access_log::AccessLog;
use super::guard::{Access, Admission};
use super::metrics::Traffic;
use super::tls::Tls;
use super::{App, router};
use crate::engine::Engine;
use crate::limits::{
    CONNECTIONS_MAX, CONNECTIONS_MIN, CONNECTIONS_SHARE, CROWDED_HEAD_MS_MAX, DRAIN_MS_MAX, HEAD_MS_MAX,
};
use crate::socket;

/// Where a server listens.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    access: Access,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener, Option<Tls>),
}

impl Listener {
    /// Listens on a Unix socket that only its owner can open. A file left there by a process that died is replaced: call this only
    /// while holding the lock of the data directory.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn unix(path: &Path) -> io::Result<Listener> {
        match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // The mode must hold from the first moment on: bind where nobody looks, restrict, then move into place.
        let fresh: PathBuf = path.with_extension("new");
        let _absent = std::fs::remove_file(&fresh);
        let socket = socket::bind(&fresh)?;
        rustix::fs::chmod(&fresh, Mode::RUSR | Mode::WUSR)?;
        std::fs::rename(&fresh, path)?;
        Ok(Listener { socket: Socket::Unix(socket), access: Access::Owner })
    }

    /// Listens on TCP: loopback addresses, or any address if a token is demanded.
    ///
    /// # Errors
    /// If the address cannot be had, or needs a token.
    pub async fn tcp(address: SocketAddr, admission: Admission) -> io::Result<Listener> {
        let access = match admission.demands_token() {
            true => Access::Token(admission),
            false if address.ip().is_loopback() => Access::Loopback,
            false => {
                let why = format!("{address} can be reached by others: a token is required");
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
        };
        Ok(Listener { socket: Socket::Tcp(TcpListener::bind(address).await?, None), access })
    }

    /// Speaks TLS on TCP, and nothing else.
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> Listener {
        let socket = match self.socket {
            Socket::Unix(listener) => Socket::Unix(listener),
            Socket::Tcp(listener, _) => Socket::Tcp(listener, Some(tls)),
        };
        Listener { socket, ..self }
    }

    /// Returns the TCP address that it listens on, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Unix(_) => None,
            Socket::Tcp(listener, _) => listener.local_addr().ok(),
        }
    }
}

/// What is served.
#[derive(Clone)]
pub struct Served {
    /// The engine.
    pub engine: Engine,
    /// Its store, for the doctor.
    pub store: Arc<dyn Store>,
    /// What opening the store found, for the doctor.
    pub opened: Json,
    /// The environment profile of runs that name none.
    pub profile: Option<String>,
    /// Whether its model is scripted: then the profile that a flow was deployed with, with a script of its own, is the better one.
    pub scripted: bool,
    /// Where a line about each request goes.
    pub access_log: Option<AccessLog>,
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Peer {
    /// A process of this computer, if the system tells which.
    Process(Option<u32>),
    /// Whoever is there.
    Address(SocketAddr),
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Process(Some(pid)) => write!(f, "pid:{pid}"),
            Peer::Process(None) => f.write_str("socket"),
            Peer::Address(address) => write!(f, "{address}"),
        }
    }
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("opened", &self.opened).finish_non_exhaustive()
    }
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    served: Served,
    /// What all listeners count together.
    traffic: Arc<Traffic>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Server {
    /// Serves an engine on some listeners.
    #[must_use]
    pub fn start(served: Served, listeners: Vec<Listener>) -> Server {
        let traffic = Arc::new(Traffic::new());
        let mut server = Server { served, traffic, stop: watch::Sender::new(false), tasks: JoinSet::new() };
        server.listen(listeners);
        server
    }

    /// Takes connections of more listeners.
    pub fn listen(&mut self, listeners: Vec<Listener>) {
        for Listener { socket, access } in listeners {
            let (served, traffic) = (self.served.clone(), Arc::clone(&self.traffic));
            let app = Arc::new(App { served, access, traffic, streams: Mutex::default() });
            self.tasks.spawn(accept(socket, app, self.stop.subscribe()));
        }
    }

    /// Takes no more connections, lets open requests end for a moment, and closes the rest.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

/// How many connections one listener serves at once: each takes a file descriptor, and neither the other listeners nor the store may go
/// without.
fn places() -> usize {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let descriptors = descriptors.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    (descriptors / CONNECTIONS_SHARE).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

async fn accept(socket: Socket, app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    let routes = router(Arc::clone(&app));
    let places = places();
    let room = Arc::new(Semaphore::new(places));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let next = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (place, next(&socket).await)
        };
        let (place, stream) = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = next => accepted,
        };
        match stream {
            Ok((stream, peer)) => {
                let (routes, stopped) = (routes.clone(), stopped.clone());
                let is_crowded = room.available_permits() < places / 2;
                let patience =
                    Duration::from_millis(if is_crowded { CROWDED_HEAD_MS_MAX } else { HEAD_MS_MAX });
                connections.spawn(async move {
                    if let Some(stream) = stream.open(peer).await {
                        serve(stream, peer, patience, routes, stopped).await;
                    }
                    drop(place);
                });
            }
            // Out of file descriptors, or a client that left at once: others may still be served.
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(socket);
    let drained = async { while connections.join_next().await.is_some() {} };
    let _late = tokio::time::timeout(Duration::from_millis(DRAIN_MS_MAX), drained).await;
    connections.shutdown().await;
    let mut streams =
        std::mem::take(&mut *app.streams.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    streams.shutdown().await;
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, before it was made sure that it can be spoken on.
enum Accepted {
    Plain(Box<dyn Stream>),
    Tls(TcpStream, Tls),
}

impl Accepted {
    async fn open(self, peer: Peer) -> Option<Box<dyn Stream>> {
        match self {
            Accepted::Plain(stream) => Some(stream),
            Accepted::Tls(stream, tls) => Some(Box::new(tls.accept(stream, peer).await?)),
        }
    }
}

async fn next(socket: &Socket) -> io::Result<(Accepted, Peer)> {
    match socket {
        Socket::Unix(listener) => {
            let (stream, _) = listener.accept().await?;
            let pid = stream.peer_cred().ok().and_then(|cred| cred.pid()?.try_into().ok());
            Ok((Accepted::Plain(Box::new(stream)), Peer::Process(pid)))
        }
        Socket::Tcp(listener, tls) => {
            let (stream, address) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let accepted = match tls {
                None => Accepted::Plain(Box::new(stream)),
                Some(tls) => Accepted::Tls(stream, tls.clone()),
            };
            Ok((accepted, Peer::Address(address)))
        }
    }
}

/// Serves a connection to its end. `patience` is how long it may say nothing before and between its requests.
async fn serve(
    stream: Box<dyn Stream>,
    peer: Peer,
    patience: Duration,
    routes: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let routes = TowerToHyperService::new(routes);
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer);
        routes.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let stop = async { drop(stopped.wait_for(|stop| *stop).await) };
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection ended early: {error}");
    }
}
