//! A block device as a tier's file: which one may be taken, and where values lie on it.
//!
//! What is on a device is lost when a tier takes it, and an operator may name the wrong one. So it
//! is taken only if nothing stands in its first 4 MiB, where file systems, databases and arrays
//! have what describes them, or if a Kiln process left its mark there. What describes a partition
//! table or an array from the end of the device is looked for as well.
//!
//! ```text
//! 0      | mark, 4 KiB | zeroes |        docs/formats/tier-device.md
//! 1 MiB  | the tier's file, to the end of the device
//! ```
//! The zeroes belong to the mark: what is made on the device later, and leaves the first block as
//! it is, writes there.

use base::disk::{DIRECT_BLOCK_BYTES, DiskFile, block_buffer};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// Where the tier's file begins, in bytes. A multiple of what any SSD erases or addresses at once.
const START: u64 = 1 << 20;

/// Bytes at the beginning that are blank, unless the device is Kiln's. 4 MiB: wherever the first
/// partition began, by habit at 1 MiB, something of it lies there.
const BLANK_BYTES: usize = 4 << 20;

/// Bytes at the end that are searched, at least. The farthest description from the end begins
/// within 128 KiB of it.
const END_BYTES: u64 = 128 << 10;

/// What the mark begins with, in every version of it.
const MAGIC: &[u8; 8] = b"KILNTIER";

/// The mark, before zeroes. Not longer than 512 bytes, which a device writes whole or not at all.
/// Whoever changes a byte of it makes another version, and goes on taking this one.
const TEXT: &str = "KILNTIER 1\nThis device is the tier of a Kiln server: values that its memory \
    has no room for.\nNothing of it is of use to another process. It may be overwritten.\n";

const _: () = assert!(TEXT.len() <= 512);

