//! Stored bytes: golden files, and every way in which bytes can be wrong.
//!
//! The golden files in `tests/golden/` hold what a release wrote, and are never rewritten once it is out: a new version of a kind
//! gets new files beside them. To write the files of a kind that has none yet, run the tests once with `OUTLAST_GOLDEN=write`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use outlast_kernel::event::{Event, EventKind};
use outlast_kernel::ids::{Millis, OpId, Seq};
use outlast_kernel::rules;
use serde_json::json;

use super::record::HeadRecord;
use super::{CodecError, frame, kind, record, step};
use crate::conformance::samples;
use crate::limits::NESTING_MAX;
use crate::{BlobId, Head, Index, Remains, Segment};

/// Returns the stored bytes of a golden file, written first if it is missing and the switch is on.
fn golden(name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if !path.exists() && std::env::var("OUTLAST_GOLDEN").is_ok_and(|switch| switch == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}; OUTLAST_GOLDEN=write makes it", path.display()))
}

fn before(n: Seq) -> Head {
    Head { seq: Seq(n.0 - 1), chain: [0xc5; 32] }
}

fn encoded(events: &[Event]) -> Vec<u8> {
    step::encode(&before(events[0].n), events, &BTreeSet::new()).unwrap().0
}

fn decoded(bytes: &[u8]) -> Result<Vec<Event>, CodecError> {
    step::decode(bytes)?.events_after(Seq(0), usize::MAX).map(|(events, _)| events)
}

#[test]
fn every_kind_is_written_and_read_as_its_golden_file() {
    let mut codes = Vec::new();
    for (name, event) in samples::every_kind() {
        let bytes = encoded(std::slice::from_ref(&event));
        let stored = golden(&format!("event-{name}.bin"), &bytes);
        assert_eq!(decoded(&stored), Ok(vec![event.clone()]), "{name}");
        assert!(stored == bytes, "{name}: other bytes are written than the file holds");
        assert!(step::decode(&stored).unwrap().follows(&[0xc5; 32]), "{name}");
        codes.push(kind::code(&event.kind));
    }
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes, (1..=22).collect::<Vec<_>>(), "every kind has a sample");
}

#[test]
fn every_golden_file_of_an_event_is_read() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut read = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("event-") {
            assert_eq!(decoded(&fs::read(&path).unwrap()).map(|events| events.len()), Ok(1), "{path:?}");
            read += 1;
        }
    }
    assert!(read >= samples::every_kind().len());
}

#[test]
fn other_values_are_written_and_read_as_their_golden_files() {
    let events = samples::messages(&Head::default(), 3);
    let (bytes, head, held) = step::encode(&Head::default(), &events, &BTreeSet::new()).unwrap();
    assert!(held.ids.is_empty());
    let stored = golden("step.bin", &bytes);
    assert!(stored == bytes);
    assert_eq!(decoded(&stored), Ok(events));

    let index = Index { ready: true, due: Some(Millis(-5)) };
    for (name, record) in [
        ("head.bin", HeadRecord { head, index, started_at: Millis(1_700_000_000_000) }),
        ("head-bare.bin", HeadRecord { head, index: Index::default(), started_at: Millis(0) }),
    ] {
        let stored = golden(name, &record::encode_head(&record));
        assert!(stored == record::encode_head(&record));
        assert_eq!(record::decode_head(&stored), Ok(record));
    }

    let summary = samples::summary(&samples::run("r-1"), 1_700_000_000_000);
    let bytes = record::encode_summary(&summary).unwrap();
    let stored = golden("summary-short.bin", &bytes);
    assert!(stored == bytes);
    assert_eq!(record::decode_summary(&stored).as_ref(), Ok(&summary));
    // As it was written before its names were short.
    assert_eq!(record::decode_summary(&golden("summary.bin", &[])), Ok(summary));

    let bytes = record::encode_snapshot(Seq(9), b"state");
    let stored = golden("snapshot.bin", &bytes);
    assert!(stored == bytes);
    assert_eq!(record::decode_snapshot(&stored), Ok((Seq(9), b"state".to_vec())));

    let segment = |run: &str, to, held_by: &str| Segment {
        run: samples::run(run),
        to: Seq(to),
        held_by: samples::run(held_by),
    };
    let lineage = vec![segment("a", 4, "b"), segment("b", u64::MAX, "b")];
    let bytes = record::encode_lineage(&lineage).unwrap();
    let stored = golden("lineage.bin", &bytes);
    assert!(stored == bytes);
    assert_eq!(record::decode_lineage(&stored), Ok(lineage));

    for (name, remains) in [
        ("remains-bare.bin", Remains::default()),
        ("remains.bin", Remains { parent: Some((samples::run("a"), Seq(4))), begun: vec![OpId(Seq(2), 1)] }),
    ] {
        let stored = golden(name, &record::encode_remains(&remains).unwrap());
        assert_eq!(record::decode_remains(&stored), Ok(remains), "{name}");
    }

    let bytes = record::encode_commit(u64::MAX - 1);
    let stored = golden("commit.bin", &bytes);
    assert!(stored == bytes);
    assert_eq!(record::decode_commit(&stored), Ok(u64::MAX - 1));
}

