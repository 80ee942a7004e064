//! Where the runtime is if nobody says: what the environment names, else the user's own.
//!
//! The same as in the Python kit. Leaves calling to the client.

use std::path::PathBuf;

use super::client::Credentials;

/// The address of `OUTLAST_URL`, else the socket in the data directory: that of `OUTLAST_DATA`, else the user's.
pub(super) fn usual(variable: &dyn Fn(&str) -> Option<String>) -> String {
    if let Some(url) = variable("OUTLAST_URL") {
        return url;
    }
    let directory = variable("OUTLAST_DATA").map(PathBuf::from).unwrap_or_else(|| {
        let home = || PathBuf::from(variable("HOME").unwrap_or_default()).join(".local/share");
        variable("XDG_DATA_HOME").map_or_else(home, PathBuf::from).join("outlast")
    });
    format!("unix:{}", directory.join("socket").display())
}

/// What was said, and for the rest the token of `OUTLAST_TOKEN` and the authorities of the file `OUTLAST_CA`.
pub(super) fn credentials(said: Credentials, variable: &dyn Fn(&str) -> Option<String>) -> Credentials {
    Credentials {
        bearer: said.bearer.or_else(|| variable("OUTLAST_TOKEN")),
        ca: said.ca.or_else(|| variable("OUTLAST_CA").map(PathBuf::from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_where_the_runtime_is() {
        for (variables, address) in [
            (vec![("OUTLAST_URL", "https://h"), ("OUTLAST_DATA", "/d")], "https://h"),
            (vec![("OUTLAST_DATA", "/d"), ("HOME", "/h")], "unix:/d/socket"),
            (vec![("XDG_DATA_HOME", "/x"), ("HOME", "/h")], "unix:/x/outlast/socket"),
            (vec![("HOME", "/h")], "unix:/h/.local/share/outlast/socket"),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(usual(&variable), address);
        }
    }
}
