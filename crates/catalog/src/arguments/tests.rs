use super::*;

/// The tree as text: `name:kind(token)flags{arguments}`.
fn shown(arguments: &[Argument]) -> String {
    let each = arguments.iter().map(|argument| {
        let token = argument.token.as_ref().map(|t| format!("({t})")).unwrap_or_default();
        let flags = [
            (argument.is_optional, "?"),
            (argument.is_multiple, "*"),
            (argument.repeats_token, "+"),
        ];
        let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, sign)| *sign).collect();
        let inner = match argument.arguments.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", shown(&argument.arguments)),
        };
        format!("{}:{}{token}{flags}{inner}", argument.name, argument.kind.word())
    });
    each.collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(name: &str, usage: &str, expected: &str) {
    assert_eq!(shown(&arguments(name, usage)), expected, "{usage}");
}

#[test]
fn a_usage_line_gives_the_tree_that_redis_has() {
    check("get", "GET key", "key:key");
    check("del", "DEL key [key ...]", "key:key*");
    check("mset", "MSET key value [key value ...]", "key_value:block*{key:key value:string}");
    check("ping", "PING [message]", "message:string?");
    check("info", "INFO [section [section ...]]", "section:string?*");
    check("blpop", "BLPOP key [key ...] timeout", "key:key* timeout:double");
    check(
        "set",
        "SET key value [NX | XX] [GET] [EX seconds | KEEPTTL]",
        "key:key value:string condition:oneof?{nx:pure-token(NX) xx:pure-token(XX)} \
         get:pure-token(GET)? expiration:oneof?{seconds:integer(EX) \
         keepttl:pure-token(KEEPTTL)}",
    );
    check(
        "sort",
        "SORT key [LIMIT offset count] [GET pattern [GET pattern ...]]",
        "key:key offset_count:block(LIMIT)?{offset:integer count:integer} \
         pattern:pattern(GET)?*+",
    );
    check(
        "linsert",
        "LINSERT key <BEFORE | AFTER> pivot element",
        "key:key where:oneof{before:pure-token(BEFORE) after:pure-token(AFTER)} pivot:string \
         element:string",
    );
    check(
        "xreadgroup",
        "XREADGROUP GROUP group consumer [COUNT count] STREAMS key [key ...] id [id ...]",
        "group_consumer:block(GROUP){group:string consumer:string} count:integer(COUNT)? \
         key_id:block(STREAMS){key:key* id:string*}",
    );
    check(
        "bitfield",
        "BITFIELD key [GET encoding | [OVERFLOW <WRAP | FAIL>] <SET value | INCRBY increment> \
         ...]",
        "key:key encoding_wrap_fail_value_increment:oneof?*{encoding:string(GET) \
         wrap_fail_value_increment:block{wrap_fail:oneof(OVERFLOW)?{wrap:pure-token(WRAP) \
         fail:pure-token(FAIL)} value_increment:oneof{value:integer(SET) \
         increment:integer(INCRBY)}}}",
    );
    check(
        "command|list",
        "COMMAND LIST [FILTERBY <MODULE module-name | PATTERN pattern>]",
        "filterby:oneof(FILTERBY)?{module-name:string(MODULE) pattern:pattern(PATTERN)}",
    );
}

#[test]
fn every_line_of_brackets_ends() {
    for usage in ["X [", "X ]", "X <<[", "X ... |", "X [a | ] >", "X [[[a] ...", "X | |"] {
        arguments("x", usage);
    }
}
