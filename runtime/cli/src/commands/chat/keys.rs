//! Bytes of a terminal as keys.
//!
//! Invariant: whatever bytes come, in whatever pieces, they become keys or nothing; a lone Esc is told from the beginning of a sequence by
//! what comes with it.

/// What was pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A character, or several that were pasted.
    Text(String),
    /// Enter.
    Enter,
    /// Alt and Enter: a message for after this turn.
    FollowUp,
    /// A line end within the text: Control and j.
    NewLine,
    /// Completes.
    Tab,
    /// Escape.
    Escape,
    /// Control and a letter.
    Control(char),
    /// Deletes before the cursor.
    Backspace,
    /// Deletes at the cursor.
    Delete,
    /// One to the left.
    Left,
    /// One to the right.
    Right,
    /// The line before.
    Up,
    /// The line after.
    Down,
    /// Alt and the line before: the last message comes back.
    TakeBack,
    /// The beginning.
    Home,
    /// The end.
    End,
}

/// The beginning and the end of pasted text, if the terminal marks it.
const PASTE: (&[u8], &[u8]) = (b"\x1b[200~", b"\x1b[201~");

/// Bytes that are not whole keys yet.
#[derive(Debug, Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
}

impl Keys {
    /// Takes what one read gave and returns the keys in it.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.bytes.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, length)) = first(&self.bytes) {
            self.bytes.drain(..length);
            match (key, keys.last_mut()) {
                (Some(Key::Text(more)), Some(Key::Text(text))) => text.push_str(&more),
                (Some(key), _) => keys.push(key),
                (None, _) => {}
            }
        }
        keys
    }
}

/// Returns the first key and its length; none if more bytes are needed.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let key = match *bytes.first()? {
        b'\r' => Key::Enter,
        b'\n' => Key::NewLine,
        0x7f | 0x08 => Key::Backspace,
        b'\t' => Key::Tab,
        0x1b => return escaped(bytes),
        control @ 1..=26 => Key::Control(char::from(control - 1 + b'a')),
        0 | 27..=31 => return Some((None, 1)),
        _ => return text(bytes),
    };
    Some((Some(key), 1))
}

fn text(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let length = bytes.iter().position(|byte| byte.is_ascii_control()).unwrap_or(bytes.len());
    match std::str::from_utf8(&bytes[..length]) {
        Ok(text) => Some((Some(Key::Text(text.to_owned())), length)),
        Err(error) if error.valid_up_to() > 0 => {
            let valid = error.valid_up_to();
            let text = String::from_utf8_lossy(&bytes[..valid]).into_owned();
            Some((Some(Key::Text(text)), valid))
        }
        // A character that is cut, if its end may still come; else bytes that are none.
        Err(error) => match error.error_len() {
            None if length == bytes.len() => None,
            None => Some((None, length)),
            Some(wrong) => Some((None, wrong)),
        },
    }
}

fn escaped(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    if bytes.starts_with(PASTE.0) {
        let rest = &bytes[PASTE.0.len()..];
        let end = rest.windows(PASTE.1.len()).position(|window| window == PASTE.1)?;
        let pasted = String::from_utf8_lossy(&rest[..end]).replace("\r\n", "\n").replace('\r', "\n");
        let length = PASTE.0.len() + end + PASTE.1.len();
        return Some((Some(Key::Text(pasted)), length));
    }
    match bytes.get(1) {
        // Some terminals write Alt as an Esc before the sequence.
        Some(0x1b) if bytes.starts_with(b"\x1b\x1b[A") => Some((Some(Key::TakeBack), 4)),
        // Sequences come in one piece: an Esc with nothing behind it was pressed alone.
        None | Some(0x1b) => Some((Some(Key::Escape), 1)),
        Some(b'\r' | b'\n') => Some((Some(Key::FollowUp), 2)),
        Some(b'[' | b'O') => {
            let end = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte))?;
            let key = match (&bytes[2..2 + end], bytes[2 + end]) {
                (b"1;3" | b"1;9", b'A') => Some(Key::TakeBack),
                (_, b'A') => Some(Key::Up),
                (_, b'B') => Some(Key::Down),
                (_, b'C') => Some(Key::Right),
                (_, b'D') => Some(Key::Left),
                (_, b'H') | (b"1" | b"7", b'~') => Some(Key::Home),
                (_, b'F') | (b"4" | b"8", b'~') => Some(Key::End),
                (b"3", b'~') => Some(Key::Delete),
                _ => None,
            };
            Some((key, 3 + end))
        }
        Some(_) => Some((None, 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]]) -> Vec<Key> {
        let mut keys = Keys::default();
        pieces.iter().flat_map(|piece| keys.read(piece)).collect()
    }

    fn text(text: &str) -> Key {
        Key::Text(text.to_owned())
    }

    #[test]
    fn bytes_become_keys() {
        for (pieces, expected) in [
            (vec![&b"ab\r"[..]], vec![text("ab"), Key::Enter]),
            (vec![b"\x03\x04\x1a"], vec![Key::Control('c'), Key::Control('d'), Key::Control('z')]),
            (vec![b"\x1b"], vec![Key::Escape]),
            (vec![b"\x1b\x1b"], vec![Key::Escape, Key::Escape]),
            (
                vec![b"\x1b[A\x1b[1;5C\x1bOD\x1b[3~\x1b[H\x1b[F"],
                vec![Key::Up, Key::Right, Key::Left, Key::Delete, Key::Home, Key::End],
            ),
            (vec![b"\x1b[", b"A"], vec![Key::Up]),
            (vec![b"\x1b[1;3A"], vec![Key::TakeBack]),
            (vec![b"\x1b\x1b[A"], vec![Key::TakeBack]),
            (vec![b"\x1b\r"], vec![Key::FollowUp]),
            (vec![b"a\nb\t"], vec![text("a"), Key::NewLine, text("b"), Key::Tab]),
            (vec![b"\x1b[200~a\r\n", b"b\x1b[201~c"], vec![text("a\nbc")]),
            (vec![b"\xc3", b"\xbc"], vec![text("ü")]),
            (vec![b"\xff\xfea"], vec![text("a")]),
            (vec![b"\xc3a"], vec![text("a")]),
            (vec![b"\x00\x1f\x1bx"], vec![]),
        ] {
            assert_eq!(check(&pieces), expected, "{pieces:?}");
        }
    }
}
