//! Batches: files of inputs, one run for each line, and files of results, one row for each line.
//!
//! Leaves running to the driver and to the engine. Invariant: a line is known by what it says, never by where it stands, so a batch that
//! is started again, with lines added or moved, does nothing twice. Start at [`Items`] and [`ResultFile`].

mod items;
mod naming;
mod results;

pub use items::{Item, Items};
pub use naming::{IdField, Naming, batch_name};
pub use results::{Appender, Earlier, Keep, ResultFile, ResultFileError, Row, Standing};
