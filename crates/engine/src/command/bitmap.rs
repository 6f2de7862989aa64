//! Bitmaps (Redis documentation, "Commands", group bitmap): strings as arrays of bits.
//!
//! | file | holds |
//! |---|---|
//! | `bitmap` | single bits, counting, searching, combining |
//! | [`field`] | BITFIELD: integers of any width at any bit |

mod field;
#[cfg(test)]
mod tests;

use super::{Args, Command, DataFn, Group, Outcome, read, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::bits::{self, Operation};
use crate::value::text::Digits;
use crate::view::View;
use resp::Reply;
use resp::integer::parse_i64;

pub const COMMANDS: &[Command<DataFn>] = &[
    write("SETBIT key offset value", setbit)
        .key_use("RW+access+update")
        .doc(
            "Sets or clears the bit at offset of the string value. Creates the key if it doesn't \
             exist.",
        )
        .group(Group::Bitmap)
        .since("2.2.0")
        .cost("O(1)")
        .denyoom(),
    read("GETBIT key offset", getbit)
        .doc("Returns a bit value by offset.")
        .group(Group::Bitmap)
        .since("2.2.0")
        .cost("O(1)")
        .fast(),
    read("BITCOUNT key [start end [BYTE | BIT]]", bitcount)
        .doc("Counts the number of set bits (population counting) in a string.")
        .group(Group::Bitmap)
        .since("2.6.0")
        .cost("O(N)"),
    read("BITPOS key bit [start [end [BYTE | BIT]]]", bitpos)
        .doc("Finds the first set (1) or clear (0) bit in a string.")
        .group(Group::Bitmap)
        .since("2.8.7")
        .cost("O(N)"),
    write("BITOP operation destkey key [key ...]", bitop)
        .key_specs(&["@2,0/1/0,OW+update", "@3,-1/1/0,RO+access"])
        .doc("Performs bitwise operations on multiple strings, and stores the result.")
        .group(Group::Bitmap)
        .since("2.6.0")
        .cost("O(N)")
        .denyoom(),
    field::BITFIELD,
    field::BITFIELD_RO,
];

const BAD_OFFSET: Refusal = Refusal::of("ERR bit offset is not an integer or out of range");

/// Parses the offset of a bit; its byte must be one that a string may have.
fn bit_offset(argument: &[u8], bytes_max: u64) -> Result<u64, Refusal> {
    let offset = parse_i64(argument).and_then(|offset| u64::try_from(offset).ok());
    offset.filter(|offset| offset / 8 < bytes_max).ok_or(BAD_OFFSET)
}

fn setbit(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let offset = bit_offset(args.at(2), tx.settings().proto_max_bulk_len)?;
    let is_set = match parse_i64(args.at(3)) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(Refusal::of("ERR bit is not an integer or out of range")),
    };
    let mut digits = Digits::new();
    let value = tx.string(key)?;
    let byte = value.and_then(|value| value.bytes(&mut digits).get((offset / 8) as usize).copied());
    let mask = 0x80 >> (offset % 8);
    let old = byte.unwrap_or(0);
    let new = if is_set { old | mask } else { old & !mask };
    if byte != Some(new) {
        tx.change(key, Effect::SetRange { offset: offset / 8, bytes: &[new] })?;
        tx.notify(Class::String, "setbit", key);
    }
    reply.integer(i64::from(old & mask != 0));
    Ok(())
}

fn getbit(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let offset = bit_offset(args.at(2), view.settings().proto_max_bulk_len)?;
    let mut digits = Digits::new();
    let value = view.string(args.at(1))?;
    let byte = value.and_then(|value| value.bytes(&mut digits).get((offset / 8) as usize).copied());
    reply.integer(i64::from(byte.unwrap_or(0) & 0x80 >> (offset % 8) != 0));
    Ok(())
}

/// The unit of a range's bounds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    Byte,
    Bit,
}

impl Measure {
    fn parse(word: Option<&[u8]>) -> Result<Self, Refusal> {
        match word {
            None => Ok(Self::Byte),
            Some(word) if word.eq_ignore_ascii_case(b"BYTE") => Ok(Self::Byte),
            Some(word) if word.eq_ignore_ascii_case(b"BIT") => Ok(Self::Bit),
            Some(_) => Err(Refusal::SYNTAX),
        }
    }

