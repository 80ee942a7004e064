//! The forms in which a secret may turn up.
//!
//! Leaves finding them to the mask. Invariant: no form holds a blank, and each is long enough not to stand in other text by chance.

use crate::limits::{SECRET_BYTES_MIN, SECRET_FORM_BYTES_MIN, SECRET_LINE_BYTES_MIN};

/// The digits of base64, but for the last two.
const BASE64: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// How many bytes at the beginning separate the characters of a secret without hiding it: white space, also as JSON writes it.
pub(super) fn blank(bytes: &[u8]) -> usize {
    match bytes {
        [byte, ..] if byte.is_ascii_whitespace() => 1,
        [b'\\', b'n' | b'r' | b't', ..] => 2,
        _ => 0,
    }
}

/// Returns all forms of a value, and of its lines if they are long: a key with a frame is shown line by line by some programs.
pub(super) fn of(value: &str) -> Vec<Vec<u8>> {
    let mut all = of_piece(value.trim());
    if value.trim().contains('\n') {
        let lines = value.lines().map(str::trim).filter(|line| line.len() >= SECRET_LINE_BYTES_MIN);
        // What frames a key is no secret.
        all.extend(lines.filter(|line| !line.starts_with("-----")).flat_map(of_piece));
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn of_piece(value: &str) -> Vec<Vec<u8>> {
    let plain = without_blanks(value.as_bytes());
    if plain.len() < SECRET_BYTES_MIN {
        return Vec::new();
    }
    let bytes = value.as_bytes();
    let mut forms = vec![hex(bytes, Case::Lower), hex(bytes, Case::Upper), in_json(value)];
    for case in [Case::Lower, Case::Upper] {
        forms.push(in_url(bytes, case, "", "%20"));
        forms.push(in_url(bytes, case, "", "+"));
        // What encodeURIComponent leaves as it is.
        forms.push(in_url(bytes, case, "!'()*", "%20"));
        forms.push(bytes.iter().map(|byte| format!("%{}", hex(&[*byte], case))).collect());
    }
    for before in 0..3 {
        forms.push(base64(before, bytes, b"+/"));
        forms.push(base64(before, bytes, b"-_"));
    }
    let forms = forms.iter().map(|form| without_blanks(form.as_bytes()));
    forms.filter(|form| form.len() >= SECRET_FORM_BYTES_MIN).chain([plain.clone()]).collect()
}

fn without_blanks(mut bytes: &[u8]) -> Vec<u8> {
    let mut left = Vec::with_capacity(bytes.len());
    while let [first, rest @ ..] = bytes {
        match blank(bytes) {
            0 => {
                left.push(*first);
                bytes = rest;
            }
            count => bytes = &bytes[count..],
        }
    }
    left
}

#[derive(Clone, Copy)]
enum Case {
    Lower,
    Upper,
}

fn hex(bytes: &[u8], case: Case) -> String {
    match case {
        Case::Lower => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Case::Upper => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
    }
}

/// As JSON writes it, without the quotes.
fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// As an address writes it: all but letters, digits, `-._~` and `kept` as `%XX`.
fn in_url(bytes: &[u8], case: Case, kept: &str, space: &str) -> String {
    let mut text = String::new();
    for byte in bytes {
        match *byte {
            b' ' => text.push_str(space),
            plain if plain.is_ascii_alphanumeric() || b"-._~".contains(&plain) => {
                text.push(char::from(plain));
            }
            plain if kept.as_bytes().contains(&plain) => text.push(char::from(plain)),
            other => text.push_str(&format!("%{}", hex(&[other], case))),
        }
    }
    text
}

/// The digits of base64 that are the same whatever stands around the bytes, if `before` bytes of the first three stand before them.
fn base64(before: usize, bytes: &[u8], last: &[u8; 2]) -> String {
    let (first, end) = ((before * 8).div_ceil(6), (before + bytes.len()) * 8 / 6);
    let bit = |at: usize| bytes.get((at / 8).wrapping_sub(before)).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let digit = |at: usize| (at * 6..at * 6 + 6).fold(0, |number, at| number << 1 | usize::from(bit(at)));
    let letter = |number: usize| BASE64.get(number).copied().unwrap_or_else(|| last[number - BASE64.len()]);
    (first..end).map(|at| char::from(letter(digit(at)))).collect()
}
