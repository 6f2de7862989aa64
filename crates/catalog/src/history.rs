//! The past of commands, for COMMAND DOCS: the changes of each release, and the replacements of
//! deprecated commands. The facts are those of Redis 7.0's documentation; the words are our own.

/// Changes: command, release, what changed; ordered by command, then by release.
#[rustfmt::skip]
const CHANGES: &[(&str, &str, &str)] = &[
    ("acl|getuser", "6.2.0", "Knows patterns of channels."),
    ("acl|getuser", "7.0.0", "Tells selectors, and patterns as the rules that grant them."),
    ("acl|setuser", "6.2.0", "Knows patterns of channels."),
    ("acl|setuser", "7.0.0", "Takes selectors, and rights to read or to write a key."),
    ("auth", "6.0.0", "Takes a user name before the password."),
    ("bgsave", "3.2.2", "Takes `SCHEDULE`."),
    ("bitcount", "7.0.0", "Takes `BYTE` and `BIT`."),
    ("bitpos", "7.0.0", "Takes `BYTE` and `BIT`."),
    ("blpop", "6.0.0", "The timeout may have a fraction."),
    ("brpop", "6.0.0", "The timeout may have a fraction."),
    ("brpoplpush", "6.0.0", "The timeout may have a fraction."),
    ("bzpopmax", "6.0.0", "The timeout may have a fraction."),
    ("bzpopmin", "6.0.0", "The timeout may have a fraction."),
    ("client|kill", "2.8.12", "Takes filters."),
    ("client|kill", "2.8.12", "Takes `ID`."),
    ("client|kill", "3.2.0", "`TYPE` knows `master`."),
    ("client|kill", "5.0.0", "`TYPE` says `replica` for `slave`, which is still taken."),
    ("client|kill", "6.2.0", "Takes `LADDR`."),
    ("client|list", "2.8.12", "Tells the `id` of each client."),
    ("client|list", "5.0.0", "Takes the filter `TYPE`."),
    ("client|list", "6.0.0", "Tells the `user` of each client."),
    ("client|list", "6.2.0", "Tells `argv-mem`, `tot-mem`, `laddr` and `redir`, and takes the filter `ID`."),
    ("client|list", "7.0.0", "Tells `resp`, `multi-mem`, `rbs` and `rbp`."),
    ("client|list", "7.0.3", "Tells `ssub`."),
    ("client|pause", "6.2.0", "Takes a mode, of which `WRITE` is new."),
    ("cluster|meet", "4.0.0", "Takes the port of the bus."),
    ("cluster|slots", "4.0.0", "Tells the ids of nodes."),
    ("cluster|slots", "7.0.0", "Tells further addresses of a node."),
    ("command|info", "7.0.0", "Tells of all commands if none is named."),
    ("config|get", "7.0.0", "Takes several patterns."),
    ("config|set", "7.0.0", "Takes several directives."),
    ("exists", "3.0.3", "Takes several keys."),
    ("expire", "7.0.0", "Takes `NX`, `XX`, `GT` and `LT`."),
    ("expireat", "7.0.0", "Takes `NX`, `XX`, `GT` and `LT`."),
    ("flushall", "4.0.0", "Takes `ASYNC`."),
    ("flushall", "6.2.0", "Takes `SYNC`."),
    ("flushdb", "4.0.0", "Takes `ASYNC`."),
    ("flushdb", "6.2.0", "Takes `SYNC`."),
    ("geoadd", "6.2.0", "Takes `CH`, `NX` and `XX`."),
    ("georadius", "6.2.0", "`COUNT` takes `ANY`."),
    ("georadius", "7.0.0", "Units may be in upper case."),
    ("georadius_ro", "6.2.0", "`COUNT` takes `ANY`."),
    ("georadiusbymember", "7.0.0", "Units may be in upper case."),
    ("geosearch", "7.0.0", "Units may be in upper case."),
    ("geosearchstore", "7.0.0", "Units may be in upper case."),
    ("hdel", "2.4.0", "Takes several fields."),
    ("hello", "6.2.0", "Needs no version: then it tells of the connection as it is."),
    ("hset", "4.0.0", "Takes several fields."),
    ("info", "7.0.0", "Takes several sections."),
    ("lpop", "6.2.0", "Takes a count."),
    ("lpush", "2.4.0", "Takes several elements."),
    ("lpushx", "4.0.0", "Takes several elements."),
    ("migrate", "3.0.0", "Takes `COPY` and `REPLACE`."),
    ("migrate", "3.0.6", "Takes `KEYS`."),
    ("migrate", "4.0.7", "Takes `AUTH`."),
    ("migrate", "6.0.0", "Takes `AUTH2`."),
    ("pexpire", "7.0.0", "Takes `NX`, `XX`, `GT` and `LT`."),
    ("pexpireat", "7.0.0", "Takes `NX`, `XX`, `GT` and `LT`."),
    ("pttl", "2.8.0", "Answers -2 for a key that is not there."),
    ("renamenx", "3.2.0", "A key may be renamed to its own name."),
    ("restore", "3.0.0", "Takes `REPLACE`."),
    ("restore", "5.0.0", "Takes `ABSTTL`."),
    ("restore", "5.0.0", "Takes `IDLETIME` and `FREQ`."),
    ("restore-asking", "3.0.0", "Takes `REPLACE`."),
    ("restore-asking", "5.0.0", "Takes `ABSTTL`."),
    ("restore-asking", "5.0.0", "Takes `IDLETIME` and `FREQ`."),
    ("rpop", "6.2.0", "Takes a count."),
    ("rpush", "2.4.0", "Takes several elements."),
    ("rpushx", "4.0.0", "Takes several elements."),
    ("sadd", "2.4.0", "Takes several members."),
    ("scan", "6.0.0", "Takes `TYPE`."),
    ("script|flush", "6.2.0", "Takes `ASYNC` and `SYNC`."),
    ("set", "2.6.12", "Takes `EX`, `PX`, `NX` and `XX`."),
    ("set", "6.0.0", "Takes `KEEPTTL`."),
    ("set", "6.2.0", "Takes `GET`, `EXAT` and `PXAT`."),
    ("set", "7.0.0", "`NX` and `GET` go together."),
    ("shutdown", "7.0.0", "Takes `NOW`, `FORCE` and `ABORT`."),
    ("slowlog|get", "4.0.0", "Tells each client's address and name."),
    ("spop", "3.2.0", "Takes a count."),
    ("srandmember", "2.6.0", "Takes a count."),
    ("srem", "2.4.0", "Takes several members."),
    ("ttl", "2.8.0", "Answers -2 for a key that is not there."),
    ("xadd", "6.2.0", "Takes `NOMKSTREAM`, `MINID` and `LIMIT`."),
    ("xadd", "7.0.0", "Takes ids of the form `<ms>-*`."),
    ("xadd", "8.2.0", "Takes `KEEPREF`, `DELREF` and `ACKED`."),
    ("xautoclaim", "7.0.0", "Tells the ids of entries that were deleted, which it no longer counts as pending."),
    ("xgroup|create", "7.0.0", "Takes `ENTRIESREAD`."),
    ("xgroup|setid", "7.0.0", "Takes `ENTRIESREAD`."),
    ("xinfo|groups", "7.0.0", "Tells `entries-read` and `lag`."),
    ("xinfo|stream", "6.0.0", "Takes `FULL`."),
    ("xinfo|stream", "7.0.0", "Tells `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag`."),
    ("xpending", "6.2.0", "Takes `IDLE`, and bounds that are not included."),
    ("xrange", "6.2.0", "Takes bounds that are not included."),
    ("xrevrange", "6.2.0", "Takes bounds that are not included."),
    ("xsetid", "7.0.0", "Takes `ENTRIESADDED` and `MAXDELETEDID`."),
    ("xtrim", "6.2.0", "Takes `MINID` and `LIMIT`."),
    ("xtrim", "8.2.0", "Takes `KEEPREF`, `DELREF` and `ACKED`."),
    ("zadd", "2.4.0", "Takes several members."),
    ("zadd", "3.0.2", "Takes `XX`, `NX`, `CH` and `INCR`."),
    ("zadd", "6.2.0", "Takes `GT` and `LT`."),
    ("zrange", "6.2.0", "Takes `REV`, `BYSCORE`, `BYLEX` and `LIMIT`."),
    ("zrangebyscore", "2.0.0", "Takes `WITHSCORES`."),
    ("zrem", "2.4.0", "Takes several members."),
    ("zrevrangebyscore", "2.1.6", "Takes bounds that are not included."),
];

