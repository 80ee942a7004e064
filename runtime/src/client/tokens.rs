//! The calls about access tokens.

use std::time::Duration;

use hyper::Method;
use outlast_protocol::access::{MadeToken, NewToken, TokenView};
use outlast_protocol::requests::List;

use super::{Called, Client, encode};
use crate::limits::ANSWER_MS_MAX;

impl Client {
    /// Makes a token; its secret is in the answer and nowhere else. Not to be repeated: when the answer is lost, revoke it and make another.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::Invalid`], [`outlast_protocol::Code::Conflict`] (the name), [`outlast_protocol::Code::Forbidden`].
    pub async fn add_token(&self, request: &NewToken) -> Called<MadeToken> {
        self.post("/v1/tokens".to_owned(), request).await
    }

    /// Returns all tokens without their secrets.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::Forbidden`].
    pub async fn tokens(&self) -> Called<List<TokenView>> {
        self.get("/v1/tokens".to_owned()).await
    }

    /// Revokes the token with an id or a name.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`], [`outlast_protocol::Code::Forbidden`].
    pub async fn revoke_token(&self, which: &str) -> Called<TokenView> {
        let path = format!("/v1/tokens/{}", encode(which));
        self.call::<(), _>(Method::DELETE, path, None, Duration::from_millis(ANSWER_MS_MAX)).await
    }
}
