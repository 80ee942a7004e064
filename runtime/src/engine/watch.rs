//! Following a run: frames in order, without a gap.

use outlast_protocol::run::Frame;

/// A run that is followed.
#[derive(Debug)]
pub struct Watch {}

impl Watch {
    /// Returns the next frame; none after `ended`.
    pub async fn next(&mut self) -> Option<Frame> {
        None
    }
}
