//! Long files past the page cache (O_DIRECT).
//!
//! A snapshot or a segment is written once and not read for long. Through the page cache it would
//! push out what is read, and its copying would cost the core that serves clients. The sync of a
//! snapshot would put tens of megabytes before the log's next sync at the device: past the cache
//! each piece is on the device before the next one is handed over, and the log waits for one piece
//! at most.
//!
//! The device wants memory, offsets and lengths in whole blocks, so pieces go through an aligned
//! buffer, unless the bytes stand in one already: then they are the caller's one piece, and a read
//! into one waits for no other read. What is not whole blocks goes through the page cache, on a
//! second handle; the kernel keeps the two coherent.

use base::disk::{DIRECT_BLOCK_BYTES, DiskFile, block_buffer};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::{RealFile, full, open_file};

/// Bytes of one piece: about 0.15 ms of a disk that writes 1.7 GB/s, which is what a sync of the
/// log may have to wait for, and enough that the number of pieces does not matter.
const PIECE_BYTES: usize = 256 << 10;

/// A file with two handles: past the page cache and through it.
pub(crate) struct DirectFile {
    plain: RealFile,
    direct: File,
    piece: Mutex<Piece>,
}

/// A buffer that holds a piece at an aligned place.
struct Piece {
    bytes: Vec<u8>,
    start: usize,
}

impl Piece {
    fn new() -> Self {
        let mut bytes = Vec::new();
        let start = block_buffer(&mut bytes, PIECE_BYTES);
        bytes.resize(start + PIECE_BYTES, 0);
        Self { bytes, start }
    }

    fn take(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + length]
    }
}

/// Opens a file past the page cache, or through it where the file system knows no other way, or
/// there is no second handle to be had: a file that was just created is not given up for that.
pub(crate) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
    let plain = open_file(options, path, OFlags::empty())?;
    let again = open_file(options.create_new(false), path, OFlags::DIRECT);
    Ok(match again {
        Ok(direct) => Arc::new(DirectFile::new(plain, direct)),
        Err(_) => Arc::new(RealFile(plain)),
    })
}

/// Creates a file in a directory that has no name, and can be given none, past the page cache.
///
/// # Errors
/// The file system knows no such files, or no way past the page cache; there is no `/proc`, through
/// which a file without a name is opened a second time; or one of what any creation fails with.
pub(crate) fn open_nameless(directory: &Path) -> io::Result<DirectFile> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let plain = open_file(&mut options, directory, OFlags::TMPFILE | OFlags::EXCL)?;
    let again = format!("/proc/self/fd/{}", plain.as_raw_fd());
    let direct = open_file(&mut options, Path::new(&again), OFlags::DIRECT)?;
    Ok(DirectFile::new(plain, direct))
}

impl DirectFile {
    /// Of two handles of one file: through the page cache, and past it.
    pub(crate) fn new(plain: File, direct: File) -> Self {
        Self { plain: RealFile(plain), direct, piece: Mutex::new(Piece::new()) }
    }

    pub(crate) fn direct(&self) -> &File {
        &self.direct
    }

    /// Reads whole blocks into memory that is aligned. Takes no lock: threads that read at the same
    /// time have the device work for all of them.
    fn read_blocks(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let count = match self.direct.read_at(&mut into[done..], at) {
                Ok(0) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    return Ok(done + self.plain.read_at(at, &mut into[done..])?);
                }
                outcome => outcome?,
            };
            done += count;
            if !is_whole(count as u64) {
                // The end of the file, or a file system that stops in the middle of a block.
                return Ok(done + self.plain.read_at(offset + done as u64, &mut into[done..])?);
            }
        }
        Ok(done)
    }

    /// Writes whole blocks, piece by piece; `fill` puts the bytes behind `done` into a piece.
    fn write_pieces(
        &self,
        offset: u64,
        length: usize,
        fill: impl Fn(usize, &mut [u8]),
    ) -> io::Result<()> {
        // The buffer holds nothing that a panic could have left half done.
        let mut piece = self.piece.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        while done < length {
            let bytes = piece.take((length - done).min(PIECE_BYTES));
            fill(done, bytes);
            self.write_piece(offset + done as u64, bytes)?;
            done += bytes.len();
        }
        Ok(())
    }

    /// Writes whole blocks that stand at an aligned place in memory.
    fn write_piece(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self.direct.write_all_at(bytes, offset) {
            // Some file systems refuse only now.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                self.plain.write_at(offset, bytes)
            }
            outcome => outcome.map_err(full),
        }
    }
}

fn is_whole(number: u64) -> bool {
    number.is_multiple_of(DIRECT_BLOCK_BYTES as u64)
}

/// Whether the device takes this memory as it is.
fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().addr().is_multiple_of(DIRECT_BLOCK_BYTES)
}

