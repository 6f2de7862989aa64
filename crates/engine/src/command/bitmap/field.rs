//! BITFIELD (Redis documentation, BITFIELD): integers of 1 to 64 bits at any bit of a string.

use super::{BAD_OFFSET, bit_offset};
use crate::command::{Args, Command, DataFn, Group, KeyUse, Outcome, read, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::StringValue;
use crate::value::text::Digits;
use crate::view::View;
use resp::Reply;
use resp::integer::parse_i64;

pub const BITFIELD: Command<DataFn> = write(
    "BITFIELD key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] \
     <SET encoding offset value | INCRBY encoding offset increment> ...]",
    bitfield,
)
.key_use("RW+access+update+variable_flags")
.find_keys(bitfield_keys)
.doc("Performs arbitrary bitfield integer operations on strings.")
.group(Group::Bitmap)
.since("3.2.0")
.cost("O(1) for each subcommand specified")
.arity(-2)
.denyoom();

pub const BITFIELD_RO: Command<DataFn> =
    read("BITFIELD_RO key [GET encoding offset [GET encoding offset ...]]", bitfield_ro)
        .doc("Performs arbitrary read-only bitfield integer operations on strings.")
        .group(Group::Bitmap)
        .since("6.0.0")
        .cost("O(1) for each subcommand specified")
        .arity(-2)
        .fast();

/// BITFIELD only reads if all it has is GET. What cannot be understood might write.
fn bitfield_keys(args: Args<'_>, each: &mut dyn FnMut(usize, KeyUse)) {
    let mut at = 2;
    while at < args.len() {
        let operands = args.len() - 1 - at;
        if args.is(at, "GET") && operands >= 2 {
            at += 3;
        } else if args.is(at, "OVERFLOW") && operands >= 1 {
            at += 2;
        } else {
            return each(1, KeyUse::CHANGE);
        }
    }
    each(1, KeyUse::READ);
}

/// The treatment of a value that does not fit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

/// An integer within a string: its offset and its width.
#[derive(Clone, Copy)]
struct Field {
    /// Of its first, most significant bit.
    offset: u64,
    /// 1 to 64; unsigned ones have at most 63.
    bits: u32,
    is_signed: bool,
}

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set { value: i64, overflow: Overflow },
    Increment { by: i64, overflow: Overflow },
}

#[derive(Clone, Copy)]
struct Step {
    field: Field,
    action: Action,
}

/// Bytes that a field may touch: 64 bits that begin within a byte.
const FIELD_BYTES: usize = 9;

/// The bytes around a field, zeroes beyond the string's end.
struct Window([u8; FIELD_BYTES]);

impl Window {
    fn new(value: Option<StringValue<'_>>, field: Field) -> Self {
        let mut window = [0; FIELD_BYTES];
        if let Some(value) = value {
            let mut digits = Digits::new();
            let bytes = value.bytes(&mut digits);
            let from = bytes.len().min((field.offset / 8) as usize);
            let to = bytes.len().min(from + FIELD_BYTES);
            window[..to - from].copy_from_slice(&bytes[from..to]);
        }
        Self(window)
    }

    /// How far the field is from the low end of the window's bits.
    fn shift(field: Field) -> u32 {
        FIELD_BYTES as u32 * 8 - (field.offset % 8) as u32 - field.bits
    }

    fn word(&self) -> u128 {
        self.0.iter().fold(0, |word, byte| word << 8 | u128::from(*byte))
    }

    fn get(&self, field: Field) -> i64 {
        field.extend((self.word() >> Self::shift(field)) as u64)
    }

    /// Puts a value in; the bytes that the field touches.
    fn set(&mut self, field: Field, value: i64) -> &[u8] {
        let shift = Self::shift(field);
        let mask = u128::from(field.mask()) << shift;
        let value = u128::from(value as u64 & field.mask()) << shift;
        let word = self.word() & !mask | value;
        self.0.copy_from_slice(&word.to_be_bytes()[16 - FIELD_BYTES..]);
        &self.0[..((field.offset % 8) as usize + field.bits as usize).div_ceil(8)]
    }
}

impl Field {
    fn parse(encoding: &[u8], offset: &[u8], bytes_max: u64) -> Result<Self, Refusal> {
        const BAD_TYPE: Refusal = Refusal::of(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported \
             but i64 is.",
        );
        let (is_signed, digits) = match encoding {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => return Err(BAD_TYPE),
        };
        let bits_max = if is_signed { 64 } else { 63 };
        let bits =
            parse_i64(digits).filter(|bits| (1..=bits_max).contains(bits)).ok_or(BAD_TYPE)?;
        let offset = match offset {
            // `#3` is the fourth field of this width.
            [b'#', index @ ..] => {
                let index = parse_i64(index).ok_or(BAD_OFFSET)?;
                let offset = index.checked_mul(bits).ok_or(BAD_OFFSET)?;
                bit_offset(itoa::Buffer::new().format(offset).as_bytes(), bytes_max)?
            }
            offset => bit_offset(offset, bytes_max)?,
        };
        Ok(Self { offset, bits: bits as u32, is_signed })
    }

