//! Requests to authorization servers.
//!
//! Leaves what is asked to the library. Invariant: nothing is sent in clear but to this machine, or to the origin that the entry
//! itself names in clear; an answer is of bounded size and comes in bounded time; what is secret in it is hidden, in the log too, before
//! the library or anybody else has it.

use ::http::Response;
use reqwest::Url;
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};

use crate::Json;
use crate::limits::{LOGIN_ANSWER_BYTES_MAX, LOGIN_REDIRECTS_MAX, LOGIN_REQUEST, MCP_CONNECT};
use crate::sdk::{Mask, error_chain, with_ring};
use crate::tools::quote;

/// See the module.
pub(super) struct Requests {
    /// The service's own address.
    service: Url,
    following: reqwest::Client,
    staying: reqwest::Client,
    /// As what its secrets are shown.
    shown_as: String,
    mask: Mask,
}

/// The fields of answers that nobody sees.
const SECRET: [&str; 5] =
    ["access_token", "refresh_token", "id_token", "client_secret", "registration_access_token"];
/// Characters of an authorization server's error that are passed on.
const ERROR_CHARS_MAX: usize = 100;

impl Requests {
    pub(super) fn new(service: &str, shown_as: String, mask: &Mask) -> Result<Requests, String> {
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
        Ok(Requests { service, following, staying, shown_as, mask: mask.clone() })
    }

    /// Sends a form, and has it accepted. `client` is who sends it, with the secret if there is one.
    ///
    /// # Errors
    /// Why it is not, in words.
    pub(super) async fn post(
        &self,
        to: &str,
        fields: &[(&str, &str)],
        client: (&str, Option<&str>),
    ) -> Result<(), String> {
        let to = Url::parse(to).map_err(|error| error.to_string())?;
        if !may_be_asked(&to, &self.service) {
            return Err(must_be_https(&to));
        }
        let form = |fields: &[(&str, &str)]| {
            let mut address = self.service.clone();
            address.query_pairs_mut().clear().extend_pairs(fields);
            address.query().unwrap_or_default().to_owned()
        };
        let kind = "application/x-www-form-urlencoded";
        let mut request = self.staying.post(to).header("content-type", kind).body(form(fields));
        if let (id, Some(secret)) = client {
            // Either is written as in a form first: RFC 6749, 2.3.1.
            let [id, secret] =
                [id, secret].map(|text| form(&[("", text)]).trim_start_matches('=').to_owned());
            request = request.basic_auth(id, Some(secret));
        }
        let plain = |error: reqwest::Error| error_chain(&error.without_url());
        let answer = request.send().await.map_err(plain)?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let body = self.body(answer).await.unwrap_or_default();
        let said: Json = serde_json::from_slice(&body).unwrap_or_default();
        let why = said["error"].as_str().map(|why| format!(" ({})", quote(why, ERROR_CHARS_MAX)));
        Err(format!("it answers {}{}", status.as_u16(), why.unwrap_or_default()))
    }

    /// Reads an answer, and hides what is secret in it.
    async fn body(&self, mut answer: reqwest::Response) -> Result<Vec<u8>, String> {
        let plain = |error: reqwest::Error| error_chain(&error.without_url());
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(plain)? {
            if body.len() + piece.len() > LOGIN_ANSWER_BYTES_MAX {
                return Err(format!("an answer is over {LOGIN_ANSWER_BYTES_MAX} bytes"));
            }
            body.extend_from_slice(&piece);
        }
        let said: Json = serde_json::from_slice(&body).unwrap_or_default();
        for secret in SECRET.iter().filter_map(|name| said[*name].as_str()) {
            self.mask.learn(&self.shown_as, secret);
        }
        Ok(body)
    }
}

fn must_be_https(url: &Url) -> String {
    format!("{} must be https", url.origin().ascii_serialization())
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
                return Err(must_be_https(request.url()).into());
            }
            let answer = client.execute(request).await.map_err(reqwest::Error::without_url)?;
            let mut response = Response::builder().status(answer.status());
            for (name, value) in answer.headers() {
                response = response.header(name, value);
            }
            Ok(response.body(self.body(answer).await?)?)
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
