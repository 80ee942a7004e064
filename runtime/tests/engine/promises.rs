//! Every promise that can be broken on purpose has a witness: a test of this program that fails as soon as the promise is broken.
//!
//! Built with the feature `breakages` only. Invariant: each witness passes while nothing is broken.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Mutex;

/// Promises as `outlast_store::breakage::Breakage` names them, each with its witness.
const WITNESSES: &[(&str, &str)] = &[
    ("SkipSync", "durability::a_result_outlives_the_process"),
    ("AcceptStaleWrite", "on_disk::a_write_that_does_not_know_the_end_of_the_history_is_refused"),
    ("UnlinkChain", "forks::a_fork_holds_the_history_up_to_its_point_and_leaves_its_parent_as_it_was"),
    ("DropReadyView", "adoption::what_a_returning_worker_does_not_list_never_arrived"),
    ("DropDueView", "people::timers_fire_by_themselves_however_far_they_are"),
    ("KeepOldDueView", "spawned::every_crash_point_ends_in_the_calm_result"),
    ("ForgetLineage", "forks::a_fork_holds_the_history_up_to_its_point_and_leaves_its_parent_as_it_was"),
    (
        "ForgetForkReference",
        "forks::a_fork_holds_the_history_up_to_its_point_and_leaves_its_parent_as_it_was",
    ),
    ("PurgeWhatForksShare", "deletions::forks_go_on_when_the_runs_that_they_share_events_with_are_deleted"),
    ("ForgetBegunOfDeleted", "deletions::what_a_deleted_run_had_begun_is_in_doubt_in_later_forks"),
    ("ForgetBlobReference", "blobs::a_large_value_stands_once_for_all_runs_that_have_it"),
    ("SweepNamedBlobs", "blobs::what_a_result_names_stays_with_its_run_and_goes_with_it"),
    ("SkipPurge", "deletions::what_a_killed_process_had_not_taken_away_the_next_one_takes"),
    ("BackUpLess", "on_disk::a_backup_holds_what_was_acknowledged_before_it"),
    ("SkipLock", "on_disk::a_directory_has_one_owner"),
    ("SkipMark", "on_disk::a_journal_that_lost_its_end_is_noticed_by_the_mark"),
    ("IgnoreFullDisk", "on_disk::the_last_bytes_of_the_disk_are_not_taken"),
    ("AnswerEarly", "durability::a_start_is_answered_when_it_is_durable"),
    ("AnswerBeforeEarlierSteps", "durability::reads_and_streams_show_nothing_that_is_not_durable"),
    ("HandOutEarly", "durability::a_once_attempt_is_handed_out_when_its_beginning_is_durable"),
    ("ShowEarly", "durability::reads_and_streams_show_nothing_that_is_not_durable"),
    (
        "AcknowledgeNewsEarly",
        "spawned::a_parent_hears_of_its_child_when_the_first_event_of_the_child_is_durable",
    ),
    ("AcknowledgeFailedSync", "durability::a_failed_sync_is_fatal_and_acknowledges_nothing"),
    ("AcknowledgeOnFullDisk", "durability::a_full_disk_refuses_and_keeps_what_is_there"),
    ("SkipBegun", "leases::a_worker_whose_process_ended_loses_its_tasks_at_once"),
    ("RunBegunAgain", "transfer::what_was_in_hand_there_is_in_doubt_here"),
    ("ChangeKeyWithAttempt", "leases::a_silent_worker_loses_its_tasks_after_a_whole_lease"),
    ("AcceptForgedToken", "basics::a_report_counts_once_and_only_with_its_token"),
    (
        "AdoptStaleAttempt",
        "adoption::a_worker_that_comes_back_with_an_attempt_that_was_given_up_must_drop_it",
    ),
    ("SkipAdoption", "adoption::a_worker_that_comes_back_keeps_its_tasks"),
    (
        "ExpireBeforeAdoption",
        "adoption::a_deadline_that_fell_due_during_the_outage_waits_for_the_adoption_window",
    ),
    ("EndLeasesEarly", "leases::a_silent_worker_loses_its_tasks_after_a_whole_lease"),
    ("KeepTasksOfTheDead", "leases::a_worker_whose_process_ended_loses_its_tasks_at_once"),
    ("TakeLateInputFirst", "people::an_expired_question_is_expired_before_a_late_answer_is_looked_at"),
    ("FireEarly", "people::what_came_in_time_beats_its_deadline"),
    ("SkipRecovery", "adoption::what_a_returning_worker_does_not_list_never_arrived"),
    ("StartAgain", "basics::a_start_is_idempotent_by_its_id"),
    ("IgnoreCase", "basics::a_start_is_idempotent_by_its_id"),
    ("ForgetBegunSince", "forks::what_the_parent_has_begun_is_in_doubt_in_the_fork_and_never_run"),
    ("TakeStrangersForChildren", "spawned::an_id_that_is_taken_is_left_alone"),
    ("StopStrangers", "spawned::a_parent_that_was_carried_away_stops_no_stranger_with_the_name_of_its_child"),
    ("ForgetNews", "spawned::every_crash_point_ends_in_the_calm_result"),
    ("ReplayWithOldMachine", "migrating::runs_stay_with_their_version_until_they_are_migrated"),
    ("ExportLess", "transfer::a_run_is_the_same_there_and_back_and_goes_on_there"),
    ("ExportMore", "transfer::a_run_is_the_same_there_and_back_and_goes_on_there"),
    ("ImportLess", "transfer::a_run_is_the_same_there_and_back_and_goes_on_there"),
    ("ForgetDoubtOnImport", "transfer::what_was_in_hand_there_is_in_doubt_here"),
    ("ForgetRows", "on_disk::an_item_of_a_batch_that_has_its_row_is_known"),
    ("RenameDueRuns", "schedules::each_due_time_starts_its_run_once_across_crashes"),
    ("DecideBeforeStart", "schedules::a_crash_at_any_commit_of_a_due_time_starts_its_run_once_all_the_same"),
    ("SetClockBack", "adoption::a_clock_that_was_set_back_hides_nothing_that_is_in_hand"),
];

