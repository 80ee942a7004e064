//! The words of a command line that may be paths.
//!
//! Leaves looking at them to [`super::seen`]. This is no shell: variables, globs and what a program reads without being told so are not
//! seen through. Invariant: every word that stands in the line is found, wherever it stands and however it is quoted, but for those
//! that only say where output goes.

/// What ends a word, outside quotes.
const ENDS: [char; 9] = [' ', '\t', '\n', ';', '|', '(', ')', '`', '<'];

/// What may stand around a path within a word: `--file=x`, `-d@x`, `a:b`, `"$(./x)"`, a line for another shell.
const AROUND: [char; 21] = [
    ' ', '\t', '\n', ';', '|', '(', ')', '`', '<', '>', '&', '=', ',', ':', '@', '$', '"', '\'', '{', '}',
    '\\',
];

/// Finds the words, and what stands within them.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in whole_words(line) {
        let parts = word.split(AROUND).filter(|part| !part.is_empty() && *part != word);
        found.extend(parts.map(str::to_owned));
        found.push(word);
    }
    found
}

/// The words as a shell would part them, without their quotes.
fn whole_words(line: &str) -> Vec<String> {
    let mut reader = Words::default();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (reader.quote, c) {
            (Some(quote), c) if c == quote => reader.quote = None,
            (Some('"') | None, '\\') => reader.push(chars.next()),
            (Some(_), c) => reader.push(Some(c)),
            (None, '\'' | '"') => {
                reader.quote = Some(c);
                reader.push(None);
            }
            (None, '>') => {
                reader.end();
                reader.of_output = true;
            }
            // `>&2` and `>|file` go on with where output goes; elsewhere these end a command.
            (None, '&' | '|') if reader.of_output && reader.word.is_none() => {}
            (None, c) if c == '&' || ENDS.contains(&c) => {
                reader.end();
                reader.of_output &= matches!(c, ' ' | '\t');
            }
            (None, c) => reader.push(Some(c)),
        }
    }
    reader.end();
    reader.found
}

#[derive(Default)]
struct Words {
    found: Vec<String>,
    word: Option<String>,
    quote: Option<char>,
    /// The next word says where output goes.
    of_output: bool,
}

impl Words {
    fn push(&mut self, c: Option<char>) {
        self.word.get_or_insert_default().extend(c);
    }

    fn end(&mut self) {
        let Some(word) = self.word.take() else { return };
        if !std::mem::take(&mut self.of_output) {
            self.found.push(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_wherever_they_stand() {
        for (line, named) in [
            ("./deploy.sh", vec!["./deploy.sh"]),
            ("python3 x.py --now", vec!["x.py"]),
            ("cd sub && ./x.sh;y.sh|z.sh", vec!["sub", "./x.sh", "y.sh", "z.sh"]),
            ("sh < 'a script'", vec!["a script"]),
            ("sh<a", vec!["a"]),
            ("sh a\\ script \"b\"c", vec!["a script", "bc"]),
            ("make --file=Other.mk", vec!["Other.mk"]),
            ("curl -d @secret -T a,b", vec!["secret", "a", "b"]),
            ("echo \"$(./x.sh)\" `y.sh`", vec!["./x.sh", "y.sh"]),
            ("sh -c './x.sh && y.sh' > out", vec!["./x.sh", "y.sh"]),
            ("A=1 ./x.sh 2>&1 | ./y.sh", vec!["./x.sh", "./y.sh"]),
        ] {
            let found = words(line);
            for name in named {
                assert!(found.iter().any(|word| word == name), "{name} in {line}: {found:?}");
            }
        }
    }

    #[test]
    fn where_output_goes_is_not_among_them() {
        for line in ["echo a > out", "echo a >> out", "x >out 2>out", "x >| out", "x >& out", "x > 'out'"] {
            assert!(!words(line).iter().any(|word| word == "out"), "{line}: {:?}", words(line));
        }
        assert!(words("x > y; out").iter().any(|word| word == "out"));
    }
}
