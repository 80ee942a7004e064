//! The words of the language that are not names, and what is read as one by habit.
//!
//! Leaves where a word is a keyword to the parser: all but the reserved ones are contextual.
//! Invariant: reserved words are refused only as names of variables, never as names of fields.

use crate::limits::QUOTED_CHARS_MAX;

/// Words that cannot name a variable, in the order of the grammar page.
const RESERVED: &[&str] = &[
    "if", "then", "else", "match", "map", "not", "and", "or", "in", "is", "as", "for", "true", "false",
    "none", "nothing", "on", "after", "at", "every", "until", "within", "forever", "set", "emit", "end",
    "fail", "stay",
];

/// Words of other languages for "no value".
const NULLS: &[&str] = &["null", "nil", "undefined"];

/// Whether `word` cannot name a variable.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// The reserved words.
pub fn reserved() -> &'static [&'static str] {
    RESERVED
}

/// Whether other languages say `word` for what is `none` here.
pub(crate) fn is_null(word: &str) -> bool {
    NULLS.contains(&word)
}

/// Whether other languages ask for a length by the field or method `word`.
pub fn is_length(word: &str) -> bool {
    matches!(word, "length" | "len" | "size" | "count")
}

/// `word` as a name of a variable: lower case with underscores.
pub fn to_lower_name(word: &str) -> String {
    let mut out = String::new();
    let mut previous_lower = false;
    for c in word.chars().filter(char::is_ascii_alphanumeric) {
        if c.is_ascii_uppercase() && previous_lower {
            out.push('_');
        }
        previous_lower = !c.is_ascii_uppercase();
        out.push(c.to_ascii_lowercase());
    }
    if word.contains('_') { keep_underscores(word) } else { out }
}

fn keep_underscores(word: &str) -> String {
    let ascii = word.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_');
    ascii.map(|c| c.to_ascii_lowercase()).collect()
}

/// `word` as a name of a type or a state: words joined, each with a capital.
pub fn to_upper_name(word: &str) -> String {
    let parts = word.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(|part| part[..1].to_ascii_uppercase() + &part[1..]).collect()
}

/// `text` as a message quotes it: one line, cut if it is long.
pub(crate) fn quoted(text: &str) -> String {
    let mut chars = text.chars();
    let mut out: String = chars.by_ref().take(QUOTED_CHARS_MAX).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_their_style() {
        for (word, lower, upper) in [
            ("toolCall", "tool_call", "ToolCall"),
            ("Tool_Call", "tool_call", "ToolCall"),
            ("x", "x", "X"),
            ("HTTPx", "httpx", "HTTPx"),
        ] {
            assert_eq!(to_lower_name(word), lower);
            assert_eq!(to_upper_name(word), upper);
        }
    }
}
