//! The secrets of a worker: values of its own environment, known by the variables that hold them.
//!
//! A flow, a run and the runtime know names only; the value is put in here and never leaves: [`Mask`] takes it out of results, errors,
//! handles, partial output and the log. Leaves what a secret is used for to activities. Invariant: a name that was not declared gives
//! nothing, whatever the environment holds.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use outlast_protocol::worker::OutcomeKind;

use super::activity::Failure;
use super::context::parking::Locked;
use super::mask::Mask;
use crate::limits::SECRET_BYTES_MIN;

/// See the module. Clones are the same secrets.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Arc<Known>);

#[derive(Default)]
struct Known {
    values: BTreeMap<String, String>,
    missing: Vec<String>,
    mask: Mask,
}

impl std::fmt::Debug for Known {
    /// Without values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

/// What must not be in the log of this process: the secrets of all its workers.
static OF_PROCESS: Locked<Option<Mask>> = Locked::new(None);

impl Secrets {
    /// Takes the values of variables from this process's environment.
    #[must_use]
    pub fn from_environment<'a>(names: impl IntoIterator<Item = &'a str>) -> Secrets {
        Secrets::new(names, &|name| std::env::var(name).ok())
    }

    /// Takes the values of names from wherever they are.
    #[must_use]
    pub fn new<'a>(
        names: impl IntoIterator<Item = &'a str>,
        value: &dyn Fn(&str) -> Option<String>,
    ) -> Secrets {
        let (mut values, mut missing) = (BTreeMap::new(), Vec::new());
        for name in names {
            match value(name).filter(|value| !value.trim().is_empty()) {
                Some(value) => {
                    if value.trim().len() < SECRET_BYTES_MIN {
                        tracing::error!(
                            "{name} has fewer than {SECRET_BYTES_MIN} characters and cannot be hidden"
                        );
                    }
                    values.insert(name.to_owned(), value);
                }
                None => missing.push(name.to_owned()),
            }
        }
        let mask = Mask::new(values.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        Secrets(Arc::new(Known { values, missing, mask }))
    }

    /// Returns the value of a secret.
    ///
    /// # Errors
    /// `NoSecret`: it was not declared, or its variable is not set.
    pub fn value(&self, name: &str) -> Result<&str, Failure> {
        self.0.values.get(name).map(String::as_str).ok_or_else(|| {
            let why = if self.0.missing.iter().any(|missing| missing == name) {
                format!("the variable {name} is not set in the environment of the worker")
            } else {
                format!("{name} is none of the secrets that the worker was given")
            };
            Failure::new("NoSecret", why).field("name", name)
        })
    }

    /// Returns what hides them.
    #[must_use]
    pub fn mask(&self) -> &Mask {
        &self.0.mask
    }

    /// Keeps them out of the log of this process too.
    pub(crate) fn hide_in_log(&self) {
        self.0.mask.hide_in_log();
    }

    /// Takes them out of a word for the runtime.
    pub(crate) fn hide_in(&self, kind: OutcomeKind) -> OutcomeKind {
        let mask = &self.0.mask;
        if mask.is_empty() {
            return kind;
        }
        match kind {
            OutcomeKind::Done { value, cost, usage } => OutcomeKind::Done {
                value: mask.json(value),
                cost,
                usage: usage.map(|usage| mask.json(usage)),
            },
            OutcomeKind::Failed { mut error, cost, usage } => {
                error.text = mask.text(error.text);
                error.kind = mask.text(error.kind);
                let fields = std::mem::take(&mut error.fields);
                error.fields = fields.into_iter().map(|(name, value)| (name, mask.json(value))).collect();
                OutcomeKind::Failed { error, cost, usage: usage.map(|usage| mask.json(usage)) }
            }
            OutcomeKind::Handle { handle } => OutcomeKind::Handle { handle: mask.json(handle) },
            OutcomeKind::Stopped { why } => OutcomeKind::Stopped { why },
        }
    }
}

impl Mask {
    /// Keeps what it hides, now and later, out of the log of this process too.
    pub(crate) fn hide_in_log(&self) {
        let mut of_process = OF_PROCESS.lock();
        // One process has one stock worker; where several are embedded, the newest secrets count.
        if !self.is_empty() || of_process.as_ref().is_none_or(Mask::is_empty) {
            *of_process = Some(self.clone());
        }
    }
}

/// Standard error without the secrets of this process's workers: where a worker writes its log.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaskedLog;

impl Write for MaskedLog {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mask = OF_PROCESS.lock().clone();
        match mask {
            Some(mask) => {
                let masked = mask.text(String::from_utf8_lossy(line).into_owned());
                std::io::stderr().write_all(masked.as_bytes())?;
            }
            None => std::io::stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets() -> Secrets {
        let variable = |name: &str| match name {
            "TOKEN" => Some("canary-7731".to_owned()),
            "EMPTY" => Some(" ".to_owned()),
            _ => None,
        };
        Secrets::new(["TOKEN", "EMPTY", "GONE"], &variable)
    }

    #[test]
    fn only_what_was_declared_and_is_set_has_a_value() {
        assert_eq!(secrets().value("TOKEN"), Ok("canary-7731"));
        for (name, why) in [("EMPTY", "is not set"), ("GONE", "is not set"), ("HOME", "none of the secrets")]
        {
            let error = secrets().value(name).unwrap_err();
            assert!(error.kind == "NoSecret" && error.text.contains(why), "{error}");
        }
        assert!(!format!("{:?}", secrets()).contains("7731"));
    }

    #[test]
    fn whatever_is_reported_is_without_them() {
        let failure =
            Failure::new("Bad-canary-7731", "with canary-7731").field("detail", json!(["canary-7731"]));
        for kind in [
            OutcomeKind::Done {
                value: json!({"a": ["canary-7731"]}),
                cost: None,
                usage: Some(json!("canary-7731")),
            },
            OutcomeKind::Failed {
                error: failure.into_error(),
                cost: None,
                usage: Some(json!("canary-7731")),
            },
            OutcomeKind::Handle { handle: json!({"canary-7731": "x"}) },
        ] {
            let said = serde_json::to_string(&secrets().hide_in(kind)).unwrap();
            assert!(said.contains("[secret TOKEN]") && !said.contains("7731"), "{said}");
        }
    }
}
