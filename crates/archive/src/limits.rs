//! The limits of snapshots.

use crate::manifest::{FORMAT, MANIFEST_BYTES_MAX};

/// How large parts become, and how many snapshots stay. What a process reads does not depend on
/// what it would write, so processes of one shard may have different ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a part from which on another one begins, at the next key: the value that is being
    /// written, and what one turn writes, still go into it. 64 MiB: an upload that fails is no
    /// great loss, and a part's fixed costs (a request, a sync, a line of the manifest) are none. A
    /// guess.
    pub part_bytes: u64,
    /// The same of the first parts, behind which they double every few parts
    /// ([`PARTS_OF_ONE_SIZE`]): so a few MiB have parts for all threads that read them, and large
    /// data has few parts. 4 MiB take one thread 10 to 20 ms.
    pub first_part_bytes: u64,
    /// Parts of one snapshot, at most; the last takes all the rest. 254 GiB at 64 MiB each.
    pub parts_max: usize,
    /// Whole snapshots that stay: the newest, and the one before it in case the newest is damaged.
    /// The log is trimmed only up to the record of the oldest of them.
    pub retained: usize,
    /// The restore window: one can go back to every moment of this last time, in seconds. 0: only
    /// as far as the retained snapshots and the log reach. With a window the log is archived before
    /// it is trimmed.
    pub window_seconds: u64,
    /// Within the window, time from one snapshot that stays to the next, in seconds: what is
    /// replayed on the way back to a moment, at most.
    pub window_spacing_seconds: u64,
    /// The version of the manifest that is written. An older one than this build's is for a shard
    /// of which some servers are older, and do not read the newest.
    pub format: u32,
}

/// Parts of one size before they double: as many as threads ever read at once, so that none of
/// them has twice as much to read as another.
pub const PARTS_OF_ONE_SIZE: usize = 8;

/// More bytes than a part has in a manifest, with the longest name and the largest numbers.
const PART_LINES_BYTES: u64 = 180;

const _: () = {
    let Limits { part_bytes, first_part_bytes, parts_max, retained, format, .. } = Limits::DEFAULT;
    assert!((parts_max as u64 + 8) * PART_LINES_BYTES <= MANIFEST_BYTES_MAX);
    assert!(first_part_bytes > 0 && first_part_bytes <= part_bytes);
    assert!(parts_max > 0 && retained > 0 && format == FORMAT);
};

impl Limits {
    const DEFAULT: Self = Self {
        part_bytes: 64 << 20,
        first_part_bytes: 4 << 20,
        parts_max: 4096,
        retained: 2,
        window_seconds: 0,
        window_spacing_seconds: 86_400,
        format: FORMAT,
    };

    /// Bytes of a part behind so many others from which on another one begins.
    pub fn part_bytes_behind(&self, parts: usize) -> u64 {
        let doublings = parts / PARTS_OF_ONE_SIZE;
        let grown =
            (0..doublings.min(64)).fold(self.first_part_bytes, |bytes, _| bytes.saturating_mul(2));
        grown.min(self.part_bytes)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_double_up_to_the_largest() {
        let limits = Limits::default();
        let mib = |parts| limits.part_bytes_behind(parts) >> 20;
        assert_eq!([0, 7, 8, 15, 16, 24, 31].map(mib), [4, 4, 8, 8, 16, 32, 32]);
        assert_eq!([32, 4095, usize::MAX].map(mib), [64; 3]);
        let small = Limits { part_bytes: 256, ..limits };
        assert_eq!(small.part_bytes_behind(0), 256);
    }
}
