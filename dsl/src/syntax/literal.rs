//! The values of literals: durations, escapes, the indent of long texts.
//!
//! Leaves numbers to their callers. Invariant: arithmetic is checked; what does not fit is `None`.
//!
//! A long text `"""…"""` is read so: if nothing stands on the line of the opening quotes, that line does not count;
//! if nothing stands before the closing quotes on their line, that line and the break before it do not count. The
//! white space that all other lines with something on them begin with is removed from each. Line breaks are `\n`.

/// A piece of a text as it stands in the source.
pub(super) enum Part {
    Raw(String),
    Escape(String),
    /// The number of a hole.
    Hole(usize),
}

/// A piece of a text as it is meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Hole(usize),
}

/// Milliseconds of a well-formed duration.
pub(in crate::syntax) fn duration_ms(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let letters = rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len() - digits);
        let count: i64 = rest[..digits].replace('_', "").parse().ok()?;
        let unit: i64 = match &rest[digits..digits + letters] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        total = total.checked_add(count.checked_mul(unit)?)?;
        rest = &rest[digits + letters..];
    }
    Some(total)
}

/// Decodes the parts of a text; `long` if it stands in three quotes.
pub(super) fn decode(parts: Vec<Part>, long: bool) -> Vec<Piece> {
    let parts = if long { without_indent(parts) } else { parts };
    let mut pieces = Vec::new();
    for part in parts {
        let text = match part {
            Part::Raw(text) => text,
            Part::Escape(escape) => unescape(&escape),
            Part::Hole(number) => {
                pieces.push(Piece::Hole(number));
                continue;
            }
        };
        match pieces.last_mut() {
            Some(Piece::Text(before)) => before.push_str(&text),
            Some(Piece::Hole(_)) | None if text.is_empty() => {}
            Some(Piece::Hole(_)) | None => pieces.push(Piece::Text(text)),
        }
    }
    pieces.retain(|piece| *piece != Piece::Text(String::new()));
    pieces
}

fn unescape(escape: &str) -> String {
    let after = escape.get(1..).unwrap_or_default();
    match after {
        "n" => "\n".to_owned(),
        "t" => "\t".to_owned(),
        "r" => "\r".to_owned(),
        "\"" | "\\" | "{" | "}" | "$" => after.to_owned(),
        _ => {
            let hex = after.strip_prefix("u{").and_then(|rest| rest.strip_suffix('}'));
            let value = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
            // A bad escape was reported; its text stands for itself.
            value.map_or_else(|| escape.to_owned(), String::from)
        }
    }
}

/// Removes the common indent and the empty first and last line of a long text.
fn without_indent(parts: Vec<Part>) -> Vec<Part> {
    let mut lines: Vec<Vec<Part>> = vec![Vec::new()];
    for part in parts {
        let Part::Raw(text) = part else {
            push_last(&mut lines, part);
            continue;
        };
        let text = text.replace("\r\n", "\n");
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                lines.push(Vec::new());
            }
            push_last(&mut lines, Part::Raw(line.to_owned()));
        }
    }
    let several = lines.len() > 1;
    let first_is_blank = several && lines.first().is_some_and(|line| is_blank(line));
    let last_is_blank = several && lines.last().is_some_and(|line| is_blank(line));
    // What stands beside the opening quotes has no indent.
    let indented = lines.get(1..).unwrap_or_default();
    let indent = indented.iter().filter(|line| !is_blank(line)).map(|line| indent_of(line)).reduce(common);
    let indent = indent.unwrap_or_default();
    for line in lines.iter_mut().skip(1) {
        let blank = is_blank(line);
        if let Some(Part::Raw(text)) = line.first_mut() {
            *text =
                if blank { String::new() } else { text.get(indent.len()..).unwrap_or_default().to_owned() };
        }
    }
    let kept = usize::from(first_is_blank)..lines.len() - usize::from(last_is_blank);
    let count = kept.len();
    let mut out = Vec::new();
    for (number, line) in lines.into_iter().skip(kept.start).take(count).enumerate() {
        if number > 0 {
            out.push(Part::Raw("\n".to_owned()));
        }
        out.extend(line);
    }
    out
}

fn push_last(lines: &mut [Vec<Part>], part: Part) {
    if let Some(line) = lines.last_mut() {
        line.push(part);
    }
}

fn is_blank(line: &[Part]) -> bool {
    line.iter().all(|part| matches!(part, Part::Raw(text) if text.trim().is_empty()))
}

fn indent_of(line: &[Part]) -> String {
    match line.first() {
        // A line of several raw parts goes on after its first one only if that one holds more than white space,
        // or if a lone quote cut it; then the indent may be shorter than it looks, which only keeps white space.
        Some(Part::Raw(text)) => text[..text.len() - text.trim_start_matches([' ', '\t']).len()].to_owned(),
        Some(Part::Escape(_) | Part::Hole(_)) | None => String::new(),
    }
}

fn common(a: String, b: String) -> String {
    a.chars().zip(b.chars()).take_while(|(left, right)| left == right).map(|(left, _)| left).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_milliseconds() {
        for (text, ms) in [
            ("90s", Some(90_000)),
            ("1h30m", Some(5_400_000)),
            ("250ms", Some(250)),
            ("30d", Some(2_592_000_000)),
            ("1_000s", Some(1_000_000)),
            ("99999999999999999d", None),
            ("9223372036854775807ms", Some(i64::MAX)),
            ("5x", None),
        ] {
            assert_eq!(duration_ms(text), ms, "{text}");
        }
    }

    fn long(parts: Vec<Part>) -> Vec<Piece> {
        decode(parts, true)
    }

    fn raw(text: &str) -> Part {
        Part::Raw(text.to_owned())
    }

    #[test]
    fn long_texts_lose_their_indent() {
        for (source, meant) in [
            ("one line", "one line"),
            ("\n  a\n    b\n  ", "a\n  b"),
            ("\r\n  a\r\n\r\n  b\r\n", "a\n\nb"),
            ("a\n    b\n  c", "a\n  b\nc"),
            ("\n\n  a\n\n", "\na\n"),
            ("\n\ta\n\t\tb\n", "a\n\tb"),
            ("\n", ""),
            ("", ""),
        ] {
            let found = long(vec![raw(source)]);
            let expected = if meant.is_empty() { vec![] } else { vec![Piece::Text(meant.to_owned())] };
            assert_eq!(found, expected, "{source:?}");
        }
    }

    #[test]
    fn escapes_and_holes_are_content() {
        let parts =
            vec![raw("\n    "), Part::Hole(0), raw("\n  "), Part::Escape("\\n".to_owned()), raw("x\n")];
        assert_eq!(
            long(parts),
            [Piece::Text("  ".to_owned()), Piece::Hole(0), Piece::Text("\n\nx".to_owned())]
        );
        let parts = vec![raw("a"), Part::Escape("\\u{1F600}".to_owned()), Part::Escape("\\q".to_owned())];
        assert_eq!(decode(parts, false), [Piece::Text("a😀\\q".to_owned())]);
    }
}
