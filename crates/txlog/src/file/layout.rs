//! Names and fixed-size structures of a log directory. `docs/formats/log.md` is normative.
//!
//! ```text
//! incarnation                              which life of the log this is
//! 0000000003-89abcdef01234567.claim        the third tenure of that life: fence, lock, mark
//! 00000000000000000001-0000000001.segment  records from 1 on, written by tenure 1
//! spare-0000000003-1.tmp                   the next segment, being prepared
//! 89abcdef01234567.reader                  a process that reads and may take over
//! ```

use super::error::LogError;
use crate::chain::Chain;
use crate::record::{ChainValue, u32_at, u64_at};
use base::disk::{DIRECT_BLOCK_BYTES, DiskFile};
use base::{Epoch, Incarnation, Sequence};
use std::io;
use std::path::{Path, PathBuf};

/// One page: headers fill it, so that the first frame begins on a page of its own. What is written
/// are whole pages, as a device wants them that is written past the page cache.
pub(crate) const PAGE_BYTES: usize = DIRECT_BLOCK_BYTES;
/// Before each record in a segment: its sequence and the segment's salt.
pub(crate) const FRAME_BYTES: usize = 16;
/// Frames begin at multiples of this.
pub(crate) const FRAME_ALIGN: usize = 8;

const FORMAT_VERSION: u32 = 1;
const INCARNATION_MAGIC: u64 = u64::from_le_bytes(*b"KILNLOG\x01");
const CLAIM_MAGIC: u64 = u64::from_le_bytes(*b"KILNCLM\x01");
const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"KILNSEG\x01");
const MARK_MAGIC: u64 = u64::from_le_bytes(*b"KILNMRK\x01");
/// Where a claim file holds the published durable mark. A sector of its own, written in place.
const MARK_OFFSET: u64 = 512;

pub(crate) fn incarnation_path(directory: &Path) -> PathBuf {
    directory.join("incarnation")
}

pub(crate) fn claim_path(directory: &Path, claim: u64, incarnation: Incarnation) -> PathBuf {
    directory.join(format!("{claim:010}-{:016x}.claim", incarnation.0))
}

pub(crate) fn segment_path(directory: &Path, first: Sequence, claim: u64) -> PathBuf {
    directory.join(format!("{:020}-{claim:010}.segment", first.0))
}

pub(crate) fn spare_path(directory: &Path, claim: u64, number: u64) -> PathBuf {
    directory.join(format!("spare-{claim:010}-{number}.tmp"))
}

pub(crate) fn reader_path(directory: &Path, token: u64) -> PathBuf {
    directory.join(format!("{token:016x}.reader"))
}

/// What a name in a log directory stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    Incarnation,
    Claim { claim: u64, incarnation: Incarnation },
    Segment { first: Sequence, claim: u64 },
    Spare,
    Reader,
    Foreign,
}

impl Name {
    pub(crate) fn parse(name: &str) -> Self {
        Self::parse_known(name).unwrap_or(Self::Foreign)
    }

    fn parse_known(name: &str) -> Option<Self> {
        if name == "incarnation" {
            return Some(Self::Incarnation);
        }
        if name.starts_with("spare-") && name.ends_with(".tmp") {
            return Some(Self::Spare);
        }
        if name.ends_with(".reader") {
            return Some(Self::Reader);
        }
        if let Some(stem) = name.strip_suffix(".claim") {
            let (claim, incarnation) = stem.split_once('-')?;
            let incarnation = Incarnation(u64::from_str_radix(incarnation, 16).ok()?);
            return Some(Self::Claim { claim: claim.parse().ok()?, incarnation });
        }
        let (first, claim) = name.strip_suffix(".segment")?.split_once('-')?;
        Some(Self::Segment { first: Sequence(first.parse().ok()?), claim: claim.parse().ok()? })
    }
}

/// What a segment says about itself in its first page.
///
/// ```text
/// 0       8         12  16            24      32       40      48      56     64       72
/// | magic | version | 0 | incarnation | claim | first | epoch | chain | salt | crc32c |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    pub incarnation: Incarnation,
    /// The tenure that wrote it.
    pub claim: u64,
    /// The sequence of its first record.
    pub first: Sequence,
    /// Where the chain stood before that record.
    pub chain: Chain,
    /// Random bits that every frame of this segment repeats: no payload can pass for a frame.
    pub salt: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; PAGE_BYTES] {
        let mut page = [0; PAGE_BYTES];
        let words = [
            SEGMENT_MAGIC,
            u64::from(FORMAT_VERSION),
            self.incarnation.0,
            self.claim,
            self.first.0,
            self.chain.epoch.0,
            self.chain.value.0,
            self.salt,
        ];
        put_words(&mut page, &words);
        page
    }

    pub(crate) fn decode(page: &[u8]) -> Result<Self, String> {
        let words: [u64; 8] = take_words(page, SEGMENT_MAGIC)?;
        Ok(Self {
            incarnation: Incarnation(words[2]),
            claim: words[3],
            first: Sequence(words[4]),
            chain: Chain { epoch: Epoch(words[5]), value: ChainValue(words[6]) },
            salt: words[7],
        })
    }

    pub(crate) fn read(path: &Path, file: &dyn DiskFile) -> Result<Self, LogError> {
        let mut page = [0; PAGE_BYTES];
        let count = file.read_at(0, &mut page).map_err(LogError::io("read", path))?;
        Self::decode(&page[..count]).map_err(|what| LogError::Damaged {
            file: path.to_owned(),
            offset: 0,
            sequence: None,
            what,
        })
    }
}

