//! What this process finds around it: the data directory, the working directory, the model (see [`model`]).

use std::path::{Path, PathBuf};

use outlast_protocol::directory;
use outlast_protocol::profile::{Model, Profile};

use crate::configuration::Configuration;
use crate::failure::{Exit, Failure};

mod model;

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
    let found = directory::data_directory(asked.map(Path::to_path_buf), &|name| std::env::var_os(name));
    let directory = found.ok_or_else(|| {
        Failure::usage("there is no data directory: HOME is not set").hint("name one with --data DIR")
    })?;
    let directory =
        std::path::absolute(&directory).map_err(|error| Failure::usage(format!("--data: {error}")))?;
    // What cannot be looked at is told when it is opened.
    match directory.ancestors().find(|path| path.exists()) {
        Some(there) if !there.is_dir() => {
            let (asked, there) = (directory.display(), there.display());
            let message = format!("--data {asked}: {there} is no directory, so there can be no store in it");
            Err(Failure::usage(message)
                .hint("name a directory with --data DIR; it is made if it is not there"))
        }
        Some(_) | None => Ok(directory),
    }
}

/// Returns the environment of runs that are started here.
pub(crate) fn profile(script: &Script) -> Result<Profile, Failure> {
    let directory = std::env::current_dir()
        .and_then(std::fs::canonicalize)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot find the working directory: {error}")))?;
    let configuration = Configuration::read(&directory)?;
    let (permissions, environment) = (configuration.permissions(), configuration.environment());
    let sandbox = configuration.sandbox();
    let model = model::chosen(&|name| std::env::var(name).ok(), configuration.model(), script)?;
    Ok(Profile { directory, model, permissions, environment, sandbox, servers: None })
}

/// Says which model answers, if that may surprise.
pub(crate) fn announce(profile: &Profile) {
    if let Model::Scripted { script_name, .. } = &profile.model
        && !model::asks_for_script(&|name| std::env::var(name).ok())
    {
        let why = format!("no model endpoint set ({})", model::SETTINGS);
        crate::out::say(&format!("{why}: using the scripted model of {script_name}"));
    }
    let keys = profile.model.key_envs();
    for missing in keys.into_iter().filter(|name| std::env::var_os(name).is_none()) {
        let why = format!("{missing}, which holds the model's key, is not set here");
        crate::out::say(&format!("{why}: no model answers unless who hosts the runs has it"));
    }
    let guard = std::env::current_exe().unwrap_or_default();
    if let Ok(Some(statement)) = outlast_workers::tools::unconfined(&profile.sandbox, &guard) {
        crate::out::say(&statement);
    }
    for secret in profile.environment.secrets.iter().filter(|name| std::env::var_os(name).is_none()) {
        crate::out::say(&format!(
            "the secret {secret} is not set here: tools do without it unless who hosts the runs has it"
        ));
    }
}