    /// The range in bits of a string of `len` bytes; `None` if it is empty. Negative bounds count
    /// from the end, bounds beyond the string are cut.
    fn range(self, start: i64, end: i64, len: usize) -> Option<std::ops::RangeInclusive<usize>> {
        let units = if self == Self::Bit { len as i64 * 8 } else { len as i64 };
        let from_end = |at: i64| if at < 0 { units.saturating_add(at).max(0) } else { at };
        let (start, end) = (from_end(start), from_end(end).min(units - 1));
        if start > end {
            return None;
        }
        let (start, end) = (start as usize, end as usize);
        Some(if self == Self::Bit { start..=end } else { start * 8..=end * 8 + 7 })
    }
}

fn bitcount(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let Some(value) = view.string(args.at(1))? else {
        // Redis looks at the range only if there is something to count.
        reply.integer(0);
        return Ok(());
    };
    let mut digits = Digits::new();
    let bytes = value.bytes(&mut digits);
    let count = match args.len() {
        2 => bits::count(bytes, view.work()),
        4 | 5 => {
            let start = parse_i64(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
            let end = parse_i64(args.at(3)).ok_or(Refusal::NOT_AN_INTEGER)?;
            if start < 0 && end < 0 && start > end {
                reply.integer(0);
                return Ok(());
            }
            let range = Measure::parse(args.get(4))?.range(start, end, bytes.len());
            range.map_or(0, |range| bits::count_in(bytes, range, view.work()))
        }
        _ => return Err(Refusal::SYNTAX),
    };
    reply.integer(count as i64);
    Ok(())
}

fn bitpos(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let is_set = match parse_i64(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)? {
        0 => false,
        1 => true,
        _ => return Err(Refusal::of("ERR The bit argument must be 1 or 0.")),
    };
    let Some(value) = view.string(args.at(1))? else {
        // An absent string is an endless one of zeroes.
        reply.integer(if is_set { -1 } else { 0 });
        return Ok(());
    };
    if args.len() > 6 {
        return Err(Refusal::SYNTAX);
    }
    let mut digits = Digits::new();
    let bytes = value.bytes(&mut digits);
    let start = args.get(3).map_or(Some(0), parse_i64).ok_or(Refusal::NOT_AN_INTEGER)?;
    let measure = Measure::parse(args.get(5))?;
    let end = args.get(4).map_or(Some(-1), parse_i64).ok_or(Refusal::NOT_AN_INTEGER)?;
    let Some(range) = measure.range(start, end, bytes.len()) else {
        reply.integer(-1);
        return Ok(());
    };
    let found = bits::find(bytes, is_set, range, view.work());
    // Without an end, zeroes follow the string.
    let beyond = (!is_set && args.len() < 5).then_some(bytes.len() * 8);
    reply.integer(found.or(beyond).map_or(-1, |at| at as i64));
    Ok(())
}

fn bitop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let operation = if args.is(1, "AND") {
        Some(Operation::And)
    } else if args.is(1, "OR") {
        Some(Operation::Or)
    } else if args.is(1, "XOR") {
        Some(Operation::Xor)
    } else if args.is(1, "NOT") {
        None
    } else {
        return Err(Refusal::SYNTAX);
    };
    if operation.is_none() && args.len() != 4 {
        return Err(Refusal::of("ERR BITOP NOT must be called with a single source key."));
    }
    let target = args.at(2);
    let work = tx.work();
    let mut result = Vec::new();
    for (index, key) in args.from(3).enumerate() {
        tx.find_read(key);
        let mut digits = Digits::new();
        let value = tx.string(key)?;
        let bytes = value.as_ref().map_or(&[][..], |value| value.bytes(&mut digits));
        match operation {
            Some(operation) if index > 0 => bits::combine(&mut result, bytes, operation, &work),
            _ => result = bytes.to_vec(),
        }
    }
    if operation.is_none() {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    if !result.is_empty() {
        tx.change(target, Effect::SetString { value: &result, expire_at: None })?;
        tx.notify(Class::String, "set", target);
    } else if tx.delete(target) {
        tx.notify(Class::Generic, "del", target);
    }
    reply.integer(result.len() as i64);
    Ok(())
}
