//! Counters of the node, as INFO and the metrics show them; the engine counts what happens to
//! keys.

use crate::histogram::Histogram;
use base::MonotonicNanos;
use catalog::CommandId;
use std::collections::BTreeMap;

/// Samples over which rates are averaged (Redis 7.0).
const RATE_SAMPLES: usize = 16;

/// Error codes that are counted each for itself; a script may make up any number. As Redis 7.2
/// (ERROR_STATS_NUMBER).
const ERROR_CODES_MAX: usize = 128;

/// The code under which all others are counted. Redis 7.4 has this one, and counts none then.
const OTHER_ERRORS: &str = "ERRORSTATS_OVERFLOW";

/// Time between two samples of a rate, in nanoseconds (Redis 7.0).
pub const SAMPLE_NANOS: u64 = 100_000_000;

/// What is known of one command.
#[derive(Clone, Default)]
pub struct CommandStatistics {
    /// How often it ran.
    pub calls: u64,
    /// How long that took altogether.
    pub nanos: u64,
    /// Refused before it ran.
    pub rejected: u64,
    /// Ran and answered an error.
    pub failed: u64,
    /// Durations, if `latency-tracking` was on when it ran.
    pub durations: Option<Box<Histogram>>,
}

/// Counts a second, averaged over the last samples.
#[derive(Clone, Default, Debug)]
pub struct Rate {
    samples: [f64; RATE_SAMPLES],
    at: usize,
    last_count: u64,
}

impl Rate {
    fn sample(&mut self, count: u64, nanos: u64) {
        let grown = count.saturating_sub(self.last_count) as f64;
        self.samples[self.at] = grown * 1e9 / nanos.max(1) as f64;
        self.at = (self.at + 1) % RATE_SAMPLES;
        self.last_count = count;
    }

    /// Mean of the last samples, per second.
    pub fn per_second(&self) -> f64 {
        self.samples.iter().sum::<f64>() / RATE_SAMPLES as f64
    }
}

/// Counters since the start or the last CONFIG RESETSTAT.
#[derive(Default)]
pub struct Statistics {
    /// Connections that were accepted.
    pub connections_received: u64,
    /// Connections that were turned away because `maxclients` were there.
    pub connections_rejected: u64,
    /// Commands that ran.
    pub commands_processed: u64,
    /// Bytes received from clients and replicas.
    pub input_bytes: u64,
    /// Bytes sent to clients and replicas.
    pub output_bytes: u64,
    /// Calls of receive that brought something.
    pub reads: u64,
    /// Calls of send that took something.
    pub writes: u64,
    /// Replies that were errors.
    pub error_replies: u64,
    /// Error replies by their code.
    pub errors: BTreeMap<String, u64>,
    /// Turns of the loop.
    pub turns: Turns,
    /// Bytes received from the master.
    pub link_input_bytes: u64,
    /// Time spent on deleting keys whose time had come, in nanoseconds.
    pub expire_nanos: u64,
    /// Leases of this primary in which its clocks parted.
    pub clock_gaps: u64,
    /// Clients disconnected because they did not read their replies.
    pub output_limit_disconnections: u64,
    /// Clients disconnected because too much waited here for them, or was kept.
    pub input_limit_disconnections: u64,
    /// Clients disconnected because all together occupied more than `maxmemory-clients`.
    pub evicted_clients: u64,
    /// By command id.
    pub commands: Vec<CommandStatistics>,
    /// Commands.
    pub operations_rate: Rate,
    /// Bytes received.
    pub input_rate: Rate,
    /// Bytes sent.
    pub output_rate: Rate,
    /// The largest `used_memory` seen, in bytes. Not reset.
    pub memory_peak_bytes: u64,
    /// Largest input and output of a client that the last sample saw, in bytes.
    pub input_bytes_max: usize,
    pub output_bytes_max: usize,
    sampled: MonotonicNanos,
    samples: u64,
}

/// Samples, 100 ms apart, between two trims of the clients' input buffers. Two: a buffer that one
/// large request made grow is given back within half a second of the next small ones.
const TRIM_SAMPLES: u64 = 2;