/// What is often found at the beginning of a device: at which byte, and what it is called. Only so
/// that the refusal can name it; whatever else is there is refused too.
const AT_START: [(usize, &[u8], &str); 20] = [
    (0, b"LUKS\xba\xbe", "a LUKS volume"),
    (0, b"XFSB", "an XFS file system"),
    (0, b"bluestore block device", "a BlueStore device"),
    (0, b"\xfc\x4e\x2b\xa9", "a part of an md array"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (512, b"LABELONE", "an LVM physical volume"),
    (512, b"EFI PART", "a partition table"),
    (1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (1080, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    (4086, b"SWAPSPACE2", "swap space"),
    (4096, b"\xfc\x4e\x2b\xa9", "a part of an md array"),
    (4096, b"EFI PART", "a partition table"),
    (4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca", "a bcache device"),
    (4120, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9", "a bcachefs file system"),
    (32_769, b"CD001", "an ISO 9660 file system"),
    (65_600, b"_BHRfS_M", "a Btrfs file system"),
    (131_072, b"\x0c\xb1\xba\x00\x00\x00\x00\x00", "a part of a ZFS pool"),
    // Last: some of the above have it as well.
    (510, b"\x55\xaa", "a partition table or a boot sector"),
    (0, MAGIC, "a tier of another release of Kiln"),
];

/// What stands at the end of a device of `length` bytes: where, and what it is called. Eight bytes
/// at least, so that values that lie there do not pass for it.
fn at_end(length: u64) -> [(u64, &'static [u8], &'static str); 5] {
    let (md, old_md) = ((length - 8192) & !4095, (length & !65_535) - 65_536);
    [
        (length - 512, b"EFI PART", "a partition table"),
        (length - 4096, b"EFI PART", "a partition table"),
        (length - 1024, b"Intel Raid ISM Cfg Sig. ", "a part of an Intel array"),
        (md, b"\xfc\x4e\x2b\xa9\x01\x00\x00\x00", "a part of an md array"),
        (old_md, b"\xfc\x4e\x2b\xa9\x00\x00\x00\x00", "a part of an md array"),
    ]
}

/// The first block of a device that is Kiln's.
fn mark() -> [u8; DIRECT_BLOCK_BYTES] {
    let mut block = [0; DIRECT_BLOCK_BYTES];
    block[..TEXT.len()].copy_from_slice(TEXT.as_bytes());
    block
}

/// Why a tier cannot be so large, on a device that has room for so many bytes.
pub fn too_large(bytes_max: u64, room_bytes: u64) -> Option<String> {
    let what = format!("tier-max is {bytes_max}, and the device has room for {room_bytes} bytes");
    (bytes_max > room_bytes).then_some(what)
}

/// Takes a device for a tier of at most so many bytes, and marks it. The file that begins behind
/// the mark, and the bytes that it has room for.
///
/// # Errors
/// Something is on the device that is not Kiln's; it is too small; it cannot be read or written.
/// Unless writing fails it is as it was then.
pub fn take(
    device: Arc<dyn DiskFile>,
    path: &Path,
    bytes_max: u64,
) -> io::Result<(Arc<dyn DiskFile>, u64)> {
    let length = device.length()?;
    if length < BLANK_BYTES as u64 + END_BYTES {
        let what = format!("it has only {length} bytes");
        return Err(io::Error::new(ErrorKind::InvalidInput, what));
    }
    let beginning = read(&*device, 0, BLANK_BYTES)?;
    let end_at = (length - END_BYTES) & !(DIRECT_BLOCK_BYTES as u64 - 1);
    let end = read(&*device, end_at, (length - end_at) as usize)?;
    if let Some(what) = found_at_start(&beginning).or_else(|| found_at_end(&end, end_at, length)) {
        let path = path.display();
        let what = format!(
            "{what} is on it, and would be lost. If it is of no use to anybody: wipefs -a {path} \
             && blkdiscard -z -l 4MiB {path}"
        );
        return Err(io::Error::new(ErrorKind::AlreadyExists, what));
    }
    let room = (length - START) & !(DIRECT_BLOCK_BYTES as u64 - 1);
    if let Some(why) = too_large(bytes_max, room) {
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    // Also where it stands already: then this shows that the device can be written.
    let mut buffer = Vec::new();
    let start = block_buffer(&mut buffer, DIRECT_BLOCK_BYTES);
    buffer.extend_from_slice(&mark());
    let marked = device.write_at(0, &buffer[start..]).and_then(|()| device.sync_data());
    marked
        .map_err(|error| io::Error::new(error.kind(), format!("it cannot be written: {error}")))?;
    Ok((Arc::new(Marked(device)), room))
}

fn read(device: &dyn DiskFile, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut buffer = Vec::new();
    let start = block_buffer(&mut buffer, length);
    buffer.resize(start + length, 0);
    let count = device.read_at(offset, &mut buffer[start..]);
    let count = count
        .map_err(|error| io::Error::new(error.kind(), format!("it cannot be read: {error}")))?;
    if count < length {
        let what = format!("it ends {} bytes before its end", length - count);
        return Err(io::Error::new(ErrorKind::UnexpectedEof, what));
    }
    Ok(buffer.split_off(start))
}

/// What stands in the first [`BLANK_BYTES`] that is not Kiln's.
fn found_at_start(beginning: &[u8]) -> Option<String> {
    let is_marked = beginning.starts_with(&mark());
    let blank = if is_marked { DIRECT_BLOCK_BYTES..START as usize } else { 0..BLANK_BYTES };
    let at = blank.start + beginning[blank.clone()].iter().position(|byte| *byte != 0)?;
    let stands = |at: usize, bytes| blank.contains(&at) && beginning[at..].starts_with(bytes);
    let known = AT_START.iter().find(|(at, bytes, _)| stands(*at, bytes));
    let unknown = || format!("something of another program, at byte {at},");
    Some(known.map_or_else(unknown, |(_, _, what)| (*what).to_owned()))
}

/// What describes the device of `length` bytes in its `end`, which begins at `end_at`.
fn found_at_end(end: &[u8], end_at: u64, length: u64) -> Option<String> {
    let stands = |(at, bytes, _): &(u64, &[u8], _)| {
        at.checked_sub(end_at).is_some_and(|at| end[at as usize..].starts_with(bytes))
    };
    at_end(length).iter().find(|it| stands(it)).map(|(_, _, what)| (*what).to_owned())
}

/// A device behind its mark.
struct Marked(Arc<dyn DiskFile>);

impl DiskFile for Marked {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.length()?.saturating_sub(START))
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(START + offset, into)
    }

    fn direct_place(&self, offset: u64) -> Option<(i32, u64)> {
        self.0.direct_place(START + offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(START + offset, bytes)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_length(START + length)
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.0.allocate(START + offset, length)
    }

    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.0.stands_at(path)
    }

    fn release_cache(&self) {
        self.0.release_cache();
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests;
