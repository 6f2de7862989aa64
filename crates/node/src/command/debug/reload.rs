//! DEBUG RELOAD, LOADAOF and CONFIG-REWRITE-FORCE-ALL: what is kept goes out of memory and comes
//! back.

use super::may_write;
use crate::command::config::write_configuration;
use crate::server::Server;
use base::disk::DiskFile;
use base::{ConnectionId, DatabaseId};
use config::rewrite::Extent;
use engine::command::{Args, Outcome};
use engine::effect::Effect;
use engine::import::{Importer, Step};
use engine::rdb::Crc64;
use engine::refusal::Refusal;
use engine::unit::{Context, Overdue};
use engine::work::{BYTES_PER_STEP, Work};

/// Every value goes through its bytes and back. With NOSAVE the file `dbfilename` takes the place
/// of all data, if it is there; if not, nothing is lost, because the log holds it too. NOFLUSH
/// without MERGE meets the keys that are there, as in Redis.
pub(super) fn reload(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let (mut merges, mut flushes, mut saves) = (false, true, true);
    for at in 2..args.len() {
        match () {
            () if args.is(at, "MERGE") => merges = true,
            () if args.is(at, "NOFLUSH") => flushes = false,
            () if args.is(at, "NOSAVE") => saves = false,
            () => {
                return Err(Refusal::of(
                    "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
                ));
            }
        }
    }
    let keyspace = &server.core.shard.engine.keyspace;
    let is_empty = keyspace.databases().all(|(_, database)| database.is_empty());
    let meets_nothing = is_empty && keyspace.libraries().is_empty();
    if !(flushes || merges || meets_nothing) {
        return Err(FAILED);
    }
    let disk = &server.core.process.options.disk;
    if !saves && flushes && disk.exists(&server.core.process.settings.dbfilename).unwrap_or(false) {
        return load_file(server, client);
    }
    load_again(server, client)
}

/// Bytes of the file that DEBUG RELOAD NOSAVE takes at most: it becomes one unit of the log.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Bytes of the file that are read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes of the checksum at the end of a file.
const CHECKSUM_BYTES: u64 = 8;

/// Puts the RDB file `dbfilename` in the place of all data.
fn load_file(server: &mut Server, client: ConnectionId) -> Outcome {
    may_write(server)?;
    let path = server.core.process.settings.dbfilename.clone();
    let failed = |why: String| {
        tracing::error!("DEBUG RELOAD: {}: {why}", path.display());
        FAILED
    };
    let file = server.core.process.options.disk.open_read(&path);
    let file = file.map_err(|error| failed(error.to_string()))?;
    let length = check_file(&*file, &server.core.work()).map_err(failed)?;
    let loaded = replace_all(server, &*file, length);
    // Also if the file proved wrong: the libraries from before are gone.
    let keyspace = &server.core.shard.engine.keyspace;
    server.libraries.follow(keyspace.libraries(), &keyspace.work);
    let keys = loaded.map_err(failed)?;
    tracing::info!(keys, "loaded {}", path.display());
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Puts the data set of an RDB file of this length in the place of all data, as one unit. Returns
/// the number of its keys.
///
/// # Errors
/// Why the file is none, or where it ends. What was loaded until then stays, as in Redis.
fn replace_all(server: &mut Server, file: &dyn DiskFile, length: u64) -> Result<u64, String> {
    let context = Context {
        overdue: Overdue::Kept,
        ..Context::background(server.core.turn.now, DatabaseId(0))
    };
    let shard = &mut server.core.shard;
    let has_libraries = !shard.engine.keyspace.libraries().is_empty();
    let mut tx = shard.engine.tx(context, &mut shard.unit, &mut server.core.interest);
    tx.change_all(DatabaseId(0), Effect::FlushAll);
    if has_libraries {
        tx.change_all(DatabaseId(0), Effect::FunctionFlush);
    }
    let (mut importer, mut read) = (Importer::default(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match importer.step(&mut tx).map_err(|error| error.to_string())? {
            Step::Finished => return Ok(importer.keys),
            Step::Done => tx.work().step(),
            Step::Starved if read < length => {
                let count = file.read_at(read, &mut piece).map_err(|error| error.to_string())?;
                importer.feed(&piece[..count]);
                read += count as u64;
                if count == 0 {
                    return Err("it became shorter".to_owned());
                }
            }
            Step::Starved => return Err("it ends within a value".to_owned()),
        }
    }
}

/// The length of an RDB file whose checksum is right: only then does it take the place of data.
///
/// # Errors
/// Why it is not taken.
fn check_file(file: &dyn DiskFile, work: &Work) -> Result<u64, String> {
    let length = file.length().map_err(|error| error.to_string())?;
    if !(CHECKSUM_BYTES..=FILE_BYTES_MAX).contains(&length) {
        return Err(format!("it is no RDB file, or longer than {FILE_BYTES_MAX} bytes"));
    }
    let read = |at: u64, into: &mut [u8]| match file.read_at(at, into) {
        Ok(count) if count == into.len() => Ok(()),
        Ok(_) => Err("it became shorter".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let (mut crc, mut at) = (Crc64::default(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    while at < length - CHECKSUM_BYTES {
        let count = (length - CHECKSUM_BYTES - at).min(PIECE_BYTES as u64) as usize;
        read(at, &mut piece[..count])?;
        crc.update(&piece[..count]);
        work.steps(count / BYTES_PER_STEP);
        at += count as u64;
    }
    let mut stored = [0; CHECKSUM_BYTES as usize];
    read(at, &mut stored)?;
    // Who writes no checksums writes zeroes.
    match u64::from_le_bytes(stored) {
        0 => Ok(length),
        stored if stored == crc.value() => Ok(length),
        _ => Err("its checksum is wrong".to_owned()),
    }
}

/// The log holds what an AOF would, and is what memory is made of at each start: this does what
/// RELOAD does.
pub(super) fn load_log(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    load_again(server, client)
}

const FAILED: Refusal = Refusal::of("ERR Error trying to load the RDB dump, check server logs.");

fn load_again(server: &mut Server, client: ConnectionId) -> Outcome {
    if server.core.saving().is_saving {
        // The walk of a snapshot stands in the tables that would go.
        return Err(Refusal::of("ERR Background save already in progress"));
    }
    server.core.shard.unit.whole = true;
    let now = server.core.shard_time();
    server.core.shard.engine.keyspace.reload(now).map_err(|error| {
        tracing::error!("DEBUG RELOAD: {error:?}");
        FAILED
    })?;
    server.core.clients.reply(client).ok();
    Ok(())
}

/// CONFIG REWRITE, with a line for every directive, also for those that have their default.
pub(super) fn rewrite_all(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    write_configuration(server, Extent::All)?;
    server.core.clients.reply(client).ok();
    Ok(())
}
