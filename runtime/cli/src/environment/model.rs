//! Which model answers, as the environment variables say, and where they say nothing, `[model]` in `outlast.toml`.
//!
//! Leaves asking it to the model worker. Invariant: a key is named by its variable and never read here, and a setting that cannot be
//! meant is refused before anything runs.

use outlast_protocol::profile::{Endpoint, Model};

use super::Script;
use crate::configuration::ModelTable;
use crate::failure::Failure;

/// What sets an endpoint, for people who have set none.
pub(super) const SETTINGS: &str = "OUTLAST_MODEL_URL, OPENAI_API_KEY, ANTHROPIC_API_KEY";

/// What `OUTLAST_MODEL_PROVIDER` says for a script.
const SCRIPTED: &str = "scripted";

const PROVIDER: &str = "OUTLAST_MODEL_PROVIDER";
const URL: &str = "OUTLAST_MODEL_URL";
const NAME: &str = "OUTLAST_MODEL";
const KEY_ENV: &str = "OUTLAST_MODEL_KEY_ENV";
const MAX_TOKENS: &str = "OUTLAST_MODEL_MAX_TOKENS";
const OPTIONS: &str = "OUTLAST_MODEL_OPTIONS";

/// A provider that needs no more than a key, or a name.
struct Provider {
    /// What `OUTLAST_MODEL_PROVIDER` says.
    name: &'static str,
    url: &'static str,
    /// Small, cheap, with tools; none if that depends on what is installed.
    model: Option<&'static str>,
    /// The variable in which its key is looked for.
    key: Option<&'static str>,
    make: fn(Endpoint) -> Model,
}

const PROVIDERS: [Provider; 4] = [
    Provider {
        name: "openai",
        url: "https://api.openai.com/v1",
        model: Some("gpt-4.1-mini"),
        key: Some("OPENAI_API_KEY"),
        make: Model::Openai,
    },
    Provider {
        name: "openai-responses",
        url: "https://api.openai.com/v1",
        model: Some("gpt-4.1-mini"),
        key: Some("OPENAI_API_KEY"),
        make: Model::OpenaiResponses,
    },
    Provider {
        name: "anthropic",
        url: "https://api.anthropic.com/v1",
        model: Some("claude-haiku-4-5"),
        key: Some("ANTHROPIC_API_KEY"),
        make: Model::Anthropic,
    },
    Provider {
        name: "ollama",
        url: "http://127.0.0.1:11434/v1",
        model: None,
        key: None,
        make: Model::Openai,
    },
];

/// Returns the model of an environment: an endpoint if anything of one is set, else the script.
pub(super) fn chosen(
    variable: &dyn Fn(&str) -> Option<String>,
    table: Option<&ModelTable>,
    script: &Script,
) -> Result<Model, Failure> {
    let model = model_of(variable, table, script)?;
    let of_script = match &model {
        Model::Scripted { .. } => format!("{}: ", script.name),
        Model::Openai(_) | Model::OpenaiResponses(_) | Model::Anthropic(_) => String::new(),
    };
    // Its worker would refuse it where nobody sees it.
    let usable = outlast_workers::model::check(&model, variable);
    usable.map_err(|error| Failure::usage(format!("{of_script}{error}")))?;
    Ok(model)
}

fn model_of(
    variable: &dyn Fn(&str) -> Option<String>,
    table: Option<&ModelTable>,
    script: &Script,
) -> Result<Model, Failure> {
    let set = |name: &str| {
        let found = variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        found.or_else(|| said(table?, name))
    };
    let asked = set(PROVIDER);
    let endpoint = match asked.as_deref() {
        Some(SCRIPTED) => None,
        other => provider(other, &set)?,
    };
    let Some(provider) = endpoint else {
        return Ok(Model::Scripted { script: script.text.clone(), script_name: script.name.clone() });
    };
    let mut settings = settings(provider, &set)?;
    if let Some(next) = table.and_then(|table| table.fallback.as_deref()) {
        if next.provider.is_none() && next.url.is_none() && next.name.is_none() {
            let failure = Failure::usage("[model.fallback] names no model");
            return Err(failure.hint("set its provider, url or name"));
        }
        // What the environment sets of a model is about the first one; keys are anybody's.
        let keys = |name: &str| variable(name).filter(|_| !name.starts_with(NAME));
        settings.fallback = Some(Box::new(model_of(&keys, Some(next), script)?));
    }
    Ok((provider.make)(settings))
}

