//! The keys and channels that a request names, for a user who may not name all of them.

use crate::command::request_keys::keys_of;
use crate::registry::Registered;
use engine::command::Args;
use std::ops::Range;

/// What a request does with a key, as key patterns grant it. Neither: it may be named.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Access {
    pub reads: bool,
    pub writes: bool,
}

impl Access {
    const WRITES: Self = Self { reads: false, writes: true };

    /// What the flags of a key specification say.
    fn of(flags: &[String]) -> Self {
        let is_any = |words: &[&str]| flags.iter().any(|flag| words.contains(&flag.as_str()));
        Self { reads: is_any(&["access"]), writes: is_any(&["insert", "update", "delete"]) }
    }
}

/// The arguments that are keys, each with what the request does with it. A request that makes no
/// sense may have none: it is refused when it runs.
pub(super) fn keys(command: &Registered, args: Args<'_>) -> Vec<(usize, Access)> {
    let found = keys_of(command, args.len(), |index| args.at(index));
    let mut keys: Vec<(usize, Access)> =
        found.into_iter().map(|key| (key.index, Access::of(&key.flags))).collect();
    // Redis checks no key here, and writes one (docs/compatibility.md).
    if command.name() == "pfmerge" && keys.is_empty() {
        keys.push((1, Access { reads: true, writes: true }));
    }
    // It obeys the last STORE or STOREDIST; Redis checks the first of each.
    let options = match command.name() {
        "georadius" => 6,
        "georadiusbymember" => 5,
        _ => return keys,
    };
    let is_option = |at: &usize| args.is(*at, "STORE") || args.is(*at, "STOREDIST");
    let stores = (options..args.len().saturating_sub(1)).filter(is_option).map(|at| at + 1);
    let stores: Vec<usize> = stores.collect();
    // One or two were found, so this does not take the square of the request's length.
    keys.retain(|(key, _)| !stores.contains(key));
    keys.extend(stores.into_iter().map(|key| (key, Access::WRITES)));
    keys
}

/// The arguments that are channels to publish to or to subscribe to, and whether they are
/// patterns. Whoever unsubscribes needs no right.
pub(super) fn channels(command: &Registered, args: Args<'_>) -> Option<(Range<usize>, bool)> {
    match command.name() {
        "publish" | "spublish" => Some((1..2, false)),
        "subscribe" | "ssubscribe" => Some((1..args.len(), false)),
        "psubscribe" => Some((1..args.len(), true)),
        _ => None,
    }
}
