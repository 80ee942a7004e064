//! Requests to authorization servers.
//!
//! Leaves what is asked to the library. Invariant: nothing is sent in clear but to this machine, or to the origin that the entry
//! itself names in clear; an answer is of bounded size and comes in bounded time.

use ::http::Response;
use reqwest::Url;
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};

use crate::limits::{LOGIN_ANSWER_BYTES_MAX, LOGIN_REDIRECTS_MAX, LOGIN_REQUEST, MCP_CONNECT};
use crate::sdk::{error_chain, with_ring};

/// See the module.
pub(super) struct Requests {
    /// The service's own address.
    service: Url,
    following: reqwest::Client,
    staying: reqwest::Client,
}

impl Requests {
    pub(super) fn new(service: &str) -> Result<Requests, String> {
        let service = Url::parse(service).map_err(|error| error.to_string())?;
        let own = service.clone();
        let follow = reqwest::redirect::Policy::custom(move |attempt| {
            if attempt.previous().len() > LOGIN_REDIRECTS_MAX || !may_be_asked(attempt.url(), &own) {
                attempt.stop()
            } else {
                attempt.follow()
            }
        });
        let (following, staying) = (client(follow)?, client(reqwest::redirect::Policy::none())?);
        Ok(Requests { service, following, staying })
    }
}

/// A client that redirects are treated by as is said.
pub(super) fn client(redirect: reqwest::redirect::Policy) -> Result<reqwest::Client, String> {
    let builder = reqwest::Client::builder()
        .redirect(redirect)
        .connect_timeout(MCP_CONNECT)
        .timeout(LOGIN_REQUEST)
        .pool_max_idle_per_host(0);
    with_ring(builder).build().map_err(|error| error_chain(&error))
}

/// Whether something secret may be sent there.
fn may_be_asked(url: &Url, service: &Url) -> bool {
    let here = match url.host_str() {
        Some(host) => {
            let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
            host == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && (here || url.origin() == service.origin()))
}

impl OAuthHttpClient for Requests {
    fn execute(&self, asked: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let client = match asked.redirect_policy {
            OAuthHttpRedirectPolicy::Follow => &self.following,
            _ => &self.staying,
        };
        Box::pin(async move {
            let request = reqwest::Request::try_from(asked.request)?;
            if !may_be_asked(request.url(), &self.service) {
                return Err(format!("{} must be https", request.url().origin().ascii_serialization()).into());
            }
            let mut answer = client.execute(request).await.map_err(reqwest::Error::without_url)?;
            let mut response = Response::builder().status(answer.status());
            for (name, value) in answer.headers() {
                response = response.header(name, value);
            }
            let mut body = Vec::new();
            while let Some(piece) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
                if body.len() + piece.len() > LOGIN_ANSWER_BYTES_MAX {
                    return Err(format!("an answer is over {LOGIN_ANSWER_BYTES_MAX} bytes").into());
                }
                body.extend_from_slice(&piece);
            }
            Ok(response.body(body)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_sent_in_clear_to_others() {
        for (url, service, may) in [
            ("https://a.example/token", "https://s.example/mcp", true),
            ("http://a.example/token", "https://s.example/mcp", false),
            ("http://s.example/token", "http://s.example/mcp", true),
            ("http://s.example:81/token", "http://s.example/mcp", false),
            ("http://127.0.0.1:9/token", "https://s.example/mcp", true),
            ("http://[::1]:9/token", "https://s.example/mcp", true),
            ("http://localhost/token", "https://s.example/mcp", true),
            ("http://localhost.example/token", "https://s.example/mcp", false),
            ("ftp://s.example/token", "https://s.example/mcp", false),
        ] {
            assert_eq!(may_be_asked(&Url::parse(url).unwrap(), &Url::parse(service).unwrap()), may, "{url}");
        }
    }
}
