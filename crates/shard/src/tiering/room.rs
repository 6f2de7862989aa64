//! Making room: moving values out of memory while `maxmemory` is exceeded, for requests, for turns
//! and for records, in steps that are counted.

use super::Tiering;
use base::UnixMillis;
use base::time::{MonotonicNanos, SECOND};
use engine::cold::Spilled;
use engine::keyspace::Keyspace;

/// How long whoever needs memory has been waiting for writes. It ends when nothing is lacking, and
/// when the tier is full, since then no write would help.
pub(super) struct Late {
    /// Since when.
    pub(super) behind_since: Option<MonotonicNanos>,
    /// When a write arrived last.
    pub(super) written_at: MonotonicNanos,
    /// When values left memory last, which those that have copies do without a write.
    pub(super) freed_at: MonotonicNanos,
    /// It was waited for in vain: until a write arrives nobody waits for it.
    pub(super) counts_as_full: bool,
    /// Bytes that were lacking when a request was let through last though values leave no faster,
    /// or when the first had to wait.
    pub(super) last_passed: Option<Passed>,
    /// Memory is waited for that flushed databases have; and was in the turn before.
    pub(super) awaits_flushed: bool,
    pub(super) awaited_flushed: bool,
}

/// Bytes of memory that were lacking below a limit.
#[derive(Clone, Copy)]
pub(super) struct Passed {
    limit: u64,
    lacking: usize,
}

/// Steps of moving values out that one record may take, one request that may grow, and a call that
/// makes all of the room. Each frees more than most requests add. A guess.
const SPILL_STEPS_MAX: usize = 16;

/// Steps that whoever makes room in a turn shares. Once they are taken, each request still takes
/// one. If more than [`slack_bytes`] are lacking, a request that may grow takes
/// [`SPILL_STEPS_MAX`] all the same, since first of all memory holds, and the turn
/// [`TURN_OWN_STEPS`]. A step takes 0.1 to 0.2 ms where nearly all values are out of memory
/// already (docs/measurements/turns.md), and a turn is meant to stay below 2, also when the
/// buffers of clients that come all at once fill memory. Guesses.
pub(super) const SHARED_STEPS: usize = 3;
const TURN_OWN_STEPS: usize = 4;
const _: () = assert!(SHARED_STEPS <= TURN_OWN_STEPS && TURN_OWN_STEPS <= SPILL_STEPS_MAX);

/// Bytes that may be lacking of this limit before more steps are taken: 256 KiB, but between a
/// 256th and a 128th of the limit, less than the hundredth that memory may be above it.
const fn slack_bytes(maxmemory: u64) -> usize {
    let share = maxmemory as usize / 256;
    if FREED_BYTES_MIN < share {
        share
    } else if FREED_BYTES_MIN > 2 * share {
        2 * share
    } else {
        FREED_BYTES_MIN
    }
}

const _: () = {
    assert!(slack_bytes(1 << 30) == 4 << 20);
    assert!(slack_bytes(48 << 20) == FREED_BYTES_MIN);
    assert!(slack_bytes(8 << 20) == 64 << 10);
};

/// Bytes that are freed for one request, at least, and the part of what is lacking. Many clients
/// that come at once bring megabytes, and moving one out takes 2 ms where values are small.
const FREED_BYTES_MIN: usize = 256 << 10;
const FREED_SHARE: usize = 8;

/// How many times as many entries of flushed databases are released where memory is waited for:
/// half a millisecond or so.
pub(super) const RELEASING_STEPS: usize = 8;

/// How often that is done at once for who cannot wait for a later turn: some 30 ms.
const RELEASES_NOW_MAX: usize = 64;

/// How long whoever needs memory waits for a tier that does not take values in, in nanoseconds.
/// Then it counts as full. A second: far more than a disk takes that is alive.
const BEHIND_NANOS_MAX: u64 = SECOND;

/// For whom a part of the room is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoomFor {
    /// A request that may need room itself (`may_grow` in the command's demand).
    Growing,
    /// A request that adds little, or nothing.
    Other,
    /// The turn, behind its requests.
    Turn,
}

/// The outcome of an attempt to make room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Made {
    /// There is room, or nothing more that could be done for it.
    Done,
    /// Values must go, and can as soon as others are written.
    Behind,
    /// Values must go, and can at once.
    More,
}

impl Default for Late {
    fn default() -> Self {
        let written_at = MonotonicNanos(0);
        Self {
            behind_since: None,
            written_at,
            freed_at: MonotonicNanos(0),
            counts_as_full: false,
            last_passed: None,
            awaits_flushed: false,
            awaited_flushed: false,
        }
    }
}

impl Tiering {
    /// Makes room for `more` bytes as well, for who cannot wait for a later turn: in as many steps
    /// as it takes, and writes are waited for. Long values are encoded amid it.
    pub fn make_room_now(
        &mut self,
        keyspace: &mut Keyspace,
        beside: u64,
        more: u64,
        now: UnixMillis,
    ) {
        let per_turn = self.limits.encoded_per_turn.max(1);
        let mut turns = 64 + keyspace.bytes_lacking(beside, more) / per_turn;
        let mut releases = RELEASES_NOW_MAX;
        loop {
            match self.make_room_for(keyspace, beside, more, 0, SPILL_STEPS_MAX, now) {
                Made::Done => return,
                Made::More => {}
                Made::Behind => {
                    // Amid a script no turn ends.
                    if let Some(cold) = keyspace.cold_mut()
                        && cold.encodes_next_turn()
                        && turns > 0
                    {
                        turns -= 1;
                        cold.encoded_bytes_left = per_turn;
                        continue;
                    }
                    if keyspace.has_flushed() && releases > 0 {
                        releases -= 1;
                        keyspace.release_flushed(RELEASING_STEPS * self.limits.released_per_turn);
                        continue;
                    }
                    self.submit_writes(keyspace);
                    if self.writing.is_empty() {
                        return;
                    }
                    self.writes.drain();
                    self.take_writes(keyspace);
                }
            }
        }
    }

