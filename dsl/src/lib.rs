//! Flow: from text to checked machine.
//!
//! Leaves running a machine to the kernel and reading files to its callers. Invariant: pure; the same text gives the same
//! machine, byte for byte, on every computer. Start at [`machine::Machine`].

pub mod diag;
pub mod limits;
pub mod machine;
pub mod syntax;
