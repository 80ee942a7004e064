//! Diagnostics as text for people and as JSON for tools.
//!
//! Leaves writing anywhere to the caller. Invariant: nothing from a source text reaches the output raw, and the
//! output of one diagnostic is bounded whatever the lines look like.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::width::shown;
use super::{Diagnostic, FileId, LineIndex, Severity, TextSpan};
use crate::limits::SNIPPET_COLUMNS_MAX;

/// Whether the output has ANSI colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// With escape sequences.
    Always,
}

/// One file that diagnostics speak of.
#[derive(Clone, Debug)]
pub struct Source {
    /// As the user named it.
    pub name: String,
    /// All of it.
    pub text: String,
    lines: LineIndex,
}

/// The files that diagnostics speak of, by [`FileId`].
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Adds a file and returns its number.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let lines = LineIndex::new(&text);
        self.files.push(Source { name: name.into(), text, lines });
        FileId(u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX))
    }

    /// The file of that number.
    pub fn get(&self, file: FileId) -> Option<&Source> {
        self.files.get(file.0 as usize)
    }

    /// The files in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &Source)> {
        (0..).map(FileId).zip(&self.files)
    }
}

impl Source {
    /// The lines of the text.
    pub fn lines(&self) -> &LineIndex {
        &self.lines
    }
}

/// Writes one diagnostic for people: message, place, source line, expected, help.
pub fn render(diagnostic: &Diagnostic, sources: &Sources, colour: Colour) -> String {
    let paint = Paint { colour };
    let (word, style) = match diagnostic.severity {
        Severity::Error => ("error", "1;31"),
        Severity::Warning => ("warning", "1;33"),
        Severity::Note => ("note", "1;36"),
    };
    let mut out = String::new();
    let head = paint.with(style, &format!("{word}[{}]", diagnostic.code));
    let _ = writeln!(out, "{head}: {}", paint.with("1", &one_line(&diagnostic.message)));
    let gutter = gutter_width(diagnostic, sources);
    snippet(&mut out, sources, (diagnostic.file, diagnostic.span), gutter, (&paint, style));
    for related in &diagnostic.related {
        let _ = writeln!(out, "{}: {}", paint.with("1;36", "note"), one_line(&related.message));
        snippet(&mut out, sources, (related.file, related.span), gutter, (&paint, "1;36"));
    }
    let margin = " ".repeat(gutter);
    let equals = paint.with("1;34", "=");
    if let Some(expected) = &diagnostic.expected {
        let _ = writeln!(out, "{margin} {equals} expected: {}", one_line(expected));
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = writeln!(out, "{margin} {equals} help: {}", one_line(hint));
    }
    if let Some(fix) = &diagnostic.fix {
        let sure = if fix.safe { "fix" } else { "possible fix" };
        let _ = writeln!(out, "{margin} {equals} {sure}: {}", fix_words(fix, diagnostic, sources));
    }
    out
}

/// Returns the diagnostics as `--json` prints them. Each has `code`, `severity` (`error`, `warning`, `note`), `message`, `file` (its name),
/// `line` and `column` (from 1, in characters), `span` (`start` and `end` in bytes, `end_line`, `end_column`), `suggestions` and `related`
/// (lists, often empty), and, where there is something to say, `expected` and `hint`. A suggestion has a `text` for people, `safe` (whether a
/// tool may apply it unseen) and `edits`: replace the bytes `start..end` by `text`. Fields may be added, never changed.
pub fn json(diagnostics: &[Diagnostic], sources: &Sources) -> Value {
    diagnostics.iter().map(|diagnostic| located(diagnostic, sources)).collect()
}

fn located(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let mut value = place(diagnostic.file, diagnostic.span, sources);
    value["code"] = json!(diagnostic.code);
    value["severity"] = json!(diagnostic.severity);
    value["message"] = json!(diagnostic.message);
    if let Some(expected) = &diagnostic.expected {
        value["expected"] = json!(expected);
    }
    if let Some(hint) = &diagnostic.hint {
        value["hint"] = json!(hint);
    }
    let suggestion = |fix: &super::Fix| {
        json!({
            "text": fix_words(fix, diagnostic, sources),
            "safe": fix.safe,
            "edits": [{ "start": fix.span.start, "end": fix.span.end, "text": fix.replacement }],
        })
    };
    value["suggestions"] = diagnostic.fix.iter().map(suggestion).collect();
    let related = diagnostic.related.iter().map(|related| {
        let mut value = place(related.file, related.span, sources);
        value["message"] = json!(related.message);
        value
    });
    value["related"] = related.collect();
    value
}