/// Returns what the table says where a variable would.
fn said(table: &ModelTable, name: &str) -> Option<String> {
    match name {
        PROVIDER => table.provider.clone(),
        URL => table.url.clone(),
        NAME => table.name.clone(),
        KEY_ENV => table.key_env.clone(),
        MAX_TOKENS => table.max_tokens.map(|tokens| tokens.to_string()),
        OPTIONS => table.options.as_ref().map(|options| serde_json::json!(options).to_string()),
        _ => None,
    }
}

/// Says whether a script was asked for, so that nobody is surprised by it.
pub(super) fn asks_for_script(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    variable(PROVIDER).is_some_and(|asked| asked.trim() == SCRIPTED)
}

/// Returns how a provider is asked.
fn settings(provider: &Provider, set: &dyn Fn(&str) -> Option<String>) -> Result<Endpoint, Failure> {
    let name = set(NAME).or_else(|| provider.model.map(str::to_owned)).ok_or_else(|| {
        let text = format!("{PROVIDER} is {}, and no model is named", provider.name);
        Failure::usage(text).hint(format!("set {NAME}, for example {NAME}=qwen3:8b"))
    })?;
    let key_env = match set(KEY_ENV) {
        Some(named) => Some(named),
        // Endpoints on this machine need no key; then none is asked for.
        None => provider.key.filter(|key| set(key).is_some()).map(str::to_owned),
    };
    Ok(Endpoint {
        url: set(URL).unwrap_or_else(|| provider.url.to_owned()),
        name,
        key_env,
        max_tokens: outlast_workers::model::count(MAX_TOKENS, set).map_err(Failure::usage)?,
        options: set(OPTIONS).map(|text| options(&text)).transpose()?.unwrap_or_default(),
        ..Endpoint::default()
    })
}

/// Returns the provider that was asked for, or the one for which a key or an address is there.
fn provider(
    asked: Option<&str>,
    set: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<&'static Provider>, Failure> {
    let named = |name: &str| PROVIDERS.iter().find(|provider| provider.name == name);
    if let Some(asked) = asked {
        let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
        let found = named(asked).ok_or_else(|| {
            let hint = format!("expected {}, or {SCRIPTED}", names.join(", "));
            Failure::usage(format!("{PROVIDER}: there is no provider {asked:?}")).hint(hint)
        });
        return found.map(Some);
    }
    if set(URL).is_some() || set(NAME).is_some() {
        return Ok(named("openai"));
    }
    Ok(PROVIDERS.iter().find(|provider| provider.key.is_some_and(|key| set(key).is_some())))
}

