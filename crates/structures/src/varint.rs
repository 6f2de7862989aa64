//! Lengths in few bytes: seven bits a byte, lowest first, the top bit says that more follow.
//!
//! Only for lengths inside our own allocations, which this crate wrote itself: reading trusts
//! what it reads.

/// Bytes that [`write`] uses for `value`.
#[inline]
pub(crate) fn len(value: usize) -> usize {
    if value < 0x80 { 1 } else { (value.ilog2() as usize) / 7 + 1 }
}

/// Writes `value` to `at` and returns the address behind it.
///
/// # Safety
/// `len(value)` bytes at `at` must be writable.
#[inline]
pub(crate) unsafe fn write(at: *mut u8, mut value: usize) -> *mut u8 {
    let mut at = at;
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        let more = if value == 0 { 0 } else { 0x80 };
        // SAFETY: the loop writes `len(value)` bytes, which the caller vouches for.
        unsafe {
            at.write(byte | more);
            at = at.add(1);
        }
        if value == 0 {
            return at;
        }
    }
}

/// Reads what [`write`] wrote and returns it with the address behind it.
///
/// # Safety
/// `at` must be where [`write`] wrote, and still readable.
#[inline]
pub(crate) unsafe fn read(at: *const u8) -> (usize, *const u8) {
    let (mut at, mut value, mut shift) = (at, 0, 0);
    loop {
        // SAFETY: the bytes up to the first without its top bit were written by `write`.
        let byte = unsafe { at.read() };
        // SAFETY: at most one past what was written.
        at = unsafe { at.add(1) };
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return (value, at);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back() {
        for value in [0, 1, 127, 128, 16_383, 16_384, 1 << 29, u32::MAX as usize, usize::MAX] {
            let mut buffer = [0u8; 10];
            // SAFETY: ten bytes are enough for 64 bits.
            let end = unsafe { write(buffer.as_mut_ptr(), value) };
            assert_eq!(end as usize - buffer.as_ptr() as usize, len(value));
            // SAFETY: just written.
            let (read, behind) = unsafe { read(buffer.as_ptr()) };
            assert_eq!((read, behind), (value, end.cast_const()));
        }
    }
}
