//! What tests came to, in the form that continuous integration reads: JUnit's XML.
//!
//! Invariant: well-formed whatever names and values are; characters that XML cannot hold become U+FFFD.

use std::fmt::Write as _;

use super::Ran;
use super::report::{failure, file_name, position};

/// Returns the document: a suite for each file, a case for each test.
pub(super) fn document(all: &[Ran]) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for ran in all {
        let name = ran.files.first().map_or("", |file| file.name.as_str());
        let (tests, failed) = (ran.report.results.len(), ran.report.failed());
        let name = escaped(name);
        let _ = writeln!(xml, "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failed}\">");
        for result in &ran.report.results {
            let (line, _) = position(ran, result);
            let file = escaped(file_name(ran, result));
            let case = escaped(&result.name);
            let _ = write!(
                xml,
                "    <testcase classname=\"{file}\" name=\"{case}\" file=\"{file}\" line=\"{line}\""
            );
            match &result.failure {
                None => xml.push_str("/>\n"),
                Some(why) => {
                    let (message, text) = (escaped(&why.message), escaped(&failure(ran, result, why)));
                    let _ = writeln!(
                        xml,
                        ">\n      <failure message=\"{message}\">{text}</failure>\n    </testcase>"
                    );
                }
            }
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_markup() {
        assert_eq!(escaped("a<b> & \"c\"\u{1b}[2J\n"), "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}[2J\n");
    }
}
