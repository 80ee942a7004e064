//! The fetch tool: gets one page, as text.
//!
//! Leaves whether an address may be asked at all to the permissions. Invariant: what is connected to is an address that was looked at, never
//! one that a name stands for later; addresses of this machine and of networks that are not public are refused unless a rule names
//! their host; a redirect to another host is told, not followed; time and memory are bounded whatever a server does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use outlast_protocol::rules::{Call, Reading};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Response, StatusCode, Url};
use serde_json::json;

use super::output::{Capture, Captured, Reader};
use super::{ToolError, Toolbox, html};
use crate::limits::{
    FETCH_BYTES_MAX, FETCH_CONNECT, FETCH_REDIRECTS_MAX, FETCH_TIMEOUT, FETCH_URL_BYTES_MAX, QUOTE_CHARS_MAX,
};
use crate::sdk::{Mask, TaskContext, error_chain, with_ring};

/// What it calls itself.
const USER_AGENT: &str = concat!("outlast/", env!("CARGO_PKG_VERSION"));

/// What it likes best.
const WANTED: &str = "text/markdown, text/plain;q=0.9, text/html;q=0.8, application/json;q=0.8, */*;q=0.1";

/// Gets a page.
pub(super) async fn fetch(
    toolbox: &Toolbox,
    task: &TaskContext,
    url: &str,
    timeout: Option<Duration>,
    reader: Reader,
) -> Result<String, ToolError> {
    if toolbox.sandbox.has_no_network() {
        let text = "not fetched: [sandbox] network in outlast.toml is none";
        return Err(ToolError::new("Denied", text));
    }
    let url = address(url)?;
    let limit = timeout.unwrap_or(FETCH_TIMEOUT).min(task.remaining().unwrap_or(Duration::MAX));
    match tokio::time::timeout(limit, follow(toolbox, url.clone(), reader, task.mask())).await {
        Ok(Ok(Page { shown, note })) => Ok(shown.kept(task).await + &note),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(failed(&url, &format!("no whole answer in {} ms", limit.as_millis()))),
    }
}

/// Reads an address that can be fetched.
pub(super) fn address(text: &str) -> Result<Url, ToolError> {
    let wrong = |why: &str| {
        let shown: String = text.chars().take(QUOTE_CHARS_MAX).collect();
        ToolError::new("BadArguments", format!("url {shown:?} cannot be fetched: {why}"))
    };
    if text.len() > FETCH_URL_BYTES_MAX {
        return Err(wrong("it is too long"));
    }
    let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    match url.scheme() {
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            Err(wrong("it has a user in it"))
        }
        "http" | "https" => Ok(url),
        _ => Err(wrong("it does not begin with http:// or https://")),
    }
}

/// A page as it is shown.
struct Page {
    shown: Captured,
    /// What is to be said of it.
    note: String,
}

async fn follow(toolbox: &Toolbox, mut url: Url, reader: Reader, mask: &Mask) -> Result<Page, ToolError> {
    for _ in 0..=FETCH_REDIRECTS_MAX {
        let response = ask(toolbox, &url).await?;
        let Some(next) = redirect(&url, &response) else { return page(&url, response, reader, mask).await };
        let next = next.map_err(|why| failed(&url, &why))?;
        if !is_same_place(&url, &next) {
            // Another place is another call, about which the permissions are asked.
            let note = format!("[{url} is moved to {next}: fetch that instead]");
            return Ok(Page { shown: Captured::default(), note });
        }
        url = next;
    }
    Err(failed(&url, &format!("it redirects more than {FETCH_REDIRECTS_MAX} times")))
}

/// Whether a redirect stays where it was asked about: at its origin, or at the same host with TLS where there was none.
fn is_same_place(url: &Url, next: &Url) -> bool {
    let secured = url.scheme() == "http" && next.scheme() == "https";
    let usual_ports = url.port().is_none() && next.port().is_none();
    url.origin() == next.origin() || (secured && usual_ports && url.host() == next.host())
}

async fn ask(toolbox: &Toolbox, url: &Url) -> Result<Response, ToolError> {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(failed(url, "it names no host"));
    };
    let addresses = addresses(host, port).await.map_err(|error| failed(url, &error.to_string()))?;
    let named = toolbox.names_host(url);
    if let Some(private) = addresses.iter().find(|address| !is_public(address.ip()) && !named) {
        let text = format!(
            "not fetched: {host} is {}, which is not public; a rule that names it allows it, such as \
             [permissions] allow = [\"fetch({}/*)\"]",
            private.ip(),
            url.origin().ascii_serialization()
        );
        return Err(ToolError::new("Denied", text));
    }
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(FETCH_CONNECT)
        .user_agent(USER_AGENT)
        .resolve_to_addrs(host, &addresses);
    let client = with_ring(builder).build().map_err(|error| failed(url, &error_chain(&error)))?;
    let sent = client.get(url.clone()).header(ACCEPT, WANTED).send().await;
    sent.map_err(|error| failed(url, &error_chain(&error.without_url())))
}

/// What a host's name stands for now, or itself.
async fn addresses(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found: Vec<SocketAddr> = match bare.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => tokio::net::lookup_host((host, port)).await?.collect(),
    };
    if found.is_empty() {
        return Err(std::io::Error::other(format!("{host} has no address")));
    }
    Ok(found)
}

