//! The store on disk: damage, locks, processes that die.

mod damage;
mod processes;
mod support;
