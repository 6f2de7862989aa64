//! Redis's patterns: KEYS, SCAN's MATCH, PSUBSCRIBE, CONFIG GET, ACL rules.
//!
//! `*` any run of bytes, `?` one byte, `[abc]`, `[^a-z]` one byte of a class, `\` the next byte as
//! it is. Bytes, not characters. Corner cases follow Redis 7.0.15: a class that never closes ends
//! with the pattern, a range may be written backwards and compares bytes as signed, `\` in a class
//! always compares exactly, and nothing but the empty pattern matches the empty text.
//!
//! A mismatch retreats to the newest star only. That loses nothing: whatever an older star could
//! still skip, the newest can skip as well. So the work is at most pattern times text: seconds,
//! where a client chooses both, so all of it is counted on the way.

use crate::work::{BYTES_PER_STEP, Work};

#[cfg(test)]
mod tests;

/// Stars in a row of a pattern that may match. Redis gives up beyond its recursion limit.
const STARS_MAX: usize = 1000;

/// Whether the whole of `text` matches `pattern`. Counts a step, and one for each
/// [`BYTES_PER_STEP`] of the pattern that it looks at, again and again.
pub fn matches(pattern: &[u8], text: &[u8], work: &Work) -> bool {
    matches_in(pattern, text, Case::Exact, work)
}

/// As [`matches`], ASCII letters in either case being the same.
pub fn matches_ignoring_case(pattern: &[u8], text: &[u8], work: &Work) -> bool {
    matches_in(pattern, text, Case::Ignored, work)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    Exact,
    Ignored,
}

/// Elements of the pattern looked at since the last step. Each is a byte, or up to three.
struct Looked<'w> {
    elements: usize,
    work: &'w Work,
}

impl Looked<'_> {
    #[inline]
    fn one(&mut self) {
        self.elements += 1;
        if self.elements == BYTES_PER_STEP {
            self.elements = 0;
            self.work.step();
        }
    }
}

fn matches_in(pattern: &[u8], text: &[u8], case: Case, work: &Work) -> bool {
    work.step();
    let mut looked = Looked { elements: 0, work };
    let mut stars = 0;
    // Where to go on after a mismatch: the pattern behind the newest star, the text it may skip to.
    let mut retreat: Option<(&[u8], &[u8])> = None;
    let (mut pattern, mut rest) = (pattern, text);
    loop {
        match (pattern, rest) {
            ([], []) => return true,
            ([b'*', ..], [_, ..]) => {
                pattern = skip_stars(pattern, &mut looked);
                if pattern.is_empty() {
                    return true;
                }
                stars += 1;
                if stars > STARS_MAX {
                    return false;
                }
                retreat = Some((pattern, rest));
                continue;
            }
            ([_, ..], [byte, tail @ ..]) => {
                if let Some(behind) = match_one(pattern, *byte, case, &mut looked) {
                    rest = tail;
                    pattern =
                        if rest.is_empty() { skip_stars(behind, &mut looked) } else { behind };
                    continue;
                }
            }
            _ => {}
        }
        match retreat {
            Some((behind, [_, tail @ ..])) if !tail.is_empty() => {
                retreat = Some((behind, tail));
                (pattern, rest) = (behind, tail);
            }
            _ => return false,
        }
    }
}

fn skip_stars<'p>(mut pattern: &'p [u8], looked: &mut Looked<'_>) -> &'p [u8] {
    while let [b'*', tail @ ..] = pattern {
        looked.one();
        pattern = tail;
    }
    pattern
}

/// What is left of `pattern`, which is not empty, if its first element matches `byte`.
fn match_one<'p>(
    pattern: &'p [u8],
    byte: u8,
    case: Case,
    looked: &mut Looked<'_>,
) -> Option<&'p [u8]> {
    looked.one();
    match pattern {
        [b'?', tail @ ..] => Some(tail),
        [b'[', class @ ..] => match_class(class, byte, case, looked),
        [b'\\', literal, tail @ ..] | [literal, tail @ ..] => {
            same(*literal, byte, case).then_some(tail)
        }
        [] => None,
    }
}

/// What is left behind the class that `class` begins with, its bracket already taken.
fn match_class<'p>(
    mut class: &'p [u8],
    byte: u8,
    case: Case,
    looked: &mut Looked<'_>,
) -> Option<&'p [u8]> {
    let negated = class.first() == Some(&b'^');
    if negated {
        class = &class[1..];
    }
    let mut found = false;
    loop {
        looked.one();
        class = match class {
            [] | [b']', ..] => break,
            [b'\\', literal, tail @ ..] => {
                found |= *literal == byte;
                tail
            }
            [first, b'-', last, tail @ ..] => {
                found |= in_range(*first, *last, byte, case);
                tail
            }
            [literal, tail @ ..] => {
                found |= same(*literal, byte, case);
                tail
            }
        };
    }
    (found != negated).then(|| class.get(1..).unwrap_or_default())
}

fn same(left: u8, right: u8, case: Case) -> bool {
    match case {
        Case::Exact => left == right,
        Case::Ignored => left.eq_ignore_ascii_case(&right),
    }
}

/// Whether `byte` lies between `first` and `last`, in either order. The order is put right before
/// the case is dropped, as Redis does, so `[A-_]` without case is empty.
fn in_range(first: u8, last: u8, byte: u8, case: Case) -> bool {
    let (low, high) = ((first as i8).min(last as i8), (first as i8).max(last as i8));
    let fold = |byte: i8| match case {
        Case::Exact => byte,
        Case::Ignored => byte.cast_unsigned().to_ascii_lowercase().cast_signed(),
    };
    (fold(low)..=fold(high)).contains(&fold(byte as i8))
}
