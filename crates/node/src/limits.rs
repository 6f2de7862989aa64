//! The sizes at which a turn's work is divided, and queues are full.
//!
//! A server is handed them when it begins, so that the simulator can draw small ones from its
//! seed: then each edge is walked in every run. What an operator may set is a directive instead.

use engine::settings::Limits as EngineLimits;
use shard::Limits as ShardLimits;
use shard::tiering::TieringLimits;

/// The amounts that are done at a time, and may wait. What serves is the default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Those of commands, of a snapshot's walk, and of loading one.
    pub engine: EngineLimits,
    /// Those of records, and of what replies wait for.
    pub shard: ShardLimits,
    /// Those of values that memory has no room for.
    pub tiering: TieringLimits,
    /// Requests of a session that are parsed ahead and prefetched together, up to
    /// [`BATCH_REQUESTS_MAX`].
    pub batch_requests_max: usize,
    /// The most work of one turn of the loop.
    pub turn: TurnLimits,
    /// How long a script runs until it is suspended, until the next turn, in nanoseconds: others
    /// do nothing before it ends but be received, so more often than that would help nobody. A
    /// guess.
    pub script_nanos_max: u64,
    /// Pauses after which it is, if it has not run for so long. A pause comes after some 100
    /// microseconds, so usually the time decides.
    pub script_pauses_max: usize,
    /// Keys deleted in one turn because their time has come.
    pub expired_keys_max: usize,
    /// Keys invalidated per turn while more are recorded than `tracking-table-max-keys`. Ten times
    /// as many as Redis first takes at once; a guess.
    pub untracked_keys_max: usize,
    /// Keys evicted before one command, and in a turn. A guess: enough to outrun any writer of
    /// single keys, and below a millisecond.
    pub evicted_keys_max: usize,
    /// Replies withheld per process before requests are no longer executed, in bytes. The last
    /// reply may overshoot. 64 MiB is about 0.5 s of replies at 128 MiB/s. A guess.
    pub held_bytes_max: usize,
    /// Output of one client that may be pending before none of its requests is executed any more: a
    /// client that asks and never reads costs this much memory, and one reply. In bytes. What
    /// others publish to it counts, but is not delayed: that is what the output limits are for.
    ///
    /// Redis knows no such bound. Clients rely on that: many write a whole pipeline before they
    /// read the first reply, and would wait for the server for ever as it waits for them. Hence the
    /// bound is generous, and while it is reached the requests are still received, up to
    /// `choked_input_bytes_max`: a client must have written that much beyond 64 MiB of replies,
    /// without reading any, to be stuck. Both are guesses.
    pub pending_bytes_max: usize,
    /// Input that may lie unexecuted while the output is beyond `pending_bytes_max`, in bytes.
    pub choked_input_bytes_max: usize,
    /// Input of one connection that may lie unexecuted otherwise, beyond one request in the making,
    /// in bytes.
    pub unexecuted_bytes_max: usize,
    /// Bytes received from a master at a time before its stream begins.
    pub link_received_bytes_max: usize,
    /// Steps of an import in one turn: elements of collections, or whole small keys. About a
    /// millisecond.
    pub link_turn_steps_max: usize,
    /// Bytes of effects that an import leaves in one turn, about.
    pub link_turn_effect_bytes: usize,
    /// Bytes of a master's data set that have arrived and wait to be imported, beyond which nothing
    /// is received. At least 100: half of it must hold the mark behind a file.
    pub link_waiting_bytes_max: usize,
    /// Bytes of a snapshot's file read at once for a replica.
    pub feed_chunk_bytes: usize,
    /// Bytes that lie in a replica's output before no more of the file is read: two chunks keep
    /// both the disk and the network busy.
    pub feed_ahead_bytes_max: usize,
    /// Migrations under way at a time; further requests wait. Each has a connection and what is on
    /// its way on it. A guess: as many as connections are kept.
    pub migrations_max: usize,
    /// Bytes of requests of a migration that wait for the log or for its target; the last key may
    /// overshoot. Several times what a connection within a data centre holds, so that it never runs
    /// dry.
    pub migration_output_bytes_max: usize,
    /// Bytes dumped in one turn, for all migrations; the last key may overshoot. About 1 ms.
    pub migration_turn_bytes_max: usize,
}

