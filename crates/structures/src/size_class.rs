//! The allocator's size classes.
//!
//! jemalloc hands out every multiple of 8 up to 512, then 32 sizes per doubling (its own choice is
//! every multiple of 16 up to 128, then four per doubling: docs/decisions/019-classes-of-sizes.md).
//! Who asks for a whole class wastes nothing, counts its memory as the allocator does, and may
//! change its content in place as long as the class stays the same: an allocation's size must be
//! known again when it is freed, and is computed from the content then.
//!
//! From 256 KiB on jemalloc gives whole pages: up to 3 % less than is counted here.
//!
//! [`growth_class`] has wider steps, for what grows by little again and again.
//!
//! Source: `SC_LG_NGROUP` and `LG_QUANTUM` in vendor/tikv-jemalloc-sys, and
//! <https://jemalloc.net/jemalloc.3.html>, "Implementation notes".

/// The logarithm of how many classes there are per doubling.
const PER_DOUBLING_BITS: u32 = 5;

/// The least distance of two classes, in bytes.
const STEP_MIN: usize = 8;

/// The smallest size class of at least `bytes` bytes.
#[inline]
pub(crate) fn size_class(bytes: usize) -> usize {
    if bytes <= STEP_MIN << (PER_DOUBLING_BITS + 1) {
        return bytes.max(1).next_multiple_of(STEP_MIN);
    }
    class_of_doubling(bytes, PER_DOUBLING_BITS)
}

/// How many numbers [`class_number`] gives: to the classes up to 1 GiB, and to all larger ones one.
pub(crate) const CLASS_NUMBERS: usize = number_of_doubling(30) + 1;

/// The number of the size class of a block of `bytes` bytes: another one for each up to 1 GiB.
pub(crate) fn class_number(bytes: usize) -> usize {
    let class = size_class(bytes).min(1 << 30);
    let doubling = class.ilog2();
    if doubling < STEP_MIN.ilog2() + PER_DOUBLING_BITS {
        return class / STEP_MIN - 1;
    }
    number_of_doubling(doubling)
        + (class >> (doubling - PER_DOUBLING_BITS)) % (1 << PER_DOUBLING_BITS)
}

/// The number of the class of 2^`doubling` bytes, from that on where classes are numbered by
/// doublings.
const fn number_of_doubling(doubling: u32) -> usize {
    (((doubling - STEP_MIN.ilog2() - PER_DOUBLING_BITS + 1) as usize) << PER_DOUBLING_BITS) - 1
}

/// The size to grow to for `bytes` bytes: of the size classes, the multiples of 16 up to 128, then
/// four per doubling. So the bytes that growing copies are at most some five for each that comes.
#[inline]
pub(crate) fn growth_class(bytes: usize) -> usize {
    match bytes {
        0..=8 => size_class(bytes),
        9..=128 => bytes.next_multiple_of(2 * STEP_MIN),
        _ => class_of_doubling(bytes, 2),
    }
}

/// The smallest size of at least `bytes` bytes where the sizes of (2^k, 2^(k+1)] are as many as
/// 2^`bits`, and equally far apart.
#[inline]
fn class_of_doubling(bytes: usize, bits: u32) -> usize {
    let step = 1 << ((bytes - 1).ilog2() - bits);
    bytes.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The classes that lie behind one another from 1 byte to `bytes`.
    fn classes(class_of: fn(usize) -> usize, bytes: usize) -> Vec<usize> {
        let mut classes = vec![0];
        for asked in 1..=bytes {
            let class = class_of(asked);
            assert!(class >= asked && class == class_of(class), "{asked}");
            if asked > classes[classes.len() - 1] {
                classes.push(class);
            }
            assert_eq!(class, classes[classes.len() - 1], "{asked}");
        }
        classes.split_off(1)
    }

    #[test]
    fn classes_are_those_of_the_allocator() {
        let multiples = (1..=64).map(|index| index * 8);
        let wider = (33..=64).map(|index| index * 16).chain([1056, 1088, 1120, 1152]);
        let expected: Vec<usize> = multiples.chain(wider).collect();
        assert_eq!(classes(size_class, 1152), expected);
        assert_eq!([2049, 4096, 4097].map(size_class), [2112, 4096, 4224]);
    }

    #[test]
    fn each_class_has_a_number_of_its_own() {
        let all = classes(size_class, 1 << 20);
        for (number, class) in all.iter().enumerate() {
            assert_eq!(class_number(*class), number, "{class}");
        }
        assert_eq!([1 << 30, usize::MAX / 2].map(class_number), [CLASS_NUMBERS - 1; 2]);
    }

    #[test]
    fn what_grows_takes_four_steps_per_doubling_which_are_classes() {
        let expected = [
            8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768,
            896, 1024, 1280,
        ];
        assert_eq!(classes(growth_class, 1280), expected);
        for bytes in 1..100_000 {
            let grown = growth_class(bytes);
            assert_eq!(size_class(grown), grown, "{bytes}");
        }
    }
}
