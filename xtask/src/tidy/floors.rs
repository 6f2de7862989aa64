//! The floors: which crate may import which, who may reach the operating system, and who may use
//! `unsafe`.

use super::Complaint;
use crate::tree::{TextFile, Tree};

/// Each crate, and which of ours it may import. ARCHITECTURE.md draws it.
const FLOORS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("resp", &["base"]),
    ("structures", &["base"]),
    ("tier", &["base"]),
    ("encryption", &[]),
    ("engine", &["base", "resp", "structures", "tier"]),
    ("lua", &["base", "resp"]),
    ("txlog", &["base", "encryption"]),
    ("archive", &["base", "encryption"]),
    ("config", &["base", "resp", "engine"]),
    ("catalog", &["base", "resp", "engine"]),
    ("shard", &["base", "tier", "encryption", "engine", "txlog", "archive"]),
    ("statistics", &["base", "engine", "catalog"]),
    ("peers", &["base", "resp", "txlog", "shard"]),
    ("intake", &["base", "resp", "engine", "lua", "catalog"]),
    ("worker", &["base", "encryption", "engine", "txlog", "archive", "shard"]),
    (
        "node",
        &[
            "base",
            "resp",
            "tier",
            "engine",
            "lua",
            "txlog",
            "archive",
            "config",
            "catalog",
            "shard",
            "statistics",
            "peers",
        ],
    ),
    ("world", &["base"]),
    ("services", &["base", "txlog", "archive"]),
    ("allocator", &["base", "structures", "world"]),
    (
        "sim",
        &[
            "base",
            "resp",
            "structures",
            "tier",
            "encryption",
            "engine",
            "lua",
            "txlog",
            "archive",
            "config",
            "catalog",
            "shard",
            "node",
            "peers",
            "intake",
            "worker",
        ],
    ),
    (
        "kiln",
        &[
            "base",
            "resp",
            "structures",
            "tier",
            "encryption",
            "engine",
            "lua",
            "txlog",
            "archive",
            "config",
            "catalog",
            "shard",
            "node",
            "peers",
            "intake",
            "worker",
            "world",
            "services",
            "allocator",
        ],
    ),
];

/// Libraries through which a crate would reach the operating system, threads or true randomness.
const WORLDLY_LIBRARIES: &[&str] = &[
    "async-nats",
    "crossbeam",
    "etcd-client",
    "getrandom",
    "io-uring",
    "libc",
    "mio",
    "nix",
    "object_store",
    "rand",
    "rustix",
    "signal-hook",
    "socket2",
    "tokio",
];

/// The same within the standard library, and what to use in its place.
const WORLDLY_PATHS: &[(&str, &str)] = &[
    ("std::fs", "base::Disk"),
    ("std::net", "base::Driver"),
    ("std::thread", "base::Driver or a thread of `world`"),
    ("std::process", "an error returned to `kiln`"),
    ("std::env", "settings passed in by `kiln`"),
    ("std::os", "a trait of `base`"),
    ("Instant::now", "base::Clock"),
    ("SystemTime", "base::Clock"),
];

/// May touch the world: it is what they are for.
const WORLDLY_CRATES: &[&str] = &["world", "services", "kiln"];

/// May contain `unsafe`, each block argued.
const UNSAFE_CRATES: &[&str] = &["structures", "world", "allocator"];

pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for name in tree.crates() {
        let manifest = format!("crates/{name}/Cargo.toml");
        match FLOORS.iter().find(|(floor, _)| *floor == name) {
            Some((_, allowed)) => {
                let file = tree.get(&manifest).expect("the crate was found by its manifest");
                check_manifest(file, name, allowed, &mut complaints);
            }
            None => complaints.push(Complaint::new(
                &manifest,
                0,
                "a crate without a floor: add it to FLOORS in xtask/src/tidy/floors.rs and to \
                 ARCHITECTURE.md",
            )),
        }
        check_unsafe(tree, name, &mut complaints);
    }
    for file in tree.sources() {
        if let Some(name) = crate_of(&file.path)
            && !WORLDLY_CRATES.contains(&name)
        {
            check_source(file, &mut complaints);
        }
    }
    if let Some(manifest) = tree.get("Cargo.toml") {
        check_reasons(manifest, &mut complaints);
    }
    complaints
}

/// The crate below `crates/` that a path belongs to.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

fn check_manifest(file: &TextFile, name: &str, allowed: &[&str], out: &mut Vec<Complaint>) {
    for (line, dependency) in dependencies(file) {
        let ours = FLOORS.iter().any(|(floor, _)| *floor == dependency);
        if ours && !allowed.contains(&dependency) {
            let text = format!(
                "`{name}` must not import `{dependency}`: floors import downwards only (see \
                 ARCHITECTURE.md); put the shared part on a lower floor or pass it in"
            );
            out.push(Complaint::new(&file.path, line, text));
        }
        if WORLDLY_LIBRARIES.contains(&dependency) && !WORLDLY_CRATES.contains(&name) {
            let text = format!(
                "`{name}` must not use `{dependency}`: only `world` reaches the operating system; \
                 add a trait to `base` and implement it there"
            );
            out.push(Complaint::new(&file.path, line, text));
        }
    }
}