/// Deprecated commands: since which release, and what to call instead.
#[rustfmt::skip]
const DEPRECATED: &[(&str, &str, &str)] = &[
    ("brpoplpush", "6.2.0", "`BLMOVE` with `RIGHT` and `LEFT`"),
    ("cluster|slaves", "5.0.0", "`CLUSTER REPLICAS`"),
    ("cluster|slots", "7.0.0", "`CLUSTER SHARDS`"),
    ("georadius", "6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with `BYRADIUS`"),
    ("georadius_ro", "6.2.0", "`GEOSEARCH` with `BYRADIUS`"),
    ("georadiusbymember", "6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with `BYRADIUS` and `FROMMEMBER`"),
    ("georadiusbymember_ro", "6.2.0", "`GEOSEARCH` with `BYRADIUS` and `FROMMEMBER`"),
    ("getset", "6.2.0", "`SET` with `GET`"),
    ("hmset", "4.0.0", "`HSET` with several fields"),
    ("rpoplpush", "6.2.0", "`LMOVE` with `RIGHT` and `LEFT`"),
    ("slaveof", "5.0.0", "`REPLICAOF`"),
    ("substr", "2.0.0", "`GETRANGE`"),
    ("zrangebylex", "6.2.0", "`ZRANGE` with `BYLEX`"),
    ("zrangebyscore", "6.2.0", "`ZRANGE` with `BYSCORE`"),
    ("zrevrange", "6.2.0", "`ZRANGE` with `REV`"),
    ("zrevrangebylex", "6.2.0", "`ZRANGE` with `REV` and `BYLEX`"),
    ("zrevrangebyscore", "6.2.0", "`ZRANGE` with `REV` and `BYSCORE`"),
];

