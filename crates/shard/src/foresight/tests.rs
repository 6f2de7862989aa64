mod follower;

use super::*;
use crate::tiering::Made;
use crate::tiering::tests::{DELETE, HERE, NOW, Tiered};
use base::{Incarnation, UnixMillis};
use engine::effect::Effect;
use engine::effect::EffectEncoder;
use engine::execute::Engine;
use engine::interest::Interest;
use txlog::{Chain, Kind, Part, Stamper, WriterId, record};

/// A follower with a tier, and a primary's records for it.
struct Scene {
    tiered: Tiered,
    foresight: Foresight,
    replayer: Replayer,
    stamper: Stamper,
    records: VecDeque<(Sequence, Bytes)>,
    written: Sequence,
}

impl Scene {
    /// Whose values, named by numbers, all lie on the file.
    fn new(values: u8) -> Self {
        let chain = Chain::start(Incarnation(1));
        let mut scene = Self {
            tiered: Tiered::new(),
            foresight: Foresight::default(),
            replayer: Replayer::new(Sequence::ZERO, chain),
            stamper: Stamper::new(WriterId(1), chain, UnixMillis(0)),
            records: VecDeque::new(),
            written: Sequence::ZERO,
        };
        for number in 0..values {
            scene.tiered.put(&format!("key{number}"), number);
            scene.tiered.settle();
        }
        assert!(scene.are_cold(0..values));
        let lead = scene.stamper.lead(1000, &[], NOW, Sequence::ZERO);
        scene.push(lead);
        scene
    }

    fn push(&mut self, record: Bytes) {
        self.written = self.written.next();
        self.records.push_back((self.written, record));
    }

    /// A record that has this effect on keys of these numbers.
    fn write(&mut self, keys: impl IntoIterator<Item = u8>, effect: &Effect<'_>) {
        self.write_at(NOW, keys, effect);
    }

    /// As [`Self::write`], at this time of the shard's clock.
    fn write_at(
        &mut self,
        now: UnixMillis,
        keys: impl IntoIterator<Item = u8>,
        effect: &Effect<'_>,
    ) {
        let mut encoder = EffectEncoder::new(record::HEADER_BYTES);
        for number in keys {
            encoder.push(HERE, format!("key{number}").as_bytes(), effect);
        }
        let record =
            self.stamper.stamp(Kind::Data, Part::Whole, encoder.take(), now, Sequence::ZERO);
        self.push(record);
    }

    fn look(&mut self) {
        let records = self.records.iter().map(|(sequence, bytes)| (*sequence, bytes));
        let Tiered { keyspace, tiering, .. } = &mut self.tiered;
        self.foresight.fetch_ahead(records, &self.replayer, keyspace, tiering);
    }

    fn is_ready(&mut self) -> bool {
        self.foresight.is_ready(&self.tiered.tiering)
    }

    /// Applies the next record, here and to the twin.
    fn consume(&mut self) {
        let (sequence, bytes) = self.records.pop_front().expect("there is one");
        let keyspace = std::mem::replace(&mut self.tiered.keyspace, Tiered::new().keyspace);
        let mut engine = Engine::new(keyspace, 1);
        let consumed =
            self.replayer.consume(&mut engine, sequence, &bytes, &mut Interest::default());
        consumed.expect("it fits");
        self.tiered.keyspace = engine.keyspace;
        self.foresight.note_consumed(sequence, &mut self.tiered.keyspace);
        if let Some(payload) = self.replayer.foresee(&bytes) {
            let applied = self.tiered.twin.apply_payload(&payload, NOW, &mut Interest::default());
            applied.expect("it fits");
        }
    }

    fn read(&mut self) {
        // Of little memory reads take one after another.
        for _ in 0..8 {
            self.tiered.reads.run();
            self.tiered.poll();
        }
    }

    fn blocking_reads(&self) -> u64 {
        self.tiered.keyspace.cold().expect("it has a tier").statistics.blocking_reads.get()
    }

    fn are_cold(&self, keys: impl IntoIterator<Item = u8>) -> bool {
        keys.into_iter().all(|number| self.tiered.place(&format!("key{number}")).is_some())
    }
}

const APPEND: Effect<'_> = Effect::Append { bytes: b"more" };

#[test]
fn what_records_to_come_change_is_there_when_they_are_applied() {
    let mut scene = Scene::new(6);
    scene.write([0, 1], &APPEND);
    scene.write([1, 2], &APPEND);
    scene.look();
    assert_eq!(scene.tiered.reads.jobs().queued.len(), 3, "the values of both, each once");
    assert!(scene.is_ready(), "who leads needs no value");
    scene.consume();
    assert!(!scene.is_ready(), "they are being read");
    scene.read();
    assert!(scene.is_ready());
    scene.tiered.keyspace.spill_all(NOW);
    assert!(scene.is_ready());
    scene.consume();
    assert!(scene.is_ready());
    scene.tiered.keyspace.spill_all(NOW);
    assert!(scene.are_cold([0]), "nobody needs it any more");
    scene.consume();
    assert_eq!(scene.blocking_reads(), 0);
    scene.tiered.keyspace.spill_all(NOW);
    assert!(scene.are_cold(0..6), "what was applied may go");
    assert!(scene.tiered.is_whole());
}