/// The keys of every table of dependencies in a manifest, with their lines.
fn dependencies(file: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    file.lines().filter_map(move |(number, line)| {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end().trim_end_matches(']');
            inside = header.ends_with("dependencies");
            let (_, name) = header.rsplit_once("dependencies.")?;
            return Some((number, name));
        }
        let (key, _) = line.split_once('=').filter(|_| inside && !line.starts_with('#'))?;
        let key = key.trim();
        Some((number, key.split('.').next().unwrap_or(key)))
    })
}

fn check_unsafe(tree: &Tree, name: &str, out: &mut Vec<Complaint>) {
    if UNSAFE_CRATES.contains(&name) {
        return;
    }
    let roots = ["lib.rs", "main.rs"].map(|root| format!("crates/{name}/src/{root}"));
    for file in roots.iter().filter_map(|root| tree.get(root)) {
        if !file.text.lines().any(|line| line == "#![forbid(unsafe_code)]") {
            let text = "add `#![forbid(unsafe_code)]`: unsafe lives in `structures`, `world` and \
                        `allocator` only";
            out.push(Complaint::new(&file.path, 1, text));
        }
    }
}

fn check_source(file: &TextFile, out: &mut Vec<Complaint>) {
    for (number, line) in file.code_lines() {
        let code = line.split("//").next().unwrap_or_default();
        for (path, replacement) in WORLDLY_PATHS {
            if code.contains(path) {
                let text = format!("`{path}` belongs to `world`: use {replacement}");
                out.push(Complaint::new(&file.path, number, text));
            }
        }
    }
}

/// Every library of others is there for a reason, written above it.
fn check_reasons(manifest: &TextFile, out: &mut Vec<Complaint>) {
    let mut inside = false;
    let mut previous = "";
    for (number, line) in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
        }
        let entry = inside && line.contains('=') && !line.starts_with('#');
        if entry
            && !line.contains("path =")
            && !previous.starts_with('#')
            && !shares(previous, line)
        {
            let text = "a dependency without a reason: say in a comment above it what it is for";
            out.push(Complaint::new(&manifest.path, number, text));
        }
        previous = line;
    }
}

/// Whether two entries are of one family (`tracing`, `tracing-subscriber`): one reason is enough.
fn shares(previous: &str, line: &str) -> bool {
    let family = |line: &str| line.split(['-', ' ', '=']).next().unwrap_or_default().to_owned();
    !previous.is_empty() && family(previous) == family(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(Complaint::to_string).collect()
    }

    #[test]
    fn an_import_upwards_is_found_where_it_stands() {
        let manifest = "[package]\nname = \"txlog\"\n\n[dependencies]\nbase = \"*\"\n\
                        engine.workspace = true\n";
        let found = complaints(&[("crates/txlog/Cargo.toml", manifest)]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("crates/txlog/Cargo.toml:6: `txlog` must not import `engine`")
        );
        let table = "[dev-dependencies.node]\nworkspace = true\n";
        let found = complaints(&[("crates/resp/Cargo.toml", table)]);
        assert!(found[0].starts_with("crates/resp/Cargo.toml:1: `resp` must not import `node`"));
    }

    #[test]
    fn only_the_world_reaches_the_operating_system() {
        let manifest = "[dependencies]\nrustix = { workspace = true }\n";
        assert_eq!(complaints(&[("crates/node/Cargo.toml", manifest)]).len(), 1);
        assert_eq!(complaints(&[("crates/world/Cargo.toml", manifest)]).len(), 0);
        let source = "use std::fs::File;\n// std::fs is banned\n#[cfg(test)]\nmod tests {\n\
                      use std::fs;\n}\n";
        let found = complaints(&[("crates/node/src/server.rs", source)]);
        assert_eq!(
            found,
            ["crates/node/src/server.rs:1: `std::fs` belongs to `world`: use base::Disk"]
        );
        assert_eq!(complaints(&[("crates/world/src/disk.rs", source)]).len(), 0);
    }

    #[test]
    fn unsafe_is_forbidden_outside_its_quarantine() {
        let manifest = ("crates/engine/Cargo.toml", "[dependencies]\n");
        assert_eq!(complaints(&[manifest, ("crates/engine/src/lib.rs", "//! Redis.\n")]).len(), 1);
        let forbidden = "//! Redis.\n#![forbid(unsafe_code)]\n";
        assert_eq!(complaints(&[manifest, ("crates/engine/src/lib.rs", forbidden)]).len(), 0);
    }

    #[test]
    fn a_library_needs_a_reason_and_a_crate_a_floor() {
        let manifest =
            "[workspace.dependencies]\n# Fast.\nitoa = \"1\"\nitoa-more = \"1\"\nmemchr = \"2\"\n";
        let found = complaints(&[("Cargo.toml", manifest)]);
        assert!(found.len() == 1 && found[0].starts_with("Cargo.toml:5:"), "{found:?}");
        assert_eq!(complaints(&[("crates/attic/Cargo.toml", "")]).len(), 1);
    }
}
