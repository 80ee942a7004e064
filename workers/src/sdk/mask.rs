//! Takes secrets out of whatever a worker says, in clear and in the forms that they travel in (see [`forms`]).
//!
//! Leaves knowing the values to [`super::secrets`], and to whoever is given one later ([`Mask::learn`]). Invariant: white space between the characters of a secret hides nothing, so a value
//! that was wrapped or split over lines is found; a text that comes in pieces is given out only as far as no secret can begin in
//! it that the next piece would end.

mod forms;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};

use super::context::parking::Locked;
use crate::Json;
use crate::limits::LEARNED_SECRETS_MAX;

/// See the module. Clones are the same mask: what one learns, all hide.
#[derive(Clone, Default)]
pub struct Mask(Arc<Locked<Hidden>>);

impl std::fmt::Debug for Mask {
    /// Without values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

/// What a mask hides.
#[derive(Default)]
struct Hidden {
    /// Names and values from the start.
    given: Vec<(String, String)>,
    /// Those that came later, the newest last.
    learned: VecDeque<(String, String)>,
    known: Option<Arc<Known>>,
}

struct Known {
    finder: NFA,
    /// Without blanks.
    forms: Vec<Vec<u8>>,
    /// What stands in the place of each form.
    shown: Vec<String>,
    longest: usize,
}

/// A place where a secret stands, and which form of one it is.
struct Found {
    place: Range<usize>,
    form: usize,
}

impl Mask {
    /// Makes a mask for values by name. Where one stood, its name is shown.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Mask {
        let given: Vec<(String, String)> =
            secrets.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let known = Known::new(&given).map(Arc::new);
        Mask(Arc::new(Locked::new(Hidden { given, learned: VecDeque::new(), known })))
    }

    /// Hides one more value from now on. Only the newest of these stay hidden: they are worth something for a while.
    pub(crate) fn learn(&self, name: &str, value: &str) {
        let mut hidden = self.0.lock();
        let pair = (name.to_owned(), value.to_owned());
        if hidden.given.contains(&pair) || hidden.learned.contains(&pair) {
            return;
        }
        hidden.learned.push_back(pair);
        if hidden.learned.len() > LEARNED_SECRETS_MAX {
            hidden.learned.pop_front();
        }
        let Hidden { given, learned, .. } = &*hidden;
        let known = Known::new(given.iter().chain(learned));
        hidden.known = known.map(Arc::new);
    }

    fn known(&self) -> Option<Arc<Known>> {
        self.0.lock().known.clone()
    }

    /// Whether there is nothing to hide.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.lock().known.is_none()
    }

    /// Returns a text without secrets.
    #[must_use]
    pub fn text(&self, text: String) -> String {
        let Some(known) = self.known() else { return text };
        match known.without(text.as_bytes()) {
            None => text,
            // Secrets are whole characters, so what is left is, too.
            Some(masked) => String::from_utf8_lossy(&masked).into_owned(),
        }
    }

    /// Returns bytes without secrets. They are copied only if they hold one.
    pub(crate) fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.known().and_then(|known| known.without(&bytes)).unwrap_or(bytes)
    }

    /// Returns a value without secrets, names of fields and numbers included.
    #[must_use]
    pub fn json(&self, value: Json) -> Json {
        if self.is_empty() {
            return value;
        }
        match value {
            Json::String(text) => self.text(text).into(),
            Json::Array(all) => all.into_iter().map(|one| self.json(one)).collect(),
            Json::Object(fields) => {
                fields.into_iter().map(|(name, value)| (self.text(name), self.json(value))).collect()
            }
            Json::Number(number) => {
                let text = number.to_string();
                let masked = self.text(text.clone());
                if masked == text { Json::Number(number) } else { masked.into() }
            }
            Json::Null | Json::Bool(_) => value,
        }
    }
}