/// A place as tools read it; only the bytes if the file is not at hand.
fn place(file: FileId, span: TextSpan, sources: &Sources) -> Value {
    let Some(source) = sources.get(file) else {
        return json!({ "file": file, "span": { "start": span.start, "end": span.end } });
    };
    let at = |offset| source.lines.position(offset, &source.text);
    let (start, end) = (at(span.start), at(span.end));
    json!({
        "file": source.name,
        "line": start.line,
        "column": start.column,
        "span": { "start": span.start, "end": span.end, "end_line": end.line, "end_column": end.column },
    })
}

struct Paint {
    colour: Colour,
}

impl Paint {
    fn with(&self, style: &str, text: &str) -> String {
        match self.colour {
            Colour::Never => text.to_owned(),
            Colour::Always => format!("\u{1b}[{style}m{text}\u{1b}[0m"),
        }
    }
}

/// Messages may quote the source; a quoted control character must not reach the terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| shown(c, 0).0).collect()
}

fn fix_words(fix: &super::Fix, diagnostic: &Diagnostic, sources: &Sources) -> String {
    let old = sources.get(diagnostic.file).map(|source| fix.span.of(&source.text)).unwrap_or_default();
    let (old, new) = (one_line(old), one_line(&fix.replacement));
    match (old.is_empty(), new.is_empty()) {
        (true, _) => format!("insert `{new}`"),
        (false, true) => format!("remove `{old}`"),
        (false, false) => format!("replace `{old}` by `{new}`"),
    }
}

fn gutter_width(diagnostic: &Diagnostic, sources: &Sources) -> usize {
    let places = diagnostic.related.iter().map(|related| (related.file, related.span));
    let lines = places.chain([(diagnostic.file, diagnostic.span)]).filter_map(|(file, span)| {
        let source = sources.get(file)?;
        Some(source.lines.position(span.start, &source.text).line)
    });
    lines.max().unwrap_or(1).to_string().len()
}

fn snippet(
    out: &mut String,
    sources: &Sources,
    (file, span): (FileId, TextSpan),
    gutter: usize,
    (paint, style): (&Paint, &str),
) {
    let Some(source) = sources.get(file) else { return };
    let position = source.lines.position(span.start, &source.text);
    let margin = " ".repeat(gutter);
    let arrow = paint.with("1;34", "-->");
    let _ = writeln!(out, "{margin}{arrow} {}:{}:{}", one_line(&source.name), position.line, position.column);
    let Some(line) = source.lines.span_of(position.line - 1, &source.text) else { return };
    let (text, carets) = marked_line(line.of(&source.text), line.start, span);
    let bar = paint.with("1;34", "|");
    let _ = writeln!(out, "{margin} {bar}");
    let number = paint.with("1;34", &format!("{:>gutter$}", position.line));
    let _ = writeln!(out, "{number} {bar} {}", text.trim_end());
    let indent = carets.len() - carets.trim_start().len();
    let _ = writeln!(out, "{margin} {bar} {}{}", " ".repeat(indent), paint.with(style, carets.trim_start()));
}

/// The part of a line around `span` that fits the limit, and the carets under it.
fn marked_line(line: &str, line_start: u32, span: TextSpan) -> (String, String) {
    let from = (span.start.saturating_sub(line_start) as usize).min(line.len());
    let to = (span.end.saturating_sub(line_start) as usize).clamp(from, line.len());
    let window = window(line, from, to);
    let cut_before = window.start > 0;
    let (mut text, mut carets) = (String::new(), String::new());
    let mut column = 0;
    if cut_before {
        text.push_str("… ");
        carets.push_str("  ");
        column = 2;
    }
    for (at, c) in line[window.clone()].char_indices() {
        let at = at + window.start;
        let (piece, columns) = shown(c, column);
        text.push_str(&piece);
        let mark = if from <= at && at < to { "^" } else { " " };
        carets.push_str(&mark.repeat(columns));
        column += columns;
    }
    if window.end < line.len() {
        text.push_str(" …");
    }
    // An empty span, or one of invisible characters, still shows where it is.
    if !carets.contains('^') {
        let before: usize = carets_before(&line[window.start..from], cut_before);
        carets = format!("{}^", " ".repeat(before));
    }
    (text, carets.trim_end().to_owned())
}

