//! Registers of six bits, and registers of a byte for merging.
//!
//! ```text
//! byte    0        1        2
//!      11000000 22221111 33333322    four registers in three bytes, low bits first
//! ```

use super::sparse;
use super::{Encoding, HEADER_BYTES, HllError, REGISTERS, encoding, estimate, make_dense};

/// Largest value of a register's six bits.
const REGISTER_MAX: u8 = 63;

/// Sets a register to `run` if it is lower. Whether it was.
pub(super) fn raise(registers: &mut [u8], register: usize, run: u8) -> bool {
    let group = register / 4 * 3;
    let bytes = &mut registers[group..group + 3];
    let shift = register % 4 * 6;
    let mut word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    let old = (word >> shift) as u8 & REGISTER_MAX;
    if run <= old {
        return false;
    }
    word = word & !(u32::from(REGISTER_MAX) << shift) | u32::from(run) << shift;
    bytes.copy_from_slice(&word.to_le_bytes()[..3]);
    true
}

pub(super) fn histogram(registers: &[u8], histogram: &mut [u32; 64]) {
    for_each(registers, |_, run| histogram[usize::from(run)] += 1);
}

fn for_each(registers: &[u8], mut visit: impl FnMut(usize, u8)) {
    let (groups, _) = registers.as_chunks::<3>();
    for (group, bytes) in groups.iter().enumerate() {
        let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
        for at in 0..4 {
            visit(group * 4 + at, (word >> (at * 6)) as u8 & REGISTER_MAX);
        }
    }
}

/// The maxima over several HyperLogLogs: PFMERGE, and PFCOUNT of many keys.
pub struct Registers {
    runs: Box<[u8; REGISTERS]>,
    any_dense: bool,
}

impl Default for Registers {
    fn default() -> Self {
        Self::new()
    }
}

impl Registers {
    pub fn new() -> Self {
        Self { runs: Box::new([0; REGISTERS]), any_dense: false }
    }

    /// Raises every register to that of `hll`. After `Corrupt` some of them may have been.
    pub fn merge(&mut self, hll: &[u8]) -> Result<(), HllError> {
        let found = encoding(hll)?;
        let runs = &mut self.runs;
        let raise = |register: usize, run: u8| runs[register] = runs[register].max(run);
        match found {
            Encoding::Dense => {
                for_each(&hll[HEADER_BYTES..], raise);
                self.any_dense = true;
                Ok(())
            }
            Encoding::Sparse => sparse::for_each_set(&hll[HEADER_BYTES..], raise),
        }
    }

    /// Estimates the count of the union.
    pub fn count(&self) -> u64 {
        let mut histogram = [0; 64];
        for run in self.runs.iter() {
            histogram[usize::from(*run & REGISTER_MAX)] += 1;
        }
        estimate::estimate(&histogram)
    }

    /// Raises the registers of `hll`, and marks its cached count as out of date: the end of
    /// PFMERGE. It becomes dense if one of the merged ones was.
    pub fn write_to(&self, hll: &mut Vec<u8>, sparse_bytes_max: usize) -> Result<(), HllError> {
        if self.any_dense {
            make_dense(hll)?;
        }
        for (register, run) in self.runs.iter().enumerate() {
            if *run > 0 {
                super::raise(hll, register, *run, sparse_bytes_max)?;
            }
        }
        super::invalidate_cached_count(hll)
    }

    /// The value of each register: PFDEBUG GETREG.
    pub fn runs(&self) -> &[u8; REGISTERS] {
        &self.runs
    }
}
