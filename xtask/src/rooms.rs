//! The rooms of a crate, and which room uses which.
//!
//! A room is a module at the top of a crate with all its children: `crates/engine/src/rdb.rs` and
//! `crates/engine/src/rdb/…`. An arrow goes from a room to another that its code names, in a `use`
//! or in an expression: `crate::rdb::…`, or `super::…` where that leads to the top. What `lib.rs`
//! re-exports counts as the room that it comes from; its own items are the room [`LIB`]. Tests
//! may know everything: they draw no arrows. A method called on a value draws none either.

use crate::tokens::{Token, code_tokens, test_modules};
use crate::tree::{TextFile, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// The room of what a crate's `lib.rs` declares itself.
pub const LIB: &str = "lib";

/// How often a room names another, and where first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrow {
    pub from: String,
    pub to: String,
    pub count: usize,
    /// `path:line` of the first.
    pub place: String,
}

/// The rooms of one crate.
#[derive(Default, Debug)]
pub struct Rooms {
    pub names: BTreeSet<String>,
    pub arrows: Vec<Arrow>,
}

impl Rooms {
    /// Reads the crate below `crates/` that is called `name`.
    pub fn of(tree: &Tree, name: &str) -> Self {
        let folder = format!("crates/{name}/src/");
        let files: Vec<(&str, &TextFile)> = tree
            .sources()
            .filter(|file| !file.is_test())
            .filter_map(|file| Some((file.path.strip_prefix(&folder)?, file)))
            .filter(|(path, _)| *path != "main.rs")
            .collect();
        let tests: BTreeSet<String> =
            files.iter().flat_map(|(path, file)| tests_of(path, file)).collect();
        let is_test = |path: &str| {
            let module = path.trim_end_matches(".rs");
            tests.iter().any(|test| {
                module
                    .strip_prefix(test.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let files: Vec<_> = files.into_iter().filter(|(path, _)| !is_test(path)).collect();
        let mut rooms = Self::default();
        rooms.names.extend(files.iter().map(|(path, _)| room_of(path).to_owned()));
        let lib = files.iter().find(|(path, _)| *path == "lib.rs");
        let exported = lib.map(|(_, lib)| exports(&code_tokens(&lib.text))).unwrap_or_default();
        let mut arrows = BTreeMap::new();
        for (path, file) in files {
            let from = room_of(path);
            for (name, line) in names_at_top(&code_tokens(&file.text), depth_of(path)) {
                let to = match (rooms.names.contains(&name), exported.get(&name)) {
                    (true, _) => name,
                    (false, Some(room)) => room.clone(),
                    (false, None) => LIB.to_owned(),
                };
                if to != from && rooms.names.contains(&to) {
                    let found = arrows.entry((from.to_owned(), to));
                    found.or_insert((0, format!("{}:{line}", file.path))).0 += 1;
                }
            }
        }
        let arrow = |((from, to), (count, place))| Arrow { from, to, count, place };
        rooms.arrows = arrows.into_iter().map(arrow).collect();
        rooms
    }
}

/// The modules, as paths without `.rs`, that a file declares for tests alone.
fn tests_of(path: &str, file: &TextFile) -> Vec<String> {
    let parent = match path {
        "lib.rs" => String::new(),
        path => format!("{}/", path.trim_end_matches(".rs")),
    };
    test_modules(&file.text).into_iter().map(|name| format!("{parent}{name}")).collect()
}

/// The room that a file belongs to, by its path below `src`.
fn room_of(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

/// How many modules deep a file lies: none for `lib.rs`, one for a room's own file.
fn depth_of(path: &str) -> usize {
    match path {
        "lib.rs" => 0,
        path => path.split('/').count(),
    }
}

/// The names that `lib.rs` re-exports, and the room of each.
fn exports(tokens: &[Token<'_>]) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for (index, token) in tokens.iter().enumerate() {
        let [pub_, use_, room, ..] = &tokens[index..] else { break };
        if pub_.text == "pub" && use_.text == "use" && token.line == pub_.line {
            let end = tokens[index..].iter().position(|token| token.text == ";");
            let path = &tokens[index + 3..end.map_or(tokens.len(), |end| index + end)];
            let last_names = path.iter().enumerate().filter(|(at, token)| {
                token.is_word() && path.get(at + 1).is_none_or(|next| next.text != "::")
            });
            exports
                .extend(last_names.map(|(_, name)| (name.text.to_owned(), room.text.to_owned())));
        }
    }
    exports
}

/// Every name directly below the crate's top that a file at `depth` uses, with its line.
fn names_at_top(tokens: &[Token<'_>], depth: usize) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    let mut inline = InlineModules::default();
    for (index, token) in tokens.iter().enumerate() {
        inline.pass(tokens, index);
        let is_continued = index > 0 && tokens[index - 1].text == "::";
        let path = match token.text {
            "crate" => &tokens[index + 1..],
            "super" if !is_continued => {
                let chain = tokens[index..].chunks(2).take_while(
                    |pair| matches!(pair, [one, two] if one.text == "super" && two.text == "::"),
                );
                let length = chain.count();
                if length == 0 || length != depth + inline.open.len() {
                    continue;
                }
                &tokens[index + 2 * length - 1..]
            }
            // In `lib.rs` a room is named as it is.
            _ if depth == 0
                && inline.open.is_empty()
                && !is_continued
                && is_path(tokens, index) =>
            {
                names.push((token.text.to_owned(), token.line));
                continue;
            }
            _ => continue,
        };
        match path {
            [colons, rest @ ..] if colons.text == "::" => first_names(rest, &mut names),
            _ => {}
        }
    }
    names
}

/// Whether the word at `index` begins a path; a re-export is none that counts.
fn is_path(tokens: &[Token<'_>], index: usize) -> bool {
    let next = tokens.get(index + 1).is_some_and(|next| next.text == "::");
    let before = &tokens[index.saturating_sub(2)..index];
    let is_export = matches!(before, [a, b] if a.text == "pub" && b.text == "use");
    next && tokens[index].is_word() && !is_export
}

/// The first names of a path, or of each path within braces.
fn first_names(path: &[Token<'_>], names: &mut Vec<(String, usize)>) {
    let Some(first) = path.first() else { return };
    if first.is_word() {
        names.push((first.text.to_owned(), first.line));
        return;
    }
    let mut depth = 0;
    let mut begins = false;
    for token in path {
        match token.text {
            "{" => depth += 1,
            "}" if depth == 1 => return,
            "}" => depth -= 1,
            _ if begins && depth == 1 && token.is_word() => {
                names.push((token.text.to_owned(), token.line));
            }
            _ => {}
        }
        begins = matches!(token.text, "{" | ",");
        if depth == 0 {
            return;
        }
    }
}

/// The modules with a body of their own that are open at a token: each makes `super` one longer.
#[derive(Default)]
struct InlineModules {
    depth: usize,
    /// The depth of braces at which each began.
    open: Vec<usize>,
}

impl InlineModules {
    fn pass(&mut self, tokens: &[Token<'_>], index: usize) {
        match tokens[index].text {
            "{" => {
                if index >= 2 && tokens[index - 2].text == "mod" {
                    self.open.push(self.depth);
                }
                self.depth += 1;
            }
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                if self.open.last() == Some(&self.depth) {
                    self.open.pop();
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrows between rooms of a crate with these files below `src`, as `from → to: count`.
    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let path = |path: &str| format!("crates/node/src/{path}");
        let files: Vec<(String, &str)> =
            files.iter().map(|&(name, text)| (path(name), text)).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let shown = |arrow: &Arrow| format!("{} → {}: {}", arrow.from, arrow.to, arrow.count);
        Rooms::of(&Tree::of(&files), "node").arrows.iter().map(shown).collect()
    }

    #[test]
    fn a_room_points_to_what_it_names() {
        let gate = "use crate::{acl, shard::{Shard, crate_}, session::Session as S};\n\
                    fn a() { crate::acl::judge(); crate::gate::b::c(); }\n// crate::role\n";
        let files = [
            ("gate.rs", gate),
            ("acl.rs", ""),
            ("shard/place.rs", ""),
            ("session.rs", ""),
            ("role.rs", ""),
        ];
        assert_eq!(arrows(&files), ["gate → acl: 2", "gate → session: 1", "gate → shard: 1"]);
    }

    #[test]
    fn super_is_followed_to_the_top() {
        let child = "use super::super::acl::A;\nuse super::keys;\n\
                     mod b { use super::super::super::role::R; }";
        let files = [
            ("gate/keys.rs", child),
            ("gate.rs", "use super::role;"),
            ("acl.rs", ""),
            ("role.rs", ""),
        ];
        assert_eq!(arrows(&files), ["gate → acl: 1", "gate → role: 2"]);
    }

    #[test]
    fn what_the_crate_re_exports_belongs_to_its_room() {
        let lib =
            "mod acl;\nmod gate;\npub use acl::user::{User, Rule as R};\npub const V: u8 = acl::V;";
        let files =
            [("lib.rs", lib), ("acl.rs", ""), ("gate.rs", "use crate::{R, User};\nuse crate::V;")];
        assert_eq!(arrows(&files), ["gate → acl: 2", "gate → lib: 1", "lib → acl: 1"]);
    }

    #[test]
    fn tests_draw_no_arrows() {
        let lib = "mod gate;\n#[cfg(test)]\nmod flood;\n";
        let gate = "#[cfg(test)]\nmod long;\n#[cfg(test)]\nmod tests {\n    use crate::acl;\n}\n";
        let files = [
            ("lib.rs", lib),
            ("gate.rs", gate),
            ("gate/long.rs", "use crate::acl;"),
            ("gate/tests.rs", "use crate::acl;"),
            ("flood.rs", "use crate::acl;"),
            ("acl.rs", ""),
        ];
        assert_eq!(arrows(&files), [""; 0]);
    }

    #[test]
    fn an_arrow_knows_where_it_begins() {
        let files = [
            ("crates/node/src/gate.rs", "//! Why.\nuse crate::acl;"),
            ("crates/node/src/acl.rs", ""),
        ];
        let rooms = Rooms::of(&Tree::of(&files), "node");
        assert_eq!(rooms.arrows[0].place, "crates/node/src/gate.rs:2");
        assert_eq!(rooms.names.len(), 2);
    }
}
