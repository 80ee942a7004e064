//! JSON-RPC 2.0: the API by method names, over HTTP (`POST /v1/rpc`) and over stdio.
//!
//! Leaves what a method does to the same core that HTTP has. Invariant: whatever text comes in, each request in it has exactly one
//! answer and each notification none. Start at [`parse`]; [`stdio`] is the driver over pipes.

pub(crate) mod methods;
mod out;
pub mod stdio;
mod watches;

use outlast_kernel::Json;
use outlast_protocol::{ApiError, Code};
use serde_json::{Map, json};

use crate::limits::{QUOTED_CHARS, RPC_BATCH_MAX};

/// Not JSON.
pub const PARSE_ERROR: i64 = -32_700;
/// JSON, but no request.
pub const INVALID_REQUEST: i64 = -32_600;
/// No such method.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// The parameters, or what they say, do not fit.
pub const INVALID_PARAMS: i64 = -32_602;
/// A bug or a failed disk.
pub const INTERNAL_ERROR: i64 = -32_603;
/// Everything else that the contract has a code for, which stands in `data.code`.
pub const REFUSED: i64 = -32_000;

/// A request, or a notification if it has no id.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Echoed in the answer; none: no answer is wanted.
    pub id: Option<Json>,
    /// What is called.
    pub method: String,
    /// Its parameters, by name.
    pub params: Map<String, Json>,
}

/// What a text holds: requests, and answers to what is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// One request.
    One(Result<Request, Json>),
    /// A batch, whose answers belong together.
    Many(Vec<Result<Request, Json>>),
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    code: i64,
    message: String,
    /// The error as every surface shows it, and more for some methods.
    data: Option<Json>,
}

impl RpcError {
    /// Makes an error of the protocol itself.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// Reads an answer: its result, or its error as it is.
    pub(crate) fn read(mut answer: Json) -> Result<Result<Json, RpcError>, String> {
        let error = answer["error"].take();
        if error.is_null() {
            return Ok(Ok(answer["result"].take()));
        }
        match (error["code"].as_i64(), error["message"].as_str()) {
            (Some(code), Some(message)) => {
                let data = error.get("data").cloned();
                Ok(Err(RpcError { code, message: message.to_owned(), data }))
            }
            (None, _) | (_, None) => Err(format!("an error without code or message: {error}")),
        }
    }

    /// Returns the error as every surface shows it, if it is one of those.
    pub(crate) fn api_error(&self) -> Option<ApiError> {
        serde_json::from_value(self.data.clone()?).ok()
    }

    /// Adds a field to the error's data.
    #[must_use]
    pub fn with(mut self, name: &str, value: Json) -> RpcError {
        self.data.get_or_insert_with(|| json!({}))[name] = value;
        self
    }
}

impl From<ApiError> for RpcError {
    fn from(error: ApiError) -> RpcError {
        let code = match error.code {
            Code::Invalid => INVALID_PARAMS,
            Code::Internal => INTERNAL_ERROR,
            Code::InvalidCursor
            | Code::Unauthorized
            | Code::Forbidden
            | Code::NotFound
            | Code::MethodNotAllowed
            | Code::Conflict
            | Code::RunEnded
            | Code::NotListening
            | Code::AlreadyDecided
            | Code::Superseded
            | Code::AlreadyEnding
            | Code::TooLarge
            | Code::MailboxFull
            | Code::Overloaded
            | Code::NotReady
            | Code::DiskFull => REFUSED,
        };
        RpcError { code, message: error.message.clone(), data: Some(json!(error)) }
    }
}

