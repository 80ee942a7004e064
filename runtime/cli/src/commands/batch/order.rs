//! Results in the order of the inputs, if so wanted.
//!
//! Invariant: no item is begun that would have to wait for more than a window of others, so what waits is bounded.

use std::collections::BTreeMap;

/// Brings what ends into the order in which it was begun, or lets it through as it comes.
#[derive(Debug)]
pub(super) struct Order<T> {
    /// None: as it comes.
    window: Option<u64>,
    begun: u64,
    given: u64,
    /// What ended too early; none for what has nothing to give.
    early: BTreeMap<u64, Option<T>>,
}

impl<T> Order<T> {
    /// Begins; with a window, in order.
    pub(super) fn new(window: Option<u64>) -> Order<T> {
        Order { window, begun: 0, given: 0, early: BTreeMap::new() }
    }

    /// Whether another one may begin.
    pub(super) fn has_room(&self) -> bool {
        self.window.is_none_or(|window| self.begun - self.given < window)
    }

    /// Gives the next one its number.
    pub(super) fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun - 1
    }

    /// Takes note of an end; returns what can be given now.
    pub(super) fn end(&mut self, number: u64, what: Option<T>) -> Vec<T> {
        if self.window.is_none() {
            return what.into_iter().collect();
        }
        self.early.insert(number, what);
        let mut ready = Vec::new();
        while let Some(next) = self.early.remove(&self.given) {
            self.given += 1;
            ready.extend(next);
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_early_waits_for_what_was_begun_before_it() {
        let mut order = Order::new(Some(3));
        for number in 0..3 {
            assert!(order.has_room());
            assert_eq!(order.begin(), number);
        }
        assert!(!order.has_room());
        assert_eq!(order.end(2, Some("c")), Vec::<&str>::new());
        assert_eq!(order.end(0, Some("a")), ["a"]);
        assert!(order.has_room());
        assert_eq!(order.end(1, None), ["c"], "what has nothing to give is passed over");
    }

    #[test]
    fn without_a_window_everything_goes_through_as_it_comes() {
        let mut order = Order::new(None);
        let (first, second) = (order.begin(), order.begin());
        assert_eq!(order.end(second, Some("b")), ["b"]);
        assert_eq!(order.end(first, Some("a")), ["a"]);
    }
}
