//! Strings as arrays of bits. Bit 0 is the most significant bit of the first byte.

use crate::work::Work;
use std::ops::RangeInclusive;

/// Bytes gone through from one count of the work to the next. A multiple of eight.
const COUNTED_BYTES: usize = 64 << 10;

/// How many bits are set.
pub fn count(bytes: &[u8], work: &Work) -> u64 {
    let pieces = bytes.chunks(COUNTED_BYTES).inspect(|piece| work.bytes(piece.len()));
    pieces.map(count_piece).sum()
}

fn count_piece(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    // Words in blocks: the compiler counts a block in vector registers.
    let words: u64 = words
        .chunks(64)
        .map(|block| {
            let ones = block.iter().map(|word| u64::from_ne_bytes(*word).count_ones());
            u64::from(ones.sum::<u32>())
        })
        .sum();
    words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

/// How many bits of a range are set. The range lies within the string.
pub fn count_in(bytes: &[u8], bits: RangeInclusive<usize>, work: &Work) -> u64 {
    let (first, last) = (*bits.start(), *bits.end());
    let outside = u64::from((bytes[first / 8] & !from(first)).count_ones())
        + u64::from((bytes[last / 8] & !through(last)).count_ones());
    count(&bytes[first / 8..=last / 8], work) - outside
}

/// The first bit of a range that is set, or clear. The range lies within the string.
pub fn find(bytes: &[u8], is_set: bool, bits: RangeInclusive<usize>, work: &Work) -> Option<usize> {
    let (first, last) = (*bits.start(), *bits.end());
    let (first_byte, last_byte) = (first / 8, last / 8);
    // The byte with every bit sought set, those outside the range cleared.
    let sought = |at: usize| {
        let byte = if is_set { bytes[at] } else { !bytes[at] };
        let byte = if at == first_byte { byte & from(first) } else { byte };
        if at == last_byte { byte & through(last) } else { byte }
    };
    let position = |at: usize, byte: u8| at * 8 + byte.leading_zeros() as usize;
    let byte = sought(first_byte);
    if byte != 0 {
        return Some(position(first_byte, byte));
    }
    let inner = bytes.get(first_byte + 1..last_byte).unwrap_or_default();
    let barren = if is_set { 0 } else { u8::MAX };
    let (words, _) = inner.as_chunks::<8>();
    let mut skipped = 0;
    for piece in words.chunks(COUNTED_BYTES / 8) {
        work.bytes(8 * piece.len());
        let barren = piece.iter().take_while(|word| **word == [barren; 8]).count();
        skipped += barren * 8;
        if barren < piece.len() {
            break;
        }
    }
    let mut rest = first_byte + 1 + skipped..=last_byte;
    rest.find_map(|at| {
        let byte = sought(at);
        (byte != 0).then(|| position(at, byte))
    })
}

/// The bits of a byte from this bit of the string on.
const fn from(bit: usize) -> u8 {
    0xff >> (bit % 8)
}

/// The bits of a byte up to this bit of the string.
const fn through(bit: usize) -> u8 {
    0xff << (7 - bit % 8)
}

/// The operation by which BITOP combines strings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    And,
    Or,
    Xor,
}

/// Combines a string into the result so far; the shorter of both counts as padded with zeroes.
pub fn combine(result: &mut Vec<u8>, other: &[u8], operation: Operation, work: &Work) {
    if result.len() < other.len() {
        result.resize(other.len(), 0);
    }
    let (both, beyond) = result.split_at_mut(other.len());
    for (both, other) in both.chunks_mut(COUNTED_BYTES).zip(other.chunks(COUNTED_BYTES)) {
        work.bytes(both.len());
        let pairs = both.iter_mut().zip(other);
        match operation {
            Operation::And => pairs.for_each(|(result, other)| *result &= other),
            Operation::Or => pairs.for_each(|(result, other)| *result |= other),
            Operation::Xor => pairs.for_each(|(result, other)| *result ^= other),
        }
    }
    if operation == Operation::And {
        beyond.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bit by the definition, for comparison.
    fn bit(bytes: &[u8], at: usize) -> bool {
        bytes[at / 8] >> (7 - at % 8) & 1 == 1
    }

    #[test]
    fn ranges_are_counted_and_searched_as_bit_by_bit() {
        let work = Work::default();
        let dense: Vec<u8> = (0..40u32).map(|i| (i * 37 % 251) as u8).collect();
        let mut sparse = vec![0; 40];
        sparse[29] = 4;
        let full: Vec<u8> = sparse.iter().map(|byte| !byte).collect();
        for bytes in [dense, sparse, full] {
            for first in 0..320 {
                for last in first..320 {
                    let range = first..=last;
                    let ones = range.clone().filter(|at| bit(&bytes, *at)).count() as u64;
                    assert_eq!(count_in(&bytes, range.clone(), &work), ones, "{range:?}");
                    for is_set in [false, true] {
                        let expected = range.clone().find(|at| bit(&bytes, *at) == is_set);
                        let found = find(&bytes, is_set, range.clone(), &work);
                        assert_eq!(found, expected, "{range:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn shorter_strings_are_padded_with_zeroes() {
        let work = Work::default();
        for (operation, expected) in [
            (Operation::And, [0x0c, 0]),
            (Operation::Or, [0x3f, 0xf0]),
            (Operation::Xor, [0x33, 0xf0]),
        ] {
            let mut long = vec![0x0f, 0xf0];
            combine(&mut long, &[0x3c], operation, &work);
            assert_eq!(long, expected, "{operation:?}");
            let mut short = vec![0x3c];
            combine(&mut short, &[0x0f, 0xf0], operation, &work);
            assert_eq!(short, expected, "{operation:?}");
        }
    }
}
