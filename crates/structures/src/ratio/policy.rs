//! What an operator asks for.

use super::classes::{class_bytes, class_from};
use super::threshold::Threshold;

/// A part of all bytes, in units of 2⁻²⁰: computed at each allocation, without a division.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share(pub(super) u32);

impl Share {
    pub(super) const BITS: u32 = 20;
    pub(super) const NONE: Self = Self(0);

    /// The slow part where fast and slow bytes are to each other as these numbers. None of 0 to 0.
    pub fn of_ratio(fast: u32, slow: u32) -> Option<Self> {
        Self::of_parts(u64::from(slow), u64::from(fast) + u64::from(slow))
    }

    /// The share that a part has of a whole, at most all of it. None of a whole of 0.
    pub(super) fn of_parts(part: u64, whole: u64) -> Option<Self> {
        let part = (u128::from(part.min(whole)) << Self::BITS).checked_div(u128::from(whole));
        part.map(|part| Self(part as u32))
    }

    pub(super) fn of(self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.0)) >> Self::BITS) as u64
    }
}

/// Blocks below `min_bytes` are never slow, those from `max_bytes` on always, whatever becomes of
/// the share. Both are rounded up to a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    pub min_bytes: usize,
    pub max_bytes: usize,
}

/// How blocks are divided between the two memories (`memory-alloc-policy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    OnlyFast,
    OnlySlow,
    /// Slow are the blocks from a size on, which is rounded up to a class.
    Threshold {
        bytes: usize,
    },
    /// Slow is a share of all bytes.
    Ratio {
        share: Share,
        bounds: Bounds,
        /// The threshold until there are blocks to go by.
        first_bytes: usize,
    },
}

impl Policy {
    pub(super) fn share(self) -> Option<Share> {
        match self {
            Self::Ratio { share, .. } => Some(share),
            _ => None,
        }
    }

    /// The threshold that goes by no blocks.
    pub(super) fn first_threshold(self) -> Threshold {
        match self {
            Self::OnlyFast => Threshold::NOTHING,
            Self::OnlySlow => Threshold::from_bytes(0),
            // Within a class nothing is known of blocks on the wrong side.
            Self::Threshold { bytes } if bytes < class_bytes(0) => Threshold::from_bytes(bytes),
            Self::Threshold { bytes } => {
                Threshold::from_bytes(class_bytes(class_from(bytes)).max(bytes))
            }
            Self::Ratio { bounds, first_bytes, .. } => {
                let class_min = class_from(bounds.min_bytes);
                let class_max = class_from(bounds.max_bytes).max(class_min);
                let class = class_from(first_bytes).clamp(class_min, class_max);
                Threshold::from_bytes(class_bytes(class))
            }
        }
    }
}
