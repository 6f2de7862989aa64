//! Making room: moving values out of memory while `maxmemory` is exceeded, for requests, for turns
//! and for records, in steps that are counted.

use super::Tiering;
use base::UnixMillis;
use base::time::{MonotonicNanos, SECOND};
use engine::cold::Spilled;
use engine::keyspace::Keyspace;

/// How long whoever needs memory has been waiting for writes.
pub(super) struct Late {
    /// Since when.
    pub(super) behind_since: Option<MonotonicNanos>,
    /// When a write arrived last.
    pub(super) written_at: MonotonicNanos,
    /// It was waited for in vain: until a write arrives nobody waits for it.
    pub(super) counts_as_full: bool,
    /// When a request was let through last although values leave no faster, or the first had to
    /// wait.
    pub(super) passed_at: Option<PassedAt>,
    /// Memory is waited for that flushed databases have; and was in the turn before.
    pub(super) awaits_flushed: bool,
    pub(super) awaited_flushed: bool,
}

/// Bytes of memory that were lacking below a limit.
#[derive(Clone, Copy)]
pub(super) struct PassedAt {
    limit: u64,
    lacking: usize,
}

/// Steps of moving values out that one request, one record or one turn may take. Each frees more
/// than most requests add.
const SPILL_STEPS_MAX: usize = 16;

/// Steps that all requests of a turn may take together, beside one for each of them: those that do
/// not grow, and all while no more is lacking than the greater of [`FREED_BYTES_MIN`] and this part
/// of `maxmemory`, but of a small one twice as much. A step takes some 0.1 ms where nearly all
/// values are out of memory already, and a turn is meant to stay below 2, also when the buffers of
/// clients that come all at once fill it. (A request that may grow and finds more lacking takes
/// [`SPILL_STEPS_MAX`] all the same: first of all memory holds.)
pub(super) const TURN_STEPS_MAX: usize = 6;

/// Where more is lacking, a turn takes so many for itself, however many its requests took.
const OWN_STEPS_MIN: usize = 8;

/// See [`TURN_STEPS_MAX`].
const SLACK_SHARE: usize = 256;

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
pub enum Needs {
    /// A request that may need room itself.
    Request,
    /// One that adds little, or nothing.
    Nothing,
    /// The turn, behind its requests.
    Turn,
}

/// What came of an attempt to make room.
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
            counts_as_full: false,
            passed_at: None,
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
        who: Needs,
        now: UnixMillis,
    ) -> Made {
        let over = keyspace.bytes_lacking(beside, 0);
        let freed = (over / FREED_SHARE).max(FREED_BYTES_MIN);
        let share = keyspace.settings.maxmemory as usize / SLACK_SHARE;
        let slack = FREED_BYTES_MIN.clamp(share, 2 * share);
        let least = match who {
            Needs::Request if over > slack => SPILL_STEPS_MAX,
            Needs::Turn if over > slack => OWN_STEPS_MIN,
            _ => 1,
        };
        let steps_max = self.turn_steps_left.max(least);
        self.make_room_for(keyspace, beside, 0, over.saturating_sub(freed), steps_max, now)
    }

    /// True for one request each time that a bit less is lacking than when one was let through last
    /// though room is [`Made::Behind`]: where very much is lacking, because `maxmemory` became
    /// less, writes go on while it leaves as fast as the disk takes it.
    pub fn lets_pass(&mut self, keyspace: &Keyspace, beside: u64) -> bool {
        let (limit, lacking) = (keyspace.settings.maxmemory, keyspace.bytes_lacking(beside, 0));
        let known = self.late.passed_at.filter(|passed| passed.limit == limit);
        let at = *self.late.passed_at.insert(known.unwrap_or(PassedAt { limit, lacking }));
        let less = FREED_BYTES_MIN.min(self.limits.encoded_per_turn);
        let lets_pass = lacking.saturating_add(less) <= at.lacking;
        if lets_pass {
            self.late.passed_at = Some(PassedAt { limit, lacking });
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
            if self.has_room(over) {
                return Made::Done;
            }
            if over <= over_max {
                return Made::More;
            }
            self.turn_steps_left = self.turn_steps_left.saturating_sub(1);
            self.late.awaits_flushed |= keyspace.has_flushed();
            match self.spill(keyspace, over - over_max, now) {
                // Who waited for the file does not any more: pins may keep the next step.
                Spilled::Enough | Spilled::More => {
                    if keyspace.bytes_lacking(beside, more) < over {
                        self.late.behind_since = None;
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
                    // As long as some writes arrive it only takes its time.
                    let waits = self.now.since(since.max(self.late.written_at)) < BEHIND_NANOS_MAX;
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
        match self.has_room(keyspace.bytes_lacking(beside, more)) {
            true => Made::Done,
            false => Made::More,
        }
    }

    /// Whether no bytes are lacking any more: then nothing is late.
    fn has_room(&mut self, lacking: usize) -> bool {
        if lacking == 0 {
            (self.late.behind_since, self.late.passed_at) = (None, None);
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