    /// The byte of the last bit.
    fn last_byte(self) -> u64 {
        (self.offset + u64::from(self.bits) - 1) / 8
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// The integer that the low bits of a word are.
    fn extend(self, word: u64) -> i64 {
        let unused = 64 - self.bits;
        if self.is_signed { (word << unused) as i64 >> unused } else { (word & self.mask()) as i64 }
    }

    /// The value that is stored for `value + by`; `None` if it does not fit and must not be.
    fn fit(self, value: i64, by: i64, overflow: Overflow) -> Option<i64> {
        // An unsigned field takes the bits of a negative value for a large one.
        let value_bits = value as u64;
        let exact = if self.is_signed { i128::from(value) } else { i128::from(value_bits) }
            + i128::from(by);
        let (min, max) = if self.is_signed {
            let max = i128::from(self.mask() >> 1);
            (-max - 1, max)
        } else {
            (0, i128::from(self.mask()))
        };
        if (min..=max).contains(&exact) {
            return Some(exact as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.extend(value_bits.wrapping_add(by as u64))),
            Overflow::Saturate => Some(exact.clamp(min, max) as i64),
            Overflow::Fail => None,
        }
    }
}

fn parse(args: Args<'_>, bytes_max: u64) -> Result<Vec<Step>, Refusal> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut at = 2;
    while at < args.len() {
        let left = args.len() - at - 1;
        if args.is(at, "OVERFLOW") && left >= 1 {
            overflow = if args.is(at + 1, "WRAP") {
                Overflow::Wrap
            } else if args.is(at + 1, "SAT") {
                Overflow::Saturate
            } else if args.is(at + 1, "FAIL") {
                Overflow::Fail
            } else {
                return Err(Refusal::of("ERR Invalid OVERFLOW type specified"));
            };
            at += 2;
            continue;
        }
        let gets = args.is(at, "GET") && left >= 2;
        let sets = args.is(at, "SET") && left >= 3;
        if !(gets || sets || args.is(at, "INCRBY") && left >= 3) {
            return Err(Refusal::SYNTAX);
        }
        let field = Field::parse(args.at(at + 1), args.at(at + 2), bytes_max)?;
        let action = if gets {
            Action::Get
        } else {
            let operand = parse_i64(args.at(at + 3)).ok_or(Refusal::NOT_AN_INTEGER)?;
            if sets {
                Action::Set { value: operand, overflow }
            } else {
                Action::Increment { by: operand, overflow }
            }
        };
        steps.push(Step { field, action });
        at += if gets { 3 } else { 4 };
    }
    Ok(steps)
}

/// The byte of the last bit that any step may write.
fn last_byte_written(steps: &[Step]) -> Option<u64> {
    let writing = steps.iter().filter(|step| !matches!(step.action, Action::Get));
    writing.map(|step| step.field.last_byte()).max()
}

fn bitfield_ro(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let steps = parse(args, view.settings().proto_max_bulk_len)?;
    if last_byte_written(&steps).is_some() {
        return Err(Refusal::of("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    get_all(view, args.at(1), &steps, reply)
}

fn get_all(view: &mut View<'_>, key: &[u8], steps: &[Step], reply: &mut Reply) -> Outcome {
    let value = view.string(key)?;
    reply.array(steps.len());
    view.work().reply_each(steps, reply, |step, reply| {
        reply.integer(Window::new(value, step.field).get(step.field));
    });
    Ok(())
}

fn bitfield(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let steps = parse(args, tx.settings().proto_max_bulk_len)?;
    let Some(last_byte) = last_byte_written(&steps) else {
        return get_all(&mut tx.view(), key, &steps, reply);
    };
    let is_short =
        |tx: &mut Tx<'_>| Ok(tx.string(key)?.is_none_or(|value| value.len() as u64 <= last_byte));
    let grows = is_short(tx)?;
    let mut is_changed = false;
    reply.array(steps.len());
    for Step { field, action } in steps {
        tx.work().step();
        let mut window = Window::new(tx.string(key)?, field);
        let old = window.get(field);
        let (fitting, is_old_answered) = match action {
            Action::Get => {
                reply.integer(old);
                continue;
            }
            Action::Set { value, overflow } => (field.fit(value, 0, overflow), true),
            Action::Increment { by, overflow } => (field.fit(old, by, overflow), false),
        };
        let Some(new) = fitting else {
            reply.null();
            continue;
        };
        reply.integer(if is_old_answered { old } else { new });
        is_changed |= grows || old != new;
        if old != new {
            let bytes = window.set(field, new);
            tx.change(key, Effect::SetRange { offset: field.offset / 8, bytes })?;
        }
    }
    // Every field that was named has room in the end, also if nothing was stored in it.
    if is_short(tx)? {
        tx.change(key, Effect::SetRange { offset: last_byte, bytes: &[0] })?;
    }
    if is_changed {
        tx.notify(Class::String, "setbit", key);
    }
    Ok(())
}
