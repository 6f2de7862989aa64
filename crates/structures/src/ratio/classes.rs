//! Size classes as the allocator has them, from 16 bytes to 1 GiB: each multiple of 16 up to 1024,
//! then 32 to a doubling.
//!
//! Unlike [`crate::size_class`], which rounds a size up, these are numbered, and a class begins at
//! the size that it is named by. What is smaller or larger counts in the first and the last.

/// The least distance of two classes, in bytes.
const STEP_MIN: usize = 16;

/// The logarithm of how many classes a doubling has.
const PER_DOUBLING_BITS: u32 = 5;
const PER_DOUBLING: usize = 1 << PER_DOUBLING_BITS;

/// From 2^9 bytes on the classes of a doubling are [`STEP_MIN`] apart, or wider.
const BITS_MIN: u32 = STEP_MIN.ilog2() + PER_DOUBLING_BITS;
const BITS_MAX: u32 = 30;

/// The classes below.
const MULTIPLES: usize = PER_DOUBLING - 1;

pub(crate) const CLASSES: usize = MULTIPLES + PER_DOUBLING * (BITS_MAX - BITS_MIN) as usize + 1;

/// The class of a size, from 0.
pub(crate) fn class_of(bytes: usize) -> usize {
    let bytes = bytes.clamp(STEP_MIN, 1 << BITS_MAX);
    let doubling = bytes.ilog2();
    if doubling < BITS_MIN {
        return bytes / STEP_MIN - 1;
    }
    let part = (bytes >> (doubling - PER_DOUBLING_BITS)) % PER_DOUBLING;
    MULTIPLES + PER_DOUBLING * (doubling - BITS_MIN) as usize + part
}

/// The smallest size of a class.
pub(super) fn class_bytes(class: usize) -> usize {
    let Some(wide) = class.checked_sub(MULTIPLES) else { return (class + 1) * STEP_MIN };
    (PER_DOUBLING + wide % PER_DOUBLING) * STEP_MIN << (wide / PER_DOUBLING)
}

/// The first class of which no block is smaller. It may be one behind the last.
pub(super) fn class_from(bytes: usize) -> usize {
    let class = class_of(bytes);
    if class_bytes(class) < bytes { class + 1 } else { class }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size_class::size_class;

    #[test]
    fn the_allocators_sizes_are_where_classes_begin() {
        for bytes in (9..100_000).chain((100_000..1 << 30).step_by(99_991)) {
            let size = size_class(bytes);
            assert_eq!(class_bytes(class_of(size)), size, "{bytes}");
        }
    }

    #[test]
    fn a_class_begins_at_its_size_and_ends_before_the_next() {
        assert_eq!([16, 24, 32, 496, 512, 528].map(class_of), [0, 0, 1, 30, 31, 32]);
        assert_eq!([1008, 1024, 1040, 1056].map(class_of), [62, 63, 63, 64]);
        for class in 0..CLASSES {
            let bytes = class_bytes(class);
            assert_eq!((class_of(bytes), class_from(bytes)), (class, class));
            assert_eq!(class_from(bytes + 1), class + 1);
            assert_eq!(class_of(class_bytes(class + 1) - 1), class);
        }
        assert_eq!((class_of(0), class_from(0)), (0, 0));
        assert_eq!((class_of(usize::MAX), class_from(usize::MAX)), (CLASSES - 1, CLASSES));
    }
}
