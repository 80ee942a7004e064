//! A seeded simulator: one runtime over a store that forgets what was not synced, workers over a network that loses calls and answers,
//! people who also fork and delete runs, a clock; crashes at every side of a commit, failed syncs, full disks, workers that are cut off, stopped and
//! killed.
//!
//! A seed gives a list of deeds ([`deed`]), which happen to a world ([`world`]); what was promised meanwhile must stay true
//! ([`seen`]). A seed that fails is printed with the deeds that are needed for it, as few as were found.
//! `OUTLAST_SIM_SEEDS` says how many seeds are tried (300), `OUTLAST_SIM_FROM` the first one; `tests/night` tries 10,000. Which promises
//! are noticed to be broken here, and why the others cannot be, stands in `breakages`.

#[cfg(feature = "breakages")]
mod breakages;
mod calls;
mod copies;
mod deed;
mod flows;
mod looks;
mod seen;
mod shrink;
mod worker;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deed::{Deed, draw};

/// Seeds after which a long simulation says how far it is.
const TOLD_EVERY: u64 = 500;
/// A world takes a tenth of a second; one that takes so long waits for what never comes.
const STANDS_STILL: Duration = Duration::from_secs(30);

/// Plays deeds in a world of their own; a panic is a failure, too.
fn play(deeds: &[Deed]) -> Result<String, String> {
    let played = std::panic::catch_unwind(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        match runtime {
            Ok(runtime) => runtime.block_on(async {
                let played = tokio::time::timeout(STANDS_STILL, world::play(deeds)).await;
                played
                    .unwrap_or_else(|_| Err("the world stands still: somebody is never answered".to_owned()))
            }),
            Err(error) => Err(format!("no runtime: {error}")),
        }
    });
    played.unwrap_or_else(|_| Err("it panicked".to_owned()))
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn whatever_happens_what_was_promised_holds() {
    let (first, count) = (number("OUTLAST_SIM_FROM", 0), number("OUTLAST_SIM_SEEDS", 300));
    let next = AtomicU64::new(first);
    let failed = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count || failed.lock().is_ok_and(|failed| !failed.is_empty()) {
                        return;
                    }
                    if seed > first && (seed - first).is_multiple_of(TOLD_EVERY) {
                        println!("{} of {count} seeds", seed - first);
                    }
                    if let Err(why) = play(&draw(seed)) {
                        // Of a promise that is broken on purpose everybody knows why.
                        let text = match std::env::var_os("OUTLAST_BREAKS") {
                            Some(_) => format!("seed {seed} fails: {why}"),
                            None => shrink::report(seed, &why, |deeds| play(deeds).err()),
                        };
                        failed.lock().expect("nobody panics while holding it").push(text);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("nobody panics while holding it");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The same seed is the same story: otherwise a seed that fails could not be played again.
#[test]
fn a_seed_tells_one_story() {
    for seed in 0..10 {
        let deeds = draw(seed);
        assert!(play(&deeds) == play(&deeds), "seed {seed} tells two stories");
    }
}