/// Nearly every run has the usual rules, so they are written as a mark; whatever stands beside them is kept.
#[test]
fn the_usual_protection_is_written_short_and_read_whole() {
    let (own, usual) = (vec!["shell(git push*)".to_owned()], rules::usual_protection());
    let started = |ask: &[Vec<String>]| {
        let kind = samples::every_kind().into_iter().find(|(name, _)| *name == "started");
        let mut event = kind.unwrap().1;
        if let EventKind::Started(started) = &mut event.kind {
            started.config.ask = ask.concat().into();
        }
        event
    };
    let bare = encoded(&[started(&[])]).len();
    for (lists, is_short) in [
        (vec![usual.clone()], true),
        (vec![own.clone(), usual.clone(), own.clone()], true),
        (vec![usual[1..].to_vec()], false),
        (vec![usual.clone(), usual.clone()], false),
    ] {
        let event = started(&lists);
        let bytes = encoded(std::slice::from_ref(&event));
        assert_eq!(bytes.len() < bare + 100, is_short, "{lists:?}");
        assert_eq!(decoded(&bytes), Ok(vec![event]));
    }
    let event = started(&[own, usual]);
    let stored = golden("event-started-protected.bin", &encoded(std::slice::from_ref(&event)));
    assert_eq!(decoded(&stored), Ok(vec![event]));
}

/// A step of a release that knows blobs: one value stands elsewhere, one blob is named.
#[test]
fn a_step_with_blobs_is_written_and_read_as_its_golden_files() {
    let named = BlobId::of(b"named");
    let mut events = samples::messages(&Head::default(), 3);
    let text = "large ".repeat(1_000);
    for (event, text) in events.iter_mut().zip([text.as_str(), &format!("see blob:{named}")]) {
        if let EventKind::Message { value, .. } = &mut event.kind {
            *value = json!({ "text": text });
        }
    }
    let there = BTreeSet::from([named]);
    let (bytes, _, held) = step::encode(&Head::default(), &events, &there).unwrap();
    let stored = golden("step-blobs.bin", &bytes);
    assert!(stored == bytes && stored.len() < 1_000);
    let large = held.contents.keys().copied().next().unwrap();
    assert_eq!(held.ids, BTreeSet::from([named, large]));
    let value = golden("value.bin", &held.contents[&large]);
    assert_eq!(BlobId::of(&value), large);
    assert_eq!(record::decode_value(&value), Ok(json!({ "text": text })));
    let step = step::decode(&stored).unwrap();
    assert_eq!(step.blobs().unwrap(), held.ids);
    let (found, filling) = step.events_after(Seq(0), 9).unwrap();
    assert_eq!((filling.len(), filling[0].index, filling[0].place, filling[0].blob), (1, 0, 0, large));
    assert_eq!(found[1..], events[1..], "a name stays in its text");
    for cut in 0..stored.len() {
        assert!(matches!(decoded(&stored[..cut]), Err(CodecError::Damaged(_))), "cut at {cut}");
    }
    let moment = golden("moment.bin", &record::encode_moment(Millis(-5)));
    assert_eq!(record::decode_moment(&moment), Ok(Millis(-5)));
}