impl Known {
    /// Prepares to find values in all their forms; none if there are none.
    fn new<'a>(secrets: impl IntoIterator<Item = &'a (String, String)>) -> Option<Known> {
        let (mut all, mut shown) = (Vec::new(), Vec::new());
        for (name, value) in secrets {
            for form in forms::of(value) {
                all.push(form);
                shown.push(format!("[secret {name}]"));
            }
        }
        let longest = all.iter().map(Vec::len).max()?;
        // It fails only beyond two thousand million states; values have a limit.
        let built = NFA::builder().match_kind(MatchKind::Standard).build(&all);
        built.ok().map(|finder| Known { finder, forms: all, shown, longest })
    }

    /// Returns the bytes without secrets; none if they hold none.
    fn without(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let found = self.find(bytes);
        if found.is_empty() {
            return None;
        }
        let mut masked = Vec::with_capacity(bytes.len());
        let mut done = 0;
        for Found { place, form } in found {
            masked.extend_from_slice(&bytes[done..place.start]);
            masked.extend_from_slice(self.shown[form].as_bytes());
            done = place.end;
        }
        masked.extend_from_slice(&bytes[done..]);
        Some(masked)
    }

    /// Finds all places, in order; those that overlap become one.
    fn find(&self, bytes: &[u8]) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        // Where the last characters stand that are no blanks.
        let mut recent: VecDeque<usize> = VecDeque::with_capacity(self.longest + 1);
        let Ok(mut state) = self.finder.start_state(Anchored::No) else { return found };
        let mut at = 0;
        while at < bytes.len() {
            let blank = forms::blank(&bytes[at..]);
            if blank > 0 {
                at += blank;
                continue;
            }
            recent.push_back(at);
            if recent.len() > self.longest {
                recent.pop_front();
            }
            state = self.finder.next_state(Anchored::No, state, bytes[at]);
            at += 1;
            if !self.finder.is_match(state) {
                continue;
            }
            let matches = (0..self.finder.match_len(state)).map(|i| self.finder.match_pattern(state, i));
            let Some(form) = matches.max_by_key(|form| self.forms[form.as_usize()].len()) else { continue };
            let form = form.as_usize();
            let mut place = recent[recent.len() - self.forms[form].len()]..at;
            while let Some(before) = found.pop_if(|before| before.place.end > place.start) {
                place.start = place.start.min(before.place.start);
            }
            found.push(Found { place, form });
        }
        found
    }

    /// How many of the bytes can be given out: none of the rest is known not to begin a secret.
    fn settled(&self, bytes: &[u8]) -> usize {
        // The last ones count, of which a secret could begin at the first.
        let most = self.longest.saturating_sub(1);
        let mut places = VecDeque::with_capacity(most + 1);
        let mut at = 0;
        while at < bytes.len() {
            match forms::blank(&bytes[at..]) {
                // It may be half of what counts as a blank.
                0 if bytes[at] == b'\\' && at + 1 == bytes.len() => return self.settled(&bytes[..at]),
                0 => {
                    places.push_back(at);
                    if places.len() > most {
                        places.pop_front();
                    }
                    at += 1;
                }
                blank => at += blank,
            }
        }
        let tail = places.make_contiguous();
        for from in 0..tail.len() {
            let piece = &tail[from..];
            let begins = |form: &Vec<u8>| {
                form.len() > piece.len() && piece.iter().zip(form).all(|(at, byte)| bytes[*at] == *byte)
            };
            if self.forms.iter().any(begins) {
                return piece[0];
            }
        }
        bytes.len()
    }
}

/// Takes secrets out of what comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct MaskedStream {
    mask: Mask,
    held: Vec<u8>,
}

impl MaskedStream {
    pub(crate) fn new(mask: Mask) -> MaskedStream {
        MaskedStream { mask, held: Vec::new() }
    }