    /// Moves values out of memory if `maxmemory` is exceeded, by what is `beside` the keyspace and
    /// by what it holds itself.
    pub fn make_room(&mut self, keyspace: &mut Keyspace, beside: u64, now: UnixMillis) -> Made {
        self.make_room_for(keyspace, beside, 0, 0, SPILL_STEPS_MAX, now)
    }

    /// As [`Self::make_room`], but a part of it, for whom others follow that go on with it.
    pub fn make_part_of_room(
        &mut self,
        keyspace: &mut Keyspace,
        beside: u64,
        room_for: RoomFor,
        now: UnixMillis,
    ) -> Made {
        let over = keyspace.bytes_lacking(beside, 0);
        let freed = (over / FREED_SHARE).max(FREED_BYTES_MIN);
        let is_much = over > slack_bytes(keyspace.settings.maxmemory);
        let steps_min = match room_for {
            RoomFor::Growing if is_much => SPILL_STEPS_MAX,
            RoomFor::Turn if is_much => TURN_OWN_STEPS,
            _ => 1,
        };
        let steps_max = self.shared_steps_left.max(steps_min);
        self.make_room_for(keyspace, beside, 0, over.saturating_sub(freed), steps_max, now)
    }

    /// True for one request each time that a bit less is lacking than when one was let through last
    /// though room is [`Made::Behind`]: where very much is lacking, because `maxmemory` became
    /// less, writes go on while it leaves as fast as the disk takes it.
    pub fn lets_pass(&mut self, keyspace: &Keyspace, beside: u64) -> bool {
        let (limit, lacking) = (keyspace.settings.maxmemory, keyspace.bytes_lacking(beside, 0));
        let known = self.late.last_passed.filter(|passed| passed.limit == limit);
        let at = *self.late.last_passed.insert(known.unwrap_or(Passed { limit, lacking }));
        let less = FREED_BYTES_MIN.min(self.limits.encoded_per_turn);
        let lets_pass = lacking.saturating_add(less) <= at.lacking;
        if lets_pass {
            self.late.last_passed = Some(Passed { limit, lacking });
        }
        lets_pass
    }

    /// Makes room until no more than `over_max` bytes are lacking, which is not all if it is not 0,
    /// or so many steps were taken.
    fn make_room_for(
        &mut self,
        keyspace: &mut Keyspace,
        beside: u64,
        more: u64,
        over_max: usize,
        steps_max: usize,
        now: UnixMillis,
    ) -> Made {
        for _ in 0..steps_max {
            let over = keyspace.bytes_lacking(beside, more);
            if self.note_if_room(over) {
                return Made::Done;
            }
            if over <= over_max {
                return Made::More;
            }
            self.shared_steps_left = self.shared_steps_left.saturating_sub(1);
            self.late.awaits_flushed |= keyspace.has_flushed();
            match self.spill(keyspace, over - over_max, now) {
                Spilled::Enough | Spilled::More => {
                    if keyspace.bytes_lacking(beside, more) < over {
                        self.late.freed_at = self.now;
                    }
                }
                // It goes on whatever the file does.
                Spilled::Behind if keyspace.has_flushed() => {
                    self.late.behind_since = None;
                    return Made::Behind;
                }
                Spilled::Behind if self.late.counts_as_full => return Made::Done,
                Spilled::Behind => {
                    let since = *self.late.behind_since.get_or_insert(self.now);
                    // As long as writes arrive, or values leave without, it takes its time.
                    let Late { written_at, freed_at, .. } = self.late;
                    let since = since.max(written_at).max(freed_at);
                    let waits = self.now.since(since) < BEHIND_NANOS_MAX;
                    // Pins end, and what is encoded: that is no reason to wait for nothing later.
                    let is_written = !self.writing.is_empty() || self.rests_until.is_some();
                    self.late.counts_as_full = !waits && is_written;
                    return if waits { Made::Behind } else { Made::Done };
                }
                Spilled::Nothing => {
                    // It is full, and not late.
                    self.late.behind_since = None;
                    return Made::Done;
                }
            }
        }
        match self.note_if_room(keyspace.bytes_lacking(beside, more)) {
            true => Made::Done,
            false => Made::More,
        }
    }

    /// Whether nothing is lacking any more, which ends all waiting.
    fn note_if_room(&mut self, lacking: usize) -> bool {
        if lacking == 0 {
            (self.late.behind_since, self.late.last_passed) = (None, None);
        }
        lacking == 0
    }

    /// Whether whoever needs memory had to wait lately, for writes or for flushed databases.
    pub fn puts_off(&self) -> bool {
        self.late.behind_since.is_some() || self.late.awaited_flushed
    }

    /// Since when whoever needs memory has been waiting for writes.
    pub fn behind_since(&self) -> Option<MonotonicNanos> {
        self.late.behind_since
    }
}
