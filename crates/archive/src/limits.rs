//! The limits of snapshots.

use crate::manifest::{FORMAT_MAX, FORMAT_MIN, FORMAT_OF_BRANCHES, MANIFEST_BYTES_MAX};
use base::UnixMillis;

/// How large parts become, and how many snapshots stay. What a process reads does not depend on
/// what it would write, so processes of one shard may have different ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a part from which on another one begins, at the next key: the value that is being
    /// written, and what one turn writes, still go into it. 64 MiB: an upload that fails is no
    /// great loss, and a part's fixed costs (a request, a sync, a line of the manifest) are none. A
    /// guess. Behind many of them parts grow further ([`LARGER_SIZES`]).
    pub part_bytes: u64,
    /// The same of the first parts, behind which they double every few parts
    /// ([`PARTS_OF_ONE_SIZE`]): so a few MiB have parts for all threads that read them, and large
    /// data has few parts. 4 MiB take one thread 10 to 20 ms.
    pub first_part_bytes: u64,
    /// Parts of one snapshot, at most; the last takes all the rest, behind 25 TiB.
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
    /// No manifest of a newer version is written. Less than the newest is for a shard of which some
    /// servers are older, and do not read that, or may be soon.
    pub format_max: u32,
}

/// Parts of one size before they double: as many as threads ever read at once, so that none of
/// them has twice as much to read as another.
pub const PARTS_OF_ONE_SIZE: usize = 8;

/// How often parts double once more while as many come as there may be: each tenth of them. The
/// largest have 64 GiB then, less than a service takes as one object by pieces (80 GiB at 8 MiB
/// each).
const LARGER_SIZES: usize = 10;

/// Fewer parts of one size than this do not double once more: where there may be few parts, they
/// are chosen to be small.
const LARGER_BEHIND_MIN: usize = 64;

/// More bytes than a part has in a manifest, with the longest name and the largest numbers.
const PART_LINES_BYTES: u64 = 180;

const _: () = {
    let Limits { part_bytes, first_part_bytes, parts_max, retained, format_max, .. } =
        Limits::DEFAULT;
    assert!((parts_max as u64 + 8) * PART_LINES_BYTES <= MANIFEST_BYTES_MAX);
    assert!(first_part_bytes > 0 && first_part_bytes <= part_bytes);
    assert!(parts_max > 0 && retained > 0 && format_max == FORMAT_MAX);
};

impl Limits {
    const DEFAULT: Self = Self {
        part_bytes: 64 << 20,
        first_part_bytes: 4 << 20,
        parts_max: 4096,
        retained: 2,
        window_seconds: 0,
        window_spacing_seconds: 86_400,
        format_max: FORMAT_MAX,
    };

    /// Bytes of a part behind so many others from which on another one begins.
    pub fn part_bytes_behind(&self, parts: usize) -> u64 {
        let doubled =
            |bytes: u64, times: usize| (0..times.min(64)).fold(bytes, |it, _| it.saturating_mul(2));
        let usual = doubled(self.first_part_bytes, parts / PARTS_OF_ONE_SIZE).min(self.part_bytes);
        doubled(usual, parts / (self.parts_max / LARGER_SIZES).max(LARGER_BEHIND_MIN))
    }

    /// `true` if a snapshot of time `clock` leads to the first moment of the restore window, which
    /// ends at `now`: it is as old as that. Without a window any does.
    pub fn is_window_reached(&self, clock: UnixMillis, now: UnixMillis) -> bool {
        let millis = i64::try_from(self.window_seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
        self.window_seconds == 0 || clock.0 <= now.0.saturating_sub(millis)
    }

    /// Why these limits do not go together with what is to be done, or with keys, if they do not.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn check(&self, branches: bool, encrypts: bool) -> Result<(), String> {
        let Self { format_max, .. } = self;
        if branches && *format_max < FORMAT_OF_BRANCHES {
            return Err(format!(
                "a branch's first snapshot has format {FORMAT_OF_BRANCHES}: snapshot-format \
                 {format_max} forbids it"
            ));
        }
        // Builds that know no newer format know no encryption either.
        if encrypts && *format_max == FORMAT_MIN {
            return Err(format!(
                "who reads no newer format than snapshot-format {format_max} reads nothing that is \
                 encrypted: take the keys away, or let it be {}",
                FORMAT_MIN + 1
            ));
        }
        Ok(())
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
        assert_eq!([32, 408, 409, 817, 818].map(mib), [64, 64, 128, 128, 256]);
        let small = Limits { part_bytes: 256, ..limits };
        assert_eq!(small.part_bytes_behind(0), 256);
        assert!(limits.part_bytes_behind(usize::MAX) >= 64 << 30);
    }

    #[test]
    fn much_data_is_no_part_that_a_service_refuses() {
        const OBJECT_BYTES_MAX: u64 = 80 << 30;
        let limits = Limits::default();
        let sizes: Vec<u64> =
            (0..limits.parts_max - 1).map(|parts| limits.part_bytes_behind(parts)).collect();
        assert!(sizes.iter().all(|bytes| *bytes <= OBJECT_BYTES_MAX));
        assert!(sizes.iter().sum::<u64>() >= 25 << 40);
        // What several threads load side by side must not end with one part that is most of it.
        let mut behind = 0;
        for bytes in sizes {
            assert!(bytes <= 64 << 20 || bytes < behind / 16, "{bytes} behind {behind}");
            behind += bytes;
        }
    }
}
