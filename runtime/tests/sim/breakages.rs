//! What the simulator notices of promises that are broken on purpose, and why it cannot notice the others.
//!
//! Leaves those to their witnesses in `tests/engine/promises.rs`. Built with the feature `breakages` only. Invariant: every promise is in
//! one of the two lists.

use std::collections::BTreeSet;
use std::process::Command;

/// Promises of which the usual number of seeds shows that they are broken.
const NOTICED: &[&str] = &[
    "SkipSync",
    "AcceptStaleWrite",
    "UnlinkChain",
    "DropReadyView",
    "DropDueView",
    "KeepOldDueView",
    "AnswerEarly",
    "HandOutEarly",
    "ShowEarly",
    "AcknowledgeNewsEarly",
    "AcknowledgeFailedSync",
    "AcknowledgeOnFullDisk",
    "SkipBegun",
    "ChangeKeyWithAttempt",
    "AdoptStaleAttempt",
    "SkipAdoption",
    "EndLeasesEarly",
    "FireEarly",
    "StartAgain",
    "ForgetLineage",
    "ForgetForkReference",
    "PurgeWhatForksShare",
];

/// Promises that the world of the simulator has no room for, each with the reason.
const ELSEWHERE: &[(&str, &str)] = &[
    ("ForgetBegunOfDeleted", "300 seeds delete no run that a fork shares what was begun with"),
    ("ForgetBegunSince", "300 seeds fork no run from before what it began last"),
    ("SkipPurge", "what deleted runs leave costs room only, and nobody measures it"),
    ("ForgetBlobReference", "its values are small and stand in their events"),
    ("SweepNamedBlobs", "its values are small and stand in their events"),
    ("BackUpLess", "nobody makes a backup"),
    ("SkipLock", "its store is in memory and has no directory"),
    ("SkipMark", "its store is in memory and has no directory"),
    ("IgnoreFullDisk", "its store is in memory and has no last bytes"),
    (
        "AnswerBeforeEarlierSteps",
        "one caller at a time: nobody asks while somebody else's step is on its way",
    ),
    ("AcceptForgedToken", "nobody forges tokens"),
    ("IgnoreCase", "its ids differ in more than their case"),
    ("TakeStrangersForChildren", "nobody starts a run under the name of a child"),
    ("StopStrangers", "nobody starts a run under the name of a child"),
    ("ReplayWithOldMachine", "nobody migrates a run"),
    ("ExportLess", "nobody carries a run away"),
    ("ExportMore", "nobody carries a run away"),
    ("ImportLess", "nobody carries a run away"),
    ("ForgetDoubtOnImport", "nobody carries a run away"),
    ("ForgetRows", "there are no batches of items"),
    ("RenameDueRuns", "there are no schedules"),
    ("DecideBeforeStart", "there are no schedules"),
    ("RunBegunAgain", "seed 1391 notices it, which only the night tries"),
    ("KeepTasksOfTheDead", "it costs time only: the lease of the dead ends in any case"),
    ("ExpireBeforeAdoption", "nobody compares deadlines with outages"),
    ("TakeLateInputFirst", "nobody compares the moment of an input with a deadline"),
    ("SkipRecovery", "it looks at every run in the end, and a run that is looked at goes on"),
    ("ForgetNews", "it looks at every run in the end, and what a run has to tell is then told again"),
    ("SetClockBack", "its clock goes forward only"),
];

/// The promises that there are, by the text that names them.
fn promises() -> BTreeSet<&'static str> {
    let text = include_str!("../../store/src/breakage.rs");
    let names = text.split_once("pub enum Breakage {").and_then(|(_, rest)| rest.split_once("\n}"));
    let lines = names.map_or("", |(names, _)| names).lines();
    lines.filter_map(|line| line.trim().strip_suffix(',')).filter(|name| !name.contains(' ')).collect()
}

#[test]
fn what_is_broken_in_its_world_is_noticed() {
    let named: BTreeSet<&str> =
        NOTICED.iter().copied().chain(ELSEWHERE.iter().map(|(name, _)| *name)).collect();
    assert_eq!(named, promises(), "each promise is noticed here, or it is said why not");
    assert_eq!(named.len(), NOTICED.len() + ELSEWHERE.len(), "each promise stands in one list");
    let mut unnoticed = Vec::new();
    for promise in NOTICED {
        let simulator = std::env::current_exe().expect("this program is there");
        let mut simulation = Command::new(simulator);
        simulation
            .args(["--exact", "whatever_happens_what_was_promised_holds"])
            .env("OUTLAST_BREAKS", promise);
        let output = simulation.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("running 1 test"), "{said}");
        if output.status.success() {
            unnoticed.push(*promise);
        }
    }
    assert!(unnoticed.is_empty(), "the simulator does not notice {unnoticed:?}");
}
