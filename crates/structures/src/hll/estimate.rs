//! From a histogram of registers to a count: Ertl, arXiv:1702.01284, algorithm 6.

use super::{REGISTERS, RUN_BITS};

/// 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// What a conversion of infinity yields in Redis on x86-64: only registers that no hash can set
/// lead there.
const NOT_A_COUNT: u64 = 1 << 63;

/// `histogram[v]` registers have the value `v`; there are 16,384 in all.
pub(super) fn estimate(histogram: &[u32; 64]) -> u64 {
    let registers = REGISTERS as f64;
    let longest = RUN_BITS as usize + 1;
    let mut sum = registers * tau((registers - f64::from(histogram[longest])) / registers);
    for run in (1..longest).rev() {
        sum = (sum + f64::from(histogram[run])) * 0.5;
    }
    sum += registers * sigma(f64::from(histogram[0]) / registers);
    let count = (ALPHA * registers * registers / sum).round();
    if count < 9.2e18 { count as u64 } else { NOT_A_COUNT }
}

/// The weight of the registers that are still zero.
fn sigma(share: f64) -> f64 {
    if share == 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut factor, mut sum) = (share, 1.0, share);
    loop {
        power *= power;
        let before = sum;
        sum += power * factor;
        factor += factor;
        if before == sum {
            return sum;
        }
    }
}

/// The weight of the registers that are full.
fn tau(share: f64) -> f64 {
    if share == 0.0 || share == 1.0 {
        return 0.0;
    }
    let (mut root, mut factor, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        root = root.sqrt();
        let before = sum;
        factor *= 0.5;
        sum -= (1.0 - root) * (1.0 - root) * factor;
        if before == sum {
            return sum / 3.0;
        }
    }
}
