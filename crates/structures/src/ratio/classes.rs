//! Size classes: 4 to a doubling, from 16 bytes to 1 GiB. The allocator has eight times as many.
//! With these a class holds enough bytes that dividing it makes up for what changes elsewhere.
//!
//! Unlike [`crate::size_class`], which rounds a size up, these are numbered, and a class begins at
//! the size that it is named by. What is smaller or larger counts in the first and the last.

const BITS_MIN: u32 = 4;
const BITS_MAX: u32 = 30;

pub(crate) const CLASSES: usize = 4 * (BITS_MAX - BITS_MIN) as usize + 1;

/// The class of a size, from 0.
pub(crate) fn class_of(bytes: usize) -> usize {
    let bytes = bytes.clamp(1 << BITS_MIN, 1 << BITS_MAX);
    let doubling = bytes.ilog2();
    let quarter = (bytes >> (doubling - 2)) & 3;
    4 * (doubling - BITS_MIN) as usize + quarter
}

/// The smallest size of a class.
pub(super) fn class_bytes(class: usize) -> usize {
    (4 + class % 4) << (class / 4 + BITS_MIN as usize - 2)
}

/// The first class of which no block is smaller. It may be one behind the last.
pub(super) fn class_from(bytes: usize) -> usize {
    let class = class_of(bytes);
    if class_bytes(class) < bytes { class + 1 } else { class }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_begins_at_its_size_and_ends_before_the_next() {
        assert_eq!([16, 20, 24, 28, 32, 40].map(class_of), [0, 1, 2, 3, 4, 5]);
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
