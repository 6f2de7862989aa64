//! The periodic look at the whole: rates and peaks for INFO, sessions that are idle, metrics.

use crate::metrics::publish;
use crate::server::Server;

/// A client that has said nothing for so long gives its input buffer back (Redis 7.0). In
/// nanoseconds.
const IDLE_NANOS: u64 = 2_000_000_000;

impl Server {
    /// The periodic work, when it is due.
    pub(crate) fn tick(&mut self) {
        let process = &mut self.core.process;
        if !process.is_cron_paused && process.statistics.is_sample_due(self.core.turn.monotonic) {
            self.sample();
        }
    }

    /// Samples what INFO shows as rates and peaks, and looks at every session.
    #[cold]
    fn sample(&mut self) {
        self.core.process.statistics.sample(self.core.turn.monotonic);
        self.core.check_sessions();
        let used = self.core.shard.engine.keyspace.used_bytes() as u64;
        self.core.process.statistics.memory_peak_bytes =
            self.core.process.statistics.memory_peak_bytes.max(used);
        let is_trim_due = self.core.process.statistics.is_trim_due();
        let (mut input_max, mut output_max) = (0, 0);
        for session in self.core.clients.sessions.values_mut() {
            if is_trim_due {
                let idle = self.core.turn.monotonic.since(session.flow.last_interaction);
                session.input.trim(idle > IDLE_NANOS);
            }
            input_max = input_max.max(session.input.bytes.capacity());
            output_max = output_max.max(session.output.allocated_bytes());
        }
        self.core.process.statistics.input_bytes_max = input_max;
        self.core.process.statistics.output_bytes_max = output_max;
        publish(&self.metrics, &self.core);
    }
}
