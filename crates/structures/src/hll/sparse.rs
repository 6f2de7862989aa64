//! Registers as run lengths.
//!
//! ```text
//! 00llllll             ZERO   the next l + 1 registers are 0
//! 01llllll llllllll    XZERO  the next l + 1 registers are 0
//! 1vvvvvll             VAL    the next l + 1 registers are v + 1
//! ```
//! Where a run is cut and which neighbours are joined again follows Redis, as GET shows it.

use super::{HEADER_BYTES, HllError, REGISTERS};

const ZERO_LEN_MAX: usize = 64;
const VALUE_LEN_MAX: usize = 4;
const VALUE_MAX: u8 = 32;

/// Operations, from the one before a change on, in which Redis looks for values to join.
const JOIN_STEPS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Operation {
    /// 0 for ZERO and XZERO.
    value: u8,
    /// Registers that it covers, 1 to 16,384.
    len: usize,
    /// Bytes that it takes.
    bytes: usize,
}

/// The outcome of an attempt to raise a register.
pub(super) enum Raised {
    No,
    Yes,
    /// The value or the string would be too large. Nothing was changed.
    NeedsDense,
}

/// The registers of an empty HyperLogLog: one XZERO over all of them.
pub(super) fn all_zero() -> [u8; 2] {
    let len = REGISTERS - 1;
    [0x40 | (len >> 8) as u8, len as u8]
}

/// Reads the operation at `at`, if a whole one is there.
fn read(sparse: &[u8], at: usize) -> Option<Operation> {
    let first = *sparse.get(at)?;
    let operation = match first >> 6 {
        0 => Operation { value: 0, len: usize::from(first & 0x3F) + 1, bytes: 1 },
        1 => {
            let len = usize::from(first & 0x3F) << 8 | usize::from(*sparse.get(at + 1)?);
            Operation { value: 0, len: len + 1, bytes: 2 }
        }
        _ => {
            Operation { value: (first >> 2 & 0x1F) + 1, len: usize::from(first & 3) + 1, bytes: 1 }
        }
    };
    Some(operation)
}

/// Appends a run of `len` registers; nothing for none.
fn push(out: &mut Vec<u8>, value: u8, len: usize) {
    match (value, len) {
        (_, 0) => {}
        (0, 1..=ZERO_LEN_MAX) => out.push(len as u8 - 1),
        (0, _) => out.extend_from_slice(&[0x40 | ((len - 1) >> 8) as u8, (len - 1) as u8]),
        _ => out.push(0x80 | (value - 1) << 2 | (len - 1) as u8),
    }
}

/// Calls `visit(first register, operation)` for all operations, which must cover every register.
fn for_each(sparse: &[u8], mut visit: impl FnMut(usize, Operation)) -> Result<(), HllError> {
    let (mut at, mut register) = (0, 0);
    while at < sparse.len() {
        let operation = read(sparse, at).ok_or(HllError::Corrupt)?;
        if register + operation.len > REGISTERS {
            return Err(HllError::Corrupt);
        }
        visit(register, operation);
        register += operation.len;
        at += operation.bytes;
    }
    if register == REGISTERS { Ok(()) } else { Err(HllError::Corrupt) }
}

/// Visits the registers that are not zero.
pub(super) fn for_each_set(
    sparse: &[u8],
    mut visit: impl FnMut(usize, u8),
) -> Result<(), HllError> {
    for_each(sparse, |first, operation| {
        if operation.value > 0 {
            (first..first + operation.len).for_each(|register| visit(register, operation.value));
        }
    })
}

pub(super) fn histogram(sparse: &[u8], histogram: &mut [u32; 64]) -> Result<(), HllError> {
    for_each(sparse, |_, operation| {
        histogram[usize::from(operation.value)] += operation.len as u32;
    })
}

/// The operations as PFDEBUG DECODE prints them: `Z:16000 v:2,1 z:5`. The argument is a whole
/// sparse HyperLogLog.
pub fn describe(hll: &[u8]) -> Result<String, HllError> {
    let mut words = Vec::new();
    let sparse = hll.get(HEADER_BYTES..).ok_or(HllError::NotHll)?;
    for_each(sparse, |_, operation| {
        words.push(match operation {
            Operation { value: 0, len, bytes: 1 } => format!("z:{len}"),
            Operation { value: 0, len, .. } => format!("Z:{len}"),
            Operation { value, len, .. } => format!("v:{value},{len}"),
        });
    })?;
    Ok(words.join(" "))
}

/// Raises one register of a sparse HyperLogLog, whose header is checked, to `run`.
pub(super) fn raise(
    hll: &mut Vec<u8>,
    register: usize,
    run: u8,
    bytes_max: usize,
) -> Result<Raised, HllError> {
    if run > VALUE_MAX {
        return Ok(Raised::NeedsDense);
    }
    // The operation that covers the register, the place before it, and its first register.
    let (mut before, mut at, mut first) = (HEADER_BYTES, HEADER_BYTES, 0);
    let found = loop {
        let operation = read(hll, at).ok_or(HllError::Corrupt)?;
        if register < first + operation.len {
            break operation;
        }
        before = at;
        at += operation.bytes;
        first += operation.len;
    };
    if found.value >= run {
        return Ok(Raised::No);
    }
    let mut split = Vec::with_capacity(5);
    push(&mut split, found.value, register - first);
    push(&mut split, run, 1);
    push(&mut split, found.value, first + found.len - 1 - register);
    if split.len() > found.bytes && hll.len() + split.len() - found.bytes > bytes_max {
        return Ok(Raised::NeedsDense);
    }
    hll.splice(at..at + found.bytes, split);
    join(hll, before);
    Ok(Raised::Yes)
}

/// Joins neighbouring runs of one value in the next few operations.
fn join(hll: &mut Vec<u8>, from: usize) {
    let mut at = from;
    for _ in 0..JOIN_STEPS {
        let Some(left) = read(hll, at) else { return };
        let right = read(hll, at + left.bytes);
        match right {
            Some(right)
                if left.value > 0
                    && left.value == right.value
                    && left.len + right.len <= VALUE_LEN_MAX =>
            {
                hll[at] = 0x80 | (left.value - 1) << 2 | (left.len + right.len - 1) as u8;
                hll.remove(at + 1);
            }
            _ => at += left.bytes,
        }
    }
}