/// The promises that there are, by the text that names them.
fn promises() -> BTreeSet<&'static str> {
    let text = include_str!("../../store/src/breakage.rs");
    let (_, rest) = text.split_once("pub enum Breakage {").unwrap();
    let (names, _) = rest.split_once("\n}").unwrap();
    names
        .lines()
        .map(str::trim)
        .filter_map(|line| line.strip_suffix(','))
        .filter(|name| !name.contains(' '))
        .collect()
}

/// Runs one test of this program in a process of its own, with a promise broken or none. Returns whether it passed, and what it said.
fn passes(witness: &str, broken: &str) -> (bool, String) {
    let mut test = Command::new(std::env::current_exe().unwrap());
    let output = test.args(["--exact", witness]).env("OUTLAST_BREAKS", broken).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("running 1 test"), "there is no test {witness}: {said}");
    (output.status.success(), said)
}

#[test]
fn every_broken_promise_is_noticed() {
    let named: BTreeSet<&str> = WITNESSES.iter().map(|(promise, _)| *promise).collect();
    assert_eq!(named, promises(), "each promise has one witness");
    let mut jobs: Vec<(&str, &str)> = WITNESSES.to_vec();
    jobs.extend(
        WITNESSES.iter().map(|(_, witness)| *witness).collect::<BTreeSet<_>>().into_iter().map(|w| ("", w)),
    );
    let (jobs, wrong) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |n| n.get().max(4)) {
            scope.spawn(|| {
                loop {
                    let Some((broken, witness)) = jobs.lock().unwrap().pop() else { return };
                    let (passed, said) = passes(witness, broken);
                    if passed != broken.is_empty() {
                        wrong
                            .lock()
                            .unwrap()
                            .push(format!("{broken:?} and {witness}: passed {passed}\n{said}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
