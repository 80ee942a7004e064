//! The engine over a store in memory, with workers that are called by hand and a clock that is moved by hand.
//!
//! Leaves transport to the tests of the server. Each file tests one concept; `world` is what they share.

mod adoption;
mod attempts;
mod basics;
mod blobs;
mod cancels;
mod census;
mod clocks;
mod counted;
mod deletions;
mod durability;
mod examples;
mod fanned;
mod forks;
mod leases;
mod load;
mod long_histories;
mod memory;
mod migrating;
mod odd_text;
mod old_stores;
mod on_disk;
mod people;
#[cfg(feature = "breakages")]
mod promises;
mod quarantined;
mod rates;
mod released;
mod sagas;
mod schedules;
mod signals;
mod spawned;
mod stories;
mod supervised;
mod suspects;
mod transfer;
mod watched;
mod watching;
mod world;
