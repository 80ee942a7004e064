//! Rules about tool calls: `shell(git *)`, `write(src/*)`, `mail__send`, `@once`.
//!
//! A rule names a tool (`*` stands for any run of characters), and in brackets what its main argument must fit: the command of a
//! shell, the path of a file, the address of a page or its host alone, else all arguments as canonical JSON. `@CLASS` fits every tool of an effect class. Leaves what follows
//! from a fit to its callers. Invariant: read narrowly, a rule never fits more than its words: `*` joins no second command to a shell
//! line and leads to no path that was written to get around it; read widely, it is found
//! however a call is spaced, joined or spelt as a path. A shell has more ways to run a command (`sh -c`, variables, quotes), which no rule
//! about its line can see: what must never run is denied by denying the shell.

mod protected;

use serde_json::Value as Json;

use crate::json::canonical_text;

pub use protected::{protection, usual_protection};

/// What starts another command, or sends output elsewhere, in a shell line.
const JOINS: [char; 11] = [';', '&', '|', '\n', '\r', '`', '$', '<', '>', '(', ')'];

/// The classes that a rule may name.
const CLASSES: [&str; 3] = ["pure", "idempotent", "once"];

/// Text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no rule about tools: {detail}; rules look like shell(git *), write, mail__* or @once")]
pub struct InvalidRule {
    /// The text.
    pub text: String,
    /// What is wrong.
    pub detail: &'static str,
}

/// A call of a tool, as rules look at it.
#[derive(Clone, Debug)]
pub struct Call {
    name: String,
    class: String,
    /// The main argument.
    subject: String,
    kind: Kind,
}

/// What the main argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Command,
    /// Whether it lies where it seems to: below the working directory, without a way up.
    Path {
        plain: bool,
    },
    /// An address: where its host stands, with its port, and whether it is what it seems to be.
    Address {
        from: usize,
        to: usize,
        plain: bool,
    },
    Other,
}

/// How strictly a rule is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// For what is denied or asked about: one command of a shell line, or one way of reading a path, is enough.
    Wide,
    /// For what is allowed: the whole argument must fit.
    Narrow,
}

impl Call {
    /// Takes in a call of a tool of an effect class (`pure`, `idempotent`, `once`).
    #[must_use]
    pub fn new(name: &str, args: &Json, class: &str) -> Call {
        let text = |key: &str| args.get(key).and_then(Json::as_str);
        let (subject, kind) = match (text("command").filter(|_| name == "shell"), text("path")) {
            (Some(command), _) => (command.to_owned(), Kind::Command),
            (None, _) if name == "fetch" => address(text("url").unwrap_or_default()),
            (None, Some(path)) => plain_path(path),
            (None, None) => (canonical_text(args), Kind::Other),
        };
        Call { name: name.to_owned(), class: class.to_owned(), subject, kind }
    }

    /// Returns the same call at the path where it really leads.
    #[must_use]
    pub fn at(self, path: &str) -> Call {
        let (subject, kind) = plain_path(path);
        Call { subject, kind, ..self }
    }

    /// Returns the main argument.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Tells whether a rule fits. What is no rule fits nothing.
    #[must_use]
    pub fn fits(&self, rule: &str, reading: Reading) -> bool {
        if let Some(class) = rule.strip_prefix('@') {
            return class == self.class;
        }
        let Some((tool, rest)) = rule.split_once('(') else {
            return glob(rule, &self.name, |_| true);
        };
        let Some(inner) = rest.strip_suffix(')') else { return false };
        glob(tool, &self.name, |_| true) && (inner == "*" || self.fits_argument(inner, reading))
    }

