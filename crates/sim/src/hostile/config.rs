//! A configuration file: refused with a reason, or it can be written and read back.

use crate::disk::SimDisk;
use base::disk::Disk;
use node::config::Config;
use node::config::arguments::CommandLine;
use node::config::load::{LoadError, load};
use node::config::rewrite::rewrite;
use node::config::settings::{engine_settings, node_settings};
use node::config::table::DIRECTIVES;
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
    // What every reader of the configuration takes.
    let (node, engine) = (node_settings(&config), engine_settings(&config));
    drop((node, engine, config.warnings()));
    if input.to_ascii_lowercase().windows(7).any(|word| word == b"include") {
        return;
    }
    // Users are compared where their rules are tested.
    let rewritten = rewrite(input, &config, &[]);
    let again = read(&rewritten).expect("what was rewritten can be read");
    for (row, directive) in DIRECTIVES.iter().enumerate() {
        assert_eq!(again.show(row), config.show(row), "{} after a rewrite", directive.name);
    }
    assert_eq!(again.renamed_commands, config.renamed_commands);
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
