//! The store on disk: damage, locks, processes that die.

mod backups;
mod damage;
mod deletions;
mod journals;
mod processes;
mod support;
mod torn;