    /// Returns the first of some rules that fits.
    #[must_use]
    pub fn first<'r>(&self, rules: &'r [String], reading: Reading) -> Option<&'r str> {
        rules.iter().map(String::as_str).find(|rule| self.fits(rule, reading))
    }

    fn fits_argument(&self, inner: &str, reading: Reading) -> bool {
        let subject = self.subject.as_str();
        match (reading, self.kind) {
            (Reading::Narrow, Kind::Command) => {
                inner == subject || glob(inner, subject, |c| !JOINS.contains(&c))
            }
            (Reading::Wide, Kind::Command) => {
                let spaced = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
                let mut parts = subject.split(JOINS).map(spaced);
                glob(inner, subject, |_| true) || parts.any(|part| glob(inner, &part, |_| true))
            }
            (Reading::Narrow, Kind::Path { plain: false }) => false,
            (Reading::Wide, Kind::Path { plain: false }) => {
                // Where the directory lies is not known here, so every end of the path may be what is meant.
                let ends = subject.match_indices('/').map(|(at, _)| &subject[at + 1..]);
                std::iter::once(subject).chain(ends).any(|end| glob(inner, end, |_| true))
            }
            (Reading::Narrow, Kind::Address { plain: false, .. }) => false,
            (_, Kind::Address { from, to, .. }) => {
                let whole = reading == Reading::Wide && glob(inner, subject, |_| true);
                let (scheme, host, rest) = (&subject[..from], &subject[from..to], &subject[to..]);
                let parts = inner.split_once("://").map(|(scheme, rest)| {
                    let at = rest.find('/').unwrap_or(rest.len());
                    (format!("{scheme}://"), &rest[..at], &rest[at..])
                });
                // Part by part: what stands in the path is no host.
                let fits = |pattern: &str, text: &str| glob(pattern, text, |_| true);
                whole
                    || match parts {
                        None => fits(inner, host),
                        Some((its, of_host, "")) => {
                            fits(&its, scheme) && fits(of_host, host) && rest.len() < 2
                        }
                        Some((its, of_host, of_rest)) => {
                            fits(&its, scheme) && fits(of_host, host) && fits(of_rest, rest)
                        }
                    }
            }
            (_, Kind::Path { plain: true } | Kind::Other) => glob(inner, subject, |_| true),
        }
    }
}

