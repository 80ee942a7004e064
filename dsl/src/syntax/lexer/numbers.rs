//! Numbers and durations.
//!
//! Leaves their values to `literal`. Invariant: a malformed number is one token and one diagnostic.

use super::Lexer;
use crate::diag::catalogue::syntax as code;
use crate::limits::DURATION_MS_MAX;
use crate::syntax::kind::SyntaxKind;
use crate::syntax::literal::duration_ms;
use crate::syntax::words::quoted;

/// The units of durations, largest first, as they must stand.
const UNITS: &[&str] = &["d", "h", "m", "s", "ms"];

impl Lexer<'_> {
    pub(super) fn number(&mut self) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut len = self.run(is_part);
        // A dot belongs to the number only before a digit: `xs[0].id` is an access.
        let has_fraction = self.byte(len) == b'.' && self.byte(len + 1).is_ascii_digit();
        if has_fraction {
            let fraction = &self.rest()[len + 1..];
            len += 1 + fraction.find(|c| !is_part(c)).unwrap_or(fraction.len());
        }
        let (kind, fault) = judge(&self.rest()[..len], has_fraction);
        if let Some(fault) = fault {
            let message = format!("`{}` is not a number or a duration", quoted(&self.rest()[..len]));
            self.report(self.error(code::BAD_NUMBER, len, message).hint(fault));
        }
        self.push(len, kind);
    }
}

/// The kind of a run that begins with a digit, and what is wrong with it.
fn judge(text: &str, has_fraction: bool) -> (SyntaxKind, Option<&'static str>) {
    let letter = text.find(|c: char| c.is_ascii_alphabetic());
    match (has_fraction, letter) {
        (false, None) => (SyntaxKind::Int, digits_fault(text)),
        (false, Some(_)) => (SyntaxKind::Dur, duration_fault(text)),
        (true, None) => (SyntaxKind::Number, text.split('.').find_map(digits_fault)),
        (true, Some(at)) if UNITS.contains(&&text[at..]) => {
            (SyntaxKind::Dur, Some("durations are whole numbers of a unit: write `1h30m` instead of `1.5h`"))
        }
        (true, Some(_)) => {
            (SyntaxKind::Number, Some("a number ends at its last digit; there are no exponents"))
        }
    }
}

fn digits_fault(digits: &str) -> Option<&'static str> {
    let misplaced = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    misplaced.then_some("an underscore stands between two digits")
}

fn duration_fault(text: &str) -> Option<&'static str> {
    let mut rest = text;
    let mut next_unit = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let letters = rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len() - digits);
        let Some(at) = UNITS.iter().position(|known| *known == &rest[digits..digits + letters]) else {
            return Some("the units of durations are d h m s ms: `90s`, `5m`, `1h30m`, `250ms`");
        };
        if at < next_unit {
            return Some("the units of a duration stand largest first, each once: `1h30m`");
        }
        if digits == 0 || digits_fault(&rest[..digits]).is_some() {
            return Some("an underscore stands between two digits");
        }
        next_unit = at + 1;
        rest = &rest[digits + letters..];
    }
    let fits = duration_ms(text).is_some_and(|ms| ms <= DURATION_MS_MAX);
    (!fits).then_some("a duration is at most 100 years: `36500d`")
}
