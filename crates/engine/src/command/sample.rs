//! Choosing some of many: what SPOP, SRANDMEMBER and HRANDFIELD share.

use crate::random::Random;
use crate::refusal::Refusal;
use resp::Reply;
use resp::integer::parse_i64;

/// Elements that a negative count may ask for. They are drawn one by one, from a cold place each,
/// at about 0.1 us, so this is less than half a second in which nobody else is served; a reply as
/// long as the data may take longer, this one need not. Redis has no limit, and is stopped by the
/// client's output buffer if that has one, as is done here too.
const REPEATED_MAX: u64 = 1 << 22;

/// Bytes that an element takes in a reply, at least: an empty string.
const REPLIED_BYTES_MIN: usize = "$0\r\n\r\n".len();

/// The number of elements that a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Up to so many different ones.
    Distinct(u64),
    /// Exactly so many, each chosen among all.
    Repeated(u64),
}

impl Wanted {
    /// Reads a count: negative means that elements may repeat.
    ///
    /// # Errors
    /// Redis's texts for what is no integer and for the one integer that has no negation.
    pub fn parse(argument: &[u8]) -> Result<Self, Refusal> {
        match parse_i64(argument).ok_or(Refusal::NOT_AN_INTEGER)? {
            i64::MIN => Err(Refusal::of(
                "ERR value is out of range, value must between -9223372036854775807 and \
                 9223372036854775807",
            )),
            count @ ..0 => Ok(Self::Repeated(count.unsigned_abs())),
            count => Ok(Self::Distinct(count.unsigned_abs())),
        }
    }

    /// Refuses what takes too long to draw, unless the bound of the reply ends it before that.
    ///
    /// # Errors
    /// `ERR value is out of range`.
    pub fn check(self, reply: &Reply) -> Result<Self, Refusal> {
        match self {
            Self::Repeated(count)
                if count > REPEATED_MAX
                    && reply.admits(REPEATED_MAX as usize * REPLIED_BYTES_MIN) =>
            {
                Err(Refusal::of("ERR value is out of range"))
            }
            wanted => Ok(wanted),
        }
    }
}

/// Whether choosing `count` of `len` by drawing until enough are different takes longer than
/// laying all of them out.
pub fn is_most(count: usize, len: usize) -> bool {
    count.saturating_mul(3) > len
}

/// Leaves `count` of the elements, chosen evenly: the beginning of a Fisher-Yates shuffle.
pub fn choose<T>(all: &mut Vec<T>, count: usize, random: &mut Random) {
    for at in 0..count.min(all.len()) {
        let other = at + random.below((all.len() - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_chosen_equally_often() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 10];
        for _ in 0..10_000 {
            let mut all: Vec<usize> = (0..10).collect();
            choose(&mut all, 3, &mut random);
            assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
            all.into_iter().for_each(|at| seen[at] += 1);
        }
        assert!(seen.iter().all(|times| (2800..3200).contains(times)), "{seen:?}");
    }

    #[test]
    fn the_smallest_integer_is_no_count() {
        assert_eq!(Wanted::parse(b"-9223372036854775807"), Ok(Wanted::Repeated(i64::MAX as u64)));
        assert!(Wanted::parse(b"-9223372036854775808").is_err());
        assert!(Wanted::Repeated(u64::MAX).check(&Reply::default()).is_err());
        assert_eq!(Wanted::parse(b"x"), Err(Refusal::NOT_AN_INTEGER));
    }
}
