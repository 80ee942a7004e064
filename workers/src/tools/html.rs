//! A page as text: what a reader sees of it, without its looks.
//!
//! Leaves cutting to the output. Invariant: it never fails and takes time in proportion to the page; what it does not know is left out or left
//! as it is.

/// What is no text though it stands in the page.
const HIDDEN: [&str; 6] = ["script", "style", "noscript", "template", "svg", "head"];

/// What begins a line of its own.
const BLOCKS: [&str; 26] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "footer",
    "form",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "td",
    "th",
    "tr",
    "ul",
    "figure",
];

/// Returns the text of a page, its title first. Links have their addresses behind them.
pub(super) fn text(page: &str) -> String {
    let mut made = Made::default();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        made.say(&rest[..at]);
        rest = &rest[at..];
        let (tag, after) = tag(rest);
        match tag {
            Some(tag) if tag.opens && HIDDEN.contains(&tag.name.as_str()) => {
                let (inner, after) = until_closed(after, &tag.name);
                if tag.name == "head" {
                    made.title(inner);
                }
                rest = after;
            }
            Some(tag) => {
                made.tag(&tag);
                rest = after;
            }
            None => rest = after,
        }
    }
    made.say(rest);
    made.finish()
}

struct Tag {
    name: String,
    opens: bool,
    link: Option<String>,
}

/// Reads a tag at the beginning of a text; none for comments and the like, and for a `<` that begins nothing.
fn tag(text: &str) -> (Option<Tag>, &str) {
    if let Some(comment) = text.strip_prefix("<!--") {
        return (None, comment.find("-->").map_or("", |end| &comment[end + 3..]));
    }
    let Some(end) = text.find('>') else { return (None, "") };
    let (inner, after) = (&text[1..end], &text[end + 1..]);
    let named = inner.strip_prefix('/').unwrap_or(inner);
    let length = named.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(named.len());
    if length == 0 {
        return (None, after);
    }
    let name = named[..length].to_ascii_lowercase();
    let link = if name == "a" { attribute(&named[length..], "href") } else { None };
    (Some(Tag { name, opens: !inner.starts_with('/'), link }), after)
}

fn attribute(attributes: &str, name: &str) -> Option<String> {
    let at = attributes.to_ascii_lowercase().find(&format!("{name}="))?;
    let value = attributes.get(at + name.len() + 1..)?;
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split_whitespace().next()?,
    };
    Some(entities(value))
}

/// What stands before the end of an element, and what behind it.
fn until_closed<'a>(text: &'a str, name: &str) -> (&'a str, &'a str) {
    let close = format!("</{name}");
    let at = text.match_indices("</").find(|(at, _)| {
        text.get(*at..*at + close.len()).is_some_and(|found| found.eq_ignore_ascii_case(&close))
    });
    let Some((at, _)) = at else { return (text, "") };
    let after = text[at..].find('>').map_or("", |end| &text[at + end + 1..]);
    (&text[..at], after)
}

#[derive(Default)]
struct Made {
    lines: Vec<String>,
    line: String,
    link: Option<String>,
    as_is: bool,
}

impl Made {
    fn title(&mut self, head: &str) {
        if let Some((_, title)) = head.split_once("<title").and_then(|(_, rest)| rest.split_once('>')) {
            self.say(until_closed(title, "title").0);
            self.end_paragraph();
        }
    }

    fn say(&mut self, text: &str) {
        let text = entities(text);
        if self.as_is {
            let mut lines = text.split('\n');
            self.line.push_str(lines.next().unwrap_or_default());
            for line in lines {
                self.lines.push(std::mem::take(&mut self.line));
                self.line.push_str(line);
            }
            return;
        }
        if text.starts_with(char::is_whitespace) && !self.line.is_empty() {
            self.space();
        }
        for (at, word) in text.split_whitespace().enumerate() {
            if at > 0 {
                self.space();
            }
            self.line.push_str(word);
        }
        if text.ends_with(char::is_whitespace) {
            self.space();
        }
    }

    fn space(&mut self) {
        if !self.line.is_empty() && !self.line.ends_with(' ') {
            self.line.push(' ');
        }
    }

    fn tag(&mut self, tag: &Tag) {
        let name = tag.name.as_str();
        let heading = name.len() == 2 && name.starts_with('h') && name.as_bytes()[1].is_ascii_digit();
        if heading || BLOCKS.contains(&name) {
            self.end_line();
        }
        match (name, tag.opens) {
            ("pre", opens) => self.as_is = opens,
            ("li", true) => self.line.push_str("- "),
            ("p" | "table" | "ul" | "ol", _) => self.end_paragraph(),
            ("a", true) => self.link.clone_from(&tag.link),
            ("a", false) => {
                if let Some(link) = self.link.take().filter(|link| link.contains("://")) {
                    self.line.push_str(&format!(" ({link})"));
                }
            }
            (_, true) if heading => {
                self.end_paragraph();
                let depth = usize::from(name.as_bytes()[1] - b'0');
                self.line.push_str(&format!("{} ", "#".repeat(depth)));
            }
            (_, _) if heading => self.end_paragraph(),
            _ => {}
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !line.trim().is_empty() {
            self.lines.push(line.trim_end().to_owned());
        }
    }

    fn end_paragraph(&mut self) {
        self.end_line();
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    fn finish(mut self) -> String {
        self.end_line();
        let mut text = self.lines.join("\n");
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}

/// Puts characters in the place of their names.
fn entities(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        made.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.char_indices().take(12).find(|(_, c)| *c == ';').map(|(end, _)| end);
        match end.and_then(|end| Some((character(&rest[1..end])?, end))) {
            Some((character, end)) => {
                made.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                made.push('&');
                rest = &rest[1..];
            }
        }
    }
    made.push_str(rest);
    made
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "bull" => '•',
        "middot" => '·',
        "copy" => '©',
        "times" => '×',
        "rarr" => '→',
        "larr" => '←',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_as_it_looks() {
        let page = "<!DOCTYPE html><html><head><title>A &amp; B</title><style>p { x }</style></head><body>\n\
                    <h1>Head<b>ing</b></h1><p>One <i>two</i>\n three<script>if (a < b) {}</script>, <a href='https://a.test/x'>four</a>.</p>\n\
                    <ul><li>x<li>y &lt;z&gt;</ul><!-- > no --><pre>a  b\n  c</pre>a &unknown; b &#x41;</body>";
        let text = text(page);
        assert_eq!(
            text,
            "A & B\n\n# Heading\n\nOne two three, four (https://a.test/x).\n\n- x\n- y <z>\n\na  b\n  c\na &unknown; b A\n"
        );
    }

    #[test]
    fn broken_pages_are_read_as_far_as_they_go() {
        for (page, expected) in [
            ("", "\n"),
            ("a < b", "a\n"),
            ("a <b", "a\n"),
            ("<p", "\n"),
            ("<script>never closed", "\n"),
            ("<!-- never closed", "\n"),
            ("a & b &#0; &#xFFFFFFFF; &", "a & b \0 &#xFFFFFFFF; &\n"),
            ("<A HREF=http://x.test>y</A>", "y (http://x.test)\n"),
        ] {
            assert_eq!(text(page), expected, "{page}");
        }
    }
}
