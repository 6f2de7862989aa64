//! Whatever happens in whatever order: each live record is readable, and the accounts are right.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
enum Step {
    Set {
        key: u64,
        length: usize,
    },
    /// As a draft, which counts as a buffer while `others` are set.
    Draft {
        key: u64,
        length: usize,
        others: u64,
        is_put: bool,
    },
    /// Several small ones, so that few steps fill segments.
    SetMany {
        key: u64,
        count: u64,
        length: usize,
    },
    Remove {
        key: u64,
        count: u64,
    },
    Close,
    Begin,
    /// A write under way ends.
    End {
        which: usize,
        fate: Fate,
    },
    WriteAll,
    Clean,
    GiveUp,
    Hold,
    Unhold,
    Capacity {
        segments: u64,
    },
    ReleaseAll,
    Reset,
    /// The file ends where the tier says.
    Shrink,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Arrived,
    /// Some of it arrived.
    Failed,
}

const KEYS: u64 = 400;

fn any_length() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 1_usize..700,
        1 => 2020_usize..2050,
        1 => 2033_usize..4081,
        1 => 4081_usize..20_465,
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let fate = prop_oneof![4 => Just(Fate::Arrived), 1 => Just(Fate::Failed)];
    prop_oneof![
        60 => (0..KEYS, any_length()).prop_map(|(key, length)| Step::Set { key, length }),
        30 => (0..KEYS, any_length(), 0_u64..20, prop::bool::weighted(0.8)).prop_map(
            |(key, length, others, is_put)| Step::Draft { key, length, others, is_put }
        ),
        80 => (0..KEYS, 1_u64..80, 1_usize..2100)
            .prop_map(|(key, count, length)| Step::SetMany { key, count, length }),
        20 => (0..KEYS, 1_u64..40).prop_map(|(key, count)| Step::Remove { key, count }),
        10 => Just(Step::Close),
        60 => Just(Step::Begin),
        60 => (0_usize..2, fate).prop_map(|(which, fate)| Step::End { which, fate }),
        60 => Just(Step::WriteAll),
        150 => Just(Step::Clean),
        2 => Just(Step::GiveUp),
        4 => Just(Step::Hold),
        12 => Just(Step::Unhold),
        8 => (6_u64..20).prop_map(|segments| Step::Capacity { segments }),
        1 => (0_u64..6).prop_map(|segments| Step::Capacity { segments }),
        1 => Just(Step::ReleaseAll),
        1 => Just(Step::Reset),
        4 => Just(Step::Shrink),
    ]
}

/// A tier on which steps are taken, with what is under way.
struct Play {
    driven: Driven,
    writes: Vec<Write>,
    cleaning: Option<(Cleaning, Chunk)>,
    /// Holds, each with its number.
    holds: VecDeque<(u64, Hold)>,
    holds_begun: u64,
    /// Records that were released while held, and how many holds had begun.
    held: Vec<(u64, Place, Vec<u8>, u64)>,
    seed: u64,
}

impl Play {
    fn step(&mut self, step: &Step) {
        match *step {
            Step::Set { key, length } => self.set(key, length),
            Step::Draft { key, length, others, is_put } => {
                self.draft(key, length, others, is_put);
            }
            Step::SetMany { key, count, length } => {
                (key..key + count).for_each(|key| self.set(key % KEYS, length));
            }
            Step::Remove { key, count } => (key..key + count).for_each(|key| self.remove(key)),
            Step::Close => self.driven.tier.close_pieces(),
            Step::Begin => self.writes.extend(self.driven.tier.next_write()),
            Step::End { which, fate } => self.end(which, fate),
            Step::WriteAll => self.write_all(),
            Step::Clean => self.clean(),
            Step::GiveUp => {
                if let Some((cleaning, _)) = self.cleaning.take() {
                    self.driven.tier.give_up_cleaning(&cleaning);
                }
            }
            Step::Hold => {
                self.holds.push_back((self.holds_begun, self.driven.tier.hold()));
                self.holds_begun += 1;
            }
            Step::Unhold => self.unhold(),
            Step::Capacity { segments } => self.driven.tier.set_capacity(segments << 15),
            Step::Shrink => self.driven.shrink(),
            Step::ReleaseAll => {
                let keys = std::mem::take(&mut self.driven.keys);
                keys.into_iter().for_each(|(key, (place, value))| self.released(key, place, value));
                self.driven.tier.release_all();
            }
            Step::Reset => {
                self.driven.tier.reset();
                self.driven.keys.clear();
                self.held.clear();
            }
        }
    }

    fn set(&mut self, key: u64, length: usize) {
        self.seed += 1;
        let before = self.driven.keys.get(&key).cloned();
        let set = self.driven.set(key, content(self.seed, length));
        if let Ok(place) = set {
            let end = place.offset() + place.length() as u64;
            assert!(end <= self.driven.tier.figures().capacity_bytes, "within the capacity");
            if let Some((place, value)) = before {
                self.released(key, place, value);
            }
        }
        assert_ne!(set, Err(Refused::Length));
    }

    fn draft(&mut self, key: u64, length: usize, others: u64, is_put: bool) {
        self.seed += 1;
        let (value, tier) = (content(self.seed, length), &mut self.driven.tier);
        let Ok(mut draft) = tier.begin_draft(length) else { return };
        for part in value.chunks(1000) {
            draft.write(|bytes| bytes.extend_from_slice(part));
        }
        assert!(draft.content() == value && !draft.is_over());
        (0..others).for_each(|other| self.set((key + other) % KEYS, 300));
        let before = self.driven.keys.get(&key).cloned();
        let tier = &mut self.driven.tier;
        if !is_put {
            return tier.give_up_draft(draft);
        }
        match tier.put_draft(key, draft) {
            Ok(place) => {
                self.driven.keys.insert(key, (place, value));
                if let Some((place, value)) = before {
                    self.driven.tier.release(place);
                    self.released(key, place, value);
                }
            }
            Err((why, draft)) => {
                assert_ne!(why, Refused::Length);
                tier.give_up_draft(draft);
            }
        }
    }

