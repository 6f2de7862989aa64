//! A follower whose records may have to wait for values: the shard's clock, which it hears in them,
//! and what they leave.

use super::*;
use crate::leadership::{Found, Leadership};
use crate::role::heartbeat::Heartbeats;
use crate::role::member::{Member, MemberId};
use crate::shard::Shard;
use base::{Clock, MonotonicNanos, Position};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use txlog::TransactionLog;
use txlog::memory::{MemoryHandle, MemoryLog};

/// The clock of every machine, in milliseconds: that of the primary too.
#[derive(Default)]
struct Millis(AtomicU64);

impl Clock for Millis {
    fn unix_micros(&self) -> i64 {
        self.0.load(Ordering::Relaxed).cast_signed() * 1000
    }

    fn monotonic(&self) -> MonotonicNanos {
        MonotonicNanos(self.0.load(Ordering::Relaxed) * 1_000_000)
    }
}

const LOG: Incarnation = Incarnation(1);

/// A follower of a primary that writes at once what `scene` is given.
struct Follower {
    scene: Scene,
    writer: MemoryHandle,
    shard: Shard,
    leadership: Leadership,
    clock: Arc<Millis>,
}

impl Follower {
    fn new(mut scene: Scene) -> Self {
        let log = MemoryLog::new(LOG);
        let mut handle = log.handle(1 << 20);
        handle.read_from(Position { incarnation: LOG, sequence: Sequence(1) });
        let Tiered { keyspace, tiering, reads, .. } =
            std::mem::replace(&mut scene.tiered, Tiered::new());
        scene.tiered.reads = reads;
        let replayer = Replayer::new(Sequence::ZERO, Chain::start(LOG));
        let engine = Engine::new(keyspace, 1);
        let mut shard = Shard::following(engine, Box::new(handle), replayer, LOG);
        shard.tiering = Some(tiering);
        let clock = Arc::new(Millis::default());
        let mut leadership = Leadership::new(Arc::clone(&clock) as Arc<dyn Clock>, 1);
        let heartbeats = Heartbeats::default();
        let found = Found { heartbeats, is_free: false, through: Sequence::ZERO };
        leadership.follow(MemberId([1; 20]), 1_000_000_000, found);
        let writer = log.handle(1 << 20);
        let mut follower = Self { scene, writer, shard, leadership, clock };
        follower.follow(0);
        follower
    }

    /// What the scene wrote is in the log at this time, and the follower looks at it.
    fn follow(&mut self, millis: u64) {
        self.clock.0.store(millis, Ordering::Relaxed);
        self.leadership.begin_turn(&mut self.shard, self.clock.moment());
        for (sequence, bytes) in self.scene.records.drain(..) {
            let after = Position { incarnation: LOG, sequence: Sequence(sequence.0 - 1) };
            self.writer.append(after, bytes);
        }
        self.writer.poll(&mut Vec::new());
        let Shard { engine, tiering, .. } = &mut self.shard;
        if let Some(tiering) = tiering {
            tiering.poll(&mut engine.keyspace, self.clock.monotonic(), &mut Vec::new());
        }
        let introduce = || Member { id: MemberId([1; 20]), host: String::new(), port: 0 };
        let mut news = Vec::new();
        let interest = &mut Interest::default();
        self.leadership.poll(&mut self.shard, interest, &introduce, &mut news);
    }

    fn write(&mut self, millis: i64, key: u8, effect: &Effect<'_>) {
        self.scene.write_at(UnixMillis(millis), [key], effect);
    }
}

#[test]
fn a_record_that_waited_for_its_values_does_not_say_what_time_it_is() {
    let mut follower = Follower::new(Scene::new(3));
    follower.write(1000, 1, &DELETE);
    follower.follow(1000);
    assert!(!follower.shard.has_unapplied(), "nothing is needed to delete");
    assert_eq!(follower.leadership.wall_ahead_millis(), 0, "it heard the clock");

    follower.write(1500, 0, &APPEND);
    follower.follow(1500);
    assert!(follower.shard.has_unapplied(), "the value is being read");
    follower.scene.tiered.reads.run();
    follower.follow(4000);
    assert!(!follower.shard.has_unapplied());
    assert_eq!(follower.leadership.wall_ahead_millis(), 0, "the clock has run on");

    // A clock that differs is heard in what did not wait.
    follower.write(4000, 2, &DELETE);
    follower.follow(5000);
    assert_eq!(follower.leadership.wall_ahead_millis(), 1000);
}

#[test]
fn a_follower_leaves_long_values_to_who_frees_them_elsewhere() {
    let mut follower = Follower::new(Scene::new(0));
    let end = engine::effect::End::Tail;
    let garbage = |follower: &mut Follower| follower.shard.engine.keyspace.take_garbage().len();
    for key in [0, 1] {
        for _ in 0..300 {
            follower.write(1000, key, &Effect::ListPush { end, value: b"an element" });
        }
    }
    follower.write(1000, 0, &DELETE);
    // Behind it come others.
    follower.write(1000, 2, &Effect::SetInteger { value: 1 });
    follower.follow(1000);
    assert!(!follower.shard.has_unapplied());
    assert_eq!(garbage(&mut follower), 1, "it was deleted");

    // Before the next record there must be room.
    follower.shard.engine.keyspace.settings.maxmemory = 1;
    follower.write(2000, 2, &Effect::SetInteger { value: 2 });
    follower.follow(2000);
    follower.shard.engine.keyspace.settings.maxmemory = 0;
    follower.follow(2000);
    assert!(!follower.shard.has_unapplied());
    assert_eq!(follower.shard.engine.keyspace.cold_keys(), 1);
    assert_eq!(garbage(&mut follower), 1, "it was spilled");
}
