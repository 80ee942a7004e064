//! Markdown on a terminal, row by row as rows are finished: what has scrolled is never drawn again.
//!
//! Leaves harmful characters to `tame`, which comes first. Invariant: a mark is taken away only if its partner stands in the same row, so
//! that no text is lost; without colours text stays as it is.

use super::width::break_at;

const RESET: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";
const ITALIC: &str = "\x1b[3m";
const UNDERLINED: &str = "\x1b[4m";
const DIM: &str = "\x1b[2m";
const CODE: &str = "\x1b[36m";

/// What the line is that a row belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// The next row begins a line.
    #[default]
    New,
    Text,
    Heading,
    Quote,
    Code,
    Fence,
}

/// Where a text is that is shown row by row.
#[derive(Debug, Default)]
pub(super) struct Styler {
    line: Line,
    /// The fence of the code that the text is in.
    fence: Option<String>,
}

/// Returns a whole text in rows of at most so many columns, in styles where colours are wanted.
pub(super) fn rows(text: &str, columns_max: usize, colours: bool) -> String {
    let (mut styler, mut rows) = (Styler::default(), Vec::new());
    for mut line in text.split('\n') {
        loop {
            let end = break_at(line, columns_max);
            let ends = end == line.len();
            rows.push(if colours { styler.row(&line[..end], ends) } else { line[..end].to_owned() });
            if ends {
                break;
            }
            line = &line[end..];
        }
    }
    rows.join("\n")
}

impl Styler {
    /// Returns a row in its style; `ends` tells whether the line ends with it.
    pub(super) fn row(&mut self, row: &str, ends: bool) -> String {
        let begins = self.line == Line::New;
        if begins {
            self.line = self.kind(row);
        }
        let styled = match self.line {
            Line::Fence => format!("{DIM}{row}{RESET}"),
            Line::Code => format!("{CODE}{row}{RESET}"),
            Line::Quote => format!("{DIM}{row}{RESET}"),
            Line::Heading => format!("{BOLD}{}{RESET}", if begins { without_marks(row) } else { row }),
            Line::New | Line::Text if begins => item(row),
            Line::New | Line::Text => inline(row),
        };
        if ends {
            self.line = Line::New;
        }
        if row.is_empty() { String::new() } else { styled }
    }

    fn kind(&mut self, row: &str) -> Line {
        let bare = row.trim_start();
        if let Some(fence) = &self.fence {
            let closes =
                bare.starts_with(fence.as_str()) && bare.trim_end().chars().all(|c| fence.starts_with(c));
            if closes {
                self.fence = None;
            }
            return if closes { Line::Fence } else { Line::Code };
        }
        let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = mark.map_or(0, |mark| bare.chars().take_while(|c| *c == mark).count());
        if length >= 3 {
            self.fence = Some(bare.chars().take(length).collect());
            return Line::Fence;
        }
        let marks = bare.chars().take_while(|c| *c == '#').count();
        match bare.chars().nth(marks) {
            Some(' ') if (1..=6).contains(&marks) => Line::Heading,
            Some(_) | None if bare.starts_with("> ") => Line::Quote,
            Some(_) | None => Line::Text,
        }
    }
}

fn without_marks(row: &str) -> &str {
    row.trim_start().trim_start_matches('#').trim_start()
}

/// A row that begins a line may begin an item of a list.
fn item(row: &str) -> String {
    let bare = row.trim_start();
    let indent = &row[..row.len() - bare.len()];
    match bare.strip_prefix("- ").or_else(|| bare.strip_prefix("* ")) {
        Some(rest) => format!("{indent}• {}", inline(rest)),
        None => inline(row),
    }
}

/// Marks of a row and their styles; the longer ones first.
const MARKS: [(&str, &str); 5] = [("`", CODE), ("**", BOLD), ("__", BOLD), ("*", ITALIC), ("_", ITALIC)];