/// Commands of servers and tests, which no application calls.
const SYSTEM: &[&str] = &["debug", "pfdebug", "pfselftest", "replconf", "restore-asking"];

/// The changes of a command (`get`, `config|get`): release and what changed.
pub fn changes(name: &str) -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    let of_it = CHANGES.iter().filter(move |(command, ..)| *command == name);
    of_it.map(|(_, release, change)| (*release, *change))
}

/// Since which release a command is deprecated, and what to call instead.
pub fn deprecated(name: &str) -> Option<(&'static str, &'static str)> {
    let found = DEPRECATED.iter().find(|(command, ..)| *command == name);
    found.map(|(_, since, instead)| (*since, *instead))
}

/// Whether a command is meant for servers and tests, not for applications.
pub fn is_system(name: &str) -> bool {
    SYSTEM.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_by_its_whole_name() {
        let of_set: Vec<_> = changes("set").map(|(release, _)| release).collect();
        assert_eq!(of_set, ["2.6.12", "6.0.0", "6.2.0", "7.0.0"]);
        assert_eq!(changes("config|get").count(), 1);
        assert_eq!(changes("get").count(), 0);
        assert_eq!(deprecated("slaveof"), Some(("5.0.0", "`REPLICAOF`")));
        assert!(deprecated("replicaof").is_none() && is_system("pfdebug") && !is_system("pfadd"));
    }
}