impl DiskFile for DirectFile {
    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.plain.stands_at(path)
    }

    fn direct_place(&self, offset: u64) -> Option<(i32, u64)> {
        Some((self.direct.as_raw_fd(), offset))
    }

    fn length(&self) -> io::Result<u64> {
        self.plain.length()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if !is_whole(offset) {
            return self.plain.read_at(offset, into);
        }
        if is_whole(into.len() as u64) && is_aligned(into) {
            return self.read_blocks(offset, into);
        }
        let mut piece = self.piece.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        while done < into.len() {
            let wanted = (into.len() - done).min(PIECE_BYTES);
            let blocks = piece.take(wanted.next_multiple_of(DIRECT_BLOCK_BYTES));
            let at = offset + done as u64;
            let count = match self.direct.read_at(blocks, at) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    return Ok(done + self.plain.read_at(at, &mut into[done..])?);
                }
                outcome => outcome?,
            };
            let taken = count.min(wanted);
            into[done..done + taken].copy_from_slice(&blocks[..taken]);
            done += taken;
            if !is_whole(count as u64) || count == 0 {
                // The end of the file, or a file system that stops in the middle of a block.
                return Ok(done + self.plain.read_at(offset + done as u64, &mut into[done..])?);
            }
        }
        Ok(done)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if !is_whole(offset) {
            return self.plain.write_at(offset, bytes);
        }
        let whole = bytes.len() - bytes.len() % DIRECT_BLOCK_BYTES;
        if is_aligned(bytes) {
            self.write_piece(offset, &bytes[..whole])?;
        } else {
            self.write_pieces(offset, whole, |done, piece| {
                piece.copy_from_slice(&bytes[done..done + piece.len()]);
            })?;
        }
        if whole < bytes.len() {
            self.plain.write_at(offset + whole as u64, &bytes[whole..])?;
        }
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.plain.set_length(length)
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        if !is_whole(offset) || !is_whole(length) {
            return self.plain.allocate(offset, length);
        }
        self.plain.reserve(offset, length)?;
        // The buffer is the same for every piece, and no later one is longer.
        self.write_pieces(offset, bytes, |done, piece| {
            if done == 0 {
                piece.fill(0);
            }
        })
    }

    fn release_cache(&self) {
        self.plain.release_cache();
    }

    fn sync_data(&self) -> io::Result<()> {
        self.plain.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::open_nameless;
    use crate::disk::RealDisk;
    use base::Disk;
    use base::disk::{DIRECT_BLOCK_BYTES, DiskFile, block_buffer};
    use rustix::fs::OFlags;
    use rustix::io::ReadWriteFlags;
    use std::fs;
    use std::io::IoSliceMut;
    use std::path::{Path, PathBuf};
    use std::thread;

    fn directory(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("kiln-direct-{}-{name}", std::process::id()))
    }

    /// The whole file, read through the page cache.
    fn cached(path: &Path) -> Vec<u8> {
        let file = RealDisk.open_read(path).unwrap();
        let mut bytes = vec![0; file.length().unwrap() as usize];
        assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
        bytes
    }

    #[test]
    fn what_is_written_in_odd_pieces_is_read_back() {
        let directory = directory("odd");
        let _ = fs::remove_dir_all(&directory);
        RealDisk.create_directory(&directory).unwrap();
        let path = directory.join("file");
        let file = RealDisk.create_direct(&path).unwrap();
        let bytes: Vec<u8> = (0..1_500_001_u32).map(|i| (i % 251) as u8).collect();
        let mut at = 0;
        for length in [4096, 524_288, 12_288, 5000, 1, 300_000, 4096, bytes.len()] {
            let end = (at + length).min(bytes.len());
            file.write_at(at as u64, &bytes[at..end]).unwrap();
            at = end;
        }
        file.sync_data().unwrap();
        assert_eq!(file.length().unwrap(), bytes.len() as u64);
        assert!(cached(&path) == bytes);
        let file = RealDisk.open_direct(&path).unwrap();
        for (offset, length) in [(0, bytes.len() + 10), (4096, 10), (5, 100), (8192, 262_145)] {
            let mut into = vec![7; length];
            let count = file.read_at(offset as u64, &mut into).unwrap();
            assert_eq!(count, length.min(bytes.len() - offset));
            assert!(into[..count] == bytes[offset..offset + count]);
        }
        assert_eq!(file.read_at(2_000_000, &mut [0; 10]).unwrap(), 0);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn whole_blocks_of_an_aligned_buffer_are_written_where_they_belong() {
        let directory = directory("aligned");
        let _ = fs::remove_dir_all(&directory);
        RealDisk.create_directory(&directory).unwrap();
        let path = directory.join("file");
        let file = RealDisk.create_direct(&path).unwrap();
        file.allocate(0, 1 << 20).unwrap();
        let mut expected = vec![0; 1 << 20];
        let mut buffer = Vec::new();
        // Longer than a piece, of odd lengths, and each over the end of the one before.
        for (offset, length, byte) in [(4096, 300_000, 1), (299_008, 8192, 2), (303_104, 5, 3)] {
            let start = block_buffer(&mut buffer, length);
            buffer.resize(start + length, byte);
            assert!(buffer[start..].as_ptr().addr().is_multiple_of(DIRECT_BLOCK_BYTES));
            file.write_at(offset, &buffer[start..]).unwrap();
            expected[offset as usize..offset as usize + length].fill(byte);
            // Whoever reads through the page cache keeps no old page.
            assert!(cached(&path) == expected);
        }
        file.sync_data().unwrap();
        assert!(cached(&path) == expected);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn allocated_space_is_zeroes() {
        let directory = directory("zeroes");
        let _ = fs::remove_dir_all(&directory);
        RealDisk.create_directory(&directory).unwrap();
        let path = directory.join("file");
        let file = RealDisk.create_direct(&path).unwrap();
        file.allocate(0, 1 << 20).unwrap();
        file.write_at(0, &[9; 10]).unwrap();
        file.sync_data().unwrap();
        let bytes = cached(&path);
        assert_eq!(bytes.len(), 1 << 20);
        assert!(bytes[..10] == [9; 10] && bytes[10..].iter().all(|byte| *byte == 0));
        fs::remove_dir_all(directory).unwrap();
    }

    /// Reads `length` bytes into memory that begins `shift` bytes behind a block's beginning.
    fn read(file: &dyn DiskFile, offset: usize, length: usize, shift: usize) -> Vec<u8> {
        let mut buffer = Vec::new();
        let start = block_buffer(&mut buffer, length + shift) + shift;
        buffer.resize(start + length, 7);
        let count = file.read_at(offset as u64, &mut buffer[start..]).unwrap();
        buffer[start..start + count].to_vec()
    }

    #[test]
    fn threads_read_blocks_of_one_file_at_a_time() {
        const BLOCKS: usize = 64;
        let directory = directory("threads");
        let _ = fs::remove_dir_all(&directory);
        RealDisk.create_directory(&directory).unwrap();
        let file = RealDisk.create_direct(&directory.join("file")).unwrap();
        let bytes: Vec<u8> =
            (0..BLOCKS * DIRECT_BLOCK_BYTES + 100).map(|at| (at / 1021 % 256) as u8).collect();
        file.write_at(0, &bytes).unwrap();
        let (file, bytes) = (&*file, &bytes);
        thread::scope(|scope| {
            for reader in 0..8 {
                scope.spawn(move || {
                    for turn in 0..BLOCKS {
                        let at = (turn * 5 + reader * 8) % BLOCKS * DIRECT_BLOCK_BYTES;
                        // Aligned; in odd memory; of an odd length; at an odd place.
                        for (offset, length, shift) in [
                            (at, DIRECT_BLOCK_BYTES, 0),
                            (at, 3 * DIRECT_BLOCK_BYTES, 0),
                            (at, DIRECT_BLOCK_BYTES, 1),
                            (at, 5000, 0),
                            (at + 3, DIRECT_BLOCK_BYTES, 0),
                        ] {
                            let end = (offset + length).min(bytes.len());
                            let expected = &bytes[offset..end];
                            assert!(read(file, offset, length, shift) == expected, "at {offset}");
                        }
                    }
                });
            }
        });
        // Through the end of the file, and behind it.
        let last = BLOCKS * DIRECT_BLOCK_BYTES;
        assert!(read(file, last, DIRECT_BLOCK_BYTES, 0) == bytes[last..]);
        assert_eq!(read(file, last + DIRECT_BLOCK_BYTES, DIRECT_BLOCK_BYTES, 0), [0; 0]);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_without_a_name_works_and_leaves_nothing() {
        let directory = directory("nameless");
        let _ = fs::remove_dir_all(&directory);
        RealDisk.create_directory(&directory).unwrap();
        for file in [
            RealDisk.create_nameless(&directory).unwrap(),
            base::disk::create_removed(&RealDisk, &directory).unwrap(),
        ] {
            assert_eq!(RealDisk.list(&directory).unwrap(), []);
            file.allocate(0, 1 << 20).unwrap();
            file.write_at(8192, &[5; 5000]).unwrap();
            file.sync_data().unwrap();
            assert_eq!(file.length().unwrap(), 1 << 20);
            assert!(read(&*file, 8192, 4096, 0) == [5; 4096]);
            assert!(read(&*file, 8191, 5002, 0)[..3] == [0, 5, 5]);
        }
        assert!(RealDisk.create_nameless(&directory.join("missing")).is_err());
        assert_eq!(RealDisk.list(&directory).unwrap(), []);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_without_a_name_is_not_kept_in_memory() {
        let directory = directory("uncached");
        let _ = fs::remove_dir_all(&directory);
        RealDisk.create_directory(&directory).unwrap();
        // Not every file system has such files.
        if let Ok(file) = open_nameless(&directory) {
            let flags = rustix::fs::fcntl_getfl(&file.direct).unwrap();
            assert!(flags.contains(OFlags::DIRECT));
            file.write_at(0, &[5; 1 << 20]).unwrap();
            assert!(read(&file, 0, 1 << 20, 0) == [5; 1 << 20]);
            let mut byte = [0];
            let mut into = [IoSliceMut::new(&mut byte)];
            const TMPFS: u64 = 0x0102_1994;
            let is_in_memory = rustix::fs::fstatfs(&file.direct).unwrap().f_type as u64 == TMPFS;
            let kept =
                rustix::io::preadv2(&file.plain.0, &mut into, 500_000, ReadWriteFlags::NOWAIT);
            assert!(is_in_memory || kept.is_err());
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
