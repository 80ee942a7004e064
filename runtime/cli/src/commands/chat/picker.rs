//! A list that a person picks from: typing searches, arrows move, Enter takes, Esc leaves.
//!
//! Leaves what is picked to whoever made the list: each choice is a command, as if it had been typed. Invariant: pure.

use super::editor::{Edited, Editor};
use super::keys::Key;
use crate::limits::PICKER_ROWS_MAX;

/// One choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) label: String,
    /// The command that takes it.
    pub(super) command: String,
    /// What stands in the line then.
    pub(super) then: String,
}

/// A list, and where the person is in it.
#[derive(Debug)]
pub(super) struct Picker {
    title: &'static str,
    choices: Vec<Choice>,
    /// What is searched for.
    search: Editor,
    /// The chosen one of those that fit.
    at: usize,
}

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Picked {
    /// The person is still choosing.
    Nothing,
    /// They left.
    Left,
    /// They took this.
    Taken(Choice),
}

impl Picker {
    /// Begins at the first choice.
    pub(super) fn new(title: &'static str, choices: Vec<Choice>) -> Picker {
        Picker { title, choices, search: Editor::default(), at: 0 }
    }

    /// Returns what is searched for.
    pub(super) fn search(&self) -> &Editor {
        &self.search
    }

    /// Returns all choices in lines.
    pub(super) fn list(&self) -> String {
        let labels: Vec<&str> = self.choices.iter().map(|choice| choice.label.as_str()).collect();
        labels.join("\n")
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: Key) -> Picked {
        match key {
            Key::Escape | Key::Control('c' | 'd') => return Picked::Left,
            Key::Enter | Key::FollowUp => {
                return match self.fitting().nth(self.at) {
                    Some(choice) => Picked::Taken(choice.clone()),
                    None => Picked::Nothing,
                };
            }
            Key::Up | Key::Control('p') => self.at = self.at.saturating_sub(1),
            Key::Down | Key::Control('n') => {
                self.at = (self.at + 1).min(self.fitting().count().saturating_sub(1));
            }
            other => {
                let before = self.search.text();
                let (Edited::Changed | Edited::Line(_) | Edited::FollowUp(_) | Edited::Other(_)) =
                    self.search.press(other);
                if self.search.text() != before {
                    self.at = 0;
                }
            }
        }
        Picked::Nothing
    }

    /// Returns the rows around the chosen one; that one is marked.
    pub(super) fn rows(&self, rows_max: usize) -> Vec<String> {
        let rows_max = rows_max.clamp(1, PICKER_ROWS_MAX);
        let count = self.fitting().count();
        let first = self.at.saturating_sub(rows_max / 2).min(count.saturating_sub(rows_max));
        let mut rows = vec![format!("{} ({count}; type to search, Enter takes, Esc leaves)", self.title)];
        for (at, choice) in self.fitting().enumerate().skip(first).take(rows_max) {
            let mark = if at == self.at { "▸" } else { " " };
            rows.push(format!("{mark} {}", choice.label.replace('\n', " ")));
        }
        rows
    }

    /// Returns the choices that have every word that is searched for.
    fn fitting(&self) -> impl Iterator<Item = &Choice> {
        let search = self.search.text().to_lowercase();
        let words: Vec<String> = search.split_whitespace().map(str::to_owned).collect();
        self.choices.iter().filter(move |choice| {
            let label = choice.label.to_lowercase();
            words.iter().all(|word| label.contains(word))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker(count: usize) -> Picker {
        let choice = |n: usize| Choice {
            label: format!("run {n}"),
            command: format!("/resume {n}"),
            then: String::new(),
        };
        Picker::new("runs", (0..count).map(choice).collect())
    }

    fn text(text: &str) -> Key {
        Key::Text(text.to_owned())
    }

    #[test]
    fn typing_searches_arrows_move_and_enter_takes() {
        for (keys, expected) in [
            (vec![Key::Enter], Some("/resume 0")),
            (vec![Key::Down, Key::Down, Key::Up, Key::Enter], Some("/resume 1")),
            (vec![Key::Up, Key::Enter], Some("/resume 0")),
            (vec![text("12"), Key::Enter], Some("/resume 12")),
            (vec![Key::Down, text("RUN 1"), Key::Backspace, text("7"), Key::Enter], Some("/resume 7")),
            (vec![text("nothing"), Key::Down, Key::Enter], None),
            (vec![text("1"), Key::Escape], None),
        ] {
            let mut picker = picker(20);
            let taken = keys.iter().cloned().map(|key| picker.press(key)).find_map(|picked| match picked {
                Picked::Taken(choice) => Some(choice.command),
                Picked::Left | Picked::Nothing => None,
            });
            assert_eq!(taken.as_deref(), expected, "{keys:?}");
        }
        assert_eq!(picker(1).press(Key::Escape), Picked::Left);
        assert_eq!(picker(0).press(Key::Enter), Picked::Nothing);
    }

    #[test]
    fn the_chosen_one_is_always_in_sight() {
        let mut picker = picker(20);
        for at in 0..20 {
            let rows = picker.rows(5);
            assert!(rows.len() == 6 && rows.contains(&format!("▸ run {at}")), "{rows:?}");
            picker.press(Key::Down);
        }
        assert_eq!(picker.list().lines().count(), 20);
    }
}
