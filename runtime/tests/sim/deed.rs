//! What happens in a simulated world, drawn from a seed.
//!
//! Invariant: a deed stands for itself: one that finds nothing to do does nothing, so any part of a list of deeds is a list of deeds.

use outlast_store::{FailedSync, Side};

/// Workers of a world.
pub(crate) const WORKERS: u8 = 3;
/// Runs that may be started.
pub(crate) const RUNS: u8 = 10;

/// What is lost of a call between a worker and the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    Nothing,
    Request,
    Answer,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Start {
        run: u8,
    },
    StartWithOtherInput {
        run: u8,
    },
    Say {
        run: u8,
    },
    Close {
        run: u8,
    },
    Answer {
        run: u8,
        approve: bool,
    },
    Cancel {
        run: u8,
    },
    /// Somebody follows the run from now on.
    Watch {
        run: u8,
    },
    Poll {
        worker: u8,
        lost: Lost,
    },
    Work {
        worker: u8,
        hand: u8,
    },
    Fail {
        worker: u8,
        hand: u8,
    },
    Report {
        worker: u8,
        lost: Lost,
    },
    /// Old reports come once more.
    Repeat {
        worker: u8,
    },
    /// The worker reaches nobody any more.
    Cut {
        worker: u8,
    },
    Mend {
        worker: u8,
    },
    /// As a stop signal does it.
    Stop {
        worker: u8,
    },
    Continue {
        worker: u8,
    },
    Kill {
        worker: u8,
        noticed: bool,
    },
    Pass {
        ms: u32,
    },
    /// Time that nobody notices, as on a busy machine.
    Slip {
        ms: u32,
    },
    Crash,
    CrashAt {
        commits: u8,
        side: Side,
    },
    FailSync {
        outcome: FailedSync,
    },
    FillDisk,
    EmptyDisk,
}

/// Draws a list of deeds.
pub(crate) fn draw(seed: u64) -> Vec<Deed> {
    let mut random = Random(seed);
    let length = 20 + random.below(80);
    (0..length).map(|_| one(&mut random)).collect()
}

fn one(random: &mut Random) -> Deed {
    let (run, worker) = (random.byte(RUNS), random.byte(WORKERS));
    match random.below(100) {
        0..13 => Deed::Start { run },
        13 => Deed::StartWithOtherInput { run },
        14..19 => Deed::Say { run },
        19 => Deed::Close { run },
        20..24 => Deed::Answer { run, approve: random.below(3) > 0 },
        24 => Deed::Cancel { run },
        25 | 26 => Deed::Watch { run },
        27..43 => Deed::Poll { worker, lost: lost(random) },
        43..57 => Deed::Work { worker, hand: random.byte(4) },
        57..60 => Deed::Fail { worker, hand: random.byte(4) },
        60..73 => Deed::Report { worker, lost: lost(random) },
        73 => Deed::Repeat { worker },
        74 => Deed::Cut { worker },
        75..77 => Deed::Mend { worker },
        77 => Deed::Stop { worker },
        78..80 => Deed::Continue { worker },
        80..82 => Deed::Kill { worker, noticed: random.below(2) == 0 },
        82..88 => Deed::Pass { ms: [100, 1_000, 3_000, 9_000, 40_000, 80_000][usize::from(random.byte(6))] },
        88 => Deed::Slip { ms: 1 + u32::from(random.byte(200)) * 10 },
        89..92 => Deed::Crash,
        92..97 => {
            let side = if random.below(2) == 0 { Side::BeforeSync } else { Side::AfterSync };
            Deed::CrashAt { commits: random.byte(4), side }
        }
        97 | 98 => {
            let outcome = if random.below(2) == 0 { FailedSync::Lost } else { FailedSync::Written };
            Deed::FailSync { outcome }
        }
        _ => {
            if random.below(2) == 0 {
                Deed::FillDisk
            } else {
                Deed::EmptyDisk
            }
        }
    }
}

fn lost(random: &mut Random) -> Lost {
    match random.below(10) {
        0 => Lost::Request,
        1 => Lost::Answer,
        _ => Lost::Nothing,
    }
}

/// A small generator (SplitMix64); the same seed gives the same numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    fn byte(&mut self, bound: u8) -> u8 {
        u8::try_from(self.below(bound.into())).unwrap_or(0)
    }
}
