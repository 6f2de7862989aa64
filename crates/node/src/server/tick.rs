//! The periodic look at the whole: rates and peaks for INFO, sessions that are idle, metrics.

use crate::metrics::publish;
use crate::server::Server;

/// A client that has said nothing for so long gives its buffers back, but for the room of a short
/// reply (Redis 7.0). In nanoseconds.
const IDLE_NANOS: u64 = 2_000_000_000;

/// Slow memory is looked at so often at least, whatever the operator says, in milliseconds: a node
/// that is full must be noticed.
const SLOW_MEMORY_MILLIS_MAX: u64 = 1000;

impl Server {
    /// The periodic work, when it is due.
    pub(crate) fn tick(&mut self) {
        let process = &mut self.core.process;
        if process.is_cron_paused {
            return;
        }
        let now = self.core.turn.monotonic;
        let period_ms = process.settings.slow_memory.check_period_ms.min(SLOW_MEMORY_MILLIS_MAX);
        if let Some(memory) = process.options.machine.slow_memory()
            && now.since(process.memory_checked) >= period_ms * 1_000_000
        {
            process.memory_checked = now;
            let used_bytes =
                self.core.shard.engine.keyspace.used_bytes() as u64 + process.clients_bytes;
            memory.tend(used_bytes);
        }
        if process.statistics.is_sample_due(now) {
            self.sample();
        }
    }

    /// Samples what INFO shows as rates and peaks, and looks at every session.
    #[cold]
    fn sample(&mut self) {
        self.core.process.statistics.sample(self.core.turn.monotonic);
        self.core.check_sessions();
        let is_trim_due = self.core.process.statistics.is_trim_due();
        let (mut input_max, mut output_max, mut clients) = (0, 0, 0);
        let used = self.core.shard.engine.keyspace.used_bytes();
        for session in self.core.clients.sessions.values_mut() {
            if is_trim_due {
                let idle = self.core.turn.monotonic.since(session.flow.last_interaction);
                session.input.trim(idle > IDLE_NANOS);
                if idle > IDLE_NANOS && self.core.process.trims_outputs {
                    session.output.trim();
                }
            }
            input_max = input_max.max(session.input.bytes.capacity());
            output_max = output_max.max(session.output.allocated_bytes());
            clients += session.memory_bytes();
        }
        self.core.process.clients_bytes = clients as u64;
        let over = self.core.shard.engine.keyspace.most_bytes.take();
        let peak = &mut self.core.process.statistics.memory_peak_bytes;
        *peak = over.max((used + clients) as u64).max(*peak);
        self.core.process.statistics.input_bytes_max = input_max;
        self.core.process.statistics.output_bytes_max = output_max;
        publish(&self.metrics, &self.core);
    }
}
