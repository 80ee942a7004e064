//! Pages that servers want a person to open: elicitation in URL mode.
//!
//! Leaves asking to `questions`, which sees a page as a form with one field that has the address for its name: an answer holds for
//! this one address. Invariant: an address is shown as it was parsed, whole, beside its host; this program never opens or fetches it.

use reqwest::Url;
use serde_json::json;

use crate::Json;
use crate::limits::{ADDRESS_BYTES_MAX, QUOTE_CHARS_MAX};
use crate::tools::quote;

/// The code of the error by which a server says that pages must be opened before it does a call.
pub(super) const NEEDED: i32 = -32042;

/// A question as all others are: one for a page gets a form, any other stays as it is.
///
/// # Errors
/// Why its address is not shown to anybody.
pub(super) fn with_form(asked: &Json) -> Result<Json, String> {
    if asked["mode"] != "url" {
        return Ok(asked.clone());
    }
    let address = checked(asked["url"].as_str().unwrap_or_default())?;
    let form = json!({"type": "object", "required": [address.as_str()],
        "properties": {address.as_str(): {"type": "boolean", "title": "opened"}}});
    Ok(json!({"mode": "url", "message": asked["message"], "url": address.as_str(), "host": host(&address),
        "requestedSchema": form}))
}

/// The address and the host of a question that [`with_form`] made.
pub(super) fn page_of(question: &Json) -> Option<(&str, &str)> {
    let page = Some(question).filter(|question| question["mode"] == "url")?;
    Some((page["url"].as_str()?, page["host"].as_str()?))
}

/// The pages of an error with the code [`NEEDED`].
pub(super) fn needed(data: Option<&Json>) -> Vec<Json> {
    let all = data.and_then(|data| data["elicitations"].as_array());
    all.into_iter().flatten().filter(|asked| asked["mode"] == "url").cloned().collect()
}

fn checked(written: &str) -> Result<Url, String> {
    let refused = |why: &str| Err(format!("{:?} {why}", quote(written, QUOTE_CHARS_MAX)));
    if written.len() > ADDRESS_BYTES_MAX {
        return refused(&format!("is longer than {ADDRESS_BYTES_MAX} bytes"));
    }
    match Url::parse(written) {
        Err(error) => refused(&format!("is no address: {error}")),
        Ok(address) if !matches!(address.scheme(), "http" | "https") => {
            refused("begins neither with https:// nor with http://")
        }
        // `https://bank.example@elsewhere.example` is at elsewhere.example, and people read the first name.
        Ok(address) if !address.username().is_empty() || address.password().is_some() => {
            refused("has a user's name before its host")
        }
        Ok(address) if address.as_str().len() > 3 * ADDRESS_BYTES_MAX => refused("is too long"),
        Ok(address) => Ok(address),
    }
}

/// The host as it is asked for, with its port if that is not the usual one: a name in another script is seen as what it is.
fn host(address: &Url) -> String {
    let name = address.host_str().unwrap_or_default();
    address.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(url: &str) -> Result<Json, String> {
        with_form(&json!({"mode": "url", "message": "Log in", "url": url, "elicitationId": "e1"}))
    }

    #[test]
    fn an_address_is_shown_as_it_would_be_asked_for() {
        for (written, address, host) in [
            ("https://a.example/x?y=z#w", "https://a.example/x?y=z#w", "a.example"),
            ("HTTP://A.example:8080", "http://a.example:8080/", "a.example:8080"),
            ("https://b\u{e4}nk.example/", "https://xn--bnk-qla.example/", "xn--bnk-qla.example"),
            ("https://a.example\\@b.example/", "https://a.example/@b.example/", "a.example"),
            ("https://a.example/\u{202e}gnp", "https://a.example/%E2%80%AEgnp", "a.example"),
            ("https://[::1]:1/", "https://[::1]:1/", "[::1]:1"),
        ] {
            let question = asked(written).unwrap();
            assert_eq!(page_of(&question), Some((address, host)), "{written}");
            assert_eq!(question["requestedSchema"]["required"], json!([address]));
        }
    }

    #[test]
    fn any_other_address_is_refused_with_the_reason() {
        let long = format!("https://a.example/{}", "x".repeat(ADDRESS_BYTES_MAX));
        for (written, why) in [
            ("", "is no address"),
            ("login", "is no address"),
            ("https://", "is no address"),
            ("file:///etc/passwd", "begins neither"),
            ("javascript:alert(1)", "begins neither"),
            ("https://bank.example@b.example/", "a user's name"),
            (long.as_str(), "longer than"),
        ] {
            let refused = asked(written).unwrap_err();
            assert!(refused.contains(why) && refused.len() < 1_000, "{written}: {refused}");
        }
    }

    #[test]
    fn a_form_stays_as_it_is() {
        let form = json!({"mode": "form", "message": "m", "url": "https://a.example"});
        assert_eq!((with_form(&form), page_of(&form)), (Ok(form.clone()), None));
        assert_eq!(needed(Some(&json!({"elicitations": [form]}))), [Json::Null; 0]);
    }
}
