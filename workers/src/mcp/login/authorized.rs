//! Requests to a service with the token of its login.
//!
//! Leaves getting the token to its parent. Invariant: a request that the service did not take for want of a good token is made once
//! more with a new one; without a login it goes out as it is.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use sse_stream::Sse;

use super::{Login, NoToken};

/// A way to a service, with a login if it can have one.
#[derive(Clone, Debug)]
pub(in crate::mcp) struct Authorized {
    pub(in crate::mcp) client: reqwest::Client,
    pub(in crate::mcp) login: Option<Login>,
}

type Headers = HashMap<HeaderName, HeaderValue>;
type Events = Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>;
type Ended<T> = Result<T, StreamableHttpError<reqwest::Error>>;

impl Authorized {
    /// Does something with the token.
    async fn with_token<T, F: Future<Output = Ended<T>>>(
        &self,
        ask: impl Fn(Option<String>) -> F,
    ) -> Ended<T> {
        let Some(login) = &self.login else { return ask(None).await };
        let failed = |error: NoToken| StreamableHttpError::Auth(AuthError::from(error));
        let Some(token) = login.token().await.map_err(failed)? else { return ask(None).await };
        match ask(Some(token.clone())).await {
            Err(StreamableHttpError::AuthRequired(_)) => {
                let fresh = login.renewed(&token).await.map_err(failed)?;
                ask(Some(fresh)).await
            }
            ended => ended,
        }
    }
}

impl StreamableHttpClient for Authorized {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
    ) -> Ended<StreamableHttpPostResponse> {
        self.with_token(|token| {
            let (uri, message, session) = (uri.clone(), message.clone(), session.clone());
            self.client.post_message(uri, message, session, token, headers.clone())
        })
        .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Ended<StreamableHttpPostResponse> {
        self.with_token(|token| {
            let (uri, message, session) = (uri.clone(), message.clone(), session.clone());
            let headers = headers.clone();
            self.client.post_message_with_response_limits(uri, message, session, token, headers, limits)
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        headers: Headers,
    ) -> Ended<()> {
        self.with_token(|token| {
            self.client.delete_session(uri.clone(), session.clone(), token, headers.clone())
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Ended<Events> {
        let most = usize::MAX;
        self.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Ended<Events> {
        self.with_token(|token| {
            let (uri, session, last_event) = (uri.clone(), session.clone(), last_event.clone());
            let headers = headers.clone();
            self.client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most)
        })
        .await
    }
}