#[test]
fn what_is_in_memory_stays_until_the_record_comes_that_changes_it() {
    let mut scene = Scene::new(6);
    scene.consume();
    // The first record brings it in, the second finds it there.
    scene.write([0], &APPEND);
    scene.look();
    scene.read();
    scene.consume();
    scene.write([1], &APPEND);
    scene.write([0], &APPEND);
    scene.look();
    scene.read();
    scene.tiered.keyspace.spill_all(NOW);
    scene.consume();
    scene.tiered.keyspace.spill_all(NOW);
    assert!(!scene.are_cold([0]) && scene.are_cold([1]));
    scene.consume();
    assert_eq!(scene.blocking_reads(), 0);
    scene.tiered.keyspace.spill_all(NOW);
    assert!(scene.are_cold(0..6), "what was applied may go");
    assert!(scene.tiered.is_whole());
}

#[test]
fn a_record_waits_for_nothing_that_one_before_it_removed() {
    let mut scene = Scene::new(3);
    scene.write([0, 1], &DELETE);
    scene.write([0, 1, 2], &APPEND);
    scene.look();
    scene.consume();
    assert!(scene.is_ready(), "nothing is needed to delete");
    scene.consume();
    scene.read();
    assert!(scene.is_ready());
    scene.consume();
    assert_eq!(scene.blocking_reads(), 0);
    assert!(scene.tiered.is_whole());
}

#[test]
fn no_more_is_fetched_than_there_is_room_for() {
    let mut scene = Scene::new(20);
    // A sixteenth of it has room for three values.
    scene.tiered.keyspace.settings.maxmemory = 16 * 3 * 1100;
    scene.write(0..2, &APPEND);
    scene.write(2..10, &APPEND);
    scene.write(10..12, &APPEND);
    scene.look();
    scene.consume();
    scene.read();
    assert!(!scene.are_cold([0]) && !scene.are_cold([1]) && scene.are_cold(2..12));
    scene.look();
    assert!(!scene.foresight.is_empty());
    scene.consume();
    assert!(scene.foresight.is_empty(), "of the next record not all has room");
    scene.look();
    scene.read();
    assert!(scene.is_ready());
    assert!(!scene.are_cold([2]) && !scene.are_cold([3]) && !scene.are_cold([4]));
    assert!(scene.are_cold(5..12), "the room is taken");
    scene.consume();
    assert!(!scene.are_cold([9]), "what was not foreseen is read then");
    assert!(scene.blocking_reads() > 0);
    scene.look();
    scene.read();
    assert!(scene.is_ready());
    let before = scene.blocking_reads();
    scene.consume();
    assert_eq!(scene.blocking_reads(), before);
    assert!(scene.tiered.is_whole());
}

#[test]
fn what_will_not_be_applied_keeps_nothing_in_memory() {
    let mut scene = Scene::new(2);
    scene.write([0, 1], &APPEND);
    scene.look();
    scene.read();
    scene.tiered.keyspace.spill_all(NOW);
    assert!(!scene.are_cold([0]), "it is needed");
    scene.foresight.forget(&mut scene.tiered.keyspace);
    scene.tiered.keyspace.spill_all(NOW);
    assert!(scene.are_cold([0, 1]));
}

#[test]
fn what_is_longer_than_there_is_room_for_is_fetched_alone() {
    let mut scene = Scene::new(4);
    scene.tiered.keyspace.settings.maxmemory = 16 * 500;
    scene.write([0, 1], &APPEND);
    scene.write([2], &APPEND);
    scene.look();
    scene.consume();
    scene.look();
    assert_eq!(scene.tiered.reads.jobs().queued.len(), 1);
    scene.read();
    assert!(scene.is_ready() && !scene.are_cold([0]) && scene.are_cold(1..4));
    scene.consume();
    scene.look();
    scene.read();
    let before = scene.blocking_reads();
    scene.consume();
    assert_eq!(scene.blocking_reads(), before);
    assert!(scene.tiered.is_whole());
}

#[test]
fn nobody_waits_for_what_was_fetched_for_records_that_wait_for_room() {
    let mut scene = Scene::new(40);
    scene.write(0..2, &APPEND);
    scene.look();
    scene.consume();
    scene.read();
    let Scene { tiered, foresight, .. } = &mut scene;
    let Tiered { keyspace, tiering, .. } = tiered;
    keyspace.settings.maxmemory = keyspace.used_bytes() as u64 - 500;
    assert_eq!(tiering.make_room(keyspace, 0, NOW), Made::Behind, "another request would wait");
    assert_eq!(foresight.make_room(keyspace, tiering, NOW), Made::Done);
    // Others' values go as soon as they may.
    let hash = keyspace.hash(b"key2");
    keyspace.cold_mut().expect("it has a tier").pin(hash);
    assert_eq!(foresight.make_room(keyspace, tiering, NOW), Made::Behind);
}