/// How long turns of the loop took, without their waiting (eventloop_cycles and its kin of Redis
/// 7.2).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Turns {
    pub count: u64,
    pub nanos: u64,
    /// The longest.
    pub nanos_max: u64,
    /// The most that counts as its thread's time in one, perhaps another one; what a hypervisor
    /// takes without telling counts. Measured where there is a tier.
    pub cpu_nanos_max: u64,
}

impl Turns {
    /// Counts a turn.
    #[inline]
    pub fn note(&mut self, nanos: u64) {
        self.count += 1;
        self.nanos += nanos;
        self.nanos_max = self.nanos_max.max(nanos);
    }

    /// So long the loop's thread had a processor in it.
    pub fn note_cpu(&mut self, nanos: u64) {
        self.cpu_nanos_max = self.cpu_nanos_max.max(nanos);
    }
}

impl Statistics {
    /// Counters for this many commands.
    pub fn new(commands: usize) -> Self {
        Self { commands: vec![CommandStatistics::default(); commands], ..Self::default() }
    }

    /// What is counted of one command.
    pub fn command(&mut self, id: CommandId) -> &mut CommandStatistics {
        &mut self.commands[id.0 as usize]
    }

    /// Counts an error reply.
    pub fn error(&mut self, code: &str) {
        self.error_replies += 1;
        let is_new = !self.errors.contains_key(code);
        let code = if is_new && self.errors.len() >= ERROR_CODES_MAX { OTHER_ERRORS } else { code };
        match self.errors.get_mut(code) {
            Some(count) => *count += 1,
            None => {
                self.errors.insert(code.to_owned(), 1);
            }
        }
    }

    /// Whether the next sample of rates is due.
    pub fn is_sample_due(&self, now: MonotonicNanos) -> bool {
        now.since(self.sampled) >= SAMPLE_NANOS
    }

    /// Whether buffers of clients are due to be trimmed at this sample.
    pub fn is_trim_due(&self) -> bool {
        self.samples.is_multiple_of(TRIM_SAMPLES)
    }

    /// Samples the rates.
    pub fn sample(&mut self, now: MonotonicNanos) {
        let nanos = now.since(self.sampled);
        self.sampled = now;
        self.samples += 1;
        self.operations_rate.sample(self.commands_processed, nanos);
        self.input_rate.sample(self.input_bytes, nanos);
        self.output_rate.sample(self.output_bytes, nanos);
    }

    /// CONFIG RESETSTAT.
    pub fn reset(&mut self) {
        let kept = std::mem::take(self);
        *self = Self::new(kept.commands.len());
        self.memory_peak_bytes = kept.memory_peak_bytes;
        self.sampled = kept.sampled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_averages_of_the_last_samples() {
        let mut statistics = Statistics::new(1);
        for turn in 1..=RATE_SAMPLES as u64 {
            statistics.commands_processed += 50;
            statistics.sample(MonotonicNanos(turn * SAMPLE_NANOS));
        }
        assert_eq!(statistics.operations_rate.per_second().round(), 500.0);
        assert!(!statistics.is_sample_due(MonotonicNanos(RATE_SAMPLES as u64 * SAMPLE_NANOS + 1)));
    }

    #[test]
    fn codes_without_end_are_counted_together() {
        let mut statistics = Statistics::new(1);
        for number in 0..1000 {
            statistics.error(&format!("E{number}"));
            statistics.error("E7");
        }
        assert_eq!(statistics.error_replies, 2000);
        assert_eq!(statistics.errors.len(), ERROR_CODES_MAX + 1);
        assert_eq!(statistics.errors["E7"], 1001);
        assert_eq!(statistics.errors[OTHER_ERRORS], 1000 - ERROR_CODES_MAX as u64);
    }

    #[test]
    fn resetting_keeps_the_peak() {
        let mut statistics = Statistics::new(3);
        statistics.error("ERR");
        statistics.memory_peak_bytes = 7;
        statistics.command(CommandId(1)).calls = 9;
        statistics.reset();
        assert_eq!(statistics.errors.len(), 0);
        assert_eq!(statistics.memory_peak_bytes, 7);
        assert_eq!(statistics.commands.len(), 3);
        assert_eq!(statistics.command(CommandId(1)).calls, 0);
    }
}