/// Checks that text is a rule.
///
/// # Errors
/// [`InvalidRule`].
pub fn check(text: &str) -> Result<(), InvalidRule> {
    let invalid = |detail| Err(InvalidRule { text: text.chars().take(100).collect(), detail });
    if let Some(class) = text.strip_prefix('@') {
        return if CLASSES.contains(&class) {
            Ok(())
        } else {
            invalid("after @ stands an effect class: pure, idempotent or once")
        };
    }
    let name = match text.split_once('(') {
        Some((_, rest)) if !rest.ends_with(')') => return invalid("its bracket is not closed"),
        Some((name, _)) => name,
        None => text,
    };
    if name.is_empty() {
        return invalid("it names no tool");
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.*/".contains(c);
    if name.chars().all(fits) { Ok(()) } else { invalid("a tool's name has letters, digits, _ - . / and *") }
}

/// Brings a path to the form that rules are written in.
fn plain_path(path: &str) -> (String, Kind) {
    let up = path.split('/').any(|part| part == "..");
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    (format!("{root}{}", parts.join("/")), Kind::Path { plain: !up && root.is_empty() })
}

/// Brings an address to the form that rules are written in: scheme and host in small letters, with a path.
fn address(url: &str) -> (String, Kind) {
    let Some((scheme, after)) = url.split_once("://") else {
        return (url.to_owned(), Kind::Address { from: 0, to: url.len(), plain: false });
    };
    let end = after.find(['/', '?', '#', '\\']).unwrap_or(after.len());
    let (authority, rest) = after.split_at(end);
    // Who logs in is no host.
    let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    let scheme = format!("{}://", scheme.to_ascii_lowercase());
    let named = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    let printed = rest.chars().all(|c| c.is_ascii_graphic() && c != '\\');
    let plain = authority.len() == host.len() && host.chars().all(named) && printed;
    let slash = if rest.starts_with('/') { "" } else { "/" };
    let (from, to) = (scheme.len(), scheme.len() + host.len());
    (format!("{scheme}{host}{slash}{rest}"), Kind::Address { from, to, plain })
}

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
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_about_commands_are_not_got_around() {
        use Reading::{Narrow, Wide};
        for (rule, command, reading, expected) in [
            ("shell", "rm -rf /", Narrow, true),
            ("shell(*)", "a; b", Narrow, true),
            ("shell(git *)", "git status", Narrow, true),
            ("shell(git *)", "git", Narrow, false),
            ("shell(git *)", "git status; rm -rf /", Narrow, false),
            ("shell(git *)", "git $(rm x)", Narrow, false),
            ("shell(git status; ls)", "git status; ls", Narrow, true),
            ("shell(rm *)", "ls && rm -rf build", Wide, true),
            ("shell(rm *)", "ls;\trm  -rf\tbuild", Wide, true),
            ("shell(rm *)", "ls", Wide, false),
            ("read(*)", "x", Wide, false),
            ("sh*(l*s)", "ls -s", Wide, true),
            ("shell(git *", "git status", Wide, false),
            ("@once", "ls", Wide, true),
            ("@pure", "ls", Narrow, false),
        ] {
            let call = Call::new("shell", &json!({"command": command}), "once");
            assert_eq!(call.fits(rule, reading), expected, "{rule} on {command}");
        }
    }

    #[test]
    fn rules_about_paths_are_not_got_around() {
        for (path, wide, narrow) in [
            (".git/config", true, true),
            ("./.git/config", true, true),
            (".git//./config", true, true),
            ("src/../.git/config", true, false),
            ("/home/me/work/.git/config", true, false),
            ("src/.git/config", false, false),
            ("src/main.rs", false, false),
        ] {
            let call = Call::new("write", &json!({"path": path, "text": ""}), "idempotent");
            assert_eq!(call.fits("write(.git/*)", Reading::Wide), wide, "{path}, wide");
            assert_eq!(call.fits("write(.git/*)", Reading::Narrow), narrow, "{path}, narrow");
        }
        let linked = Call::new("write", &json!({"path": "link"}), "idempotent").at(".git/config");
        assert!(linked.fits("write(.git/*)", Reading::Wide));
    }

    #[test]
    fn rules_about_addresses_are_not_got_around() {
        for (rule, url, wide, narrow) in [
            ("fetch(docs.rs)", "https://docs.rs/serde", true, true),
            ("fetch(https://docs.rs/*)", "HTTPS://Docs.RS", true, true),
            ("fetch(https://docs.rs)", "https://docs.rs/", true, true),
            ("fetch(https://docs.rs)", "https://docs.rs/serde", false, false),
            ("fetch(https://docs.rs/*)", "http://docs.rs/serde", false, false),
            ("fetch(docs.rs)", "https://docs.rs.evil.test/", false, false),
            ("fetch(docs.rs)", "https://docs.rs@evil.test/", false, false),
            ("fetch(evil.test)", "https://docs.rs@evil.test/", true, false),
            ("fetch(https://docs.rs/*)", "https://evil.test\\@docs.rs/", false, false),
            ("fetch(https://*.good.test/*)", "https://evil.test/?x=.good.test/", true, false),
            ("fetch(https://*.good.test/*)", "https://a.good.test/x?y", true, true),
            ("fetch(localhost:*)", "http://localhost:3000/", true, true),
            ("fetch(*)", "anything", true, true),
            ("fetch(docs.rs)", "docs.rs", true, false),
        ] {
            let call = Call::new("fetch", &json!({ "url": url }), "pure");
            assert_eq!(call.fits(rule, Reading::Wide), wide, "{rule} on {url}, wide");
            assert_eq!(call.fits(rule, Reading::Narrow), narrow, "{rule} on {url}, narrow");
        }
    }

    #[test]
    fn what_is_no_rule_is_told() {
        for text in ["shell(git *)", "write", "mail__*", "*", "*(.env)", "@once", "fs__read(a/*)"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        for (text, detail) in [
            ("", "names no tool"),
            ("(x)", "names no tool"),
            ("shell(git", "not closed"),
            ("@twice", "effect class"),
            ("my tool", "letters"),
        ] {
            assert!(check(text).unwrap_err().to_string().contains(detail), "{text}");
        }
    }
}
