//! The latency monitor: the worst moments of each sort of event (Redis documentation, "Redis
//! latency monitoring").
//!
//! An event is sampled when it took at least `latency-monitor-threshold` milliseconds; one sample
//! a second is kept, the worst, and the latest 160 of them.

use base::MonotonicNanos;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

/// Samples kept of one event (Redis 7.0).
const SAMPLES_MAX: usize = 160;

/// Columns and rows of a graph (Redis 7.0).
const GRAPH_COLUMNS: usize = 80;
const GRAPH_ROWS: usize = 4;

/// What is drawn for one third, two thirds and all of a row.
const STROKES: [u8; 3] = *b"_o#";

/// One spike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Seconds since 1970, as it is shown.
    pub at: i64,
    /// When it was, to tell how long ago.
    pub noted: MonotonicNanos,
    pub millis: u64,
}

/// The spikes of one event.
#[derive(Clone, Default, Debug)]
pub struct Series {
    pub samples: VecDeque<Sample>,
    /// The worst ever, in milliseconds.
    pub worst: u64,
}

/// All events.
#[derive(Default, Debug)]
pub struct Latency {
    events: BTreeMap<&'static str, Series>,
}

impl Latency {
    /// Notes a spike.
    pub fn add(&mut self, event: &'static str, millis: u64, at: i64, noted: MonotonicNanos) {
        let series = self.events.entry(event).or_default();
        series.worst = series.worst.max(millis);
        match series.samples.back_mut() {
            Some(last) if last.at == at => last.millis = last.millis.max(millis),
            _ => {
                if series.samples.len() == SAMPLES_MAX {
                    series.samples.pop_front();
                }
                series.samples.push_back(Sample { at, noted, millis });
            }
        }
    }

    pub fn events(&self) -> &BTreeMap<&'static str, Series> {
        &self.events
    }

    /// Forgets the events of this name, in any case; how many there were.
    pub fn reset(&mut self, event: Option<&[u8]>) -> usize {
        let before = self.events.len();
        self.events.retain(|name, _| {
            event.is_some_and(|event| !event.eq_ignore_ascii_case(name.as_bytes()))
        });
        before - self.events.len()
    }

    /// What LATENCY DOCTOR says.
    pub fn report(&self, threshold_millis: u64, now: MonotonicNanos) -> String {
        if self.events.is_empty() {
            return if threshold_millis == 0 {
                "I'm sorry, Dave, I can't do that: latency monitoring is disabled. Enable it with \
                 'CONFIG SET latency-monitor-threshold <milliseconds>'.\n"
                    .to_owned()
            } else {
                format!("Dave, no event took {threshold_millis} ms or longer so far.\n")
            };
        }
        let mut report = "Dave, I have observed latency spikes in this instance.\n\n".to_owned();
        for (number, (event, series)) in self.events.iter().enumerate() {
            let summary = Summary::of(series, now);
            let _ = writeln!(
                report,
                "{}. {event}: {} latency spikes (average {}ms, mean deviation {}ms, period {:.2} \
                 sec). Worst all time event {}ms. {}",
                number + 1,
                summary.samples,
                summary.average,
                summary.mean_deviation,
                summary.period,
                series.worst,
                advice(event),
            );
        }
        report
    }
}

/// What to do about an event.
fn advice(event: &str) -> &'static str {
    match event {
        "command" => {
            "Look for slow commands with SLOWLOG GET, and for commands on big collections with \
             LATENCY HISTOGRAM."
        }
        "fast-command" => {
            "Even cheap commands were late: the process did not get the processor. Look for \
             other load on the machine or a noisy neighbour."
        }
        "log-commit" => {
            "The disk of the transaction log took long to make records durable. Use a faster or \
             less busy disk."
        }
        "expire-cycle" | "eviction-cycle" | "eviction-del" => {
            "Many keys went away at once. Spread their expiry times, or give maxmemory more room."
        }
        _ => "",
    }
}

/// Figures about one event.
struct Summary {
    samples: usize,
    average: u64,
    mean_deviation: u64,
    /// Seconds between spikes.
    period: f64,
}

