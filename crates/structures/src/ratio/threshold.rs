//! The size from which on blocks are slow, and the class below it that is divided.

use super::classes::{CLASSES, class_bytes, class_from};
use super::counts::{Bytes, Live};
use super::{Bounds, Memory, Share};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Slow are the blocks of `bytes` and more, and of the class below a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Threshold {
    pub bytes: usize,
    /// The share of the class below that is slow. A size that begins no class has none.
    pub part: Share,
}

impl Threshold {
    /// No block is so large.
    pub const NOTHING: Self = Self { bytes: usize::MAX, part: Share::NONE };

    pub fn from_bytes(bytes: usize) -> Self {
        Self { bytes, part: Share::NONE }
    }

    /// The threshold whose share comes nearest to the target, within the bounds. Of nothing, the
    /// smallest.
    pub fn best(live: &Live, share: Share, bounds: Bounds) -> Self {
        let target = share.of(live.all()).saturating_sub(live.beside.slow);
        let class_min = class_from(bounds.min_bytes);
        let mut class = class_from(bounds.max_bytes).max(class_min);
        let mut slow: u64 = live.classes[class..].iter().map(|bytes| bytes.all()).sum();
        while class > class_min && slow + live.classes[class - 1].all() <= target {
            class -= 1;
            slow += live.classes[class].all();
        }
        let part = match class.checked_sub(1) {
            Some(divided) if class > class_min && slow < target => {
                let whole = live.classes[divided].all();
                Share::of_parts(in_blocks(target - slow, divided), whole).unwrap_or(Share::NONE)
            }
            _ => Share::NONE,
        };
        Self { bytes: class_bytes(class), part }
    }

    /// The bytes by which the share is off when every block lies where the threshold wants it.
    pub fn error(self, live: &Live, share: Share) -> u64 {
        let from = self.class().min(CLASSES);
        let slow: u64 = live.classes[from..].iter().map(|bytes| bytes.all()).sum();
        let part = self.divided().map_or(0, |class| self.part_of(live.classes[class], class));
        (live.beside.slow + slow + part).abs_diff(share.of(live.all()))
    }

    /// Bytes that lie in fast memory and should not, and likewise of slow memory, in blocks of
    /// fewer bytes than `below`. A size that is none of the allocator's begins behind the class
    /// below it; within the last class, which has no end, nothing is known.
    pub fn misplaced(self, live: &Live, below: u64) -> Bytes {
        let mut misplaced = Bytes::default();
        let counted = (0..CLASSES).take_while(|class| (class_bytes(*class) as u64) < below);
        for class in counted {
            let bytes = &live.classes[class];
            if class == 0 && (1..=class_bytes(0)).contains(&self.bytes) {
                // Blocks of 8 bytes count in this class as well: nothing is known of it.
            } else if class_bytes(class) >= self.bytes {
                misplaced.fast += bytes.fast;
            } else if self.divided() == Some(class) {
                let wanted = self.part_of(*bytes, class);
                misplaced.fast += in_blocks(wanted.saturating_sub(bytes.slow), class);
                misplaced.slow += in_blocks(bytes.slow.saturating_sub(wanted), class);
            } else if class + 1 < CLASSES {
                misplaced.slow += bytes.slow;
            }
        }
        misplaced
    }

    fn class(self) -> usize {
        class_from(self.bytes)
    }

    /// The class of which a part is slow.
    fn divided(self) -> Option<usize> {
        self.class().checked_sub(1).filter(|_| self.part != Share::NONE)
    }

    /// The slow bytes of the divided class, as near as its blocks come to the share.
    fn part_of(self, bytes: Bytes, class: usize) -> u64 {
        in_blocks(self.part.of(bytes.all()), class)
    }
}

/// The nearest bytes that whole blocks of a class have, if they are its smallest: others are less
/// than a quarter larger.
pub(super) fn in_blocks(bytes: u64, class: usize) -> u64 {
    let block = class_bytes(class) as u64;
    (bytes + block / 2) / block * block
}

/// What every allocation looks at: a threshold, and the bytes of each memory up to which it holds.
#[derive(Debug)]
pub(super) struct Published {
    slow_from: AtomicUsize,
    divided_from: AtomicUsize,
    divided_share: AtomicU32,
    /// The share of all bytes that is aimed at; above 2²⁰ there is none.
    share: AtomicU32,
    fast: Window,
    slow: Window,
}

/// The least and the most bytes for which what was computed holds.
#[derive(Debug)]
struct Window {
    least: AtomicU64,
    most: AtomicU64,
}

impl Window {
    const fn new() -> Self {
        Self { least: AtomicU64::new(0), most: AtomicU64::new(u64::MAX) }
    }

    fn set(&self, now: u64, change: u64) {
        self.least.store(now.saturating_sub(change), Relaxed);
        self.most.store(now.saturating_add(change), Relaxed);
    }
}

impl Published {
    pub const fn new() -> Self {
        Self {
            slow_from: AtomicUsize::new(usize::MAX),
            divided_from: AtomicUsize::new(usize::MAX),
            divided_share: AtomicU32::new(0),
            share: AtomicU32::new(u32::MAX),
            fast: Window::new(),
            slow: Window::new(),
        }
    }

    /// Not in one step: a block that is placed in between may have to move once more.
    pub fn publish(&self, threshold: Threshold, share: Option<Share>, blocks: Bytes, change: u64) {
        let divided = threshold.divided();
        self.divided_share.store(threshold.part.0, Relaxed);
        self.divided_from.store(divided.map_or(threshold.bytes, class_bytes), Relaxed);
        self.slow_from.store(threshold.bytes, Relaxed);
        self.share.store(share.map_or(u32::MAX, |share| share.0), Relaxed);
        self.fast.set(blocks.fast, change);
        self.slow.set(blocks.slow, change);
    }

    #[inline]
    pub fn slow_from(&self) -> usize {
        self.slow_from.load(Relaxed)
    }

    #[inline]
    pub fn divided_from(&self) -> usize {
        self.divided_from.load(Relaxed)
    }

    #[inline]
    pub fn divided_share(&self) -> Share {
        Share(self.divided_share.load(Relaxed))
    }

    pub fn share(&self) -> Option<Share> {
        Some(self.share.load(Relaxed)).filter(|share| *share != u32::MAX).map(Share)
    }

    #[inline]
    pub fn least(&self, memory: Memory) -> u64 {
        self.window(memory).least.load(Relaxed)
    }

    #[inline]
    pub fn most(&self, memory: Memory) -> u64 {
        self.window(memory).most.load(Relaxed)
    }

    fn window(&self, memory: Memory) -> &Window {
        match memory {
            Memory::Fast => &self.fast,
            Memory::Slow => &self.slow,
        }
    }
}
