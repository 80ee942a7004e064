//! Reading lines of bounded length from files and pipes.
//!
//! Invariant: never more than the limit is held; a line over it is read to its end and told as such, so the next one is found.

use std::io::{self, BufRead};

/// A line that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Its bytes, without the end.
    Text(Vec<u8>),
    /// It was over the limit.
    TooLong,
}

/// Reads the next line; none at the end. The last line needs no end of its own. All bytes are shown to `see`, also those that are not kept.
pub(crate) fn read(
    reader: &mut impl BufRead,
    bytes_max: usize,
    mut see: impl FnMut(&[u8]),
) -> io::Result<Option<Line>> {
    let (mut bytes, mut too_long, mut any) = (Vec::new(), false, false);
    loop {
        let part = match reader.fill_buf() {
            Ok(part) => part,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if part.is_empty() {
            break;
        }
        any = true;
        let at = part.iter().position(|byte| *byte == b'\n');
        let taken = at.map_or(part.len(), |at| at + 1);
        see(&part[..taken]);
        let text = &part[..at.unwrap_or(part.len())];
        too_long |= bytes.len() + text.len() > bytes_max;
        if too_long {
            bytes = Vec::new();
        } else {
            bytes.extend_from_slice(text);
        }
        reader.consume(taken);
        if at.is_some() {
            break;
        }
    }
    let line = if too_long { Line::TooLong } else { Line::Text(bytes) };
    Ok(any.then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_a_line_feed_or_the_input_and_long_ones_are_passed_over() {
        let text = |text: &str| Line::Text(text.as_bytes().to_vec());
        for (input, lines) in [
            ("", vec![]),
            ("a\r\n\n12345678\nb", vec![text("a\r"), text(""), text("12345678"), text("b")]),
            ("123456789\ny\n", vec![Line::TooLong, text("y")]),
            ("123456789", vec![Line::TooLong]),
        ] {
            let mut reader = io::BufReader::with_capacity(3, input.as_bytes());
            let mut seen = Vec::new();
            let read = || read(&mut reader, 8, |part| seen.extend_from_slice(part)).unwrap();
            assert_eq!(std::iter::from_fn(read).collect::<Vec<Line>>(), lines, "{input:?}");
            assert_eq!(seen, input.as_bytes());
        }
    }
}
