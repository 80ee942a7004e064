//! New ids: random, so that nobody needs to know which ones there are.

use std::io;

/// Digits and letters that cannot be mistaken for one another, in either case.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Returns an id of 12 characters: 60 random bits.
///
/// # Errors
/// If the system gives no random numbers.
pub fn id() -> io::Result<String> {
    let mut bytes = [0_u8; 12];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_differ() {
        assert_ne!(super::id().unwrap(), super::id().unwrap());
        assert_eq!(super::id().unwrap().len(), 12);
    }
}
