//! How much a simulated process does at a time: what serves, or of some things so little that
//! whatever is left over for the next turn, and whatever has to wait, is met all the time.

use crate::random::Random;
use shard::snapshots::Pace;
use std::fmt;
use txlog::remote::RemoteLimits;

/// The limits of a run, of all crates that have some.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    pub node: node::Limits,
    pub remote: RemoteLimits,
    /// As [`txlog::file::FileOptions::piece_bytes_max`].
    pub piece_bytes_max: Option<usize>,
    pub snapshots: archive::Limits,
    /// As [`shard::snapshots::Pace::backlog_bytes_blocking`].
    pub backlog_bytes_blocking: Option<usize>,
    /// As [`shard::snapshots::Pace::log_growth_bytes_alone`].
    pub log_growth_bytes_alone: Option<u64>,
    /// Which of them are small: a bit for each of [`SMALL`].
    small: u128,
}

/// A limit made small: its name with the value, and how it is set.
type Small = (&'static str, fn(&mut Limits));

macro_rules! small {
    ($($($field:ident).+ = $value:expr;)+) => {
        &[$((
            concat!($(".", stringify!($field)),+, " = ", stringify!($value)),
            |limits| limits.$($field).+ = $value,
        )),+]
    };
}

/// What is drawn, 128 at most. Of two values of one limit the later is taken.
const SMALL: &[Small] = small! {
    node.engine.walk_entries = 1;
    node.engine.whole_value_bytes_max = 256;
    node.engine.whole_value_bytes_max = 2 << 10;
    node.engine.aside_bytes_max = 0;
    node.engine.aside_bytes_max = 4 << 10;
    node.engine.load_slice_bytes = 1;
    node.engine.load_slice_bytes = 512;
    node.engine.freed_inline_elements_max = 0;
    node.shard.record_bytes_target = 1;
    node.shard.record_bytes_target = 1 << 10;
    node.shard.tracker_slots = 1;
    node.shard.tracker_slots = 8;
    node.shard.checksum_bytes = 1;
    node.shard.checksum_bytes = 1 << 10;
    node.shard.checksum_nanos = 1;
    node.shard.checksum_nanos = 2_000_000;
    node.batch_requests_max = 1;
    node.batch_requests_max = 3;
    node.turn.requests_max = 1;
    node.turn.requests_max = 5;
    node.turn.bytes_max = 1;
    node.turn.bytes_max = 200;
    node.turn.reply_bytes_max = 1;
    node.turn.reply_bytes_max = 100;
    node.turn.nanos_max = 1;
    node.turn.tiered_nanos_max = 1;
    node.turn.gathered_nanos_max = 0;
    node.turn.gathered_nanos_max = 5_000_000;
    node.turn.gathering_writers_min = 1;
    node.turn.client_sent_bytes_max = 50;
    node.turn.amid_sending_nanos_max = 1;
    node.turn.received_bytes_max = 1;
    node.turn.client_received_bytes_max = 1;
    node.expired_keys_max = 1;
    node.untracked_keys_max = 1;
    node.evicted_keys_max = 1;
    node.held_bytes_max = 0;
    node.held_bytes_max = 100;
    node.pending_bytes_max = 1;
    node.choked_input_bytes_max = 100;
    node.unexecuted_bytes_max = 100;
    node.link_received_bytes_max = 1;
    node.link_received_bytes_max = 100;
    node.link_turn_steps_max = 1;
    node.link_turn_effect_bytes = 1;
    node.link_waiting_bytes_max = 100;
    node.link_waiting_bytes_max = 1 << 10;
    node.feed_chunk_bytes = 1;
    node.feed_chunk_bytes = 100;
    node.feed_ahead_bytes_max = 1;
    node.migrations_max = 1;
    node.migration_output_bytes_max = 1;
    node.migration_turn_bytes_max = 1;
    remote.records_per_put = 1;
    remote.records_per_put = 16;
    remote.in_flight_bytes_max = 1;
    remote.in_flight_bytes_max = 4 << 10;
    remote.read_bytes_max = 1;
    remote.read_bytes_max = 1 << 10;
    remote.check_bytes_max = 1;
    remote.check_bytes_max = 1 << 10;
    piece_bytes_max = Some(1);
    piece_bytes_max = Some(1 << 10);
    backlog_bytes_blocking = Some(0);
    backlog_bytes_blocking = Some(2 << 10);
    log_growth_bytes_alone = Some(1);
    log_growth_bytes_alone = Some(64 << 10);
    snapshots.part_bytes = 256;
    snapshots.part_bytes = 1 << 10;
    snapshots.part_bytes = 4 << 10;
    snapshots.parts_max = 2;
    snapshots.parts_max = 5;
    snapshots.retained = 3;
    node.script_pauses_max = 0;
    node.script_pauses_max = 1;
};

const _: () = assert!(SMALL.len() <= u128::BITS as usize);

/// How many of 100 runs are limited otherwise than what serves, and how many of 100 limits are
/// small in such a run.
const RUNS_PERCENT: u64 = 60;
const SMALL_PERCENT: u64 = 15;

impl Limits {
    /// What is drawn of the pace of snapshots.
    pub fn pace(&self) -> Pace {
        let pace = Pace::default();
        let backlog_bytes_blocking =
            self.backlog_bytes_blocking.unwrap_or(pace.backlog_bytes_blocking);
        let log_growth_bytes_alone =
            self.log_growth_bytes_alone.unwrap_or(pace.log_growth_bytes_alone);
        Pace { backlog_bytes_blocking, log_growth_bytes_alone, ..pace }
    }

    /// The limits in the world of `seed`.
    pub fn draw(seed: u64) -> Self {
        let mut drawn = Self::default();
        if Random::stream(seed, "limits").chance(RUNS_PERCENT) {
            for (at, (name, set)) in SMALL.iter().enumerate() {
                // Each has a stream of its own: one limit more changes none of the others.
                if Random::stream(seed, name).chance(SMALL_PERCENT) {
                    set(&mut drawn);
                    drawn.small |= 1 << at;
                }
            }
        }
        drawn
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        let small = self.small;
        let names = SMALL.iter().enumerate().filter(move |(at, _)| small & 1 << at != 0);
        names.map(|(_, (name, _))| name.trim_start_matches('.'))
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.names().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_have_small_limits_and_say_which() {
        let all: Vec<Limits> = (1..=200).map(Limits::draw).collect();
        let usual = all.iter().filter(|drawn| **drawn == Limits::default()).count();
        assert!((50..150).contains(&usual), "{usual} runs of 200 are as what serves");
        for (at, (name, _)) in SMALL.iter().enumerate() {
            assert!(all.iter().any(|drawn| drawn.small & 1 << at != 0), "{name} is never drawn");
        }
        let drawn = Limits { small: 1, ..Limits::default() };
        assert_eq!(format!("{drawn:?}"), "[node.engine.walk_entries = 1]");
    }
}
