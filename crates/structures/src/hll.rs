//! HyperLogLog: how many different elements were added, within 0.81 %, in at most 12 KiB.
//!
//! A HyperLogLog is an ordinary string value, so its bytes are exactly those of Redis
//! (`hyperloglog.c`): clients GET, SET, DUMP and RESTORE it, and PFCOUNT must tell the same number.
//!
//! ```text
//! | "HYLL" | encoding: u8 | 3 unused | cached count: u64, little-endian | registers … |
//! ```
//! 16,384 registers hold the longest run of zeroes seen in the hashes that fell to them. The top
//! bit of the cached count says that it is out of date.
//!
//! * encoding 0, *dense*: registers of six bits, packed from the low bits up ([`dense`]);
//! * encoding 1, *sparse*: run lengths ([`sparse`]), as long as the string stays within
//!   `hll-sparse-max-bytes` and no register exceeds 32.
//!
//! The estimate follows Otmar Ertl, *New cardinality estimation algorithms for HyperLogLog
//! sketches*, arXiv:1702.01284, algorithm 6, as Redis does since 5.0.
//!
//! Clients can write any bytes, so a check of the header tells only that it looks like one, and
//! everything that walks sparse registers can still find them corrupt.

mod dense;
mod estimate;
mod hash;
mod sparse;
#[cfg(test)]
mod tests;

pub use dense::Registers;
pub use sparse::describe as describe_sparse;

/// Registers of every HyperLogLog: 2^14.
pub const REGISTERS: usize = 1 << REGISTER_BITS;

/// Bits of the hash that choose the register.
const REGISTER_BITS: u32 = 14;

/// Bits of the hash in which zeroes are counted; the longest run counts one more.
const RUN_BITS: u32 = 64 - REGISTER_BITS;

const MAGIC: &[u8; 4] = b"HYLL";
const HEADER_BYTES: usize = 16;
const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * 6 / 8;

/// The default of `hll-sparse-max-bytes`: Redis's trade of memory for the time of a PFADD.
pub const SPARSE_BYTES_MAX_DEFAULT: usize = 3_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Dense,
    Sparse,
}

/// An error of a string that is no HyperLogLog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HllError {
    /// The header is not one: to Redis the key is of the wrong type.
    NotHll,
    /// The sparse registers do not add up: Redis's INVALIDOBJ.
    Corrupt,
}

impl std::fmt::Display for HllError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotHll => write!(f, "Key is not a valid HyperLogLog string value."),
            Self::Corrupt => write!(f, "Corrupted HLL object detected"),
        }
    }
}

impl std::error::Error for HllError {}

/// An empty HyperLogLog, sparse; its cached count of 0 is up to date.
pub fn create() -> Vec<u8> {
    let mut hll = vec![0; HEADER_BYTES];
    hll[..4].copy_from_slice(MAGIC);
    hll[4] = 1;
    hll.extend_from_slice(&sparse::all_zero());
    hll
}

/// Whether the header is one, and of which encoding. Every other function asks this first.
pub fn encoding(hll: &[u8]) -> Result<Encoding, HllError> {
    if hll.len() < HEADER_BYTES || !hll.starts_with(MAGIC) {
        return Err(HllError::NotHll);
    }
    match hll[4] {
        0 if hll.len() == DENSE_BYTES => Ok(Encoding::Dense),
        1 => Ok(Encoding::Sparse),
        _ => Err(HllError::NotHll),
    }
}

/// Adds an element. Whether a register changed, in which case the cached count is marked out of
/// date. May turn sparse into dense.
pub fn add(hll: &mut Vec<u8>, element: &[u8], sparse_bytes_max: usize) -> Result<bool, HllError> {
    let (register, run) = hash::place(element);
    raise(hll, register, run, sparse_bytes_max)
}

/// The count in the header, unless it is out of date.
pub fn cached_count(hll: &[u8]) -> Result<Option<u64>, HllError> {
    encoding(hll)?;
    let mut little = [0; 8];
    little.copy_from_slice(&hll[8..HEADER_BYTES]);
    let count = u64::from_le_bytes(little);
    Ok((count >> 63 == 0).then_some(count))
}

/// Stores a count in the header. PFCOUNT does it: a read that changes the value.
pub fn set_cached_count(hll: &mut [u8], count: u64) -> Result<(), HllError> {
    encoding(hll)?;
    hll[8..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
    Ok(())
}

/// Marks the cached count as out of date.
pub fn invalidate_cached_count(hll: &mut [u8]) -> Result<(), HllError> {
    encoding(hll)?;
    hll[HEADER_BYTES - 1] |= 0x80;
    Ok(())
}

/// Estimates the count from the registers.
pub fn count(hll: &[u8]) -> Result<u64, HllError> {
    let mut histogram = [0; 64];
    match encoding(hll)? {
        Encoding::Dense => dense::histogram(&hll[HEADER_BYTES..], &mut histogram),
        Encoding::Sparse => sparse::histogram(&hll[HEADER_BYTES..], &mut histogram)?,
    }
    Ok(estimate::estimate(&histogram))
}

/// Rewrites a sparse HyperLogLog as a dense one, keeping its header. Whether it was sparse.
pub fn make_dense(hll: &mut Vec<u8>) -> Result<bool, HllError> {
    if encoding(hll)? == Encoding::Dense {
        return Ok(false);
    }
    let mut wide = vec![0; DENSE_BYTES];
    wide[..HEADER_BYTES].copy_from_slice(&hll[..HEADER_BYTES]);
    wide[4] = 0;
    let registers = &mut wide[HEADER_BYTES..];
    sparse::for_each_set(&hll[HEADER_BYTES..], |register, run| {
        dense::raise(registers, register, run);
    })?;
    *hll = wide;
    Ok(true)
}

/// Raises one register to `run`. Whether it was lower. The cached count is marked as out of date
/// if so.
fn raise(
    hll: &mut Vec<u8>,
    register: usize,
    run: u8,
    sparse_bytes_max: usize,
) -> Result<bool, HllError> {
    let raised = match encoding(hll)? {
        Encoding::Dense => dense::raise(&mut hll[HEADER_BYTES..], register, run),
        Encoding::Sparse => match sparse::raise(hll, register, run, sparse_bytes_max)? {
            sparse::Raised::No => false,
            sparse::Raised::Yes => true,
            sparse::Raised::NeedsDense => {
                make_dense(hll)?;
                dense::raise(&mut hll[HEADER_BYTES..], register, run)
            }
        },
    };
    if raised {
        invalidate_cached_count(hll)?;
    }
    Ok(raised)
}
