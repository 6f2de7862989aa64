//! Figures for Prometheus, as the loop publishes them and another thread reads them.
//!
//! The loop stores numbers at each tick, ten times a second; whoever scrapes renders them. So a
//! scrape never waits for the loop, nor the loop for a scrape.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A figure's type (Prometheus's documentation, "Metric types").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Only grows, until its process ends or it is reset.
    Counter,
    /// Goes up and down.
    Gauge,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        })
    }
}

/// One figure: its name, and what it is, in a sentence.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
}

/// The figures, with their numbers as they were last published.
#[derive(Debug)]
pub struct Metrics {
    figures: Vec<(Figure, AtomicU64)>,
}

impl Metrics {
    /// These figures, all 0, in the order in which they are shown.
    pub fn new(figures: impl Iterator<Item = Figure>) -> Self {
        Self { figures: figures.map(|figure| (figure, AtomicU64::new(0))).collect() }
    }

    /// The figures in Prometheus's text format (its documentation, "Exposition formats").
    pub fn render(&self) -> String {
        let mut text = String::new();
        for (Figure { name, kind, help }, value) in &self.figures {
            let value = value.load(Relaxed);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        text
    }

    /// Shows these numbers from now on, one for each figure.
    pub fn publish(&self, values: impl Iterator<Item = u64>) {
        for ((_, shown), value) in self.figures.iter().zip(values) {
            shown.store(value, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rendered_with_help_and_type() {
        let clients =
            Figure { name: "clients_connected", kind: Kind::Gauge, help: "Connected clients." };
        let commands =
            Figure { name: "commands_total", kind: Kind::Counter, help: "Commands executed." };
        let metrics = Metrics::new([clients, commands].into_iter());
        metrics.publish([7, 9].into_iter());
        let expected = "# HELP clients_connected Connected clients.\n\
                        # TYPE clients_connected gauge\nclients_connected 7\n\
                        # HELP commands_total Commands executed.\n\
                        # TYPE commands_total counter\ncommands_total 9\n";
        assert_eq!(metrics.render(), expected);
    }
}
