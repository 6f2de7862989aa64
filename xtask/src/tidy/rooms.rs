//! The floors within a crate: which of its rooms may use which.
//!
//! A crate's floors need no manifest, so nothing but this rule keeps them.

use super::Complaint;
use crate::rooms::{LIB, Rooms};
use crate::tree::Tree;

/// The floors of a crate from the lowest up, and the rooms on each. A room uses rooms on its own
/// floor and below. [`OTHERS`] is the floor of every room that is not named.
type Floors = &'static [&'static [&'static str]];

/// Stands for the rooms that no other floor names.
const OTHERS: &str = "*";

/// The crates whose rooms have floors.
const FLOORS: &[(&str, Floors)] = &[("structures", STRUCTURES), ("engine", ENGINE), ("node", NODE)];

const STRUCTURES: Floors = &[
    &["hll", "ratio", "size_class", "varint"],
    &["heap"],
    &["mover", "prefetch", "slow_touch"],
    &["intset", "listpack", "ordered", "table"],
    &["entry", "member", "quicklist"],
    &["sorted_set"],
];

const ENGINE: Floors = &[
    &[
        "functions",
        "geohash",
        "ids",
        "master",
        "number",
        "random",
        "refusal",
        "settings",
        "slot",
        "stream_id",
        "work",
    ],
    &["access", "effect", "expiries", "glob"],
    &["feed", "rdb", "statistics", "subscribers"],
    &["notify", "value"],
    &["dump", "save", "unit"],
    &["cold", "keyspace", "moving", "snapshot"],
    &["apply", "debug_digest", "digest", "interest", "load", "prefetch", "translate"],
    &["replay", "view"],
    &["tx"],
    &["command", "import"],
    &["execute"],
    &["eviction"],
];

const NODE: Floors = &[
    &["cross_protocol", "libraries", "limits", "output", "scripts", "session"],
    &["core"],
    &["announce", "metrics", "switches"],
    &["feed", "fetches", "link", "members", "migrate"],
    &["configured", "server"],
    &["command"],
    &["begin"],
];

/// Types of `node` whose methods lie in certain folders alone: methods that a feature adds to what
/// it is handed would tie it to all others again, and no import would show it.
const HOMES: &[(&str, &[&str])] =
    &[("Core", &["core"]), ("Process", &["core", "announce"]), ("Server", &["server", "command"])];

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let floors = FLOORS.iter().flat_map(|(name, floors)| check_crate(tree, name, floors));
    floors.chain(check_homes(tree)).collect()
}

/// Whether the methods of node's shared types are at home.
fn check_homes(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.sources() {
        let Some(path) = file.path.strip_prefix("crates/node/src/") else { continue };
        let room = path.split(['/', '.']).next().unwrap_or_default();
        for (number, line) in file.code_lines() {
            let homes = HOMES.iter().find(|(name, _)| line == format!("impl {name} {{"));
            if let Some((name, homes)) = homes
                && !homes.contains(&room)
            {
                let text = format!(
                    "methods of `{name}` belong to {}: give the feature a type of its own, and \
                     hand it the core",
                    homes.join(" and ")
                );
                complaints.push(Complaint::new(&file.path, number, text));
            }
        }
    }
    complaints
}

fn check_crate(tree: &Tree, name: &str, floors: Floors) -> Vec<Complaint> {
    let named = |room: &str| floors.iter().position(|floor| floor.contains(&room));
    let floor_of = |room: &str| named(room).or_else(|| named(OTHERS));
    let rooms = Rooms::of(tree, name);
    let mut complaints = Vec::new();
    let folder = format!("crates/{name}/src");
    for room in floors.iter().flat_map(|floor| floor.iter()) {
        if *room != OTHERS && !rooms.names.contains(*room) {
            let text = format!("there is no room `{room}`: take it from xtask/src/tidy/rooms.rs");
            complaints.push(Complaint::new(&folder, 0, text));
        }
    }
    for room in rooms.names.iter().filter(|room| *room != LIB && floor_of(room).is_none()) {
        let text = format!("`{room}` has no floor: give it one in xtask/src/tidy/rooms.rs");
        complaints.push(Complaint::new(&folder, 0, text));
    }
    for arrow in rooms.arrows.iter().filter(|arrow| arrow.from != LIB) {
        if let (Some(from), Some(to)) = (floor_of(&arrow.from), floor_of(&arrow.to))
            && to > from
        {
            let text = format!(
                "`{}` must not use `{}`, which stands on a higher floor of `{name}`: put the \
                 shared part below, or pass it in",
                arrow.from, arrow.to
            );
            let (path, line) = arrow.place.rsplit_once(':').unwrap_or((&arrow.place, "0"));
            complaints.push(Complaint::new(path, line.parse().unwrap_or(0), text));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Floors = &[&["session"], &["core"], &["*"], &["reactor"], &["command"]];

    fn complaints(files: &[(&str, &str)], floors: Floors) -> Vec<String> {
        let below = ["session", "core", "reactor", "command"]
            .map(|name| (format!("crates/node/src/{name}.rs"), ""));
        let mut all: Vec<(&str, &str)> = files.to_vec();
        for (path, text) in &below {
            if !all.iter().any(|(known, _)| known == path) {
                all.push((path, text));
            }
        }
        check_crate(&Tree::of(&all), "node", floors).iter().map(Complaint::to_string).collect()
    }

    #[test]
    fn rooms_use_their_own_floor_and_those_below() {
        let files = [
            ("crates/node/src/command.rs", "use crate::{core, feed, reactor};"),
            ("crates/node/src/feed.rs", "use crate::{link, session};"),
            ("crates/node/src/link.rs", "use crate::feed;"),
        ];
        assert_eq!(complaints(&files, TABLE), [""; 0]);
        let files = [("crates/node/src/link/role.rs", "//! Why.\nuse crate::command::context;")];
        let found = complaints(&files, TABLE);
        assert!(
            found.len() == 1
                && found[0]
                    .starts_with("crates/node/src/link/role.rs:2: `link` must not use `command`"),
            "{found:?}"
        );
    }

    #[test]
    fn the_table_names_every_room_and_no_other() {
        let floors: Floors = &[&["session", "core"], &["reactor", "command", "gone"]];
        let found = complaints(&[("crates/node/src/feed.rs", "")], floors);
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("no room `gone`") && found[1].contains("`feed` has no floor"));
    }

    #[test]
    fn methods_of_shared_types_are_at_home() {
        let files = [
            ("crates/node/src/core/units.rs", "//! Why.\nimpl Core {\n}\n"),
            ("crates/node/src/feed.rs", "//! Why.\nimpl Feed {\n}\nimpl Core {\n}\n"),
            ("crates/shard/src/feed.rs", "//! Why.\nimpl Core {\n}\n"),
        ];
        let found = check_homes(&Tree::of(&files));
        assert_eq!(found.len(), 1);
        let text = found[0].to_string();
        assert!(text.starts_with("crates/node/src/feed.rs:4: methods of `Core`"), "{text}");
    }

    #[test]
    fn the_lib_may_name_every_room() {
        let lib = ("crates/node/src/lib.rs", "mod command;\npub const V: u8 = command::V;");
        assert_eq!(complaints(&[lib], TABLE), [""; 0]);
    }
}