/// What one turn of the loop does at most, for all clients together or for each: behind it the loop
/// sends, and looks at events again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TurnLimits {
    /// Requests executed in one turn before outputs are sent and events looked at again: bounds
    /// what a deep pipeline adds to the latency of others. A guess, about 2 ms of small commands.
    pub requests_max: usize,
    /// Bytes of requests executed in one turn, about: the last session may overshoot. So what is
    /// published in a turn stays far below the limit at which subscribers are disconnected (32 MiB
    /// by default), and they are sent something before more is published. A guess.
    pub bytes_max: usize,
    /// Bytes of replies written in one turn, about: the last reply may overshoot. Small requests
    /// can ask for much. About 1 ms of copying; a guess.
    pub reply_bytes_max: usize,
    /// How long a turn's commands may take together, in nanoseconds, before outputs are sent: what
    /// a client has pipelined may take seconds each. The last one may overshoot. A hundred clients
    /// with a pipeline of 16 are all served in one turn, which saves a twentieth of their time.
    pub nanos_max: u64,
    /// The same where there is a tier, whose values are given out between turns and amid sending: a
    /// hundred clients may delete a hundred cold keys each. What a turn did before it executes
    /// counts, but half is left in any case. A turn is meant to stay below 2 ms with all that it
    /// does beside: docs/measurements/turns.md says what that is.
    pub tiered_nanos_max: u64,
    /// Time that sending to a client takes, in nanoseconds (docs/measurements/turns.md): counts
    /// in `tiered_nanos_max` for whoever waits to be sent to as a turn begins to execute, whom the
    /// log has released for the most part. (For whoever is answered in the turn it does not: tried,
    /// and a hundred clients that read got 0.9 of the throughput.)
    pub send_nanos: u64,
    /// How long what was gathered for the log waits for what the next turns do, in nanoseconds, and
    /// until the end of the turn in which that time is over. It waits where a turn has served
    /// [`Self::gathering_writers_min`] sessions that changed something: one commit then serves more
    /// of them. In 0.5 ms some 50 clients without a pipeline are served; 1 ms brought no more.
    pub gathered_nanos_max: u64,
    /// With fewer in a turn a commit has not many to serve, and the loop may have nothing to do
    /// before long: nobody is kept waiting. A guess.
    pub gathering_writers_min: usize,
    /// Bytes sent to one client in one turn: one that reads as fast as is sent could hold the loop
    /// for the whole of its backlog. A guess.
    pub client_sent_bytes_max: usize,
    /// Sessions that are sent to between two looks for values that have come from the disk. A look
    /// that finds none is a lock and some comparisons, beside 8 calls of the system. A guess.
    pub sends_per_look: usize,
    /// How long requests that run amid sending may take together, in nanoseconds, beside
    /// `tiered_nanos_max`. Of the other limits on what is executed and sent there is as much again
    /// for them. A quarter of that one; a guess.
    pub amid_sending_nanos_max: u64,
    /// Bytes received in one turn, about: the last client may overshoot. Nothing renews the lease
    /// meanwhile. A few milliseconds of copying; a guess.
    pub received_bytes_max: usize,
    /// Bytes received from one client in one turn, about: the last piece may overshoot. One that
    /// sends as fast as is received would hold the loop, and its memory would be judged only when
    /// it pauses. Reached by long requests only: of short ones some 48 KiB are received before they
    /// are decoded. Half a millisecond of copying; a guess.
    pub client_received_bytes_max: usize,
}

/// Bytes received at a time when nothing says that more are needed: what an active connection's
/// buffer occupies. As Redis (PROTO_IOBUF_LEN).
pub(crate) const RECEIVED_BYTES: usize = 16 << 10;

/// The largest batch. In a prototype, 16 overlapped misses took a random GET over 5 M keys from 301
/// to 109 ns; more gained nothing.
pub(crate) const BATCH_REQUESTS_MAX: usize = 16;

impl Limits {
    /// # Panics
    /// With them something would wait for ever.
    pub(crate) fn check(&self) {
        assert!(self.link_waiting_bytes_max >= 100, "half of a mark may wait for the other half");
        assert!(self.batch_requests_max > 0 && self.turn.requests_max > 0, "a turn does something");
        let received_max = self.turn.received_bytes_max.min(self.turn.client_received_bytes_max);
        assert!(received_max > 0, "a turn receives something");
        assert!(self.turn.sends_per_look > 0, "it divides the sessions of a turn");
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            engine: EngineLimits::default(),
            shard: ShardLimits::default(),
            tiering: TieringLimits::default(),
            batch_requests_max: BATCH_REQUESTS_MAX,
            turn: TurnLimits {
                requests_max: 4096,
                bytes_max: 1 << 20,
                reply_bytes_max: 4 << 20,
                nanos_max: 10_000_000,
                tiered_nanos_max: 500_000,
                send_nanos: 12_000,
                gathered_nanos_max: 500_000,
                gathering_writers_min: 4,
                client_sent_bytes_max: 4 << 20,
                sends_per_look: 8,
                amid_sending_nanos_max: 125_000,
                received_bytes_max: 8 << 20,
                client_received_bytes_max: 2 << 20,
            },
            script_nanos_max: 10_000_000,
            script_pauses_max: 1000,
            expired_keys_max: 256,
            untracked_keys_max: 1000,
            evicted_keys_max: 128,
            held_bytes_max: 64 << 20,
            pending_bytes_max: 64 << 20,
            choked_input_bytes_max: 64 << 20,
            unexecuted_bytes_max: 1 << 20,
            link_received_bytes_max: 256 << 10,
            link_turn_steps_max: 2048,
            link_turn_effect_bytes: 256 << 10,
            link_waiting_bytes_max: 1 << 20,
            feed_chunk_bytes: 1 << 20,
            feed_ahead_bytes_max: 2 << 20,
            migrations_max: 64,
            migration_output_bytes_max: 256 << 10,
            migration_turn_bytes_max: 1 << 20,
        }
    }
}
