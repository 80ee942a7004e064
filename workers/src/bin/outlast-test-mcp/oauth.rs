//! An authorization server beside the scripted service: strict where the standards are, with a fault for each file in its directory.
//!
//! `deny`: nobody consents. `revoke`: all access tokens end, once. `revoked`: no login is renewed. `unended`: no login is ended.
//! `swallow`: a request for tokens is never answered, once. `hold`: as long as it is there, none is. What is asked of it goes into
//! `oauth.jsonl`, without tokens. Leaves the service to its parent. Invariant: a code and a refresh token are taken once.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::append;

/// What it does, beside what is right.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rules {
    /// Seconds that a token is said to be good for.
    expires: Option<u64>,
    /// Publishes nothing of what one needs to log in.
    silent: bool,
    /// Takes no clients that register themselves.
    closed: bool,
    /// Ends logins that it is told to end.
    ends: bool,
}

/// What it knows.
#[derive(Debug, Default)]
pub(crate) struct Known {
    count: u64,
    /// Where the code goes, by client.
    clients: HashMap<String, String>,
    /// Challenge and client, by code.
    codes: HashMap<String, (String, String)>,
    access: HashSet<String>,
    refresh: HashSet<String>,
}

/// A request.
pub(crate) struct Asked<'a> {
    pub(crate) own: &'a str,
    pub(crate) first: &'a str,
    pub(crate) body: &'a [u8],
    pub(crate) token: Option<&'a str>,
}

/// The answer; none if the service answers.
pub(crate) fn answer(rules: &Rules, known: &mut Known, asked: &Asked<'_>) -> Option<String> {
    let own = asked.own;
    let target = asked.first.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if std::fs::remove_file("revoke").is_ok() {
        known.access.clear();
    }
    Some(match path {
        "/.well-known/oauth-protected-resource/mcp" if !rules.silent => json_of(
            "200 OK",
            &json!({"resource": format!("{own}/mcp"), "authorization_servers": [own], "scopes_supported": ["notes"]}),
        ),
        "/.well-known/oauth-authorization-server" if !rules.silent => json_of("200 OK", &about(rules, own)),
        "/revoke" if rules.ends => revoke(known, asked),
        "/register" if !rules.closed => {
            let wanted: Value = serde_json::from_slice(asked.body).unwrap();
            let id = known.fresh("client");
            known.clients.insert(id.clone(), wanted["redirect_uris"][0].as_str().unwrap().to_owned());
            append("oauth.jsonl", &json!({"what": "register", "name": wanted["client_name"]}));
            json_of("201 Created", &json!({"client_id": id, "redirect_uris": wanted["redirect_uris"]}))
        }
        "/authorize" => authorize(rules, known, own, &fields(query)),
        "/token" => {
            let form = fields(std::str::from_utf8(asked.body).unwrap());
            match token(rules, known, own, &form) {
                Ok(answer) => json_of("200 OK", &answer),
                Err(error) => json_of("400 Bad Request", &json!({"error": error})),
            }
        }
        "/mcp" => {
            let token = asked.token.and_then(|token| token.strip_prefix("Bearer ")).unwrap_or_default();
            if known.access.contains(token) {
                return None;
            }
            let at = format!("{own}/.well-known/oauth-protected-resource/mcp");
            format!(
                "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer resource_metadata=\"{at}\"\r\ncontent-length: 0\r\n\
                 connection: close\r\n\r\n"
            )
        }
        _ => json_of("404 Not Found", &json!({})),
    })
}