fn inline(row: &str) -> String {
    let mut styled = String::new();
    let mut at = 0;
    'text: while at < row.len() {
        for (mark, style) in MARKS {
            if let Some(end) = row[at..].starts_with(mark).then(|| partner(row, at, mark)).flatten() {
                let inner = &row[at + mark.len()..end];
                let inner = if mark == "`" {
                    inner.to_owned()
                } else {
                    inline(inner).replace(RESET, &format!("{RESET}{style}"))
                };
                styled = styled + style + &inner + RESET;
                at = end + mark.len();
                continue 'text;
            }
        }
        let in_word = row[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        if let Some((text, address, length)) = link(&row[at..]).filter(|_| !in_word) {
            let beside = if text == address { String::new() } else { format!(" ({address})") };
            styled = styled + UNDERLINED + text + RESET + &beside;
            at += length;
            continue;
        }
        let c = row[at..].chars().next().unwrap_or_default();
        styled.push(c);
        // A run of marks without a partner is text as a whole.
        at += c.len_utf8();
        while matches!(c, '*' | '_') && row[at..].starts_with(c) {
            styled.push(c);
            at += 1;
        }
    }
    styled
}

/// Returns where the partner of a mark stands; none if the mark is no mark, as in `2 * 3` and `snake_case`.
fn partner(row: &str, at: usize, mark: &str) -> Option<usize> {
    let inside = at + mark.len();
    if mark == "`" {
        return row[inside..].find('`').filter(|length| *length > 0).map(|length| inside + length);
    }
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_space = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let c = mark.chars().next();
    if is_space(row[inside..].chars().next()) || is_word(row[..at].chars().next_back()) {
        return None;
    }
    row[inside..].match_indices(mark).map(|(found, _)| inside + found).find(|found| {
        let (before, after) = (row[..*found].chars().next_back(), row[found + mark.len()..].chars().next());
        *found > inside && !is_space(before) && before != c && after != c && !is_word(after)
    })
}

/// Returns text, address and length of the link at the beginning of a text.
fn link(text: &str) -> Option<(&str, &str, usize)> {
    let (name, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (address, _) = rest.split_once(')')?;
    let plain = !name.contains(['[', ']']) && !address.contains(char::is_whitespace);
    (plain && !name.is_empty() && !address.is_empty()).then_some((
        name,
        address,
        name.len() + address.len() + 4,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Styles in words, so that they can be read.
    fn read(text: &str) -> String {
        let names = [
            (RESET, "</>"),
            (BOLD, "<b>"),
            (ITALIC, "<i>"),
            (UNDERLINED, "<u>"),
            (DIM, "<d>"),
            (CODE, "<c>"),
        ];
        names.iter().fold(text.to_owned(), |text, (code, name)| text.replace(code, name))
    }

    #[test]
    fn rows_are_styled_and_no_text_is_lost() {
        for (text, expected) in [
            ("plain", "plain"),
            ("# Title", "<b>Title</>"),
            ("#hashtag", "#hashtag"),
            ("a **bold** word", "a <b>bold</> word"),
            ("*one* and _two_", "<i>one</> and <i>two</>"),
            ("**bold with `code` in it**", "<b>bold with <c>code</><b> in it</>"),
            ("2 * 3 * 4, 2 ** 3, snake_case_name, a*b*c", "2 * 3 * 4, 2 ** 3, snake_case_name, a*b*c"),
            ("*args and **kwargs", "*args and **kwargs"),
            ("an open ` tick and **mark", "an open ` tick and **mark"),
            ("`a*b*c`", "<c>a*b*c</>"),
            ("- item *one*", "• item <i>one</>"),
            ("  * nested", "  • nested"),
            ("1. first", "1. first"),
            ("> said", "<d>> said</>"),
            ("see [the site](http://x.y/z).", "see <u>the site</> (http://x.y/z)."),
            ("[not](a link", "[not](a link"),
            ("a[0](x)", "a[0](x)"),
            ("**ü** *日本*", "<b>ü</> <i>日本</>"),
            ("***", "***"),
            ("", ""),
            (
                "```rust\nlet *a* = 1;\n\n```\n*after*",
                "<d>```rust</>\n<c>let *a* = 1;</>\n\n<d>```</>\n<i>after</>",
            ),
            ("~~~\n```\n~~~\nx", "<d>~~~</>\n<c>```</>\n<d>~~~</>\nx"),
        ] {
            assert_eq!(read(&rows(text, usize::MAX, true)), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_of_several_rows_keeps_its_style() {
        let mut styler = Styler::default();
        let rows = [("# A long ", false), ("- heading", true), ("- item", false), ("- rest", true)];
        let found: Vec<String> = rows.iter().map(|(row, ends)| read(&styler.row(row, *ends))).collect();
        assert_eq!(found, ["<b>A long </>", "<b>- heading</>", "• item", "- rest"]);
        assert_eq!(super::rows("one two\nthree", 5, true), "one \ntwo\nthree");
    }
}
