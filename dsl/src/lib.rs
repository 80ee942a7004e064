//! Flow: from text to checked machine.
//!
//! Leaves running a machine to the kernel and reading files to its callers. Invariant: pure; the same text gives the same
//! machine, byte for byte, on every computer. Start at [`check`] and [`machine::Machine`].

mod check;
pub mod diag;
pub mod editor;
mod files;
pub mod fix;
mod format;
pub mod graph;
pub mod limits;
mod lower;
pub mod machine;
mod places;
mod prelude;
mod schema;
pub mod syntax;
pub mod test_case;

pub use check::{Checked, CheckedFlow, check};
pub use files::{SourceFile, gather, part, used_files};
pub use format::{ExpandError, FormatError, expand, format};
pub use places::{PlaceEntry, PlaceLine, Places};
pub use schema::{schema, schema_of_fields};
pub use test_case::TestCase;
