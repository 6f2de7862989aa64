//! Which arguments of one request are keys, and what becomes of each.
//!
//! Key specifications find most. Where they do not reach (`SORT key … STORE destination`), or where
//! the use of a key depends on an option (`SET key value GET`), the command's row names a function
//! that looks at the arguments, as in Redis. Nothing is allocated: this is asked of requests.

use crate::commands::Registered;
use crate::key_specs::{KeyRange, Spec, range};
use engine::command::{Args, Declared, Flags, KeySpec, KeyUse};

/// The most specifications that a command has.
const SPECS_MAX: usize = 4;

/// What it takes to find the keys of a command's requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// There are none.
    None,
    /// One range, whatever the request says.
    Fixed { first: usize, last: i64, step: usize, uses: KeyUse },
    /// The arguments tell.
    Searched,
}

impl Shape {
    /// The shape of a command's requests. `has_finder`: its row names a function.
    pub fn of(specs: &[Spec], declared: &Declared, has_finder: bool) -> Self {
        let keys: Vec<&Spec> = specs.iter().filter(|spec| !spec.is_no_key()).collect();
        assert!(keys.len() <= SPECS_MAX, "{} has more key specifications", declared.name);
        let is_counted = declared.keys.iter().any(|spec| matches!(spec, KeySpec::Counted { .. }));
        match keys[..] {
            [] if !has_finder => Self::None,
            [spec] if !has_finder && !is_counted => match spec.fixed() {
                Some((first, last, step)) => Self::Fixed { first, last, step, uses: spec.uses() },
                None => Self::Searched,
            },
            _ => Self::Searched,
        }
    }
}

impl Registered {
    /// Whether requests of this command can have keys at all. What is only hashed like a key, as
    /// the channel of SPUBLISH is, is none.
    pub fn may_have_keys(&self) -> bool {
        self.shape != Shape::None
    }

    /// Calls back with the argument of each key of a request and what becomes of it, in order. A
    /// request that makes no sense has none.
    #[inline]
    pub fn for_each_key(&self, args: Args<'_>, mut each: impl FnMut(usize, KeyUse)) {
        match self.shape {
            Shape::None => {}
            Shape::Fixed { first, last, step, uses } => {
                let last = if last >= 0 { first as i64 + last } else { args.len() as i64 + last };
                if let Some(range) = range(first, last, step, args.len()) {
                    range.indexes().for_each(|index| each(index, uses));
                }
            }
            Shape::Searched => self.search(args, &mut each),
        }
    }

    /// The argument of a key that a request uses and [`Self::for_each_key`] does not tell of.
    #[inline]
    pub fn lone_key_of(&self, args: Args<'_>) -> Option<usize> {
        if !self.flags.contains(Flags::USES_LONE_KEY) {
            return None;
        }
        let mut is_any = false;
        self.for_each_key(args, |_, _| is_any = true);
        (!is_any && args.len() > 1).then_some(1)
    }

    /// The first key of a request.
    pub fn first_key_of<'a>(&self, args: Args<'a>) -> Option<&'a [u8]> {
        let mut first = None;
        self.for_each_key(args, |index, _| first = first.or(Some(index)));
        first.and_then(|index| args.get(index))
    }

    fn search(&self, args: Args<'_>, each: &mut dyn FnMut(usize, KeyUse)) {
        if let Some(found) = self.locate(args) {
            for (range, uses) in found {
                range.indexes().for_each(|index| each(index, uses));
            }
            return;
        }
        match self.row.find_keys {
            Some(find) => find(args, each),
            None => counted(&self.declared.keys, args, each),
        }
    }

    /// The keys as the specifications tell them; `None` if one cannot tell, or not for certain.
    fn locate(&self, args: Args<'_>) -> Option<[(KeyRange, KeyUse); SPECS_MAX]> {
        const UNCERTAIN: KeyUse = KeyUse::VARIABLE.union(KeyUse::INCOMPLETE);
        let specs = || self.specs.iter().filter(|spec| !spec.is_no_key());
        if specs().any(|spec| spec.uses().intersects(UNCERTAIN)) {
            return None;
        }
        let mut found = [(KeyRange::NONE, KeyUse::NONE); SPECS_MAX];
        for (spec, found) in specs().zip(&mut found) {
            *found = (spec.locate(args)?, spec.uses());
        }
        Some(found)
    }
}

/// The keys that an argument counts, where that only begins with a number; then the destination.
/// Redis does not say what becomes of them.
fn counted(specs: &[KeySpec], args: Args<'_>, each: &mut dyn FnMut(usize, KeyUse)) {
    let counted = specs.iter().find_map(|spec| match *spec {
        KeySpec::Counted { count, first } => Some((args.get(count)?, first)),
        _ => None,
    });
    let Some((number, first)) = counted else { return };
    let keys = leading_number(number);
    if keys < 1 || keys > args.len().saturating_sub(first) {
        return;
    }
    let destination = specs.iter().find_map(|spec| match *spec {
        KeySpec::Range { first, .. } => Some(first),
        _ => None,
    });
    (first..first + keys).chain(destination).for_each(|index| each(index, KeyUse::NONE));
}

/// The number that a text begins with, as C's `atoi` has it; 0 if it is negative or none.
fn leading_number(text: &[u8]) -> usize {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let digits = std::str::from_utf8(&digits[..end]).unwrap_or_default();
    digits.parse().unwrap_or_default()
}
