//! What commands are held to on this machine, and what of it the machine cannot enforce.
//!
//! Leaves enforcing to [`super::confine`], in the process that becomes the command. Invariant: what a profile demands is tried out before the
//! first command, and whatever was not enforced then is known by name; where it is required, no command runs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use outlast_protocol::sandbox::{Mode, Network, Sandbox};

use super::confine::Confinement;
use super::guard::{SUBCOMMAND, TRY, written};
use crate::limits::{SANDBOX_PLACES_MAX, UNCONFINED_MEMORY_BYTES};

/// What no command needs and no model should see: keys and their like, below the user's home.
const HIDDEN: [&str; 20] = [
    "~/.ssh",
    "~/.gnupg",
    "~/.aws",
    "~/.azure",
    "~/.kube",
    "~/.docker",
    "~/.netrc",
    "~/.git-credentials",
    "~/.npmrc",
    "~/.pypirc",
    "~/.cargo/credentials",
    "~/.cargo/credentials.toml",
    "~/.config/gcloud",
    "~/.config/gh",
    "~/.config/google-chrome",
    "~/.config/chromium",
    "~/.mozilla",
    "~/.password-store",
    "~/.local/share/keyrings",
    "~/.local/share/outlast",
];

/// Where programs put what they need for a moment.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// The sandbox of one tool worker.
#[derive(Debug, Default)]
pub(super) struct Confined {
    policy: Sandbox,
    /// What no command may read, besides what the policy names: the runtime's own files.
    closed: Vec<PathBuf>,
    memory_bytes: u64,
    missing: Vec<String>,
}

impl Confined {
    /// Prepares a sandbox and tries it out. Without a guard there is none.
    pub(super) fn new(
        policy: Sandbox,
        closed: Vec<PathBuf>,
        guard: Option<&Path>,
    ) -> Result<Confined, String> {
        let memory_bytes = policy.memory_bytes()?.unwrap_or_else(most_of_memory);
        let mut confined = Confined { policy, closed, memory_bytes, missing: Vec::new() };
        confined.missing = match (confined.mode(), guard) {
            (Mode::Off, _) => Vec::new(),
            (Mode::Auto | Mode::Required, None) => vec!["anything: commands have no guard".to_owned()],
            (Mode::Auto | Mode::Required, Some(guard)) => {
                try_out(guard, &confined.plan(Path::new("/nowhere")))
            }
        };
        Ok(confined)
    }

    fn mode(&self) -> Mode {
        self.policy.mode.unwrap_or_default()
    }

    /// What was asked for.
    pub(super) fn policy(&self) -> &Sandbox {
        &self.policy
    }

    /// Whether the policy says, and not only leaves it so, that there is no network: then tools have none either.
    pub(super) fn has_no_network(&self) -> bool {
        self.policy.network == Some(Network::None) && self.mode() != Mode::Off
    }

    /// What people should know before a command runs; none if all is enforced.
    pub(super) fn statement(&self) -> Option<String> {
        match self.mode() {
            Mode::Off => Some("commands are not confined: [sandbox] mode is off".to_owned()),
            Mode::Auto | Mode::Required if self.missing.is_empty() => None,
            Mode::Auto => Some(format!("commands are not held to {}", self.missing.join("; "))),
            Mode::Required => {
                Some(format!("no command runs: they cannot be held to {}", self.missing.join("; ")))
            }
        }
    }

    /// What a command in a directory is held to; none if nothing is enforced.
    ///
    /// # Errors
    /// Why it must not run.
    pub(super) fn confinement(&self, directory: &Path) -> Result<Option<Confinement>, String> {
        match self.mode() {
            Mode::Off => Ok(None),
            Mode::Required if !self.missing.is_empty() => Err(format!(
                "this machine cannot confine it as [sandbox] in outlast.toml requires: {}",
                self.missing.join("; ")
            )),
            Mode::Auto | Mode::Required => Ok(Some(self.plan(directory))),
        }
    }

    /// What a model is told under a command that failed, if the sandbox may be why.
    pub(super) fn hint(&self, output: &str) -> Option<String> {
        let network = self.policy.network.unwrap_or_default() == Network::None;
        let signs = ["Permission denied", "Operation not permitted", "Cannot allocate memory"];
        let of_network = ["unreachable", "resolve", "resolution", "Connection refused"];
        let has = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
        let fits = has(&signs) || (network && has(&of_network));
        (self.mode() != Mode::Off && fits).then(|| {
            let without = if network { ", and has no network" } else { "" };
            let places = self.writable().into_iter().map(|path| path.display().to_string());
            let places: Vec<String> =
                ["the working directory".to_owned()].into_iter().chain(places).collect();
            let places = places.join(", ");
            format!("[a command writes only below {places}{without}: see [sandbox] in outlast.toml]")
        })
    }

