//! Markdown as the language cases and the pages use it: blocks of text under headings.
//!
//! Leaves what a kind of block means to each test. Invariant: every block that is opened is closed.

/// Returns the fenced blocks of a page in order: the heading above, what follows the fence, the text with its line breaks.
pub(crate) fn blocks(page: &str) -> Vec<(String, String, String)> {
    let mut all: Vec<(String, String, String)> = Vec::new();
    let (mut heading, mut open) = (String::new(), None::<(String, String)>);
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some("")) => {
                all.extend(open.take().map(|(kind, text)| (heading.clone(), kind, text)));
            }
            (Some((_, text)), _) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, Some(kind)) => open = Some((kind.to_owned(), String::new())),
            (None, None) => heading = line.strip_prefix("## ").map_or(heading, str::to_owned),
        }
    }
    assert!(open.is_none(), "{heading}: a block is not closed");
    all
}
