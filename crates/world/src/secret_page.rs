//! A secret in pages of its own, which no core dump has, and which are not swapped out where the
//! process may lock them.
//!
//! What is held is all that is protected: a copy that is made of it, on a stack or in a register,
//! is not. Those that its making leaves on the stack are overwritten.

use base::secrets::overwrite_stack;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap_anonymous, munmap};
use rustix::param::page_size;
use std::io;
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// Bytes of the stack that are overwritten when a secret was made: more than any making takes.
const STACK_BYTES: usize = 64 << 10;

/// Owns a secret.
pub struct SecretPage<T> {
    secret: NonNull<T>,
}

// SAFETY: it owns the secret, and lends it as a box would.
unsafe impl<T: Send> Send for SecretPage<T> {}
// SAFETY: likewise.
unsafe impl<T: Sync> Sync for SecretPage<T> {}

impl<T> SecretPage<T> {
    /// Holds what `make` makes.
    ///
    /// # Errors
    /// The kernel gives no memory, or does not keep it out of core dumps.
    pub fn new(make: impl FnOnce() -> T) -> io::Result<Self> {
        let bytes = Self::bytes();
        assert!(align_of::<T>() <= page_size(), "a page is aligned to its size");
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new memory, which nobody else has.
        let pages =
            unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)? };
        // SAFETY: of these pages, whose content it does not change.
        if let Err(error) = unsafe { madvise(pages, bytes, Advice::LinuxDontDump) } {
            // SAFETY: mapped above, and nobody has them.
            let _ = unsafe { munmap(pages, bytes) };
            return Err(error.into());
        }
        // A process may lock a few pages, unless somebody forbids that. Then whoever encrypts what
        // is swapped out has to see to it.
        // SAFETY: of these pages, whose content it does not change.
        let _ = unsafe { mlock(pages, bytes) };
        let secret = NonNull::new(pages.cast::<T>()).expect("a mapping does not lie at address 0");
        place(secret, make);
        overwrite_stack::<STACK_BYTES>();
        Ok(Self { secret })
    }

    /// Bytes of its pages.
    fn bytes() -> usize {
        size_of::<T>().max(1).next_multiple_of(page_size())
    }
}

/// Apart, so that what it leaves on the stack is overwritten.
#[inline(never)]
fn place<T>(secret: NonNull<T>, make: impl FnOnce() -> T) {
    // SAFETY: pages of its own, large enough and aligned.
    unsafe { secret.write(make()) };
}

impl<T> Deref for SecretPage<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: written when it was made, and nobody else has it.
        unsafe { self.secret.as_ref() }
    }
}

impl<T> Drop for SecretPage<T> {
    fn drop(&mut self) {
        // SAFETY: nobody uses it again. The kernel clears pages before it gives them to others.
        unsafe {
            self.secret.drop_in_place();
            let _ = munmap(self.secret.as_ptr().cast(), Self::bytes());
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reads what the kernel says of its process")]
mod tests {
    use super::*;
    use crate::entropy::fill_random;
    use std::fs::{File, read_to_string};
    use std::hint::black_box;
    use std::os::unix::fs::FileExt;

    const SECRET_BYTES: usize = 64;

    fn drawn() -> [u8; SECRET_BYTES] {
        let mut bytes = [0; SECRET_BYTES];
        fill_random(&mut bytes);
        bytes
    }

    /// Ranges of addresses that a core dump has, of those that can be read.
    fn dumped() -> Vec<(u64, u64)> {
        let text = read_to_string("/proc/self/smaps").expect("the kernel tells");
        let mut ranges = Vec::new();
        for line in text.lines() {
            let first = line.split(' ').next().unwrap_or_default();
            if let Some((from, to)) = first.split_once('-')
                && let (Ok(from), Ok(to)) =
                    (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16))
            {
                ranges.push((from, to));
            } else if let Some(flags) = line.strip_prefix("VmFlags:") {
                let is_dumped = flags.contains(" rd") && !flags.contains(" dd");
                if !is_dumped {
                    ranges.pop();
                }
            }
        }
        ranges
    }

    /// How often the first half of a secret lies where a core dump would have it.
    fn found(secret: &[u8]) -> usize {
        let memory = File::open("/proc/self/mem").expect("a process may read itself");
        let mut count = 0;
        let mut bytes = vec![0; 1 << 20];
        for (from, to) in dumped() {
            for at in (from..to).step_by(bytes.len() / 2) {
                let length = bytes.len().min((to - at) as usize);
                if memory.read_exact_at(&mut bytes[..length], at).is_ok() {
                    let half = &secret[..SECRET_BYTES / 2];
                    count += bytes[..length].windows(half.len()).filter(|it| *it == half).count();
                }
            }
            bytes.fill(0);
        }
        count
    }

    #[test]
    fn a_core_dump_has_no_secret() {
        let secret = SecretPage::new(drawn).expect("there is memory");
        assert!(secret.iter().any(|byte| *byte != 0));
        assert_eq!(found(&*secret), 0);
        let copy = Box::new(*secret);
        assert!(found(&*secret) > 0, "the search finds what is there");
        drop(black_box(copy));
    }

    #[test]
    fn what_it_holds_is_dropped_with_it() {
        let held = std::sync::Arc::new(());
        let secret = SecretPage::new(|| held.clone()).expect("there is memory");
        assert_eq!(std::sync::Arc::strong_count(&secret), 2);
        drop(secret);
        assert_eq!(std::sync::Arc::strong_count(&held), 1);
    }
}