    fn plan(&self, directory: &Path) -> Confinement {
        let hidden: Vec<String> = match &self.policy.hidden {
            Some(hidden) => hidden.clone(),
            None => HIDDEN.map(str::to_owned).into(),
        };
        let hidden = places(&hidden).into_iter().chain(self.closed.iter().cloned());
        // Devices are listed where the command is confined.
        let mut hidden: Vec<PathBuf> = hidden.chain(["/dev".into()]).map(real).collect();
        hidden.sort_unstable();
        let mut read = Vec::new();
        open_to("/".into(), &hidden, &mut read);
        let write = self.writable().into_iter().chain([directory.to_path_buf()]).collect();
        Confinement {
            read,
            write,
            network: self.policy.network.unwrap_or_default() == Network::All,
            memory_bytes: self.memory_bytes,
            required: self.mode() == Mode::Required,
        }
    }

    fn writable(&self) -> Vec<PathBuf> {
        match &self.policy.write {
            Some(write) => places(write),
            None => {
                let own = std::env::var_os("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
                TEMPORARY.map(PathBuf::from).into_iter().chain(own).collect()
            }
        }
    }
}

/// Tries a sandbox out in a process of its own; returns what could not be enforced.
fn try_out(guard: &Path, plan: &Confinement) -> Vec<String> {
    let try_out = || {
        let mut command = Command::new(guard);
        command.args([SUBCOMMAND, TRY]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        // A guard that does not read says nothing either.
        let _unread = child.stdin.take().map(|mut stdin| stdin.write_all(&written(plan)));
        child.wait_with_output()
    };
    let said = match try_out() {
        Ok(tried) if tried.status.success() => serde_json::from_slice(&tried.stdout).ok(),
        Ok(_) | Err(_) => None,
    };
    said.unwrap_or_else(|| vec![format!("anything: {} cannot be tried out", guard.display())])
}

fn places(names: &[String]) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let place = |name: &String| match name.strip_prefix("~/") {
        Some(rest) => home.as_ref().map(|home| home.join(rest)),
        None => Some(PathBuf::from(name)),
    };
    names.iter().filter_map(place).filter(|place| place.is_absolute()).collect()
}

/// Where a path really is, as far as it exists.
fn real(path: PathBuf) -> PathBuf {
    let mut rest = Vec::new();
    let mut there = path.as_path();
    loop {
        if let Ok(found) = there.canonicalize() {
            return rest.iter().rev().fold(found, |found, name| found.join(name));
        }
        match (there.parent(), there.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name.to_owned());
                there = parent;
            }
            _ => return path,
        }
    }
}

/// Adds what may be read of a directory: itself, or what is in it that is not hidden. What comes into being beside something hidden is not
/// among it; links are no way around, because what they lead to is judged where it lies.
fn open_to(directory: PathBuf, hidden: &[PathBuf], open: &mut Vec<PathBuf>) {
    if hidden.contains(&directory) || open.len() >= SANDBOX_PLACES_MAX {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(&directory)) {
        open.push(directory);
        return;
    }
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.path().is_symlink() {
            open_to(entry.path(), hidden, open);
        }
    }
}

/// Three quarters of the machine's memory: the runtime, and whoever works beside it, live on.
fn most_of_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes: Option<u64> = total.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.map_or(UNCONFINED_MEMORY_BYTES, |kilobytes| kilobytes * 1_024 / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_what_is_hidden_can_be_read_and_links_are_no_way_around() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for place in ["home/.ssh", "home/.config/gh", "home/.config/app", "home/src"] {
            std::fs::create_dir_all(root.join(place)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("home/.ssh"), root.join("home/link")).unwrap();
        let hidden: Vec<PathBuf> =
            ["home/.ssh", "home/.config/gh", "home/gone"].map(|place| root.join(place)).into();
        let mut open = Vec::new();
        open_to(root.clone(), &hidden, &mut open);
        open.sort_unstable();
        assert_eq!(open, ["home/.config/app", "home/src"].map(|place| root.join(place)));
        let mut open = Vec::new();
        open_to(root.clone(), &[], &mut open);
        assert_eq!(open, [root]);
    }

    #[test]
    fn what_is_required_and_cannot_be_had_lets_no_command_run() {
        let of = |mode| {
            Confined::new(Sandbox { mode: Some(mode), ..Sandbox::default() }, Vec::new(), None).unwrap()
        };
        assert!(of(Mode::Off).statement().unwrap().contains("mode is off"));
        assert_eq!(of(Mode::Off).confinement(Path::new("/")), Ok(None));
        assert!(of(Mode::Auto).statement().unwrap().contains("commands have no guard"));
        let required = of(Mode::Required);
        assert!(required.statement().unwrap().starts_with("no command runs"));
        assert!(required.confinement(Path::new("/")).unwrap_err().contains("[sandbox]"));
    }
}
