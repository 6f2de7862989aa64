//! Asks the processor to load a cache line that will be needed soon.

/// Starts loading the line at `address`. Only a hint: any address is allowed, and none is read.
#[inline(always)]
pub(crate) fn prefetch(address: *const u8) {
    crate::slow_touch::asked(address);
    prefetch_further(address);
}

/// Starts loading the line where an item of a slice begins, if there is such an item.
#[inline(always)]
pub fn prefetch_item<T>(items: &[T], index: usize) {
    if let Some(item) = items.get(index) {
        prefetch_further((&raw const *item).cast());
    }
}

/// The same for a further line of a block, whose first one was asked for.
#[inline(always)]
pub(crate) fn prefetch_further(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction never faults, whatever the address, and every x86-64 has it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    // Other processors have no stable intrinsic for it; the loop is correct without.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
