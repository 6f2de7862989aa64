//! A configuration file: refused with a reason, or it can be written and read back.

use crate::disk::SimDisk;
use base::disk::Disk;
use config::Config;
use config::arguments::CommandLine;
use config::declaration::Declared;
use config::load::{LoadError, load};
use config::rewrite::{Extent, rewrite};
use config::settings::{engine_settings, node_settings};
use config::table::DIRECTIVES;
use std::path::Path;

const DIRECTORY: &str = "/data";
const FILE: &[u8] = b"/data/redis.conf";

/// Reads bytes as a configuration file. One that is understood, and includes no other, says the
/// same after CONFIG REWRITE.
///
/// # Panics
/// If it does not: the finding.
pub fn read_config(input: &[u8]) {
    let config = match read(input) {
        Ok(config) => config,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "a refusal has a reason");
            return;
        }
    };
    match node::configured(&config, node::standard().0) {
        Ok(configured) => drop(configured),
        Err(error) => assert!(!error.to_string().is_empty(), "a refusal has a reason"),
    }
    // What every reader of the configuration takes.
    let (node, engine) = (node_settings(&config), engine_settings(&config));
    drop((node, engine, config.warnings()));
    if input.to_ascii_lowercase().windows(7).any(|word| word == b"include") {
        return;
    }
    // Users are compared where their rules are tested.
    let rewritten = rewrite(input, &config, &[], Extent::Needed);
    let again = read(&rewritten).expect("what was rewritten can be read");
    for (row, directive) in DIRECTIVES.iter().enumerate() {
        assert_eq!(again.show(row), config.show(row), "{} after a rewrite", directive.name);
    }
    let declared = |config: &Config| {
        let lines = config.declarations.iter().map(|line| line.what.clone());
        lines.filter(|what| matches!(what, Declared::Name { .. })).collect::<Vec<_>>()
    };
    assert_eq!(declared(&again), declared(&config));
}

fn read(text: &[u8]) -> Result<Config, LoadError> {
    let disk = SimDisk::new(1);
    disk.create_directory(Path::new(DIRECTORY)).expect("a disk without faults makes directories");
    let path = Path::new(DIRECTORY).join("redis.conf");
    let file = disk.create_new(&path).expect("a disk without faults makes files");
    file.write_at(0, text).expect("a disk without faults takes bytes");
    let line = CommandLine { file: Some(FILE.to_vec()), ..CommandLine::default() };
    load(&disk, Path::new(DIRECTORY), &line, None)
}
