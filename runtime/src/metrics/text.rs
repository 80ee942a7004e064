//! Families as text, in the exposition format 0.0.4 of Prometheus.
//!
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/>. Invariant: each family stands there once, its help and type before
//! its samples.

use std::fmt::Write as _;

use super::{Family, Kind, Sample, Value};

/// Writes families down.
pub(crate) fn written(families: &[Family]) -> String {
    let mut text = String::new();
    for family in families {
        // Writing to a string does not fail.
        let _ = family_written(&mut text, family);
    }
    text
}

fn family_written(text: &mut String, family: &Family) -> std::fmt::Result {
    let Family { name, help, kind, samples } = family;
    let kind = match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
    for Sample { labels, value } in samples {
        match value {
            Value::Whole(number) => writeln!(text, "{name}{} {number}", shown(labels, None))?,
            Value::Real(number) => writeln!(text, "{name}{} {number}", shown(labels, None))?,
            Value::Histogram { buckets, seconds, count } => {
                for (bound, up_to) in buckets {
                    writeln!(text, "{name}_bucket{} {up_to}", shown(labels, Some(&bound.to_string())))?;
                }
                writeln!(text, "{name}_bucket{} {count}", shown(labels, Some("+Inf")))?;
                writeln!(text, "{name}_sum{} {seconds}", shown(labels, None))?;
                writeln!(text, "{name}_count{} {count}", shown(labels, None))?;
            }
        }
    }
    Ok(())
}

fn shown(labels: &[(&str, String)], bound: Option<&str>) -> String {
    let escaped = |text: &str| text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    let label = |(name, value): (&str, &str)| format!("{name}=\"{}\"", escaped(value));
    let labels = labels.iter().map(|(name, value)| (*name, value.as_str()));
    let all: Vec<String> = labels.chain(bound.map(|bound| ("le", bound))).map(label).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Durations;
    use super::*;

    #[test]
    fn families_are_written_with_help_type_and_escaped_labels() {
        let odd = Family::new("odd", "Odd ones.", Kind::Gauge, [Sample::with("queue", "a\"b\\c\nd", 2)]);
        let took = Durations::default();
        took.took(Duration::from_millis(300));
        let took = Family::new("took_seconds", "Time.", Kind::Histogram, [Sample::bare(took.value())]);
        let text = written(&[odd, took]);
        assert!(
            text.starts_with("# HELP odd Odd ones.\n# TYPE odd gauge\nodd{queue=\"a\\\"b\\\\c\\nd\"} 2\n")
        );
        let end =
            "le=\"10\"} 1\ntook_seconds_bucket{le=\"+Inf\"} 1\ntook_seconds_sum 0.3\ntook_seconds_count 1\n";
        assert!(text.ends_with(end), "{text}");
    }
}
