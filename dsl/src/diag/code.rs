//! The stable code of a diagnostic.
//!
//! Leaves titles and explanations to the catalogue. Invariant: a released code never changes its meaning.

use std::fmt;

use serde::{Serialize, Serializer};

/// A stable code such as `F0101`; the first two digits name the area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub(crate) u16);

impl Code {
    /// Reads `F0101`, as a person gives it to `outlast explain`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['F', 'f'])?;
        let four_digits = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if four_digits { digits.parse().ok().map(Self) } else { None }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "F{:04}", self.0)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_reads_as_it_prints() {
        assert_eq!(Code(101).to_string(), "F0101");
        for (text, code) in
            [("F0101", Some(Code(101))), ("f0902", Some(Code(902))), ("F101", None), ("F+101", None)]
        {
            assert_eq!(Code::parse(text), code, "{text}");
        }
    }
}