impl Summary {
    fn of(series: &Series, now: MonotonicNanos) -> Self {
        let samples = series.samples.len().max(1);
        let total: u64 = series.samples.iter().map(|sample| sample.millis).sum();
        let average = total / samples as u64;
        let deviations = series.samples.iter().map(|sample| sample.millis.abs_diff(average));
        let mean_deviation = deviations.sum::<u64>() / samples as u64;
        let first = series.samples.front().map_or(now, |sample| sample.noted);
        let seconds = now.seconds_since(first).max(1);
        Self { samples, average, mean_deviation, period: seconds as f64 / samples as f64 }
    }
}

/// What LATENCY GRAPH draws: one column a sample, its age below, read downwards.
pub fn graph(event: &str, series: &Series, now: MonotonicNanos) -> String {
    let millis = || series.samples.iter().map(|sample| sample.millis);
    let (low, high) = (millis().min().unwrap_or(0), millis().max().unwrap_or(0));
    let mut graph = format!(
        "{event} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        series.worst,
        "-".repeat(GRAPH_COLUMNS)
    );
    let samples: Vec<Sample> = series.samples.iter().copied().collect();
    for (part, samples) in samples.chunks(GRAPH_COLUMNS).enumerate() {
        if part > 0 {
            graph.push('\n');
        }
        draw(samples, low, high, now, &mut graph);
    }
    graph
}

fn draw(samples: &[Sample], low: u64, high: u64, now: MonotonicNanos, graph: &mut String) {
    let steps = STROKES.len() * GRAPH_ROWS;
    let span = (high - low).max(1);
    let heights: Vec<usize> = samples
        .iter()
        .map(|sample| (((sample.millis - low) * steps as u64 / span) as usize).min(steps - 1))
        .collect();
    for row in (0..GRAPH_ROWS).rev() {
        for &height in &heights {
            let stroke = match height.checked_sub(row * STROKES.len()) {
                Some(above) if above >= STROKES.len() => b'|',
                Some(above) => STROKES[above],
                None => b' ',
            };
            graph.push(char::from(stroke));
        }
        graph.push('\n');
    }
    graph.push_str(&" ".repeat(samples.len()));
    graph.push('\n');
    let labels: Vec<String> = samples.iter().map(|it| age(now.seconds_since(it.noted))).collect();
    let depth = labels.iter().map(String::len).max().unwrap_or(0);
    for line in 0..depth {
        for label in &labels {
            graph.push(label.as_bytes().get(line).map_or(' ', |letter| char::from(*letter)));
        }
        graph.push('\n');
    }
}

fn age(seconds: u64) -> String {
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> MonotonicNanos {
        MonotonicNanos(0).after_millis(number * 1000)
    }

    #[test]
    fn one_sample_a_second_is_kept() {
        let mut latency = Latency::default();
        for (millis, at) in [(300, 10), (200, 10), (400, 10), (5, 11)] {
            latency.add("command", millis, at, second(3));
        }
        let series = &latency.events()["command"];
        let expected = [(10, 400), (11, 5)];
        let noted = second(3);
        let expected = expected.map(|(at, millis)| Sample { at, noted, millis });
        assert!(series.samples.iter().eq(&expected));
        assert_eq!(series.worst, 400);
        for at in 0..1000 {
            latency.add("fork", 1, at, second(3));
        }
        assert_eq!(latency.events()["fork"].samples.len(), SAMPLES_MAX);
        assert_eq!(latency.reset(Some(b"COMMAND")), 1);
        assert_eq!(latency.reset(None), 1);
    }

    #[test]
    fn graphs_show_heights_and_ages() {
        let mut series = Series { worst: 9, ..Series::default() };
        // However the clock is set that is shown.
        let samples = [(0, 1), (30, 9), (95, 5)].map(|(at, millis)| (second(at), millis));
        let samples = samples.map(|(noted, millis)| Sample { at: -77, noted, millis });
        series.samples.extend(samples);
        let drawn = graph("command", &series, second(100));
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], "command - high 9 ms, low 1 ms (all time high 9 ms)");
        assert_eq!(lines[1], "-".repeat(80));
        assert_eq!(&lines[2..], [" # ", " |_", " ||", "_||", "   ", "115", "mms"]);
    }

    #[test]
    fn the_doctor_names_what_it_saw() {
        let mut latency = Latency::default();
        assert!(latency.report(0, second(5)).contains("disabled"));
        assert!(latency.report(10, second(5)).contains("no event"));
        latency.add("command", 200, 1, second(1));
        let report = latency.report(10, second(5));
        assert!(report.contains("1. command: 1 latency spikes (average 200ms"), "{report}");
    }
}
