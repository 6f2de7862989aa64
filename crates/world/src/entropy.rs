//! Unpredictable bits from the kernel.

use rustix::io::Errno;

/// 64 unpredictable bits.
pub fn entropy() -> u64 {
    let mut bytes = [0; 8];
    fill_random(&mut bytes);
    assert!(bytes != [0; 8], "the kernel gives no random bytes");
    u64::from_ne_bytes(bytes)
}

/// Fills a buffer with unpredictable bits.
pub fn fill_random(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        match rustix::rand::getrandom(&mut bytes[filled..], flags) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => panic!("the kernel gives no random bytes: {error}"),
        }
    }
}