/// What one needs to log in.
fn about(rules: &Rules, own: &str) -> Value {
    let mut about = json!({
        "issuer": own, "authorization_endpoint": format!("{own}/authorize"),
        "token_endpoint": format!("{own}/token"), "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    });
    if !rules.closed {
        about["registration_endpoint"] = json!(format!("{own}/register"));
    }
    if rules.ends {
        about["revocation_endpoint"] = json!(format!("{own}/revoke"));
    }
    about
}

/// Ends a token, and with a refresh token all of its login.
fn revoke(known: &mut Known, asked: &Asked<'_>) -> String {
    let form = fields(std::str::from_utf8(asked.body).unwrap());
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let client = asked.token.unwrap_or_else(|| field("client_id"));
    append("oauth.jsonl", &json!({"what": "revoke", "kind": field("token_type_hint"), "client": client}));
    if std::path::Path::new("unended").exists() {
        return json_of("503 Service Unavailable", &json!({"error": "temporarily_unavailable"}));
    }
    if known.refresh.remove(field("token")) {
        known.access.clear();
    }
    known.access.remove(field("token"));
    json_of("200 OK", &json!({}))
}

/// What becomes of a request for tokens before it is answered; whether it is answered at all.
pub(crate) fn is_answered(first: &str) -> bool {
    let asks = first.starts_with("POST /token ");
    while asks && std::path::Path::new("hold").exists() {
        append_once("held.jsonl");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    if asks && std::fs::remove_file("swallow").is_ok() {
        append("held.jsonl", &json!({}));
        return false;
    }
    true
}

fn append_once(file: &str) {
    if !std::path::Path::new(file).exists() {
        append(file, &json!({}));
    }
}

/// Sends the browser back with a code.
fn authorize(rules: &Rules, known: &mut Known, own: &str, query: &HashMap<String, String>) -> String {
    let field = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    let redirect = field("redirect_uri");
    let fits = known.clients.get(field("client_id")).is_some_and(|known| known == redirect) || rules.closed;
    if !fits || field("code_challenge_method") != "S256" || field("resource") != format!("{own}/mcp") {
        return json_of("400 Bad Request", &json!({"error": "invalid_request"}));
    }
    append(
        "oauth.jsonl",
        &json!({"what": "authorize", "scope": field("scope"), "client": field("client_id")}),
    );
    let word = if std::path::Path::new("deny").exists() {
        "error=access_denied&error_description=not+today".to_owned()
    } else {
        let code = known.fresh("code");
        known.codes.insert(code.clone(), (field("code_challenge").to_owned(), field("client_id").to_owned()));
        format!("code={code}")
    };
    let state = field("state");
    format!(
        "HTTP/1.1 302 Found\r\nlocation: {redirect}?{word}&state={state}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
}

fn token(
    rules: &Rules,
    known: &mut Known,
    own: &str,
    form: &HashMap<String, String>,
) -> Result<Value, &'static str> {
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    append("oauth.jsonl", &json!({"what": field("grant_type")}));
    if field("resource") != format!("{own}/mcp") {
        return Err("invalid_target");
    }
    match field("grant_type") {
        "authorization_code" => {
            let (challenge, client) = known.codes.remove(field("code")).ok_or("invalid_grant")?;
            let registered =
                known.clients.get(&client).is_none_or(|redirect| redirect == field("redirect_uri"));
            let proof = base64url(&sha256(field("code_verifier").as_bytes()));
            // A client with a secret says who it is in a header.
            let is_client = field("client_id") == client || rules.closed;
            if proof != challenge || !is_client || !registered {
                return Err("invalid_grant");
            }
        }
        "refresh_token" => {
            if !known.refresh.remove(field("refresh_token")) || std::path::Path::new("revoked").exists() {
                return Err("invalid_grant");
            }
        }
        _ => return Err("unsupported_grant_type"),
    }
    let (access, refresh) = (known.fresh("access-token"), known.fresh("refresh-token"));
    known.access.insert(access.clone());
    known.refresh.insert(refresh.clone());
    let expires = rules.expires.unwrap_or(3_600);
    Ok(json!({
        "access_token": access, "token_type": "Bearer", "expires_in": expires, "refresh_token": refresh,
        "id_token": known.fresh("id-token"),
    }))
}

impl Known {
    fn fresh(&mut self, what: &str) -> String {
        self.count += 1;
        format!("{what}-{}-{:06}", std::process::id(), self.count)
    }
}

fn json_of(status: &str, body: &Value) -> String {
    let (body, kind) = (body.to_string(), "content-type: application/json");
    format!(
        "HTTP/1.1 {status}\r\n{kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The fields of a query or a form.
fn fields(text: &str) -> HashMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://h/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let value = (0..3).fold(0_usize, |value, at| value << 8 | usize::from(*three.get(at).unwrap_or(&0)));
        text.extend((0..=three.len()).map(|at| char::from(DIGITS[value >> (18 - 6 * at) & 63])));
    }
    text
}

/// SHA-256, by its standard: what proves that who brings a code is who asked for it.
fn sha256(bytes: &[u8]) -> Vec<u8> {
    let primes: Vec<u32> = (2_u32..312).filter(|n| (2..*n).all(|d| n % d != 0)).take(64).collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the standard wants 32 bits of the fraction"
    )]
    let fraction = |root: f64| (root.fract() * 4_294_967_296.0) as u32;
    let k: Vec<u32> = primes.iter().map(|prime| fraction(f64::from(*prime).cbrt())).collect();
    let mut hash: Vec<u32> = primes.iter().take(8).map(|prime| fraction(f64::from(*prime).sqrt())).collect();
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).div_ceil(64) * 64 - 8, 0);
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut w: Vec<u32> =
            block.chunks(4).map(|four| u32::from_be_bytes(four.try_into().unwrap())).collect();
        for i in 16..64 {
            let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ w[i - 15] >> 3;
            let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ w[i - 2] >> 10;
            w.push(w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1));
        }
        let mut v = hash.clone();
        for i in 0..64 {
            let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let choice = v[4] & v[5] ^ !v[4] & v[6];
            let one = v[7].wrapping_add(s1).wrapping_add(choice).wrapping_add(k[i]).wrapping_add(w[i]);
            let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let two = s0.wrapping_add(v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2]);
            v.rotate_right(1);
            v[4] = v[4].wrapping_add(one);
            v[0] = one.wrapping_add(two);
        }
        hash.iter_mut().zip(v).for_each(|(hash, v)| *hash = hash.wrapping_add(v));
    }
    hash.into_iter().flat_map(u32::to_be_bytes).collect()
}
