//! What was measured: a table for people, JSON for machines.
//!
//! Leaves measuring to the workloads. Invariant: a figure that has a target says whether it is met only where the whole workload was done.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::floor::Syncs;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    machine: Machine,
    scale: f64,
    figures: Vec<Figure>,
}

/// Where it was measured.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    version: &'static str,
    build: &'static str,
    cores: usize,
    directory: String,
    fdatasync_p50_ms: f64,
    fdatasync_p99_ms: f64,
}

/// One figure. All fields are always there; what does not apply is null.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    workload: &'static str,
    figure: String,
    value: Option<f64>,
    unit: &'static str,
    target: Option<Target>,
    met: Option<bool>,
    floor: Option<Floor>,
    /// The value divided by the floor's.
    ratio: Option<f64>,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// The least that the machine allows, measured in the same run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Floor {
    what: &'static str,
    value: f64,
}

impl Machine {
    /// Describes this machine and this build.
    pub(super) fn of(directory: &Path, syncs: &Syncs) -> Machine {
        Machine {
            version: env!("CARGO_PKG_VERSION"),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            directory: directory.display().to_string(),
            fdatasync_p50_ms: rounded(syncs.p50_ms),
            fdatasync_p99_ms: rounded(syncs.p99_ms),
        }
    }
}

impl Figure {
    /// Makes a figure without a target.
    pub(super) fn new(
        workload: &'static str,
        figure: impl Into<String>,
        value: impl Into<Option<f64>>,
        unit: &'static str,
    ) -> Figure {
        let (figure, value) = (figure.into(), value.into().map(rounded));
        Figure { workload, figure, value, unit, target: None, met: None, floor: None, ratio: None }
    }

    /// Says that it should be so much, or more.
    pub(super) fn at_least(self, target: f64) -> Figure {
        Figure { target: Some(Target::AtLeast(rounded(target))), ..self }
    }

    /// Says that it should be so much, or less.
    pub(super) fn at_most(self, target: f64) -> Figure {
        Figure { target: Some(Target::AtMost(rounded(target))), ..self }
    }

    /// Adds what the machine allows.
    pub(super) fn floor(self, what: &'static str, value: f64) -> Figure {
        let ratio = self.value.filter(|_| value > 0.0).map(|found| rounded(found / value));
        Figure { floor: Some(Floor { what, value: rounded(value) }), ratio, ..self }
    }

    fn is_met(&self) -> Option<bool> {
        match (self.value?, self.target?) {
            (value, Target::AtLeast(target)) => Some(value >= target),
            (value, Target::AtMost(target)) => Some(value <= target),
        }
    }
}

impl Report {
    /// Puts figures together. What is met is said of whole workloads only.
    pub(super) fn new(machine: Machine, scale: f64, mut figures: Vec<Figure>) -> Report {
        for figure in &mut figures {
            figure.met = figure.is_met().filter(|_| scale >= 1.0);
        }
        Report { machine, scale, figures }
    }

    /// Writes it down for people.
    pub(super) fn table(&self) -> String {
        let Machine { version, build, cores, directory, fdatasync_p50_ms, fdatasync_p99_ms } = &self.machine;
        let mut text = format!(
            "outlast {version} ({build} build), {cores} cores; fdatasync of 4 KiB in {directory}: p50 {fdatasync_p50_ms} ms, p99 {fdatasync_p99_ms} ms\n"
        );
        if self.scale < 1.0 {
            // Infallible, as all writing into a text.
            let _ = writeln!(text, "scale {}: targets are for 1", self.scale);
        }
        let head = ["workload", "figure", "value", "target", "met", "floor", "ratio"].map(str::to_owned);
        let rows: Vec<[String; 7]> =
            std::iter::once(head).chain(self.figures.iter().map(Figure::row)).collect();
        let widths: [usize; 7] =
            std::array::from_fn(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0));
        for row in rows {
            let cells: Vec<String> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            text = text + "\n" + cells.join("  ").trim_end();
        }
        text
    }
}

impl Figure {
    fn row(&self) -> [String; 7] {
        let with_unit = |value: f64| format!("{} {}", number(value), self.unit).trim_end().to_owned();
        let target = match self.target {
            None => String::new(),
            Some(Target::AtLeast(least)) => format!(">= {}", number(least)),
            Some(Target::AtMost(most)) => format!("<= {}", number(most)),
        };
        let met = match self.met {
            None => "",
            Some(true) => "yes",
            Some(false) => "no",
        };
        [
            self.workload.to_owned(),
            self.figure.clone(),
            self.value.map_or_else(|| "not known".to_owned(), with_unit),
            target,
            met.to_owned(),
            self.floor.map_or_else(String::new, |floor| format!("{} ({})", number(floor.value), floor.what)),
            self.ratio.map(number).unwrap_or_default(),
        ]
    }
}

/// Rounds to three places: more would pretend to be known.
fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// Writes a number with three digits behind its point where it is small, and groups of three where it is large.
fn number(value: f64) -> String {
    if value.abs() < 100.0 {
        return rounded(value).to_string();
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(scale: f64) -> Report {
        let syncs = Syncs { p50_ms: 0.1234, p99_ms: 0.5 };
        let figures = vec![
            Figure::new("steps", "steps", 50_000.4, "steps/s").at_least(50_000.0).floor("fjall", 100_000.0),
            Figure::new("latency", "p50", 0.2501, "ms").at_most(0.25),
            Figure::new("idle", "memory", None, "MB").at_most(64.0),
        ];
        Report::new(Machine::of(Path::new("/tmp"), &syncs), scale, figures)
    }

    #[test]
    fn whether_a_target_is_met_is_said_of_whole_workloads_that_were_measured() {
        let met = |scale| report(scale).figures.iter().map(|figure| figure.met).collect::<Vec<_>>();
        assert_eq!(met(1.0), [Some(true), Some(true), None]);
        assert_eq!(met(0.5), [None; 3]);
    }

    #[test]
    fn the_table_has_a_row_for_each_figure() {
        let table = report(1.0).table();
        assert!(table.contains("fdatasync of 4 KiB in /tmp: p50 0.123 ms, p99 0.5 ms"), "{table}");
        let rows: Vec<Vec<&str>> = table
            .lines()
            .skip(2)
            .map(|line| line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect())
            .collect();
        assert_eq!(
            rows[1],
            ["steps", "steps", "50,000 steps/s", ">= 50,000", "yes", "100,000 (fjall)", "0.5"]
        );
        assert_eq!(rows[3], ["idle", "memory", "not known", "<= 64"]);
    }

    #[test]
    fn numbers_are_grouped() {
        for (value, text) in [
            (0.0, "0"),
            (99.9994, "99.999"),
            (100.4, "100"),
            (1_234_567.0, "1,234,567"),
            (-1_000.0, "-1,000"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
