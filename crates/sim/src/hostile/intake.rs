//! What another server wrote, and `kiln import` reads: RDB files, append-only files with commands
//! and scripts in them, the manifest that names them, and the data set that a master sends.

use super::{HASH_SEED, NOW, survives_a_snapshot};
use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::timeline::Timeline;
use base::HashKey;
use base::disk::Disk;
use engine::execute::Engine;
use engine::import::{Importer, Step};
use engine::keyspace::Keyspace;
use engine::settings::Settings;
use intake::aof;
use intake::executor::{Executor, Limits};
use intake::reading::Reading;
use intake::target::Target;
use peers::data_set::DataSet;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a value, at most: none takes more memory than the fuzzer allows.
const VALUE_BYTES_MAX: u64 = 1 << 20;

/// Small ones, so that no input takes long.
const LIMITS: Limits = Limits { transaction_bytes_max: 1 << 10, script_pauses_max: 20 };

/// Bytes that arrive at a time from a master: few, so that a short input comes in many pieces.
const PIECE_BYTES: usize = 7;

/// Things of an RDB file that are taken at a time.
const STEPS_MAX: usize = 3;

const FOLDER: &str = "/aof";

/// Reads bytes as the input's first byte says: as an RDB file, as the manifest of an append-only
/// file whose other files are there, as a master's data set, or as an append-only file.
///
/// # Panics
/// If what was taken into memory is not written and read back as it is: the finding.
pub fn take_in(input: &[u8]) {
    match input {
        [b'r', bytes @ ..] => {
            read(bytes, |disk, path| Ok(Reading::of_rdb(aof::open(disk, path.join("file"))?)))
        }
        [b'm', manifest @ ..] => read_folder(manifest),
        [b's', bytes @ ..] => receive(bytes),
        [_, bytes @ ..] => {
            read(bytes, |disk, path| Ok(Reading::of_aof(aof::parts(disk, &path.join("file"))?)));
        }
        [] => {}
    }
}

/// Reads one file.
fn read(bytes: &[u8], open: impl Fn(&SimDisk, &Path) -> Result<Reading, String>) {
    let disk = disk_with(&[("file", bytes)]);
    if let Ok(reading) = open(&disk, Path::new(FOLDER)) {
        finish(reading);
    }
}

/// A manifest names files that are there, and no others are opened.
fn read_folder(manifest: &[u8]) {
    let (base, increment) =
        (&b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"[..], b"*1\r\n$8\r\nFLUSHALL\r\n");
    let files = [("appendonly.aof.manifest", manifest), ("base", base), ("incr", increment)];
    let disk = disk_with(&files);
    if let Ok(parts) = aof::parts(&disk, Path::new(FOLDER)) {
        let is_named = |path: &Path| ["base", "incr"].iter().any(|name| path.ends_with(name));
        let lies_there = |path: &Path| path.parent() == Some(Path::new(FOLDER));
        assert!(parts.iter().all(|part| lies_there(&part.path)), "no file elsewhere is opened");
        // It may name itself.
        let are_known = parts.iter().all(|part| is_named(&part.path));
        let reading = Reading::of_aof(parts);
        if are_known {
            finish(reading);
        }
    }
}

/// Reads to the end, or to what is refused. What was taken into memory is sound in either case.
fn finish(mut reading: Reading) {
    let mut executor = executor();
    while let Ok(false) = reading.advance(&mut executor) {
        assert!(reading.done() <= reading.total(), "no more is read than there is");
    }
    survives_a_snapshot(&executor.target.engine.keyspace);
}

/// A data set that comes over a connection, in small pieces.
fn receive(bytes: &[u8]) {
    let (mut data_set, mut importer) = (DataSet::default(), Importer::default());
    let mut target = executor().target;
    let mut input = Vec::new();
    for piece in bytes.chunks(PIECE_BYTES) {
        input.extend_from_slice(piece);
        if take_piece(&mut data_set, &mut importer, &mut target, &mut input).is_err() {
            break;
        }
    }
    survives_a_snapshot(&target.engine.keyspace);
}

fn take_piece(
    data_set: &mut DataSet,
    importer: &mut Importer,
    target: &mut Target,
    input: &mut Vec<u8>,
) -> Result<(), String> {
    let count = data_set.take(input)?;
    importer.feed(&input[..count]);
    input.drain(..count);
    while !data_set.has_ended() {
        match target.import(importer, STEPS_MAX).map_err(|error| error.to_string())? {
            Step::Done => {}
            Step::Starved => break,
            Step::Finished => data_set.end(std::mem::take(importer).into_rest())?,
        }
    }
    data_set.behind(input).map(drop)
}

fn executor() -> Executor {
    let settings = Settings { proto_max_bulk_len: VALUE_BYTES_MAX, ..Settings::default() };
    let keyspace = Keyspace::new(settings, HashKey::fixed(HASH_SEED));
    let target = Target::new(Engine::new(keyspace, 1), NOW);
    let clock = SimClock::new(&Timeline::new());
    Executor::new(target, Arc::new(clock)).with_limits(LIMITS)
}

fn disk_with(files: &[(&str, &[u8])]) -> SimDisk {
    let disk = SimDisk::new(1);
    disk.create_directory(Path::new(FOLDER)).expect("a disk without faults makes directories");
    for (name, bytes) in files {
        let file = disk.create_new(&Path::new(FOLDER).join(name));
        let written = file.and_then(|file| file.write_at(0, bytes));
        written.expect("a disk without faults takes bytes");
    }
    disk
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn changed_files_of_another_server_are_survived() {
        let mut random = Random::stream(1, "intake");
        let whole: [&[u8]; 3] = [
            b"a*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n1\r\n*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n\
              *1\r\n$4\r\nEXEC\r\n*3\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n0\r\n",
            b"mfile base seq 1 type b\nfile incr seq 1 type i\n",
            b"s$18\r\nREDIS0010\xff\0\0\0\0\0\0\0\0*1\r\n$4\r\nPING\r\n",
        ];
        for _ in 0..400 {
            let mut input = whole[random.within(0..3) as usize].to_vec();
            for _ in 0..random.within(0..4) {
                let at = random.within(1..input.len() as u64) as usize;
                input[at] = random.draw() as u8;
            }
            take_in(&input);
        }
    }

    #[test]
    fn a_script_without_end_ends() {
        let text = "while true do end";
        let request = format!("a*3\r\n$4\r\nEVAL\r\n${}\r\n{text}\r\n$1\r\n0\r\n", text.len());
        take_in(request.as_bytes());
    }
}
