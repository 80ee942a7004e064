//! Where the runtime is if nobody says: what the environment names, else the user's own.
//!
//! The same as in the Python kit. Leaves calling to the client.

use std::ffi::OsString;
use std::path::PathBuf;

use outlast_protocol::directory::data_directory;

use super::client::Credentials;

/// Reads a variable of the environment.
pub(super) type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The address of `OUTLAST_URL`, else the socket in the data directory: that of `OUTLAST_DATA`, else the user's.
///
/// # Errors
/// If nothing says where it is.
pub(super) fn usual(variable: Variable<'_>) -> Result<String, String> {
    if let Some(url) = text(variable, "OUTLAST_URL") {
        return Ok(url);
    }
    let named = variable("OUTLAST_DATA").filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = data_directory(named, variable);
    let directory = directory
        .ok_or("nothing says where the runtime is: call `connect`, or set OUTLAST_URL or OUTLAST_DATA")?;
    Ok(format!("unix:{}", directory.join("socket").display()))
}

/// What was said, and for the rest the token of `OUTLAST_TOKEN` and the authorities of the file `OUTLAST_CA`.
pub(super) fn credentials(said: Credentials, variable: Variable<'_>) -> Credentials {
    Credentials {
        bearer: said.bearer.or_else(|| text(variable, "OUTLAST_TOKEN")),
        ca: said.ca.or_else(|| text(variable, "OUTLAST_CA").map(PathBuf::from)),
    }
}

fn text(variable: Variable<'_>, name: &str) -> Option<String> {
    variable(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_where_the_runtime_is() {
        for (variables, address) in [
            (vec![("OUTLAST_URL", "https://h"), ("OUTLAST_DATA", "/d")], Some("https://h")),
            (vec![("OUTLAST_URL", ""), ("OUTLAST_DATA", "/d"), ("HOME", "/h")], Some("unix:/d/socket")),
            (vec![("HOME", "/h")], Some("unix:/h/.local/share/outlast/socket")),
            (vec![], None),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(*value))
            };
            assert_eq!(usual(&variable).ok().as_deref(), address);
        }
    }
}