/// Makes the answer to a request.
#[must_use]
pub fn answer(id: &Json, result: Result<Json, RpcError>) -> Json {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(RpcError { code, message, data }) => {
            let mut error = json!({ "code": code, "message": message });
            if let Some(data) = data {
                error["data"] = data;
            }
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}

/// Makes the answer to what has no id that could be read.
#[must_use]
pub fn refusal(error: RpcError) -> Json {
    answer(&Json::Null, Err(error))
}

/// Reads a text of one request or a batch of them.
#[must_use]
pub fn parse(text: &[u8]) -> Parsed {
    // Some programs begin their output with a mark that says nothing in UTF-8.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let one = |error| Parsed::One(Err(refusal(error)));
    match outlast_protocol::json::read(text) {
        Err(error) => one(RpcError::new(PARSE_ERROR, format!("not JSON: {error}"))),
        Ok(Json::Array(batch)) if batch.is_empty() => {
            one(RpcError::new(INVALID_REQUEST, "a batch holds at least one request"))
        }
        Ok(Json::Array(batch)) if batch.len() > RPC_BATCH_MAX => {
            one(RpcError::new(INVALID_REQUEST, format!("a batch holds at most {RPC_BATCH_MAX} requests")))
        }
        Ok(Json::Array(batch)) => Parsed::Many(batch.into_iter().map(request).collect()),
        Ok(value) => Parsed::One(request(value)),
    }
}

fn request(value: Json) -> Result<Request, Json> {
    let invalid = |id: Option<Json>, what: &str| {
        Err(answer(&id.unwrap_or_default(), Err(RpcError::new(INVALID_REQUEST, what))))
    };
    let Json::Object(mut fields) = value else { return invalid(None, "a request is an object") };
    let id = fields.remove("id");
    if !id.as_ref().is_none_or(is_echoed_whole) {
        return invalid(None, "id: text, a whole number of at most 64 bits or null is expected");
    }
    if fields.remove("jsonrpc") != Some(json!("2.0")) {
        return invalid(id, "jsonrpc: \"2.0\" is expected");
    }
    let Some(Json::String(method)) = fields.remove("method") else {
        return invalid(id, "method: the name of a method is expected");
    };
    let params = match fields.remove("params") {
        None => Map::new(),
        Some(Json::Object(params)) => params,
        Some(_) => {
            let error = RpcError::new(INVALID_PARAMS, "params: an object of parameters by name is expected");
            return Err(answer(&id.unwrap_or_default(), Err(error)));
        }
    };
    if let Some(other) = fields.keys().next() {
        let other: String = other.chars().take(QUOTED_CHARS).collect();
        return invalid(id, &format!("a request has no field {other:?}"));
    }
    Ok(Request { id, method, params })
}

/// Whether an id comes back as it was sent: a larger number or a fraction would be rounded.
fn is_echoed_whole(id: &Json) -> bool {
    match id {
        Json::Null | Json::String(_) => true,
        Json::Number(number) => number.is_i64() || number.is_u64(),
        Json::Bool(_) | Json::Array(_) | Json::Object(_) => false,
    }
}

impl Request {
    /// Writes it down.
    #[must_use]
    pub fn json(&self) -> Json {
        let mut json = json!({ "jsonrpc": "2.0", "method": self.method, "params": self.params });
        if let Some(id) = &self.id {
            json["id"] = id.clone();
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_what_is_none() {
        let request =
            |id: Option<Json>| Parsed::One(Ok(Request { id, method: "m".into(), params: Map::new() }));
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, request(Some(json!(1)))),
            (r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"m"}"#, request(Some(json!(u64::MAX)))),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m","params":{}}"#, request(Some(Json::Null))),
            ("\u{feff}{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\r", request(None)),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
        for (text, code, id) in [
            ("", PARSE_ERROR, Json::Null),
            ("{", PARSE_ERROR, Json::Null),
            ("{} {}", PARSE_ERROR, Json::Null),
            ("[]", INVALID_REQUEST, Json::Null),
            ("1", INVALID_REQUEST, Json::Null),
            (r#"{"id":1,"method":"m"}"#, INVALID_REQUEST, json!(1)),
            (r#"{"jsonrpc":"2.0","id":"a"}"#, INVALID_REQUEST, json!("a")),
            (r#"{"jsonrpc":"2.0","id":[],"method":"m"}"#, INVALID_REQUEST, Json::Null),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, INVALID_REQUEST, Json::Null),
            (r#"{"jsonrpc":"2.0","id":18446744073709551616,"method":"m"}"#, INVALID_REQUEST, Json::Null),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, INVALID_PARAMS, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","parms":{}}"#, INVALID_REQUEST, json!(1)),
        ] {
            let Parsed::One(Err(answer)) = parse(text.as_bytes()) else { panic!("{text}") };
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{text}");
        }
        assert!(matches!(parse(b"\xff"), Parsed::One(Err(_))));
        let Parsed::Many(many) = parse(br#"[1, {"jsonrpc":"2.0","method":"m"}]"#) else { panic!("no batch") };
        assert!(many[0].is_err() && many[1].is_ok());
        let large = format!("[{}1]", "1,".repeat(RPC_BATCH_MAX));
        assert!(matches!(parse(large.as_bytes()), Parsed::One(Err(_))));
    }

    #[test]
    fn errors_of_the_contract_keep_their_code_beside_that_of_the_protocol() {
        for (code, number) in
            [(Code::Invalid, INVALID_PARAMS), (Code::Conflict, REFUSED), (Code::Internal, INTERNAL_ERROR)]
        {
            let error = ApiError::new(code, "why").of_run("r").hint("do");
            let answer = answer(&json!(1), Err(error.clone().into()));
            assert_eq!(answer["error"]["code"], number);
            assert_eq!(answer["error"]["data"], json!(error));
        }
    }
}
