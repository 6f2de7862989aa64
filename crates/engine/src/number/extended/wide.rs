//! Whole numbers of any size, for conversions between decimal and binary only.
//!
//! The longest come from the limits of the extended double: some 34,000 bits. Schoolbook methods
//! take tens of microseconds for those, and well under one for what people increment by.

/// A whole number, least significant limb first, no zero limb on top.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wide {
    limbs: Vec<u32>,
}

/// The largest power of ten in a limb.
const CHUNK: u32 = 1_000_000_000;
const CHUNK_DIGITS: u32 = 9;

impl From<u64> for Wide {
    fn from(value: u64) -> Self {
        let mut wide = Self { limbs: vec![value as u32, (value >> 32) as u32] };
        wide.trim();
        wide
    }
}

impl Wide {
    /// Reads decimal digits. Every byte is one.
    pub fn from_decimal(digits: &[u8]) -> Self {
        let mut wide = Self { limbs: Vec::with_capacity(digits.len() / 9 + 1) };
        for chunk in digits.chunks(CHUNK_DIGITS as usize) {
            let value = chunk.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
            wide.multiply_add(10_u32.pow(chunk.len() as u32), value);
        }
        wide
    }

    pub fn multiply_by_power_of_ten(&mut self, exponent: u32) {
        for _ in 0..exponent / CHUNK_DIGITS {
            self.multiply_add(CHUNK, 0);
        }
        self.multiply_add(10_u32.pow(exponent % CHUNK_DIGITS), 0);
    }

    pub fn shifted_left(mut self, bits: u32) -> Self {
        self.multiply_add(1 << (bits % 32), 0);
        if !self.limbs.is_empty() {
            self.limbs.splice(..0, std::iter::repeat_n(0, bits as usize / 32));
        }
        self
    }

    /// Bits up to the highest that is set.
    pub fn bits(&self) -> usize {
        match self.limbs.last() {
            Some(top) => self.limbs.len() * 32 - top.leading_zeros() as usize,
            None => 0,
        }
    }

    /// The quotient, which must fit 68 bits, and whether there is a remainder.
    pub fn divided_by(mut self, divisor: &Self) -> (u128, bool) {
        let mut quotient = 0_u128;
        for shift in (0..68).rev() {
            let part = divisor.clone().shifted_left(shift);
            if self.is_at_least(&part) {
                self.subtract(&part);
                quotient |= 1 << shift;
            }
        }
        debug_assert!(!self.is_at_least(divisor), "the quotient fits");
        (quotient, !self.limbs.is_empty())
    }

    pub fn into_decimal(mut self) -> String {
        let mut chunks = Vec::new();
        while !self.limbs.is_empty() {
            let mut remainder = 0;
            for limb in self.limbs.iter_mut().rev() {
                let value = remainder << 32 | u64::from(*limb);
                *limb = (value / u64::from(CHUNK)) as u32;
                remainder = value % u64::from(CHUNK);
            }
            self.trim();
            chunks.push(remainder);
        }
        let mut text = chunks.pop().unwrap_or(0).to_string();
        for chunk in chunks.iter().rev() {
            text.push_str(&format!("{chunk:09}"));
        }
        text
    }

    fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.limbs {
            let value = u64::from(*limb) * u64::from(factor) + carry;
            *limb = value as u32;
            carry = value >> 32;
        }
        if carry != 0 {
            self.limbs.push(carry as u32);
        }
    }

    fn is_at_least(&self, other: &Self) -> bool {
        let order = self.limbs.len().cmp(&other.limbs.len());
        order.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev())).is_ge()
    }

    /// Takes away `other`, which is not larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = 0;
        for (index, limb) in self.limbs.iter_mut().enumerate() {
            let taken = i64::from(other.limbs.get(index).copied().unwrap_or(0)) + borrow;
            let value = i64::from(*limb) - taken;
            *limb = value as u32;
            borrow = i64::from(value < 0);
        }
        self.trim();
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }
}