    fn remove(&mut self, key: u64) {
        if let Some((place, value)) = self.driven.keys.get(&key).cloned() {
            self.driven.remove(key);
            self.released(key, place, value);
        }
    }

    fn released(&mut self, key: u64, place: Place, value: Vec<u8>) {
        if !self.holds.is_empty() {
            self.held.push((key, place, value, self.holds_begun));
        }
    }

    fn end(&mut self, which: usize, fate: Fate) {
        if which >= self.writes.len() {
            return;
        }
        let write = self.writes.swap_remove(which);
        match fate {
            Fate::Arrived => {
                self.driven.write(&write, write.length());
                self.driven.tier.written(write.id());
            }
            Fate::Failed => {
                self.driven.write(&write, write.length() / 2);
                self.driven.tier.failed(write.id());
            }
        }
    }

    fn write_all(&mut self) {
        loop {
            while !self.writes.is_empty() {
                self.end(0, Fate::Arrived);
            }
            let Some(write) = self.driven.tier.next_write() else { return };
            self.writes.push(write);
        }
    }

    /// Cleans one chunk more.
    fn clean(&mut self) {
        let Some((cleaning, chunk)) = self.cleaning.take() else {
            let begun = self.driven.tier.begin_cleaning();
            self.cleaning = begun.map(|cleaning| (cleaning, cleaning.first()));
            return;
        };
        if !self.driven.tier.is_being_cleaned(&cleaning) {
            self.driven.tier.end_cleaning(&cleaning);
            return;
        }
        let before = self.driven.keys.clone();
        match self.clean_chunk(chunk) {
            Ok(Some(next)) => self.cleaning = Some((cleaning, next)),
            // Tried again from the chunk's beginning.
            Err(Refused::Behind) => self.cleaning = Some((cleaning, chunk)),
            Ok(None) => {
                self.driven.tier.end_cleaning(&cleaning);
                self.driven.assert_left(&cleaning);
            }
            Err(_) => self.driven.tier.end_cleaning(&cleaning),
        }
        for (key, (place, value)) in before {
            if self.driven.keys[&key].0 != place {
                self.released(key, place, value);
            }
        }
    }

    fn clean_chunk(&mut self, chunk: Chunk) -> Result<Option<Chunk>, Refused> {
        let driven = &mut self.driven;
        let mut bytes = driven.bytes(chunk.offset(), chunk.length());
        let mut records = Vec::new();
        let next = chunk.open(&driven.sealer, &mut bytes, &mut records).expect("it was written");
        for Found { place, hash, content } in records {
            if let Some((now, _)) = driven.keys.get_mut(&hash)
                && *now == place
            {
                *now = driven.tier.put_survivor(hash, &bytes[content])?;
                driven.tier.release(place);
            }
        }
        Ok(next)
    }

    fn unhold(&mut self) {
        let is_oldest = self.seed.is_multiple_of(2);
        let ended = if is_oldest { self.holds.pop_front() } else { self.holds.pop_back() };
        if let Some((_, hold)) = ended {
            self.seed += 1;
            self.driven.tier.unhold(hold);
            let holds = &self.holds;
            self.held.retain(|(.., begun)| holds.iter().any(|(number, _)| number < begun));
        }
    }

    fn check(&self) {
        self.driven.check();
        for (key, place, value, _) in &self.held {
            self.driven.assert_has(*place, *key, value);
        }
        assert!(!self.driven.file.windows(MARK.len()).any(|bytes| bytes == MARK));
    }

    /// Releases all, lets all writes arrive and all cleaning end: then all is free.
    fn end_all(mut self) {
        while !self.holds.is_empty() {
            self.unhold();
        }
        (0..KEYS).for_each(|key| self.remove(key));
        self.driven.tier.close_pieces();
        self.write_all();
        if let Some((cleaning, _)) = self.cleaning.take() {
            self.driven.tier.end_cleaning(&cleaning);
        }
        self.check();
        let figures = self.driven.tier.figures();
        assert_eq!(self.driven.tier.free_segments() as u64, figures.capacity_bytes >> 15);
        assert_eq!((figures.live_records, figures.live_bytes, figures.occupied_bytes), (0, 0, 0));
        assert_eq!((figures.held_bytes, figures.buffered_bytes), (0, 0));
        assert!(!self.driven.tier.is_over_capacity());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn each_live_record_is_readable_and_accounted_for(
        steps in proptest::collection::vec(any_step(), 1..400),
        writes_max in 1_usize..3,
        room in prop_oneof![Just(None), (14_u64..20).prop_map(Some)],
    ) {
        let file_bytes_max = room.map_or(u64::MAX, |segments| segments << 15);
        let limits =
            Limits { segment_bytes: 32 << 10, writes_max, file_bytes_max, ..LIMITS };
        let driven = Driven::new(limits, 14);
        let (writes, held) = (Vec::new(), Vec::new());
        let holds = VecDeque::new();
        let mut play =
            Play { driven, writes, cleaning: None, holds, holds_begun: 0, held, seed: 0 };
        for (index, step) in steps.iter().enumerate() {
            play.step(step);
            play.driven.tier.check(play.driven.keys.values().map(|(place, _)| *place));
            if index % 16 == 0 {
                play.check();
            }
        }
        play.check();
        assert!(play.driven.file.len() as u64 <= file_bytes_max, "a device has no more");
        play.end_all();
    }
}
