//! What this process finds around it: the data directory, the working directory, the model.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use outlast_runtime::profile::{Model, Profile};

use crate::failure::{Exit, Failure};

/// The endpoint of a key without a URL.
const OPENAI_URL: &str = "https://api.openai.com/v1";
/// The model of an endpoint without a name: small, cheap, with tools.
const OPENAI_MODEL: &str = "gpt-4.1-mini";
/// The environment variable that holds a key. The key itself stays there.
const KEY: &str = "OPENAI_API_KEY";

/// A model that is scripted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// By which name people know it.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
}

/// Returns the data directory: the one asked for, else the user's.
pub(crate) fn data_directory(asked: Option<&Path>) -> Result<PathBuf, Failure> {
    let found = data_directory_of(asked, std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"));
    let directory = found.ok_or_else(|| {
        Failure::usage("there is no data directory: HOME is not set").hint("name one with --data DIR")
    })?;
    std::path::absolute(&directory).map_err(|error| Failure::usage(format!("--data: {error}")))
}

fn data_directory_of(asked: Option<&Path>, xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let set = |value: Option<OsString>| value.filter(|value| !value.is_empty()).map(PathBuf::from);
    asked
        .map(Path::to_path_buf)
        .or_else(|| set(xdg).filter(|path| path.is_absolute()).map(|path| path.join("outlast")))
        .or_else(|| set(home).map(|path| path.join(".local").join("share").join("outlast")))
}

/// Returns the environment of runs that are started here.
pub(crate) fn profile(script: &Script) -> Result<Profile, Failure> {
    let directory = std::env::current_dir()
        .and_then(std::fs::canonicalize)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot find the working directory: {error}")))?;
    Ok(Profile { directory, model: model(&|name| std::env::var(name).ok(), script) })
}

/// Returns the model of an environment: an endpoint if one is set, else the script.
fn model(variable: &dyn Fn(&str) -> Option<String>, script: &Script) -> Model {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let (url, name, key) = (set("OUTLAST_MODEL_URL"), set("OUTLAST_MODEL"), set(KEY));
    if url.is_none() && name.is_none() && key.is_none() {
        return Model::Scripted { script: script.text.clone(), script_name: script.name.clone() };
    }
    Model::Openai {
        url: url.unwrap_or_else(|| OPENAI_URL.to_owned()),
        name: name.unwrap_or_else(|| OPENAI_MODEL.to_owned()),
        // Endpoints on this machine need no key; then none is asked for.
        key_env: key.map(|_| KEY.to_owned()),
    }
}

/// Says which model answers, if that may surprise.
pub(crate) fn announce(profile: &Profile) {
    if let Model::Scripted { script_name, .. } = &profile.model {
        let why = format!("no model endpoint set (OUTLAST_MODEL_URL, {KEY})");
        crate::out::say(&format!("{why}: using the scripted model of {script_name}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_is_the_first_that_is_named() {
        let os = |text: &str| Some(OsString::from(text));
        for (asked, xdg, home, expected) in [
            (Some("d"), os("/x"), os("/h"), Some("d")),
            (None, os("/x"), os("/h"), Some("/x/outlast")),
            (None, os("relative"), os("/h"), Some("/h/.local/share/outlast")),
            (None, os(""), os("/h"), Some("/h/.local/share/outlast")),
            (None, None, os("/h"), Some("/h/.local/share/outlast")),
            (None, None, None, None),
        ] {
            let found = data_directory_of(asked.map(Path::new), xdg, home);
            assert_eq!(found, expected.map(PathBuf::from));
        }
    }

    #[test]
    fn an_endpoint_is_used_if_anything_of_it_is_set() {
        let script = Script { name: "s".to_owned(), text: "{}".to_owned() };
        let of = |set: &[(&str, &str)]| {
            let find =
                |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            model(&find, &script)
        };
        let openai = |url: &str, name: &str, key_env: Option<&str>| Model::Openai {
            url: url.to_owned(),
            name: name.to_owned(),
            key_env: key_env.map(str::to_owned),
        };
        let scripted = Model::Scripted { script: "{}".to_owned(), script_name: "s".to_owned() };
        assert_eq!(of(&[]), scripted);
        assert_eq!(of(&[(KEY, "")]), scripted);
        assert_eq!(of(&[(KEY, "k")]), openai(OPENAI_URL, OPENAI_MODEL, Some(KEY)));
        assert_eq!(of(&[("OUTLAST_MODEL_URL", "http://l")]), openai("http://l", OPENAI_MODEL, None));
        assert_eq!(of(&[("OUTLAST_MODEL", "m"), (KEY, "k")]), openai(OPENAI_URL, "m", Some(KEY)));
    }
}
