//! One cache line of the table: seven fingerprints, seven slots, one spill byte.
//!
//! ```text
//!  byte 0        7 8          16                                  64
//!       ┌─────────┬─┬──────────┬──────────┬── … ──┬──────────┐
//!       │ 7 × fp  │s│  slot 0  │  slot 1  │       │  slot 6  │
//!       └─────────┴─┴──────────┴──────────┴── … ──┴──────────┘
//!  fp    low byte of the hash, 0 replaced by 1; 0 marks an empty slot
//!  s     spill: low nibble = entries of this home that live in the next bucket (exact),
//!        high nibble = entries of this home in the segment's overflow (sticky at 15)
//!  slot  bits 0..48 the element's reference, bits 48..64 the tag (16 bits of its hash)
//! ```
//! A lookup compares all seven fingerprints at once with integer arithmetic, which needs no
//! vector instructions and no `unsafe`.

/// Slots in a bucket: what fits into a cache line of 64 bytes beside fingerprints and spill.
pub(super) const SLOTS: usize = 7;

/// The reference's share of a slot: user addresses have 47 bits on x86-64, 48 on aarch64.
pub(super) const RAW_BITS: u32 = 48;
pub(super) const RAW_MASK: u64 = (1 << RAW_BITS) - 1;

const LOW_SEVEN: u64 = 0x7f7f_7f7f_7f7f_7f7f;
/// The top bit of each fingerprint's byte; the spill byte is left out.
const LANES: u64 = 0x0080_8080_8080_8080;
const EVERY_BYTE: u64 = 0x0101_0101_0101_0101;
const OVERFLOW_STICKY: u8 = 15;

/// A stored element: its reference with the tag above it, and its fingerprint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub slot: u64,
    pub fingerprint: u8,
}

impl Stored {
    pub fn new(raw: u64, tag: u16, fingerprint: u8) -> Self {
        debug_assert!(raw <= RAW_MASK && fingerprint != 0);
        Self { slot: raw | u64::from(tag) << RAW_BITS, fingerprint }
    }

    pub fn raw(self) -> u64 {
        self.slot & RAW_MASK
    }

    pub fn tag(self) -> u16 {
        (self.slot >> RAW_BITS) as u16
    }
}

/// The low byte of a hash, moved off the mark for "empty".
#[inline]
pub(super) fn fingerprint(hash: u64) -> u8 {
    (hash as u8).max(1)
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Bucket {
    fingerprints: [u8; SLOTS],
    spill: u8,
    slots: [u64; SLOTS],
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    pub const EMPTY: Self = Self { fingerprints: [0; SLOTS], spill: 0, slots: [0; SLOTS] };

    #[inline]
    fn lanes(&self, fingerprint: u8) -> u64 {
        let [a, b, c, d, e, f, g] = self.fingerprints;
        let word = u64::from_le_bytes([a, b, c, d, e, f, g, self.spill]);
        let difference = word ^ (EVERY_BYTE * u64::from(fingerprint));
        // The top bit of a byte is set where the byte is zero; exact, no carries between bytes.
        !(((difference & LOW_SEVEN) + LOW_SEVEN) | difference | LOW_SEVEN) & LANES
    }

    /// The places whose fingerprint equals `fingerprint`.
    #[inline]
    pub fn matches(&self, fingerprint: u8) -> Places {
        Places(self.lanes(fingerprint))
    }

    /// The places that hold an element.
    #[inline]
    pub fn occupied(&self) -> Places {
        Places(!self.lanes(0) & LANES)
    }

    #[inline]
    pub fn vacant(&self) -> Option<usize> {
        Places(self.lanes(0)).next()
    }

    #[inline]
    pub fn is_occupied(&self, place: usize) -> bool {
        self.fingerprints[place] != 0
    }

    #[inline]
    pub fn stored(&self, place: usize) -> Stored {
        Stored { slot: self.slots[place], fingerprint: self.fingerprints[place] }
    }

    pub fn put(&mut self, place: usize, stored: Stored) {
        self.fingerprints[place] = stored.fingerprint;
        self.slots[place] = stored.slot;
    }

    pub fn set_slot(&mut self, place: usize, slot: u64) {
        self.slots[place] = slot;
    }

    pub fn take(&mut self, place: usize) -> Stored {
        let stored = self.stored(place);
        self.fingerprints[place] = 0;
        self.slots[place] = 0;
        stored
    }

    #[inline]
    pub fn spills(&self) -> bool {
        self.spill != 0
    }

    #[inline]
    pub fn has_displaced(&self) -> bool {
        self.spill & 0x0f != 0
    }

    #[inline]
    pub fn has_overflow(&self) -> bool {
        self.spill >> 4 != 0
    }

    /// How many entries of this home are in the next bucket, and in the overflow: 15 stands for
    /// that or more, and for less once it was more.
    #[cfg(any(test, feature = "twins"))]
    pub fn spilled(&self) -> (usize, usize) {
        ((self.spill & 0x0f).into(), (self.spill >> 4).into())
    }

    pub fn add_displaced(&mut self) {
        self.spill += 1;
    }

    pub fn remove_displaced(&mut self) {
        debug_assert!(self.has_displaced());
        self.spill -= 1;
    }

    pub fn add_overflow(&mut self) {
        if self.spill >> 4 < OVERFLOW_STICKY {
            self.spill += 0x10;
        }
    }

    /// Forgets one overflow entry, unless the count has saturated: then it stays until the
    /// segment is rebuilt, which only costs needless looks into the overflow.
    pub fn remove_overflow(&mut self) {
        debug_assert!(self.has_overflow());
        if self.spill >> 4 < OVERFLOW_STICKY {
            self.spill -= 0x10;
        }
    }
}

/// Places of a bucket, lowest first.
pub(super) struct Places(u64);

impl Iterator for Places {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let place = (self.0.trailing_zeros() / 8) as usize;
        self.0 &= self.0 - 1;
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_exact_for_every_pair_of_fingerprints() {
        for stored in 1..=255u8 {
            let mut bucket = Bucket::EMPTY;
            bucket.put(0, Stored::new(1, 2, stored));
            bucket.put(3, Stored::new(1, 2, stored ^ 1 | 2));
            bucket.put(6, Stored::new(1, 2, stored));
            bucket.add_displaced();
            for wanted in 0..=255u8 {
                let naive: Vec<usize> =
                    (0..SLOTS).filter(|&i| bucket.fingerprints[i] == wanted).collect();
                assert_eq!(bucket.matches(wanted).collect::<Vec<_>>(), naive);
            }
            assert_eq!(bucket.occupied().collect::<Vec<_>>(), [0, 3, 6]);
        }
    }

    #[test]
    fn spill_counts_do_not_disturb_each_other() {
        let mut bucket = Bucket::EMPTY;
        for _ in 0..SLOTS {
            bucket.add_displaced();
        }
        for _ in 0..40 {
            bucket.add_overflow();
        }
        for _ in 0..SLOTS {
            bucket.remove_displaced();
        }
        bucket.remove_overflow();
        assert!(!bucket.has_displaced() && bucket.has_overflow(), "a saturated count is sticky");
    }
}