/// The incarnation file's bytes: magic, version, incarnation, crc32c.
pub(crate) fn encode_incarnation(incarnation: Incarnation) -> Vec<u8> {
    let mut bytes = vec![0; 32];
    put_words(&mut bytes, &[INCARNATION_MAGIC, u64::from(FORMAT_VERSION), incarnation.0]);
    bytes
}

pub(crate) fn decode_incarnation(bytes: &[u8]) -> Result<Incarnation, String> {
    let words: [u64; 3] = take_words(bytes, INCARNATION_MAGIC)?;
    Ok(Incarnation(words[2]))
}

/// The first page of a claim file: magic, version, incarnation, claim, token, crc32c. The token
/// tells its creator that the file under this name is still the one it made.
pub(crate) fn encode_claim(incarnation: Incarnation, claim: u64, token: u64) -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    put_words(&mut page, &[CLAIM_MAGIC, u64::from(FORMAT_VERSION), incarnation.0, claim, token]);
    page
}

pub(crate) fn decode_claim_token(page: &[u8]) -> Result<u64, String> {
    let words: [u64; 5] = take_words(page, CLAIM_MAGIC)?;
    Ok(words[4])
}

/// Publishes that everything through `durable` is durable. Not synced: a mark that a power cut
/// takes back is old, never wrong.
pub(crate) fn write_mark(claim: &dyn DiskFile, durable: Sequence) -> io::Result<()> {
    let mut bytes = [0; 32];
    put_words(&mut bytes, &[MARK_MAGIC, u64::from(FORMAT_VERSION), durable.0]);
    claim.write_at(MARK_OFFSET, &bytes)
}

/// Times that a mark is read that its writer seems to be writing just then.
const MARK_READS_MAX: usize = 8;

/// The published mark. `None` if there is none, or none that can be read just now: that is no news,
/// and says nothing of where the log ends.
pub(crate) fn read_mark(claim: &dyn DiskFile) -> io::Result<Option<Sequence>> {
    let mut bytes = [0; 32];
    for _ in 0..MARK_READS_MAX {
        claim.read_at(MARK_OFFSET, &mut bytes)?;
        let words: Result<[u64; 3], String> = take_words(&bytes, MARK_MAGIC);
        match words {
            Ok(words) => return Ok(Some(Sequence(words[2]))),
            Err(_) if bytes == [0; 32] => break,
            // Half of it is new.
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Words, then the crc32c of their bytes in one more word.
fn put_words(into: &mut [u8], words: &[u64]) {
    for (chunk, word) in into.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    let at = words.len() * 8;
    let checksum = crc32c::crc32c(&into[..at]);
    into[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
}

fn take_words<const N: usize>(bytes: &[u8], magic: u64) -> Result<[u64; N], String> {
    let mut words = [0; N];
    for (index, word) in words.iter_mut().enumerate() {
        *word = u64_at(bytes, index * 8).ok_or("the structure is cut short")?;
    }
    let stated = u32_at(bytes, N * 8).ok_or("the structure is cut short")?;
    if words[0] != magic {
        return Err("the magic number is wrong".to_owned());
    }
    let computed = crc32c::crc32c(&bytes[..N * 8]);
    if stated != computed {
        return Err(format!("checksum {computed:08x}, the structure says {stated:08x}"));
    }
    if words[1] != u64::from(FORMAT_VERSION) {
        return Err(format!("unknown format version {}", words[1]));
    }
    Ok(words)
}

/// Bytes that a record takes in a segment.
pub(crate) fn framed_bytes(record_bytes: usize) -> usize {
    FRAME_BYTES + record_bytes.next_multiple_of(FRAME_ALIGN)
}

/// Appends a record's frame to a batch that is about to be written.
pub(crate) fn put_frame(into: &mut Vec<u8>, sequence: Sequence, salt: u64, record: &[u8]) {
    into.extend_from_slice(&sequence.0.to_le_bytes());
    into.extend_from_slice(&salt.to_le_bytes());
    into.extend_from_slice(record);
    // Counted from the record: the batch may stand anywhere in its buffer.
    let padding = record.len().next_multiple_of(FRAME_ALIGN) - record.len();
    into.resize(into.len() + padding, 0);
}