    /// Takes a piece and returns what can be shown by now.
    pub(crate) fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(known) = self.mask.known() else { return piece.into() };
        self.held.extend_from_slice(piece);
        // A secret that is there whole goes as a whole, even if its end could begin another one.
        let whole = known.find(&self.held).last().map_or(0, |found| found.place.end);
        let settled = known.settled(&self.held).max(whole);
        let rest = self.held.split_off(settled);
        let shown = std::mem::replace(&mut self.held, rest);
        known.without(&shown).unwrap_or(shown).into()
    }

    /// Returns the rest.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.held);
        self.mask.known().and_then(|known| known.without(&rest)).unwrap_or(rest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const VALUE: &str = "S3c-r&t/\"Wörd\" 9z";

    fn mask() -> Mask {
        Mask::new([("TOKEN", VALUE), ("PIN", "481516")])
    }

    #[test]
    fn values_and_their_forms_are_replaced_by_their_names() {
        let url = "S3c-r%26t%2F%22W%C3%B6rd%22%209z";
        let hex = "5333632d7226742f2257c3b6726422";
        for text in [
            VALUE.to_owned(),
            format!("a{VALUE}b"),
            VALUE.replace(' ', "\n\t "),
            "S3c-r&t\n/\"Wörd\" 9z".to_owned(),
            serde_json::to_string(VALUE).unwrap(),
            url.to_owned(),
            url.to_lowercase().replace("s3c", "S3c").replace('w', "W"),
            url.replace("%20", "+"),
            format!("{hex}20397a"),
            format!("{hex}20397a").to_uppercase(),
        ] {
            let masked = mask().text(text.clone());
            assert!(masked.contains("[secret TOKEN]"), "{text}: {masked}");
            assert!(
                !masked.contains("S3c") && !masked.contains("Wörd") && !masked.contains("5333"),
                "{masked}"
            );
        }
        assert_eq!(mask().text("nothing here: S3c-r".to_owned()), "nothing here: S3c-r");
        assert_eq!(
            mask().json(json!({"481516": [481_516, "a 481516 b", null]})),
            json!({
                "[secret PIN]": ["[secret PIN]", "a [secret PIN] b", null]
            })
        );
    }

    #[test]
    fn base64_is_found_wherever_it_begins_and_however_it_is_wrapped() {
        // `user:` + value, `x` + value and so on, as `base64` writes them.
        for (before, text) in [
            ("", "UzNjLXImdC8iV8O2cmQiIDl6"),
            ("x", "eFMzYy1yJnQvIlfDtnJkIiA5eg=="),
            ("user", "dXNlclMzYy1yJnQvIlfDtnJkIiA5eg=="),
            ("user:", "dXNlcjpTM2MtciZ0LyJXw7ZyZCIgOXo="),
            ("wrapped", "d3JhcHBlZFMzYy1y\nJnQvIlfDtnJk\nIiA5eg=="),
            ("as JSON", "UzNjLXImdC8i\\nV8O2cmQiIDl6"),
        ] {
            let masked = mask().text(text.to_owned());
            assert!(masked.contains("[secret TOKEN]"), "{before}: {masked}");
            assert!(masked.len() < 14 + 12 + before.len() * 2, "{before}: {masked}");
        }
    }

    #[test]
    fn secrets_that_overlap_leave_nothing_of_either() {
        let mask = Mask::new([("A", "abcdefgh"), ("B", "efghijkl"), ("C", "cdef12")]);
        assert_eq!(mask.text("-abcdefghijkl-".to_owned()), "-[secret B]-");
        assert_eq!(mask.text("-abcdef12-".to_owned()), "-ab[secret C]-");
    }

    #[test]
    fn every_way_to_cut_a_text_into_pieces_gives_the_same() {
        let text = format!("begin {VALUE} S3c-r&t 481516\\n4815\\n16 481 S3c");
        let whole = mask().text(text.clone());
        assert!(!whole.contains("481516"), "{whole}");
        for size in 1..text.len() {
            let mut stream = MaskedStream::new(mask());
            let mut shown = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                shown.extend_from_slice(&stream.push(piece));
            }
            shown.extend(stream.finish());
            assert_eq!(String::from_utf8(shown).unwrap(), whole, "pieces of {size}");
        }
    }

    #[test]
    fn lines_of_a_long_secret_are_secrets() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n";
        let mask = Mask::new([("KEY", key)]);
        assert_eq!(mask.text("> hkiG9w0BAQEFAASC <".to_owned()), "> [secret KEY] <");
        assert_eq!(mask.text(format!("[{key}]")), "[[secret KEY]\n]");
    }

    #[test]
    fn what_is_learned_is_hidden_by_all_clones_and_the_oldest_of_it_is_forgotten() {
        let mask = mask();
        let mut stream = MaskedStream::new(mask.clone());
        let early = stream.push(b"token-0000 ").into_owned();
        for n in 0..=LEARNED_SECRETS_MAX {
            mask.learn("LOGIN", &format!("token-{n:04}"));
        }
        let (first, last) = ("token-0000", format!("token-{LEARNED_SECRETS_MAX:04}"));
        let shown = [early, stream.push(last.as_bytes()).into_owned(), stream.finish()].concat();
        assert_eq!(String::from_utf8(shown).unwrap(), "token-0000 [secret LOGIN]");
        assert_eq!(mask.text(format!("{first} {VALUE}")), format!("{first} [secret TOKEN]"));
    }
}