fn carets_before(text: &str, cut_before: bool) -> usize {
    let start = if cut_before { 2 } else { 0 };
    text.chars().fold(start, |column, c| column + shown(c, column).1)
}

/// The bytes to show: everything if it is short, else a part that begins a little before the span.
fn window(line: &str, from: usize, to: usize) -> std::ops::Range<usize> {
    // Bytes bound columns from above except for tabs and pictures, which the limit may pass a little.
    if line.len() <= SNIPPET_COLUMNS_MAX {
        return 0..line.len();
    }
    let context = SNIPPET_COLUMNS_MAX / 4;
    let shown_to = to.min(from + SNIPPET_COLUMNS_MAX / 2);
    let start = if shown_to + context <= SNIPPET_COLUMNS_MAX { 0 } else { from.saturating_sub(context) };
    let end = (start + SNIPPET_COLUMNS_MAX).min(line.len());
    floor_boundary(line, start)..floor_boundary(line, end)
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::catalogue::syntax as code;

    fn rendered(text: &str, span: (u32, u32)) -> String {
        let mut sources = Sources::default();
        let file = sources.add("a.flow", text);
        let span = TextSpan::new(span.0, span.1);
        let diagnostic = Diagnostic::error(code::NULL, file, span, "no");
        render(&diagnostic, &sources, Colour::Never)
    }

    #[test]
    fn a_diagnostic_shows_everything_it_has() {
        let mut sources = Sources::default();
        let file = sources.add("a.flow", "one\n  two x\nthree");
        let diagnostic = Diagnostic::error(code::NULL, file, TextSpan::new(6, 9), "`two` is not a number")
            .expected("a number")
            .hint("count")
            .fix(TextSpan::new(6, 9), "2")
            .related(TextSpan::new(0, 3), "one is here");
        let expected = "\
error[F0140]: `two` is not a number
 --> a.flow:2:3
  |
2 |   two x
  |   ^^^
note: one is here
 --> a.flow:1:1
  |
1 | one
  | ^^^
  = expected: a number
  = help: count
  = fix: replace `two` by `2`
";
        assert_eq!(render(&diagnostic, &sources, Colour::Never), expected);
        let coloured = render(&diagnostic, &sources, Colour::Always);
        assert!(coloured.contains("\u{1b}[1;31merror[F0140]\u{1b}[0m"), "{coloured}");
        let value = json(&[diagnostic], &sources);
        let found = &value[0];
        assert_eq!((&found["file"], &found["code"]), (&Value::from("a.flow"), &Value::from("F0140")));
        assert_eq!((&found["line"], &found["column"]), (&json!(2), &json!(3)));
        assert_eq!(found["span"], json!({ "start": 6, "end": 9, "end_line": 2, "end_column": 6 }));
        assert_eq!(
            found["suggestions"],
            json!([{ "text": "replace `two` by `2`", "safe": true, "edits": [{ "start": 6, "end": 9, "text": "2" }] }])
        );
        assert_eq!(found["related"][0]["message"], "one is here");
    }

    #[test]
    fn carets_stand_under_tabs_wide_and_hidden_characters() {
        for (text, span, line, carets) in [
            ("\tx", (1, 2), "1 |     x", "  |     ^"),
            ("語x", (3, 4), "1 | 語x", "  |   ^"),
            ("語x", (0, 3), "1 | 語x", "  | ^^"),
            ("a\u{1b}[31mb", (1, 2), "1 | a\u{241b}[31mb", "  |  ^"),
            ("ab", (2, 2), "1 | ab", "  |   ^"),
            ("", (0, 0), "1 | ", "  | ^"),
        ] {
            let out = rendered(text, span);
            let lines: Vec<&str> = out.lines().collect();
            assert_eq!((lines[3], lines[4]), (line, carets), "{text:?}");
        }
    }

    #[test]
    fn long_lines_are_cut_around_the_span() {
        let text = format!("{}HERE{}", "a".repeat(5_000), "b".repeat(5_000));
        let out = rendered(&text, (5_000, 5_004));
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines[3].contains("aHEREb") && lines[3].ends_with(" …"), "{out}");
        assert_eq!(
            lines[3].find("HERE").map(|at| lines[3][..at].chars().count()),
            lines[4].find('^'),
            "{out}"
        );
        assert!(lines.iter().all(|line| line.chars().count() < 2 * SNIPPET_COLUMNS_MAX), "{out}");
        // A span over many lines or beyond the file must not panic.
        rendered("a\nb\nc", (0, 5));
        rendered("a", (70, 80));
    }
}