/// Whether an address is one of the internet, not of this machine, of its network, or of nobody.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => match ip.to_ipv4_mapped().or_else(|| embedded(ip)) {
            Some(ip) => is_public_v4(ip),
            // Only 2000::/3 is given out, and of that 2001:db8::/32 is for documents.
            None => {
                ip.segments()[0] & 0xe000 == 0x2000
                    && !(ip.segments()[0] == 0x2001 && ip.segments()[1] == 0xdb8)
            }
        },
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let of_nobody =
        a == 0 || a >= 240 || (a == 192 && b == 0 && c == 0) || (a == 198 && (b == 18 || b == 19));
    let local = ip.is_loopback() || ip.is_private() || ip.is_link_local() || shared;
    !(local || of_nobody || ip.is_multicast() || ip.is_documentation() || ip.is_broadcast())
}

/// The address that a translator would make of one: 64:ff9b::/96 and 2002::/16.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let parts = ip.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match parts {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

/// Where an answer points to, if it points elsewhere.
fn redirect(url: &Url, response: &Response) -> Option<Result<Url, String>> {
    let moved = [301, 302, 303, 307, 308].contains(&response.status().as_u16());
    let to = response.headers().get(LOCATION).filter(|_| moved)?;
    let to = to.to_str().map_err(|_| "it redirects to no address".to_owned());
    let joined = to.and_then(|to| url.join(to).map_err(|error| format!("it redirects to {to:?}: {error}")));
    Some(joined.and_then(|next| address(next.as_str()).map_err(|error| error.text)))
}

/// Reads an answer as text.
async fn page(url: &Url, mut response: Response, reader: Reader, mask: &Mask) -> Result<Page, ToolError> {
    let status = response.status();
    let header = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = header.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let mut body = Vec::new();
    let mut whole = true;
    loop {
        match response.chunk().await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break,
            Err(error) => return Err(failed(url, &error_chain(&error.without_url()))),
        }
        if body.len() > FETCH_BYTES_MAX {
            body.truncate(FETCH_BYTES_MAX);
            whole = false;
            break;
        }
    }
    let text = if is_html(&kind, &body) {
        shown(html::text(&String::from_utf8_lossy(&body)).as_bytes(), reader, mask)
    } else if is_text(&kind, &body) {
        shown(&body, reader, mask)
    } else {
        let kind = if kind.is_empty() { "data" } else { &kind };
        format!("[{kind} of {} bytes, not shown]", body.len()).into()
    };
    let note = match whole {
        true => String::new(),
        false => format!("\n[only the first {FETCH_BYTES_MAX} bytes were read]"),
    };
    if status.is_success() {
        return Ok(Page { shown: text, note });
    }
    Err(refused(url, status, &(text.cut() + &note)))
}

fn shown(text: &[u8], reader: Reader, mask: &Mask) -> Captured {
    let mut capture = Capture::new(reader, mask);
    capture.push(text);
    capture.finish()
}

fn is_html(kind: &str, body: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(&body[..body.len().min(64)]).trim_start().to_ascii_lowercase();
    ["text/html", "application/xhtml+xml"].contains(&kind)
        || (kind.is_empty() && (begin.starts_with("<!doctype html") || begin.starts_with("<html")))
}

fn is_text(kind: &str, body: &[u8]) -> bool {
    let said = kind.starts_with("text/")
        || ["json", "xml", "yaml", "toml", "javascript", "x-sh", "x-www-form-urlencoded"]
            .iter()
            .any(|text| kind.ends_with(text));
    said || (kind.is_empty() && std::str::from_utf8(body).is_ok())
}

fn failed(url: &Url, why: &str) -> ToolError {
    ToolError::new("FetchFailed", format!("cannot fetch {url}: {why}"))
}

fn refused(url: &Url, status: StatusCode, text: &str) -> ToolError {
    let mut error = failed(url, &format!("HTTP {status}\n{text}"));
    error.code = Some(i32::from(status.as_u16()));
    error
}

impl Toolbox {
    /// Whether an allow rule of the environment names the host of an address: not only some of it, and not only the tool.
    fn names_host(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let call = Call::new("fetch", &json!({ "url": url.as_str() }), "pure");
        let names = |rule: &&String| {
            rule.split_once('(').is_some_and(|(_, inner)| inner.contains(host))
                && call.fits(rule, Reading::Narrow)
        };
        self.rules.allow.iter().any(|rule| names(&rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for (address, public) in [
            ("93.184.215.14", true),
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", true),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("::ffff:127.0.0.1", false),
            ("::127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("2002:7f00:1::", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    #[test]
    fn a_redirect_stays_at_its_origin_or_gains_tls() {
        for (next, same) in [
            ("http://docs.rs/b", true),
            ("https://docs.rs/a", true),
            ("http://docs.rs:8080/a", false),
            ("https://docs.rs:8443/a", false),
            ("https://evil.test/a", false),
        ] {
            let url = |text: &str| Url::parse(text).unwrap();
            assert_eq!(is_same_place(&url("http://docs.rs/a"), &url(next)), same, "{next}");
        }
        let (from, to) = (Url::parse("https://docs.rs/a").unwrap(), Url::parse("http://docs.rs/a").unwrap());
        assert!(!is_same_place(&from, &to), "TLS is not lost");
    }

    #[test]
    fn addresses_that_cannot_be_meant_are_told() {
        for (text, why) in [
            ("docs.rs", "relative URL"),
            ("file:///etc/passwd", "does not begin with http"),
            ("http://user:word@host/", "a user in it"),
            ("http://", "empty host"),
        ] {
            let error = address(text).unwrap_err();
            assert!(error.text.contains(why), "{text}: {error}");
        }
        // However it is written, it is the same address.
        assert_eq!(address("http://0x7f.1/a").unwrap().host_str(), Some("127.0.0.1"));
    }
}
