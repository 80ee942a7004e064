//! What the system tells of a process: memory and processor time. Linux only; elsewhere the figures are missing.

/// Ticks in a second in which Linux tells processor time; the same on all of its common machines.
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the bytes of memory that a process has for itself: what it shares with its program file does not count.
pub(super) fn memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Returns the seconds that a process was on a processor.
pub(super) fn processor_seconds(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; user and system time are the 12th and 13th word after it.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_time() {
        let this = std::process::id();
        assert!(memory(this).is_some_and(|bytes| bytes > 10_000));
        assert!(processor_seconds(this).is_some());
        assert_eq!(memory(u32::MAX), None);
    }
}
