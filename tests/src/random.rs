//! Random numbers from a seed that is printed: a failing test can be run again.

/// A small generator (SplitMix64); the same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from `OUTLAST_SEED`, or from the given seed, and prints it.
    #[must_use]
    pub fn from_environment(seed: u64) -> Random {
        let seed = std::env::var("OUTLAST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(seed);
        println!("OUTLAST_SEED={seed}");
        Random(seed)
    }

    /// Starts from this seed, for one of several generators of a test.
    #[must_use]
    pub fn of(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or(0)
    }
}

/// Tells whether cases are played in the size of their text: `OUTLAST_WHOLE` is set, as `tests/night` does it. Otherwise a small one stands for it.
#[must_use]
pub fn is_whole() -> bool {
    std::env::var_os("OUTLAST_WHOLE").is_some()
}

/// Returns how often a test runs its race: `OUTLAST_REPEATS` if it is set.
#[must_use]
pub fn repeats(usual: u64) -> u64 {
    std::env::var("OUTLAST_REPEATS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
