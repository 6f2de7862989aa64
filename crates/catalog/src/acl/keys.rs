//! The keys and channels that a request names, for a user who may not name all of them.

use crate::commands::Registered;
use engine::command::{Args, Channels, KeyUse};
use std::ops::Range;

/// What a request does with a key, as key patterns grant it. Neither: it may be named.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Access {
    pub reads: bool,
    pub writes: bool,
}

impl From<KeyUse> for Access {
    fn from(uses: KeyUse) -> Self {
        Self { reads: uses.intersects(KeyUse::ACCESS), writes: uses.intersects(KeyUse::WRITES) }
    }
}

/// Calls back with each argument that is a key, and what the request does with it. A request that
/// makes no sense may have none: it is refused when it runs.
pub(super) fn for_each_key(
    command: &Registered,
    args: Args<'_>,
    mut each: impl FnMut(usize, Access),
) {
    // GEORADIUS obeys the last STORE or STOREDIST; Redis checks the first of each.
    let options = match command.name() {
        "georadius" => 6,
        "georadiusbymember" => 5,
        _ => usize::MAX,
    };
    let is_store = |key: usize| {
        let option = key - 1;
        option >= options && (args.is(option, "STORE") || args.is(option, "STOREDIST"))
    };
    command.for_each_key(args, |key, uses| {
        if !is_store(key) {
            each(key, uses.into());
        }
    });
    for key in (options.saturating_add(1)..args.len()).filter(|key| is_store(*key)) {
        each(key, Access { reads: false, writes: true });
    }
    if let Some(key) = command.lone_key_of(args) {
        each(key, Access { reads: true, writes: true });
    }
}

/// The arguments that are channels, and whether they are patterns.
pub(super) fn channels(command: &Registered, args: Args<'_>) -> Option<(Range<usize>, bool)> {
    match command.row.channels {
        Channels::None => None,
        Channels::First => Some((1..2, false)),
        Channels::All => Some((1..args.len(), false)),
        Channels::Patterns => Some((1..args.len(), true)),
    }
}
