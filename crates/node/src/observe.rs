//! What is noted of every call: its count and duration, the slow log, latency spikes, MONITOR.
//!
//! One reading of the clock a command: the end of one is the beginning of the next.

use crate::registry::Registered;
use crate::secrets::{REDACTED, secret_arguments};
use crate::server::Server;
use crate::session::Session;
use crate::slowlog::{Entry, abridge};
use base::{ConnectionId, MonotonicNanos};
use engine::command::{Args, Flags};
use std::fmt::Write;

/// A client that has said nothing for so long gives its input buffer back (Redis 7.0). In
/// nanoseconds.
const IDLE_NANOS: u64 = 2_000_000_000;

impl Server {
    /// Notes a call that began then and ends now.
    pub(crate) fn count_call(
        &mut self,
        session: &Session,
        command: &Registered,
        args: Args<'_>,
        began: MonotonicNanos,
        is_failed: bool,
    ) {
        let now = self.options.clock.monotonic();
        let nanos = now.since(began) + std::mem::take(&mut self.slept_nanos);
        self.lap = now;
        self.statistics.commands_processed += 1;
        let tracks = self.settings.latency_tracking;
        let counted = self.statistics.command(command.id);
        counted.calls += 1;
        counted.nanos += nanos;
        counted.failed += u64::from(is_failed);
        if tracks {
            counted.durations.get_or_insert_default().record(nanos);
        }
        let micros = nanos / 1000;
        let threshold = self.settings.slowlog_log_slower_than;
        if threshold >= 0 && micros >= threshold as u64 {
            self.note_slow(session, command, args, micros);
        }
        let event = if command.flags.contains(Flags::FAST) { "fast-command" } else { "command" };
        self.note_latency(event, nanos / 1_000_000);
    }

    /// Notes an event in the latency monitor if it took long enough.
    pub(crate) fn note_latency(&mut self, event: &'static str, millis: u64) {
        let threshold = self.settings.latency_monitor_threshold;
        if threshold > 0 && millis >= threshold {
            self.latency.add(event, millis, self.now.0.div_euclid(1000), self.monotonic);
        }
    }

    fn note_slow(&mut self, session: &Session, command: &Registered, args: Args<'_>, micros: u64) {
        if command.flags.contains(Flags::SKIP_SLOWLOG) {
            return;
        }
        let secrets = secret_arguments(self.registry, args);
        let entry = Entry {
            id: 0,
            at_seconds: self.now.0.div_euclid(1000),
            micros,
            arguments: abridge(args, |index| secrets.binary_search(&index).is_ok()),
            peer: session.peer.clone(),
            name: session.name.clone(),
        };
        let entries_max = usize::try_from(self.settings.slowlog_max_len).unwrap_or(usize::MAX);
        self.slowlog.push(entry, entries_max);
    }

    /// Shows a command to the sessions that run MONITOR. The line stays unsent until
    /// [`Self::hold_monitors`].
    pub(crate) fn tell_monitors(&mut self, session: &mut Session, args: Args<'_>) {
        let secrets = secret_arguments(self.registry, args);
        let micros = self.options.clock.unix_micros();
        let mut line = format!(
            "{}.{:06} [{} {}]",
            micros / 1_000_000,
            micros % 1_000_000,
            session.database.0,
            session.peer
        );
        for (index, argument) in args.iter().enumerate() {
            line.push(' ');
            let is_secret = secrets.binary_search(&index).is_ok();
            quote(if is_secret { REDACTED.as_bytes() } else { argument }, &mut line);
        }
        for connection in &self.monitors {
            if let Some(monitor) = self.sessions.get_mut(connection) {
                monitor.reply().simple(&line);
            }
        }
    }

    /// Lets the monitors' lines go when everything that happened until now is durable: a line
    /// reveals what its command may have written.
    pub(crate) fn hold_monitors(&mut self) {
        let newest = self.shard.tracker.newest();
        let monitors: Vec<ConnectionId> = self.monitors.iter().copied().collect();
        for connection in monitors {
            let Some(mut monitor) = self.sessions.remove(&connection) else { continue };
            self.hold(&mut monitor, newest);
            self.sessions.insert(connection, monitor);
        }
    }

    /// The periodic work, when it is due.
    pub(crate) fn tick(&mut self) {
        if self.statistics.is_sample_due(self.monotonic) {
            self.sample();
        }
    }

    /// Samples what INFO shows as rates and peaks, and looks at every session.
    #[cold]
    fn sample(&mut self) {
        self.statistics.sample(self.monotonic);
        self.check_sessions();
        let used = self.shard.engine.keyspace.used_bytes() as u64;
        self.statistics.memory_peak_bytes = self.statistics.memory_peak_bytes.max(used);
        let is_trim_due = self.statistics.is_trim_due();
        let (mut input_max, mut output_max) = (0, 0);
        for session in self.sessions.values_mut() {
            if is_trim_due {
                let idle = self.monotonic.since(session.last_interaction);
                session.input.trim(idle > IDLE_NANOS);
            }
            input_max = input_max.max(session.input.bytes.capacity());
            output_max = output_max.max(session.output.allocated_bytes());
        }
        self.statistics.input_bytes_max = input_max;
        self.statistics.output_bytes_max = output_max;
        self.publish_metrics();
    }
}

/// Appends an argument in quotes, everything unprintable escaped.
fn quote(argument: &[u8], line: &mut String) {
    line.push('"');
    for &byte in argument {
        match byte {
            b'\\' | b'"' => line.extend(['\\', char::from(byte)]),
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x07 => line.push_str("\\a"),
            0x08 => line.push_str("\\b"),
            0x20..=0x7e => line.push(char::from(byte)),
            _ => {
                let _ = write!(line, "\\x{byte:02x}");
            }
        }
    }
    line.push('"');
}
