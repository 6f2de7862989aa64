//! Facts that a usage line does not tell: the type of an operand, and the name of a choice.

use super::{Argument, Kind};

/// Names of operands that are keys, beside those that end in "key".
const KEYS: &[&str] = &["source", "destination", "key1", "key2", "dst", "src"];

const INTEGERS: &[&str] = &[
    "bit",
    "bits",
    "client-id",
    "cluster-bus-port",
    "config-epoch",
    "count",
    "cursor",
    "db",
    "decrement",
    "destination-db",
    "end",
    "end-slot",
    "entries-added",
    "entries-read",
    "frequency",
    "increment",
    "index",
    "index1",
    "index2",
    "len",
    "limit",
    "milliseconds",
    "ms",
    "min-idle-time",
    "min-match-len",
    "num-matches",
    "numfields",
    "numids",
    "numkeys",
    "numlocal",
    "numreplicas",
    "offset",
    "port",
    "protover",
    "rank",
    "seconds",
    "slot",
    "start",
    "start-slot",
    "stop",
    "timeout",
    "ttl",
    "version",
    "weight",
];

const DOUBLES: &[&str] =
    &["height", "latitude", "longitude", "max", "min", "radius", "score", "width"];

/// Names of choices in Redis's documentation, each by the first and the last member of the choice.
const CHOICES: &[(&str, &str, &str)] = &[
    ("nx", "xx", "condition"),
    ("nx", "lt", "condition"),
    ("nx", "comparison-value", "condition"),
    ("gt", "lt", "comparison"),
    ("seconds", "keepttl", "expiration"),
    ("seconds", "persist", "expiration"),
    ("seconds", "unix-time-milliseconds", "expiration"),
    ("asc", "desc", "order"),
    ("before", "after", "where"),
    ("left", "right", "where"),
    ("min", "max", "where"),
    ("m", "mi", "unit"),
    ("byte", "bit", "index_unit"),
    ("async", "sync", "async"),
    ("byscore", "bylex", "sortby"),
    ("maxlen", "minid", "strategy"),
    ("keepref", "acked", "condition"),
    ("sum", "max", "aggregate"),
    ("module-name", "pattern", "filterby"),
];

/// The type of an operand of a command.
pub(super) fn kind_of(command: &str, operand: &str) -> Kind {
    let is_key = operand.ends_with("key") || KEYS.contains(&operand);
    if is_key && !matches!(command, "cluster|keyslot") {
        return Kind::Key;
    }
    // Operands whose type depends on the command.
    let is_of_stream = command.starts_with('x');
    let is_lexical = command.contains("lex") || command == "zrangestore";
    match operand {
        "pattern" => Kind::Pattern,
        "unix-time-seconds" | "unix-time-milliseconds" => Kind::UnixTime,
        "min-idle-time" if command == "xpending" => Kind::Integer,
        "start" | "end" | "min-idle-time" if is_of_stream => Kind::String,
        "start" | "stop" if command == "zrange" => Kind::String,
        "min" | "max" if is_lexical => Kind::String,
        "increment" if command.ends_with("float") => Kind::Double,
        "timeout" if command.starts_with('b') => Kind::Double,
        "value" if matches!(command, "bitfield" | "setbit") => Kind::Integer,
        _ if INTEGERS.contains(&operand) => Kind::Integer,
        _ if DOUBLES.contains(&operand) => Kind::Double,
        _ => Kind::String,
    }
}

/// The name of a choice between these.
pub(super) fn group_name(alternatives: &[Argument]) -> String {
    let names: Vec<&str> = alternatives.iter().map(|argument| argument.name.as_str()).collect();
    let known = CHOICES.iter().find(|(first, last, _)| {
        names.first().is_some_and(|name| name == first)
            && names.last().is_some_and(|name| name == last)
    });
    known.map_or_else(|| names.join("_"), |(_, _, name)| (*name).to_owned())
}