fn options(text: &str) -> Result<serde_json::Map<String, serde_json::Value>, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(format!("{OPTIONS} is not a JSON object: {error}"))
            .hint(format!("for example {OPTIONS}='{{\"temperature\": 0}}'"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SCRIPT: &str = r#"{"rules": []}"#;

    fn of(set: &[(&str, &str)]) -> Result<Model, Failure> {
        with_script(SCRIPT, set)
    }

    fn with_script(text: &str, set: &[(&str, &str)]) -> Result<Model, Failure> {
        let script = Script { name: "s".to_owned(), text: text.to_owned() };
        let find = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        chosen(&find, None, &script)
    }

    fn endpoint(url: &str, name: &str, key_env: Option<&str>) -> Endpoint {
        Endpoint {
            url: url.to_owned(),
            name: name.to_owned(),
            key_env: key_env.map(str::to_owned),
            ..Endpoint::default()
        }
    }

    #[test]
    fn an_endpoint_is_used_if_anything_of_it_is_set() {
        let (openai, key) = ("https://api.openai.com/v1", "OPENAI_API_KEY");
        let (anthropic, claude) = ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY");
        let scripted = Model::Scripted { script: SCRIPT.to_owned(), script_name: "s".to_owned() };
        for (set, expected) in [
            (vec![], scripted.clone()),
            (vec![(key, "")], scripted.clone()),
            (vec![(key, "k"), (PROVIDER, "scripted")], scripted),
            (vec![(key, "k"), (claude, "k")], Model::Openai(endpoint(openai, "gpt-4.1-mini", Some(key)))),
            (vec![(URL, "http://l")], Model::Openai(endpoint("http://l", "gpt-4.1-mini", None))),
            (vec![(NAME, "m"), (key, "k")], Model::Openai(endpoint(openai, "m", Some(key)))),
            (vec![(claude, "k")], Model::Anthropic(endpoint(anthropic, "claude-haiku-4-5", Some(claude)))),
            (
                vec![(PROVIDER, "openai-responses"), (KEY_ENV, "MY_KEY"), (NAME, "m")],
                Model::OpenaiResponses(endpoint(openai, "m", Some("MY_KEY"))),
            ),
            (
                vec![(PROVIDER, "ollama"), (NAME, "q"), (key, "k")],
                Model::Openai(endpoint("http://127.0.0.1:11434/v1", "q", None)),
            ),
        ] {
            assert_eq!(of(&set).ok(), Some(expected), "{set:?}");
        }
        let set = [(claude, "k"), (MAX_TOKENS, "100"), (OPTIONS, "{\"temperature\": 0}")];
        let options = json!({"temperature": 0}).as_object().cloned().unwrap_or_default();
        let base = endpoint(anthropic, "claude-haiku-4-5", Some(claude));
        let expected = Model::Anthropic(Endpoint { max_tokens: Some(100), options, ..base });
        assert_eq!(of(&set).ok(), Some(expected));
    }

    #[test]
    fn a_table_says_what_no_variable_says_and_names_who_is_asked_next() {
        let next = ModelTable {
            provider: Some("ollama".to_owned()),
            name: Some("q".to_owned()),
            ..ModelTable::default()
        };
        let table = ModelTable {
            provider: Some("anthropic".to_owned()),
            name: Some("c".to_owned()),
            max_tokens: Some(7),
            fallback: Some(Box::new(next)),
            ..ModelTable::default()
        };
        let script = Script { name: "s".to_owned(), text: SCRIPT.to_owned() };
        let with = |set: &[(&str, &str)], table: &ModelTable| {
            let find =
                |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            chosen(&find, Some(table), &script)
        };
        let (anthropic, key) = ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY");
        let ollama = Model::Openai(endpoint("http://127.0.0.1:11434/v1", "q", None));
        for (set, name, key) in [
            (vec![], "c", None),
            (vec![(key, "k")], "c", Some(key)),
            (vec![(NAME, "d"), (MAX_TOKENS, "7")], "d", None),
        ] {
            let expected = Endpoint {
                max_tokens: Some(7),
                fallback: Some(Box::new(ollama.clone())),
                ..endpoint(anthropic, name, key)
            };
            assert_eq!(with(&set, &table).ok(), Some(Model::Anthropic(expected)), "{set:?}");
        }
        assert!(matches!(with(&[(PROVIDER, "scripted")], &table), Ok(Model::Scripted { .. })));
        let nobody = ModelTable { fallback: Some(Box::default()), ..table.clone() };
        assert!(with(&[], &nobody).is_err());
        let wrong = ModelTable { provider: Some("openia".to_owned()), ..table };
        assert!(with(&[], &wrong).is_err());
    }

    #[test]
    fn a_script_that_its_worker_could_not_read_is_refused_where_somebody_sees_it() {
        for script in ["garbage", r#"{"rules": [{"say": "{a}"}]}"#] {
            let refused = with_script(script, &[]);
            assert!(refused.is_err_and(|failure| format!("{failure:?}").contains("s: ")), "{script}");
        }
    }

    #[test]
    fn only_a_script_that_nobody_asked_for_is_announced() {
        for (asked, silent) in
            [(None, false), (Some("scripted"), true), (Some(" scripted "), true), (Some(""), false)]
        {
            let variable = |name: &str| asked.filter(|_| name == PROVIDER).map(str::to_owned);
            assert_eq!(asks_for_script(&variable), silent, "{asked:?}");
        }
    }

    #[test]
    fn settings_that_cannot_be_meant_are_refused() {
        for set in [
            vec![(PROVIDER, "openia")],
            vec![(PROVIDER, "ollama")],
            vec![(URL, "http://l"), (MAX_TOKENS, "many")],
            vec![(URL, "http://l"), (MAX_TOKENS, "0")],
            vec![(URL, "http://l"), (OPTIONS, "[1]")],
            vec![(URL, "http://l"), (OPTIONS, "{\"messages\": 1}")],
            vec![(URL, "ftp://l")],
            vec![(URL, "l")],
            vec![(URL, "http://l"), ("OUTLAST_MODEL_PRICES", "/no/such/file")],
        ] {
            assert!(of(&set).is_err(), "{set:?}");
        }
    }
}
