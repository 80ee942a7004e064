//! Runs that a client follows: `runs.watch` begins, notifications `runs.event` bring frames, `runs.unwatch` ends.
//!
//! Invariant: the notifications of a watch come after the answer that names it, in order, without a gap, each once, also across the
//! end of a host. A client that does not read holds up its own watches only.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_kernel::Json;
use outlast_protocol::run::{Frame, FrameKind};
use outlast_protocol::{ApiError, Code};
use serde::Deserialize;
use serde_json::{Map, json};
use tokio::sync::oneshot;

use super::methods;
use super::out::Out;
use crate::client::{ClientError, Follow};
use crate::host::{Session, SessionError, is_lost};
use crate::limits::RPC_WATCHES_MAX;

/// The watches of one client.
#[derive(Default)]
pub(super) struct Watches {
    count: Cell<u64>,
    /// Dropping a sender ends its watch.
    open: RefCell<BTreeMap<String, oneshot::Sender<()>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct From {
    #[serde(default)]
    last_event_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    watch: String,
}

impl Watches {
    /// Begins a watch: returns its name, and the task that brings frames once `begun` says so.
    pub(super) async fn watch(
        &self,
        session: &Arc<Session>,
        out: &Out,
        mut params: Map<String, Json>,
        begun: oneshot::Receiver<()>,
    ) -> Result<(Json, impl Future<Output = ()> + 'static + use<>), ApiError> {
        let run = methods::take_run(&mut params)?;
        let From { last_event_id } = methods::read(params)?;
        self.open.borrow_mut().retain(|_, stop| !stop.is_closed());
        if self.open.borrow().len() >= RPC_WATCHES_MAX {
            let what = format!("{RPC_WATCHES_MAX} runs are watched already");
            return Err(ApiError::new(Code::Overloaded, what).hint("end one with runs.unwatch"));
        }
        let stream = session.follow(&run, last_event_id.as_deref()).await.map_err(told)?;
        self.count.set(self.count.get() + 1);
        let name = format!("w{}", self.count.get());
        let (stop, mut stopped) = oneshot::channel();
        self.open.borrow_mut().insert(name.clone(), stop);
        let result = json!({ "watch": name, "run": run });
        let watched =
            Watched { name, run, session: Arc::clone(session), out: out.clone(), last: last_event_id };
        let following = async move {
            tokio::select! {
                () = watched.follow(stream, begun) => {}
                _ = &mut stopped => {}
            }
        };
        Ok((result, following))
    }

    /// Ends a watch.
    pub(super) fn unwatch(&self, params: Map<String, Json>) -> Result<Json, ApiError> {
        let Which { watch } = methods::read(params)?;
        match self.open.borrow_mut().remove(&watch) {
            Some(_) => Ok(json!({})),
            None => Err(ApiError::new(Code::NotFound, "there is no such watch, or it has ended").at("watch")),
        }
    }
}

struct Watched {
    name: String,
    run: String,
    session: Arc<Session>,
    out: Out,
    last: Option<String>,
}

impl Watched {
    async fn follow(mut self, mut stream: Follow, begun: oneshot::Receiver<()>) {
        // Without a word the client has gone.
        if begun.await.is_err() {
            return;
        }
        loop {
            let error = match stream.next().await {
                Ok(Some(frame)) => {
                    let ended = frame.event == FrameKind::Ended;
                    self.last = frame.id.clone().or(self.last);
                    self.out.send(&event(&self.name, &self.run, frame)).await;
                    if ended {
                        return;
                    }
                    continue;
                }
                // The stream was cut: by a host that left, or because the client was too slow. Go on where it ended.
                Ok(None) => None,
                Err(error) if is_lost(&error) => None,
                Err(error) => Some(SessionError::Call(error)),
            };
            let again = match error {
                Some(error) => Err(error),
                None => self.session.follow(&self.run, self.last.as_deref()).await,
            };
            match again {
                Ok(again) => stream = again,
                Err(error) => {
                    let params = json!({ "watch": self.name, "run": self.run, "error": told(error) });
                    self.out.send(&notification("runs.watch_failed", params)).await;
                    return;
                }
            }
        }
    }
}

fn event(watch: &str, run: &str, frame: Frame) -> Json {
    let mut params = json!({ "watch": watch, "run": run, "event": frame.event.name(), "data": frame.data });
    if let Some(id) = frame.id {
        params["id"] = json!(id);
    }
    notification("runs.event", params)
}

fn notification(method: &str, params: Json) -> Json {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

fn told(error: SessionError) -> ApiError {
    match error {
        SessionError::Call(ClientError::Refused(error)) => error,
        error => ApiError::new(Code::NotReady, error.to_string()),
    }
}
