//! Messages, questions, cancels.
