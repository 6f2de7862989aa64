//! Structures against safe twins of the standard library: what the tests of this crate share, and
//! what the fuzzer runs.
//!
//! A game between a structure and its twin is played with dice. In a test they fall as a seed says,
//! so that a failure names its seed and repeats; for the fuzzer they fall as its input says.
//!
//! The fuzzer has blocks lie in both memories ([`in_two_memories`]).

pub(crate) mod slow;

use crate::{intset, listpack, quicklist, sorted_set, table};

/// Plays where slow memory is, too. How blocks are divided, the input's length says, so that all of
/// its bytes are the game's. Only in a process that holds no blocks yet, and plays one game at a
/// time: memory is the process's.
///
/// # Panics
/// As `play`, or if a block is left behind.
pub fn in_two_memories(play: fn(&[u8]), input: &[u8]) {
    slow::divide(input.len());
    play(input);
    slow::check_is_empty();
}

/// Plays listpacks by a fuzzer's input.
///
/// # Panics
/// If a listpack and its twin differ: the finding.
pub fn play_listpack(input: &[u8]) {
    listpack::twin::play(&mut Dice::of_input(input));
}

/// Plays tables by a fuzzer's input.
///
/// # Panics
/// If a table and its twin differ: the finding.
pub fn play_table(input: &[u8]) {
    table::twin::play(&mut Dice::of_input(input));
}

/// Plays intsets, quicklists or sorted sets by a fuzzer's input.
///
/// # Panics
/// If one of them and its twin differ: the finding.
pub fn play_collections(input: &[u8]) {
    let mut dice = Dice::of_input(input);
    match dice.below(3) {
        0 => intset::twin::play(&mut dice),
        1 => quicklist::twin::play(&mut dice),
        _ => sorted_set::twin::play(&mut dice),
    }
}

/// Where a game's choices come from.
pub(crate) enum Dice {
    /// The state of SplitMix64.
    #[cfg(test)]
    Seeded(u64),
    /// What is left of an input. Behind its end every number is 0.
    Input(std::vec::IntoIter<u8>),
}

impl Dice {
    #[cfg(test)]
    pub(crate) fn new(seed: u64) -> Self {
        Self::Seeded(seed)
    }

    pub(crate) fn of_input(input: &[u8]) -> Self {
        Self::Input(Vec::from(input).into_iter())
    }

    /// Whether the input is at its end. Seeded dice fall for ever.
    pub(crate) fn is_spent(&self) -> bool {
        match self {
            #[cfg(test)]
            Self::Seeded(_) => false,
            Self::Input(bytes) => bytes.len() == 0,
        }
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.roll_bytes(8)
    }

    /// A number of that many bytes at least; an input gives no more than it must, so that each of
    /// its bytes means something.
    fn roll_bytes(&mut self, count: usize) -> u64 {
        match self {
            #[cfg(test)]
            Self::Seeded(state) => {
                *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut mixed = *state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                mixed ^ (mixed >> 31)
            }
            Self::Input(bytes) => bytes.take(count).fold(0, |n, byte| n << 8 | u64::from(byte)),
        }
    }

    /// A number in `0..bound`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bytes = match bound {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 8,
        };
        (self.roll_bytes(bytes) % bound.max(1) as u64) as usize
    }

    /// An integer of any magnitude, biased to the edges of encodings.
    pub(crate) fn integer(&mut self) -> i64 {
        let raw = self.roll() as i64 >> self.below(64);
        raw.wrapping_add(self.below(3) as i64 - 1)
    }

    /// Short text, long text or an integer's text.
    pub(crate) fn text(&mut self) -> Vec<u8> {
        match self.below(12) {
            0..5 => self.integer().to_string().into_bytes(),
            5..10 => format!("m{}", self.below(20)).into_bytes(),
            10 => vec![b'a' + self.below(26) as u8; self.below(200)],
            _ => vec![self.roll() as u8; self.below(6000)],
        }
    }

    /// Up to 255 bytes as they stand in the input, behind their count.
    pub(crate) fn foreign_bytes(&mut self) -> Vec<u8> {
        let count = self.below(256);
        (0..count).map(|_| self.roll_bytes(1) as u8).collect()
    }
}
