//! Tool catalogues: what models see, and which calls need no person.
//!
//! Leaves asking to the machine. Invariant: reads the recorded configuration only; deny wins over ask, ask over allow and
//! grants, and those over the catalogue.

use outlast_dsl::machine::{CatalogueIx, Permission};

use super::Env;
use crate::fault::Fault;
use crate::json::{canonical_text, value_to_json};
use crate::value::{List, Value};

/// Returns the schemas of a catalogue's tools.
pub(super) fn schemas(env: &mut Env<'_>, catalogue: CatalogueIx) -> Result<Value, Fault> {
    let tools = &env.machine.catalogues[catalogue.at()].tools;
    env.spend(tools.len())?;
    let mut list = List::default();
    for tool in tools {
        list.push(Value::record(
            None,
            [
                ("name", Value::text(&tool.name)),
                ("description", Value::text(&tool.description)),
                ("input", Value::json(tool.input.clone())?),
            ],
        )?);
    }
    Ok(Value::List(list))
}

/// Returns the call as approved if no person needs to be asked, else `none`.
pub(super) fn allow(env: &mut Env<'_>, catalogue: CatalogueIx, call: Value) -> Result<Value, Fault> {
    let Some(name) = call.field("name").and_then(Value::as_text) else {
        return Err(Fault::inconsistent("a tool call has no name"));
    };
    env.spend_on(&call)?;
    let tools = &env.machine.catalogues[catalogue.at()].tools;
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        return Ok(Value::None);
    };
    let subject = main_argument(name, &call);
    let any = |patterns: &[String], scope| patterns.iter().any(|p| matches(p, name, &subject, scope));
    let config = &env.config;
    let allowed = if any(&config.deny, Scope::Any) || any(&config.ask, Scope::Any) {
        false
    } else if any(&config.allow, Scope::Whole) || any(&config.grants, Scope::Whole) {
        true
    } else {
        tool.permission == Permission::Allow
    };
    if !allowed {
        return Ok(Value::None);
    }
    let by = Value::list([Value::text("policy")])?;
    Ok(Value::record(None, [("value", call), ("by", by)])?)
}

/// Returns what patterns look at: a shell's command, a path, else all arguments.
pub(crate) fn main_argument(name: &str, call: &Value) -> String {
    let args = call.field("args").map(value_to_json).unwrap_or_default();
    let text = |key: &str| args.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
    let own = if name == "shell" { text("command") } else { None };
    own.or_else(|| text("path")).unwrap_or_else(|| canonical_text(&args))
}

/// How strictly a pattern is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// For deny and ask: one command of a shell line is enough.
    Any,
    /// For allow and grants: the whole argument must fit, and `*` joins no second command to a shell line.
    Whole,
}

fn matches(pattern: &str, name: &str, subject: &str, scope: Scope) -> bool {
    let Some((tool, rest)) = pattern.split_once('(') else {
        return glob(pattern, name, |_| true);
    };
    let Some(inner) = rest.strip_suffix(')') else {
        return false;
    };
    if !glob(tool, name, |_| true) {
        return false;
    }
    if inner == "*" {
        return true;
    }
    let is_shell = name == "shell";
    match scope {
        Scope::Whole if is_shell => inner == subject || glob(inner, subject, |c| !JOINS.contains(&c)),
        Scope::Any if is_shell => {
            let parts = subject.split(JOINS).map(str::trim);
            glob(inner, subject, |_| true) || parts.into_iter().any(|part| glob(inner, part, |_| true))
        }
        Scope::Whole | Scope::Any => glob(inner, subject, |_| true),
    }
}

// What starts another command, or sends output elsewhere, in a shell line.
const JOINS: [char; 11] = [';', '&', '|', '\n', '\r', '`', '$', '<', '>', '(', ')'];

/// Matches text with `*` for any run of characters that `may` be covered.
fn glob(pattern: &str, text: &str, may: impl Fn(char) -> bool) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            p += 1;
            t += 1;
        } else if let Some((star_p, star_t)) = star.filter(|(_, star_t)| may(text[*star_t])) {
            p = star_p + 1;
            t = star_t + 1;
            star = Some((star_p, t));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names_and_main_arguments() {
        for (pattern, subject, scope, expected) in [
            ("shell", "rm -rf /", Scope::Whole, true),
            ("shell(*)", "a; b", Scope::Whole, true),
            ("shell(git *)", "git status", Scope::Whole, true),
            ("shell(git *)", "git", Scope::Whole, false),
            ("shell(git *)", "git status; rm -rf /", Scope::Whole, false),
            ("shell(git *)", "git $(rm x)", Scope::Whole, false),
            ("shell(git status; ls)", "git status; ls", Scope::Whole, true),
            ("shell(rm *)", "ls && rm -rf build", Scope::Any, true),
            ("shell(rm *)", "ls", Scope::Any, false),
            ("read(*)", "x", Scope::Any, false),
            ("sh*(l*s)", "ls -s", Scope::Any, true),
            ("shell(git *", "git status", Scope::Any, false),
        ] {
            assert_eq!(matches(pattern, "shell", subject, scope), expected, "{pattern} on {subject}");
        }
    }
}
