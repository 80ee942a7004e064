//! One request after the other: read, answered token by token, and given up when the client goes away.
//!
//! Leaves the words of the protocol to [`super::chat`] and the model to [`super::model`]. Invariant: before each token it is looked
//! whether anybody still listens.

use std::net::TcpStream;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::chat::{self, Asked, Naming, Refusal, Usage};
use crate::http::{Client, Request};
use crate::limits::{ANSWERS_MAX, CONTEXT_TOKENS_MAX};
use crate::model::{Fault, Model};
use crate::record::{End, Open, Record};

/// See the module.
#[derive(Debug)]
pub(crate) struct Server {
    model: Model,
    record: Record,
    count: AtomicU64,
}

impl Server {
    pub(crate) fn new(model: Model) -> Server {
        Server { model, record: Record::default(), count: AtomicU64::new(0) }
    }

    /// Answers whoever has connected.
    pub(crate) fn answer(&self, stream: TcpStream) {
        let mut client = Client::new(stream);
        let request = match client.request() {
            Ok(Some(request)) => request,
            Ok(None) => Request { target: String::new(), body: Vec::new() },
            Err(_gone) => return,
        };
        let refused = match request.target.as_str() {
            "POST /v1/chat/completions" => self.complete(&mut client, &request.body).err(),
            "GET /answers" => {
                let _gone = client.whole(200, &self.record.told().to_string());
                None
            }
            target => Some(Refusal::new(
                404,
                format!("nothing is at {target:?}; there are POST /v1/chat/completions and GET /answers"),
            )),
        };
        if let Some(refusal) = refused {
            let _gone = client.whole(refusal.status, &refusal.body().to_string());
        }
    }

    /// Makes an answer.
    ///
    /// # Errors
    /// If nothing of it was sent.
    fn complete(&self, client: &mut Client, body: &[u8]) -> Result<(), Refusal> {
        let asked = chat::read(body)?;
        let broken = |fault: Fault| Refusal::new(500, format!("the model cannot be run: {fault}"));
        let prompt = self.model.prompt(&asked.messages).map_err(broken)?;
        if prompt.len() >= CONTEXT_TOKENS_MAX {
            return Err(Refusal::too_long(prompt.len(), CONTEXT_TOKENS_MAX));
        }
        let busy = || Refusal::new(429, format!("{ANSWERS_MAX} answers are being made: try again in 1s"));
        let open = self.record.open(prompt.len()).ok_or_else(busy)?;
        let naming = self.naming(&asked);
        let mut answer =
            Answer { client, open, naming, usage: Usage { prompt: prompt.len(), completion: 0 } };
        if asked.is_streamed {
            answer.stream(&self.model, &prompt, asked.tokens_max);
            Ok(())
        } else {
            answer.whole(&self.model, &prompt, asked.tokens_max).map_err(broken)
        }
    }

    fn naming(&self, asked: &Asked) -> Naming {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Naming {
            id: format!("chatcmpl-{count}"),
            created: since_1970.as_secs(),
            model: asked.model.clone(),
            wants_usage: asked.wants_usage,
        }
    }
}

/// An answer on its way.
struct Answer<'a> {
    client: &'a mut Client,
    open: Open<'a>,
    naming: Naming,
    usage: Usage,
}

impl Answer<'_> {
    /// Sends it token by token. Who went away is told nothing more; a model that cannot be run breaks the stream off.
    fn stream(&mut self, model: &Model, prompt: &[u32], tokens_max: usize) {
        let begun = self.client.begin_events();
        let opening = self.naming.piece(&json!({"role": "assistant", "content": ""}), None);
        if begun.and_then(|()| self.client.event(&opening.to_string())).is_err() {
            return self.open.end(End::Dropped);
        }
        let made = model.answer(prompt, tokens_max, |text| {
            self.counted()?;
            if text.is_empty() {
                return ControlFlow::Continue(());
            }
            let piece = self.naming.piece(&json!({"content": text}), None);
            match self.client.event(&piece.to_string()) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_gone) => ControlFlow::Break(End::Dropped),
            }
        });
        match made {
            Ok(end @ (End::Stop | End::Length)) => {
                self.open.end(end);
                let _gone = self.finish(end);
            }
            Ok(end @ (End::Dropped | End::Failed)) => self.open.end(end),
            Err(fault) => {
                let refusal = Refusal::new(500, format!("the model cannot be run: {fault}"));
                let _gone = self.client.event(&refusal.body().to_string());
            }
        }
    }

    fn finish(&mut self, end: End) -> std::io::Result<()> {
        self.client.event(&self.naming.piece(&json!({}), Some(end)).to_string())?;
        if self.naming.wants_usage {
            self.client.event(&self.naming.usage(self.usage).to_string())?;
        }
        self.client.event("[DONE]")?;
        self.client.end_events()
    }

    /// Makes all of it before anything is sent.
    fn whole(&mut self, model: &Model, prompt: &[u32], tokens_max: usize) -> Result<(), Fault> {
        let mut text = String::new();
        let end = model.answer(prompt, tokens_max, |piece| {
            text.push_str(piece);
            self.counted()
        })?;
        self.open.end(end);
        if end != End::Dropped {
            let _gone = self.client.whole(200, &self.naming.whole(&text, end, self.usage).to_string());
        }
        Ok(())
    }

    /// Counts a token, and looks whether anybody wants more.
    fn counted(&mut self) -> ControlFlow<End> {
        self.open.token();
        self.usage.completion += 1;
        if self.client.is_gone() { ControlFlow::Break(End::Dropped) } else { ControlFlow::Continue(()) }
    }
}
