//! What is noted of every call: its count and duration, the slow log, latency spikes, MONITOR.
//!
//! One reading of the time a command, by a counter (`core/stopwatch`): the end of one is the
//! beginning of the next.

use crate::core::Core;
use crate::core::clients::Monitored;
use base::{ConnectionId, MonotonicNanos};
use catalog::Registered;
use catalog::secrets::secret_arguments;
use engine::command::secrets::REDACTED;
use engine::command::{Args, Flags};
use statistics::slowlog::{Entry, abridge};

/// Bytes of an argument that are quoted for MONITOR between two looks at how much there is already.
const QUOTED_BYTES: usize = 64 << 10;

impl Core {
    /// Notes a call that began then and ends now.
    pub(crate) fn count_call(
        &mut self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
        began: MonotonicNanos,
        is_failed: bool,
    ) {
        let now = self.lap_time();
        let nanos = now.since(began) + std::mem::take(&mut self.turn.slept_nanos);
        self.turn.lap = now;
        self.process.statistics.commands_processed += 1;
        let tracks = self.process.settings.latency_tracking;
        let counted = self.process.statistics.command(command.id);
        counted.calls += 1;
        counted.nanos += nanos;
        counted.failed += u64::from(is_failed);
        if tracks {
            counted.durations.get_or_insert_default().record(nanos);
        }
        let micros = nanos / 1000;
        let threshold = self.process.settings.slowlog_log_slower_than;
        if threshold >= 0 && micros >= threshold as u64 {
            self.note_slow(client, command, args, micros);
        }
        let event = if command.flags.contains(Flags::FAST) { "fast-command" } else { "command" };
        self.note_latency(event, nanos / 1_000_000);
    }

    /// Notes an event in the latency monitor if it took long enough.
    pub(crate) fn note_latency(&mut self, event: &'static str, millis: u64) {
        let threshold = self.process.settings.latency_monitor_threshold;
        if threshold > 0 && millis >= threshold {
            self.process.latency.add(
                event,
                millis,
                self.turn.now.0.div_euclid(1000),
                self.turn.monotonic,
            );
        }
    }

    fn note_slow(
        &mut self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
        micros: u64,
    ) {
        if command.flags.contains(Flags::SKIP_SLOWLOG) {
            return;
        }
        let secrets = secret_arguments(self.process.catalog, args);
        let entry = Entry {
            id: 0,
            at_seconds: self.turn.now.0.div_euclid(1000),
            micros,
            arguments: abridge(args, |index| secrets.binary_search(&index).is_ok()),
            peer: self.clients.at(client).who.peer.clone(),
            name: self.clients.at(client).who.name.clone(),
        };
        let entries_max =
            usize::try_from(self.process.settings.slowlog_max_len).unwrap_or(usize::MAX);
        self.process.slowlog.push(entry, entries_max);
    }

    /// Adds a command's line for the sessions that run MONITOR. They get it at the end of the unit.
    /// Beyond what one client may be owed nothing is written any more, and they are disconnected.
    pub(crate) fn tell_monitors(&mut self, client: ConnectionId, args: Args<'_>) {
        let work = self.work();
        let lines_max = self.interest.owed_bytes_max.unwrap_or(usize::MAX);
        let line_max = lines_max.saturating_sub(self.clients.monitored.bytes);
        let secrets = secret_arguments(self.process.catalog, args);
        let micros = self.process.options.clock.unix_micros();
        let session = self.clients.at(client);
        let mut line = format!(
            "{}.{:06} [{} {}]",
            micros / 1_000_000,
            micros % 1_000_000,
            session.database.0,
            if session.is_in_script { "lua" } else { &session.who.peer }
        );
        for (index, argument) in args.iter().enumerate() {
            work.step();
            line.push_str(" \"");
            let is_secret = secrets.binary_search(&index).is_ok();
            let shown = if is_secret { REDACTED.as_bytes() } else { argument };
            for piece in shown.chunks(QUOTED_BYTES) {
                work.bytes(piece.len());
                escape(piece, &mut line);
                if line.len() > line_max {
                    return self.cut_monitors();
                }
            }
            line.push('"');
        }
        let monitored = &mut self.clients.monitored;
        monitored.bytes += line.len();
        monitored.lines.push((client, line));
        if self.clients.monitored.bytes > lines_max {
            self.cut_monitors();
        }
    }

    /// Disconnects all monitors: the unit, such as an endless script's, has more lines than one
    /// client may be owed.
    #[cold]
    fn cut_monitors(&mut self) {
        self.clients.monitored = Monitored::default();
        for monitor in std::mem::take(&mut self.clients.monitors) {
            if self.clients.has(monitor) {
                self.cut_off(monitor);
            }
        }
    }

    /// Lets the monitors' lines go when everything that happened until now is durable: a line
    /// reveals what its command may have written.
    pub(crate) fn hold_monitors(&mut self) {
        let newest = self.shard.tracker.newest();
        let monitored = std::mem::take(&mut self.clients.monitored);
        for monitor in self.clients.monitors.clone() {
            // A monitor is not shown its own requests: its reply is being written.
            let shown = monitored.lines.iter().filter(|(sender, _)| *sender != monitor);
            let mut is_shown = false;
            for (_, line) in shown {
                let Some(session) = self.clients.sessions.get_mut(monitor) else { break };
                session.reply().simple(line);
                is_shown = true;
            }
            if is_shown {
                self.hold(monitor, newest);
            }
        }
    }
}

/// Appends a piece of an argument, everything unprintable escaped.
fn escape(piece: &[u8], line: &mut String) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for &byte in piece {
        match byte {
            b'\\' | b'"' => line.extend(['\\', char::from(byte)]),
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x07 => line.push_str("\\a"),
            0x08 => line.push_str("\\b"),
            0x20..=0x7e => line.push(char::from(byte)),
            _ => {
                let digit = |nibble: u8| char::from(HEX[usize::from(nibble)]);
                line.extend(['\\', 'x', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}
