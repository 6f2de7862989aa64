//! The catalogue against what Redis 7.0.15 says of its commands.

use super::*;
use crate::command::standard;
use catalog::key_specs::Spec;
use std::collections::BTreeMap;

/// Where a row differs from Redis on purpose: command, field, why.
const DIFFERENCES: [(&str, &str, &str); 2] = [
    ("zrank", "arity", "takes WITHSCORE, as since Redis 7.2"),
    ("zrevrank", "arity", "takes WITHSCORE, as since Redis 7.2"),
];

/// The container of which a server of Redis has nothing, but its Sentinel has.
const OF_SENTINEL: &str = "sentinel";

const FIELDS: [&str; 8] =
    ["arity", "flags", "range", "categories", "tips", "keys", "since", "group"];

fn sorted(mut words: Vec<String>) -> String {
    words.sort();
    words.join(" ")
}

/// The fields of a command, in the golden file's form.
fn described(command: &Registered) -> [String; 8] {
    let (first, last, step) = command.declared.range();
    let specs: Vec<String> = command.specs.iter().map(Spec::text).collect();
    [
        command.declared.arity.to_string(),
        sorted(command.flags.words().map(str::to_owned).collect()),
        format!("{first} {last} {step}"),
        sorted(command.categories.names().map(|name| format!("@{name}")).collect()),
        command.row.tips.join(";"),
        specs.join("|"),
        command.row.since.to_owned(),
        command.row.group.name().to_owned(),
    ]
}

#[test]
fn commands_are_declared_as_redis_declares_them() {
    let golden: BTreeMap<&str, Vec<&str>> = include_str!("redis-7.0.15.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, fields)| (name, fields.split('\t').collect()))
        .collect();
    let page = include_str!("../../../../../docs/compatibility.md");
    let mut wrong = Vec::new();
    for command in standard().0.iter() {
        let name = command.name();
        let Some(expected) = golden.get(name) else {
            // Of a later release, or our own.
            let shown = format!("`{}", name.replace('|', " ").to_ascii_uppercase());
            if !page.contains(&shown) && name.split('|').next() != Some(OF_SENTINEL) {
                wrong.push(format!("{name} is not Redis's: docs/compatibility.md must name it"));
            }
            continue;
        };
        for ((field, expected), got) in FIELDS.iter().zip(expected).zip(described(command)) {
            let is_named = DIFFERENCES.iter().any(|(n, f, _)| *n == name && f == field);
            if *expected != got && !is_named {
                wrong.push(format!("{name} {field}: Redis {expected:?}, here {got:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_that_are_missing_are_named_in_the_page_of_differences() {
    let page = include_str!("../../../../../docs/compatibility.md");
    let here: Vec<&str> = standard().0.iter().map(Registered::name).collect();
    let golden = include_str!("redis-7.0.15.tsv").lines().filter(|line| !line.starts_with('#'));
    let names = golden.filter_map(|line| line.split('\t').next());
    // Of a container that is missing, all subcommands are.
    let is_told = |name: &str| {
        let container = name.split('|').next().unwrap_or(name);
        let is_told = |name: &str| page.contains(&format!("`{}`", name.to_ascii_uppercase()));
        is_told(&name.replace('|', " ")) || !here.contains(&container) && is_told(container)
    };
    let untold: Vec<&str> = names.filter(|name| !here.contains(name) && !is_told(name)).collect();
    assert!(untold.is_empty(), "docs/compatibility.md must name these, with a reason: {untold:?}");
}

#[test]
fn keys_of_requests_are_those_that_redis_finds() {
    // Recorded from redis-server 7.0.15 by record.py.
    let golden = include_str!("request_keys/redis-7.0.15.txt");
    let mut wrong = Vec::new();
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let (request, expected) = line.split_once('\t').expect("request, tab, keys");
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for word in request.split(' ') {
            ranges.push((bytes.len() as u32, word.len() as u32));
            bytes.extend_from_slice(word.as_bytes());
        }
        let args = Args::new(&bytes, &ranges);
        let command = standard().0.find(args.at(0), args.get(1)).expect("a command that is here");
        let mut found = Vec::new();
        command.for_each_key(args, |key, uses| {
            let words: Vec<&str> = uses.words().collect();
            found.push(format!("{}:{}", String::from_utf8_lossy(args.at(key)), words.join("+")));
        });
        let found = found.join(" ");
        if found != expected {
            wrong.push(format!("{request}: Redis {expected:?}, here {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// In RESP3, as Redis 7.0.15 answers `COMMAND INFO get object`.
#[test]
fn what_has_no_order_is_a_set_in_command_info() {
    let shape = |name: &str| {
        let catalog = &standard().0;
        let command = lookup(catalog, name.as_bytes()).expect("it is there");
        let mut reply = Reply::new(resp::Protocol::Resp3);
        write_info(catalog, command, &mut reply);
        String::from_utf8(reply.into_bytes()).expect("all of it is text").replace("\r\n", " ")
    };
    let get = shape("get");
    let start = "*10 $3 get :2 ~2 +readonly +fast :1 :1 :1 ~3 +@read +@string +@fast ~0 ~1 %3 ";
    assert!(get.starts_with(start), "{get}");
    assert!(get.ends_with(":0 ~0 "), "{get}");
    let container = shape("object");
    let start = "*10 $6 object :-2 ~0 :0 :0 :0 ~1 +@slow ~0 ~0 *";
    assert!(container.starts_with(start), "{container}");
}
