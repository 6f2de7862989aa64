//! What the tests of this crate share: seeded dice, so that a failure names its seed and repeats.

/// SplitMix64.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..bound`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound.max(1) as u64) as usize
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
}
