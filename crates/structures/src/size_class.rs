//! The allocator's size classes.
//!
//! jemalloc hands out 8, every multiple of 16 up to 128, then four sizes per doubling. Who asks
//! for a whole class wastes nothing, counts its memory as the allocator does, and may change its
//! content in place as long as the class stays the same: an allocation's size must be known again
//! when it is freed, and is computed from the content then.
//!
//! Source: <https://jemalloc.net/jemalloc.3.html>, "Implementation notes", for 4 KiB pages.

/// The smallest size class of at least `bytes` bytes.
#[inline]
pub(crate) fn size_class(bytes: usize) -> usize {
    if bytes <= 8 {
        return 8;
    }
    if bytes <= 128 {
        return bytes.next_multiple_of(16);
    }
    // The classes of (2^k, 2^(k+1)] are a quarter of 2^k apart.
    let step = 1 << ((bytes - 1).ilog2() - 2);
    bytes.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_the_allocator() {
        let classes = [
            8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768,
            896, 1024, 1280,
        ];
        let mut expected = classes.iter();
        let mut class = 0;
        for bytes in 1..=1280 {
            if bytes > class {
                class = *expected.next().expect("the list ends with 1280");
            }
            assert_eq!(size_class(bytes), class, "{bytes}");
        }
        assert_eq!(size_class(4097), 5120);
    }
}
