//! The log in an object store, and the snapshots.

mod faults;
mod places;
mod rivals;
mod snapshots;
mod wire;

use super::bench;
use super::reading;
use places::Objects;

#[test]
fn a_server_keeps_what_every_log_must() {
    let Some(place) = Objects::in_gateway() else { return };
    bench::run(place);
}

#[test]
fn another_server_keeps_what_every_log_must() {
    let Some(place) = Objects::in_memory() else { return };
    bench::run(place);
}

#[test]
fn a_directory_keeps_what_every_log_must() {
    let path = std::env::temp_dir().join(format!("kiln-objects-{}", std::process::id()));
    bench::run(Objects::in_directory(path.clone()));
    std::fs::remove_dir_all(path).expect("the logs lie there");
}

#[test]
fn a_tool_reads_it_and_begins_none() {
    if let Some(place) = Objects::in_gateway() {
        reading::a_tool_reads_it_and_begins_none(&place);
    }
    if let Some(place) = Objects::in_memory() {
        reading::a_tool_reads_it_and_begins_none(&place);
    }
    let path = std::env::temp_dir().join(format!("kiln-read-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a directory can be made");
    reading::a_tool_reads_it_and_begins_none(&Objects::in_directory(path.clone()));
    std::fs::remove_dir_all(path).expect("the log lies there");
}
