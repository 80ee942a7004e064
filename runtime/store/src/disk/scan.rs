//! The scan of the journals before fjall opens them.
//!
//! fjall stops reading at the first bad place and cuts the file there, however much comes after. That is right for a torn tail, the
//! one batch that a crash can leave unsynced, and a silent loss for anything else. So the scan tells the two apart first: it only
//! reads, until [`Scan::cut`] is called. Invariant: nothing is cut behind which a complete batch stands.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{files, journal};
use crate::StoreError;
use crate::limits::EVIDENCE_MAX;

const EVIDENCE: &str = "evidence";
const CHUNK: u64 = 1 << 16;

/// What the journals hold.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Bytes of batches read.
    pub(super) bytes: u64,
    /// Complete batches.
    pub(super) batches: u64,
    /// The last commit among them.
    pub(super) commit_last: Option<u64>,
    /// The last sequence number among them; the checksum does not cover it, but it only grows.
    number_last: Option<u64>,
    /// The torn tail: the file, where it begins, and its bytes.
    torn: Option<(PathBuf, u64, u64)>,
}

/// Why the journals are refused.
struct Refusal {
    journal: PathBuf,
    detail: String,
}

/// Reads all journals of a database.
///
/// # Errors
/// [`StoreError::Damaged`] if something is missing or bad that no torn tail explains; copies are kept in `evidence`.
pub(super) fn scan(directory: &Path, database: &Path) -> Result<Scan, StoreError> {
    let journals = journals(database).map_err(files::failed(directory, "list the journals"))?;
    let mut scan = Scan::default();
    let mut refusal = None;
    if journals.is_empty() {
        let detail = "it has no journal, and fjall always has one".into();
        refusal = Some(Refusal { journal: database.to_path_buf(), detail });
    }
    for (i, (id, path)) in journals.iter().enumerate() {
        let bytes = data(path).map_err(files::failed(directory, "read the journals"))?;
        let before = i.checked_sub(1).and_then(|i| journals.get(i)).map(|(id, _)| *id);
        let missing = before.filter(|before| before + 1 != *id);
        let judged = match missing {
            Some(before) => Err(format!("journals between {before} and {id} are missing")),
            None => read(&mut scan, path, &bytes, journals.len() - 1 - i),
        };
        if let Err(detail) = judged {
            refusal = Some(Refusal { journal: path.clone(), detail });
            break;
        }
    }
    match refusal {
        Some(refusal) => Err(refuse(directory, database, &refusal.journal, &refusal.detail)),
        None => Ok(scan),
    }
}

/// Tells whether a database holds no commit.
pub(super) fn is_unused(directory: &Path, database: &Path) -> Result<bool, StoreError> {
    let none = journals(database).map_err(files::failed(directory, "list the journals"))?.is_empty();
    Ok(none || scan(directory, database)?.batches == 0)
}

impl Scan {
    /// Returns the bytes of the torn tail.
    pub(super) fn torn_bytes(&self) -> u64 {
        self.torn.as_ref().map_or(0, |(_, _, bytes)| *bytes)
    }

    /// Cuts the torn tail, durably.
    pub(super) fn cut(&self, directory: &Path) -> Result<(), StoreError> {
        let Some((path, at, _)) = &self.torn else { return Ok(()) };
        let cut = || {
            let file = File::options().write(true).open(path)?;
            file.set_len(*at)?;
            file.sync_all()
        };
        cut().map_err(files::failed(directory, "cut the torn tail of a journal"))
    }
}

/// Refuses to start, and keeps a copy of every journal: what opens the directory next may cut them.
pub(super) fn refuse(directory: &Path, database: &Path, journal: &Path, detail: &str) -> StoreError {
    let kept = match keep_copies(directory, database) {
        Ok(place) => format!("copies of the journals are in {}", place.display()),
        Err(e) => format!("copies of the journals could not be made ({e})"),
    };
    let detail = format!("{detail}; {kept}; restore a backup, or ask for help with them");
    StoreError::Damaged { what: journal.display().to_string(), detail }
}

/// Reads one journal. `later` journals come after it: those were begun when this one was whole and synced.
fn read(scan: &mut Scan, path: &Path, bytes: &[u8], later: usize) -> Result<(), String> {
    let mut at = 0;
    while let Some(found) = journal::batch(bytes, at) {
        if scan.number_last.is_some_and(|last| last >= found.number) {
            return Err(format!("the batch at byte {at} is older than the one before it"));
        }
        if let (Some(last), Some(commit)) = (scan.commit_last, found.commit)
            && commit != last + 1
        {
            return Err(format!("commit {commit} follows commit {last}: batches in between are missing"));
        }
        (at, scan.number_last) = (found.end, Some(found.number));
        scan.commit_last = found.commit.or(scan.commit_last);
        scan.batches += 1;
    }
    scan.bytes += at as u64;
    if later > 0 && at == 0 {
        return Err("no batch is in it, though another journal was begun after it".into());
    }
    if at == bytes.len() {
        return Ok(());
    }
    if let Some(good) = journal::later_batch(bytes, at + 1, scan.number_last) {
        return Err(format!("it is bad at byte {at}, but a complete batch stands at byte {good}"));
    }
    if later > 0 {
        return Err(format!("it is bad at byte {at}, but it was whole when the next journal was begun"));
    }
    let cut = (bytes.len() - at) as u64;
    scan.torn = Some((path.to_path_buf(), at as u64, cut));
    Ok(())
}

/// Returns the journals in the order of their numbers.
fn journals(database: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(database)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".jnl")?.parse().ok());
        found.extend(number.map(|number| (number, path)));
    }
    found.sort_unstable();
    Ok(found)
}

/// Reads a journal without the zeroes that fill it up.
fn data(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut end = file.metadata()?.len();
    let zeroes = vec![0; CHUNK as usize];
    let mut chunk = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(start))?;
        chunk.clear();
        file.by_ref().take(end - start).read_to_end(&mut chunk)?;
        end = start;
        if chunk != zeroes[..chunk.len()] {
            end += chunk.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
            break;
        }
    }
    let mut bytes = Vec::with_capacity(usize::try_from(end).unwrap_or(0));
    file.seek(SeekFrom::Start(0))?;
    file.take(end).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Copies every journal, named by its content, so that starting again on the same damage adds nothing.
fn keep_copies(directory: &Path, database: &Path) -> io::Result<PathBuf> {
    let place = directory.join(EVIDENCE);
    fs::create_dir_all(&place)?;
    for (number, path) in journals(database)? {
        let bytes = data(&path)?;
        let copy = place.join(format!("{number}-{}.jnl", &blake3::hash(&bytes).to_hex()[..16]));
        if !copy.exists() && fs::read_dir(&place)?.count() < EVIDENCE_MAX {
            fs::write(&copy, &bytes)?;
            File::open(&copy)?.sync_all()?;
        }
    }
    files::sync_directory(&place)?;
    Ok(place)
}
