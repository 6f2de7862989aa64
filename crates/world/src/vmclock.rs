//! The page on which a hypervisor tells its guest that the guest's clocks were disrupted, by a live
//! migration or because the machine was loaded from a snapshot.
//!
//! Neither shows in the clocks themselves: they stand still together while the machine does, and go
//! on. Linux 6.13 and later offer the page as `/dev/vmclock0` (UAPI.13, "VMClock"; Amazon's Nitro,
//! QEMU and Firecracker have it), to whoever may read that file.
//!
//! ```text
//! 0 magic "VCLK"   4 size   8 version, 1   …   16 disruption marker, 64 bits   …
//! ```

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::param::page_size;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

/// Where Linux offers the page.
const DEVICE: &str = "/dev/vmclock0";

/// "VCLK" in a little-endian word.
const MAGIC: u32 = 0x4b4c_4356;

/// Of the page's layout.
const VERSION: u16 = 1;

const VERSION_AT: usize = 8;
const MARKER_AT: usize = 16;

/// A page that the hypervisor writes, mapped for the process's life.
#[derive(Debug)]
pub struct VmClock {
    page: NonNull<u8>,
}

// SAFETY: the page is only read, each word by one volatile load, and is never unmapped.
unsafe impl Send for VmClock {}
// SAFETY: as above.
unsafe impl Sync for VmClock {}

impl VmClock {
    /// The machine's page, if it has one and this process may read it.
    pub fn of_machine() -> Option<&'static Self> {
        static PAGE: OnceLock<Option<VmClock>> = OnceLock::new();
        PAGE.get_or_init(|| match Self::map(Path::new(DEVICE)) {
            Ok(page) => {
                tracing::info!("the hypervisor tells of disrupted clocks by {DEVICE}");
                Some(page)
            }
            Err(Errno::NOENT) => None,
            Err(error) => {
                tracing::warn!(%error, "{DEVICE} tells of disrupted clocks, but is not readable");
                None
            }
        })
        .as_ref()
    }

    fn map(path: &Path) -> Result<Self, Errno> {
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let page = unsafe {
            mmap(ptr::null_mut(), page_size(), ProtFlags::READ, MapFlags::SHARED, &file, 0)?
        };
        let page = Self { page: NonNull::new(page.cast()).ok_or(Errno::NOMEM)? };
        // SAFETY: both words lie within the page and are aligned, as the page is.
        let (magic, version) = unsafe { (page.word::<u32>(0), page.word::<u16>(VERSION_AT)) };
        if u32::from_le(magic) != MAGIC || u16::from_le(version) != VERSION {
            return Err(Errno::NOTSUP);
        }
        Ok(page)
    }

    /// Takes another value when the clocks were disrupted, before any of the machine's processors
    /// runs again.
    pub fn marker(&self) -> u64 {
        // SAFETY: the word lies within the page and is aligned, as the page is.
        u64::from_le(unsafe { self.word(MARKER_AT) })
    }

    /// # Safety
    /// A `T` is an integer, lies within the page at this offset, and is aligned there.
    unsafe fn word<T>(&self, offset: usize) -> T {
        // SAFETY: the page stays mapped; the rest is the caller's.
        unsafe { self.page.as_ptr().add(offset).cast::<T>().read_volatile() }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "files stand for the device")]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("kiln-vmclock-{}-{name}", std::process::id()))
    }

    fn page(magic: &[u8; 4], version: u8) -> Vec<u8> {
        let mut bytes = vec![0; page_size()];
        bytes[..4].copy_from_slice(magic);
        bytes[VERSION_AT] = version;
        bytes[MARKER_AT] = 5;
        bytes
    }

    #[test]
    fn the_marker_is_seen_to_change() {
        let path = scratch("marker");
        fs::write(&path, page(b"VCLK", 1)).expect("written");
        let clock = VmClock::map(&path).expect("it is such a page");
        assert_eq!(clock.marker(), 5);
        let file = File::options().write(true).open(&path).expect("it is there");
        file.write_all_at(&7u64.to_le_bytes(), MARKER_AT as u64).expect("written");
        assert_eq!(clock.marker(), 7);
        fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn another_page_is_not_believed() {
        let path = scratch("other");
        for other in [page(b"VCLX", 1), page(b"VCLK", 2)] {
            fs::write(&path, other).expect("written");
            assert_eq!(VmClock::map(&path).expect_err("it is another"), Errno::NOTSUP);
        }
        fs::remove_file(&path).expect("it is there");
        assert_eq!(VmClock::map(&path).expect_err("it is gone"), Errno::NOENT);
    }
}
