//! What happens in a simulated world, drawn from a seed.
//!
//! Invariant: a deed stands for itself: one that finds nothing to do does nothing, so any part of a list of deeds is a list of deeds.

use outlast_store::{FailedSync, Side};

/// Workers of a world.
pub(crate) const WORKERS: u8 = 3;
/// Runs that may be started.
pub(crate) const RUNS: u8 = 10;
/// One that does what must not be done twice, and cannot look whether it was.
const WIRE: u8 = 1;
/// One that does four things, two at a time.
const FAN: u8 = 2;
/// One that hears what is said.
const TALK: u8 = 3;
/// The one that spawns another.
const PARENT: u8 = 5;
/// The one that asks.
const ASK: u8 = 6;

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
    /// What happens next is looked at, in this run, while it is on its way to the disk.
    Peek {
        run: u8,
        dies: bool,
    },
    /// The last write of a run comes once more, from a process that was believed to be dead.
    WriteAgain {
        run: u8,
    },
    /// There is no room for a coming commit, and then there is.
    RefuseAt {
        commits: u8,
        times: u8,
    },
    FillDisk,
    EmptyDisk,
    /// A run goes on a second time from one of its events.
    Fork {
        run: u8,
        at: u8,
    },
    /// One of the runs that have ended is deleted.
    Delete {
        which: u8,
    },
}

/// Draws a list of deeds.
pub(crate) fn draw(seed: u64) -> Vec<Deed> {
    let mut random = Random(seed);
    let length = 20 + random.below(80);
    let mut deeds = Vec::new();
    for _ in 0..length {
        match random.below(25) {
            0 => deeds.extend(scene(&mut random)),
            _ => deeds.push(one(&mut random)),
        }
    }
    copies(&mut Random(!seed), &mut deeds);
    deeds
}

/// Strews forks and deletions in.
fn copies(random: &mut Random, deeds: &mut Vec<Deed>) {
    for _ in 0..random.below(8) {
        let at = random.below(deeds.len() as u64 + 1);
        let run = random.byte(RUNS);
        let deed = match random.below(5) {
            0 | 1 => Deed::Delete { which: random.byte(RUNS) },
            // A fork is not told of children that its parent spawned, and waits for them for a day.
            _ if run == PARENT => continue,
            _ => Deed::Fork { run, at: random.byte(12) },
        };
        deeds.insert(usize::try_from(at).unwrap_or(0), deed);
    }
}

/// Draws deeds that seldom come together by chance, each of which makes the next one worth something.
fn scene(random: &mut Random) -> Vec<Deed> {
    let worker = random.byte(WORKERS);
    let other = (worker + 1) % WORKERS;
    let poll = |worker| Deed::Poll { worker, lost: Lost::Nothing };
    match random.below(6) {
        // A worker is away for less than its lease.
        4 => vec![
            Deed::Start { run: FAN },
            poll(worker),
            Deed::Cut { worker },
            Deed::Pass { ms: 9_000 },
            Deed::Pass { ms: 9_000 },
            poll(other),
            poll(other),
            Deed::Mend { worker },
        ],
        // A worker did what must not be done twice, and died; the next process dies before it is said that nobody knows.
        5 => vec![
            Deed::Start { run: WIRE },
            poll(worker),
            Deed::Work { worker, hand: 0 },
            Deed::Kill { worker, noticed: false },
            Deed::Crash,
            Deed::CrashAt { commits: random.byte(3), side: Side::BeforeSync },
            poll(worker),
            poll(worker),
        ],
        // A worker comes back with the result of an attempt that was given up.
        0 => vec![
            poll(worker),
            Deed::Work { worker, hand: 0 },
            Deed::Cut { worker },
            Deed::Pass { ms: 40_000 },
            Deed::Mend { worker },
            Deed::Report { worker, lost: Lost::Nothing },
        ],
        // Another one asks for work before the one that has it in hand is back.
        1 => vec![poll(worker), poll(worker), Deed::Crash, poll(other), poll(other)],
        // A run spawns one for which there is no room just then.
        2 => {
            let (commits, times) = (random.byte(6), 1 + random.byte(3));
            vec![Deed::RefuseAt { commits, times }, Deed::Start { run: PARENT }, Deed::Pass { ms: 3_000 }]
        }
        // Somebody follows a run of which an event is lost.
        _ => {
            let (run, deed) = match random.below(4) {
                0 => (ASK, Deed::Answer { run: ASK, approve: true }),
                1 => (TALK, Deed::Close { run: TALK }),
                _ => (TALK, Deed::Say { run: TALK }),
            };
            let lost = Deed::CrashAt { commits: 0, side: Side::BeforeSync };
            vec![Deed::Start { run }, Deed::Watch { run }, lost, deed]
        }
    }
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
        25 => Deed::Watch { run },
        26 => Deed::Peek { run, dies: random.below(2) == 0 },
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
        97 => match random.below(2) {
            0 => Deed::WriteAgain { run },
            _ => Deed::RefuseAt { commits: random.byte(4), times: 1 + random.byte(3) },
        },
        98 => {
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
