//! The encryption of pages: XTS-AES-256 as in IEEE 1619, one data unit per page.
//!
//! The tweak is the page's number in the file and the generation of its segment. No segment's
//! generation comes twice under one key, which is drawn for each file, so a page is never written
//! twice under one tweak, but for the same bytes once more after a failed write.
//!
//! Working with a key leaves parts of it on the stack, which are overwritten behind each piece of
//! work. What is left in a thread's registers is not.
//!
//! The loop is written here, upon the block cipher: those that libraries have take a block at a
//! time, which is several times slower than the processor's instructions allow.

use crate::limits::PAGE_BYTES;
use crate::place::UNIT_BYTES;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use aes::{Aes256, Aes256Enc, Block};
use base::secrets::overwrite_stack;
use std::fmt;
use std::ops::{Deref, Range};

/// Bytes of a cipher's block: as long as the unit in which records lie, so that a record is a
/// whole number of blocks.
const BLOCK_BYTES: usize = 16;
const _: () = assert!(BLOCK_BYTES == UNIT_BYTES);

/// Blocks handed to the cipher at once. It works on eight at a time; more per call make what a call
/// costs, a question to the processor, disappear.
const BATCH_BLOCKS: usize = 64;

/// Bytes of the stack that are overwritten: twice what a page's work takes.
const STACK_BYTES: usize = 8 << 10;

/// The keys of one file. Forgotten when dropped: the ciphers overwrite what they made of the key.
pub struct Keys {
    data: Aes256,
    tweak: Aes256Enc,
}

impl Keys {
    /// Two keys of 256 bits, for the bytes and for the tweaks. They must be random, made for this
    /// file and this life of the process, and be kept nowhere.
    pub fn new(key: &[u8; 64]) -> Self {
        let (data, tweak) = key.split_at(32);
        assert!(data != tweak, "XTS needs two different keys");
        Self { data: Aes256::new(data.into()), tweak: Aes256Enc::new(tweak.into()) }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Keys")
    }
}

/// Where the keys lie: a box, or memory that is no part of a core dump.
pub type HeldKeys = Box<dyn Deref<Target = Keys> + Send + Sync>;

/// Encrypts and decrypts pages of one file. Shared by the threads that read and write it.
pub struct Sealer {
    keys: HeldKeys,
}

impl Sealer {
    /// Of this key, in a box.
    pub fn new(key: &[u8; 64]) -> Self {
        Self::with(Box::new(Box::new(Keys::new(key))))
    }

    pub fn with(keys: HeldKeys) -> Self {
        Self { keys }
    }

    /// Encrypts whole pages, which lie from page `first` of the file on.
    pub(crate) fn seal(&self, first: u64, generation: u32, pages: &mut [u8]) {
        self.seal_pages(first, generation, pages);
        overwrite_stack::<STACK_BYTES>();
    }

    /// Decrypts the bytes of `range`, which are whole blocks, within whole pages that lie from page
    /// `first` of the file on. Other bytes stay as they are.
    pub(crate) fn open(&self, first: u64, generation: u32, pages: &mut [u8], range: Range<usize>) {
        self.open_pages(first, generation, pages, range);
        overwrite_stack::<STACK_BYTES>();
    }

    #[inline(never)]
    fn seal_pages(&self, first: u64, generation: u32, pages: &mut [u8]) {
        for (number, page) in (first..).zip(pages.chunks_mut(PAGE_BYTES)) {
            let tweak = self.tweak(number, generation);
            apply(tweak, page, |blocks| self.keys.data.encrypt_blocks(blocks));
        }
    }

    #[inline(never)]
    fn open_pages(&self, first: u64, generation: u32, pages: &mut [u8], range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            let (number, within) = (at / PAGE_BYTES, at % PAGE_BYTES);
            let end = range.end.min((number + 1) * PAGE_BYTES);
            let mut tweak = self.tweak(first + number as u64, generation);
            (0..within / BLOCK_BYTES).for_each(|_| tweak = double(tweak));
            apply(tweak, &mut pages[at..end], |blocks| self.keys.data.decrypt_blocks(blocks));
            at = end;
        }
    }

    /// The tweak of a page's first block.
    fn tweak(&self, page: u64, generation: u32) -> u128 {
        let mut block = Block::default();
        block[..8].copy_from_slice(&page.to_le_bytes());
        block[8..12].copy_from_slice(&generation.to_le_bytes());
        self.keys.tweak.encrypt_block(&mut block);
        u128::from_le_bytes(block.into())
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Sealer")
    }
}

/// Runs `cipher` over blocks, between two additions of each block's tweak.
fn apply(mut tweak: u128, bytes: &mut [u8], cipher: impl Fn(&mut [Block])) {
    let mut blocks = [Block::default(); BATCH_BLOCKS];
    let mut tweaks = [0; BATCH_BLOCKS];
    for batch in bytes.chunks_mut(BATCH_BLOCKS * BLOCK_BYTES) {
        let count = batch.len() / BLOCK_BYTES;
        for (index, bytes) in batch.chunks_exact(BLOCK_BYTES).enumerate() {
            tweaks[index] = tweak;
            blocks[index] = (word(bytes) ^ tweak).to_le_bytes().into();
            tweak = double(tweak);
        }
        cipher(&mut blocks[..count]);
        for (index, bytes) in batch.chunks_exact_mut(BLOCK_BYTES).enumerate() {
            bytes.copy_from_slice(&(word(&blocks[index]) ^ tweaks[index]).to_le_bytes());
        }
    }
}

fn word(block: &[u8]) -> u128 {
    u128::from_le_bytes(block.try_into().expect("a block has sixteen bytes"))
}

/// The tweak of the next block: times x in the field of 2^128 elements, by x^128 + x^7 + x^2 + x +
/// 1.
fn double(tweak: u128) -> u128 {
    // The top bit, spread over all bits, so that there is no branch.
    let carry = (tweak as i128 >> 127) as u128 & 0x87;
    (tweak << 1) ^ carry
}

#[cfg(test)]
mod tests;