#[test]
fn a_cut_or_longer_value_is_damaged() {
    let events: Vec<_> = samples::every_kind().into_iter().map(|(_, event)| event).collect();
    let bytes = encoded(&events);
    for cut in 0..bytes.len() {
        assert!(matches!(decoded(&bytes[..cut]), Err(CodecError::Damaged(_))), "cut at {cut}");
    }
    for tail in [&[0][..], &[0xc0], &bytes] {
        let longer = [&bytes, tail].concat();
        assert!(matches!(decoded(&longer), Err(CodecError::Damaged(_))), "{} bytes more", tail.len());
    }
}

#[test]
fn garbage_after_the_fields_of_an_event_is_damaged() {
    for (name, event) in samples::every_kind() {
        let mut bytes = encoded(&[event]);
        bytes.push(0xc0);
        // The event's length takes the garbage in, so only the decoder of its fields can tell.
        let at = 4 + 4 + 8 + 4 + 32;
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) + 1;
        bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
        assert!(matches!(decoded(&bytes), Err(CodecError::Damaged(_))), "{name}");
    }
}

#[test]
fn a_flipped_byte_never_panics_and_always_breaks_the_chain() {
    let events: Vec<_> = samples::every_kind().into_iter().map(|(_, event)| event).collect();
    let bytes = encoded(&events);
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut flipped = bytes.clone();
            flipped[at] ^= flip;
            let _any = decoded(&flipped);
            let follows = step::decode(&flipped).is_ok_and(|step| step.follows(&[0xc5; 32]));
            assert!(!follows, "byte {at} flipped by {flip:x}");
        }
    }
}

#[test]
fn what_a_newer_release_writes_is_refused_as_newer() {
    let event = samples::message(1, "x");
    let bytes = encoded(&[event]);
    let inner = 4 + 4 + 8 + 4 + 32 + 4;
    for (at, value, part, found, known) in [
        (0, 2, "version", 2, 1),
        (1, 1, "flags", 1, 0),
        (4, 9, "key id", 9, 0),
        (inner, 2, "version", 2, 1),
        (inner + 1, 4, "flags", 4, 1),
        (inner + 2, 77, "kind", 77, 22),
    ] {
        let mut newer = bytes.clone();
        newer[at] = value;
        assert_eq!(decoded(&newer), Err(CodecError::Newer { part, found, known }), "byte {at}");
    }
}

#[test]
fn a_value_of_another_kind_is_damaged() {
    let commit = record::encode_commit(1);
    assert!(matches!(step::decode(&commit), Err(CodecError::Damaged(_))));
    assert!(matches!(record::decode_head(&commit), Err(CodecError::Damaged(_))));
    assert!(matches!(record::decode_summary(&commit), Err(CodecError::Damaged(_))));
    let mut event = encoded(&[samples::message(1, "x")]);
    event[4 + 4 + 8 + 4 + 32 + 4 + 2..][..2].copy_from_slice(&frame::STEP.to_le_bytes());
    assert!(matches!(decoded(&event), Err(CodecError::Damaged(_))));
}

#[test]
fn nesting_is_refused_before_it_is_written_and_never_on_reading() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |value, _| json!([value]));
    let message = |levels| {
        let mut event = samples::message(1, "x");
        if let EventKind::Message { value, .. } = &mut event.kind {
            *value = nested(levels);
        }
        event
    };
    let deepest = message(NESTING_MAX);
    assert_eq!(decoded(&encoded(std::slice::from_ref(&deepest))), Ok(vec![deepest]));
    let refused = step::encode(&before(Seq(1)), &[message(NESTING_MAX + 1)], &BTreeSet::new());
    assert!(matches!(refused, Err(CodecError::Damaged(_))), "what cannot be read is not written");
    let mut summary = samples::summary(&samples::run("r"), 1);
    summary.view = nested(NESTING_MAX + 1);
    assert!(record::encode_summary(&summary).is_err());
}

#[test]
fn integers_and_floats_come_back_as_they_were() {
    for value in [json!(0), json!(-1), json!(u64::MAX), json!(i64::MIN), json!(1.0), json!(0.1), json!(-0.0)]
    {
        let mut event = samples::message(1, "x");
        if let EventKind::Message { value: place, .. } = &mut event.kind {
            *place = value.clone();
        }
        let found = decoded(&encoded(&[event.clone()])).unwrap();
        assert_eq!(found, [event]);
        assert!(format!("{:?}", found[0].kind).contains(&format!("{value:?}")), "{value:?}");
    }
}
