//! The log in an object store.

mod faults;
mod places;
mod rivals;
mod wire;

use super::bench;
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
