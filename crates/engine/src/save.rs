//! Entries, and the frame of a file around them.

use crate::access;
use crate::functions::Libraries;
use crate::rdb::length::{put_length, put_string};
use crate::rdb::{Crc64, opcode};
use crate::settings::{EvictionPolicy, Settings};
use crate::value::EntryRef;
use crate::value::content::kind_of_tag;
use crate::value::stored::{kind_of, put_value};
use crate::work::Work;
use base::{DatabaseId, UnixMillis};
use structures::entry::ValueRef;

/// Writes the header of a file of this version. `auxiliary` are name-value pairs that readers may
/// ignore.
pub fn put_header(out: &mut Vec<u8>, version: u32, auxiliary: &[(&str, &str)]) {
    out.extend_from_slice(format!("REDIS{version:04}").as_bytes());
    for (name, value) in auxiliary {
        out.push(opcode::AUX);
        put_string(out, name.as_bytes());
        put_string(out, value.as_bytes());
    }
}

/// Writes the libraries of functions.
pub fn put_libraries(out: &mut Vec<u8>, libraries: &Libraries) {
    for (_, code) in libraries.iter() {
        out.push(opcode::FUNCTION);
        put_string(out, code);
    }
}

/// What follows belongs to this database. May be said as often as needed.
pub fn put_database(out: &mut Vec<u8>, database: DatabaseId) {
    out.push(opcode::SELECT_DATABASE);
    put_length(out, u64::from(database.0));
}

/// How many keys the selected database will have, and how many of them expire: a hint.
pub fn put_sizes(out: &mut Vec<u8>, keys: usize, expiring: usize) {
    out.push(opcode::RESIZE_DATABASE);
    put_length(out, keys as u64);
    put_length(out, expiring as u64);
}

/// One key of the selected database. `now` is the instant against which idle times count.
pub fn put_entry(
    out: &mut Vec<u8>,
    entry: EntryRef<'_>,
    now: UnixMillis,
    settings: &Settings,
    work: &Work,
) {
    put_key(out, entry, now, settings);
    put_value(out, entry.value(), work);
}

/// What stands before the value of a key.
pub fn put_key(out: &mut Vec<u8>, entry: EntryRef<'_>, now: UnixMillis, settings: &Settings) {
    if let Some(at) = entry.expire_at() {
        out.push(opcode::EXPIRE_MILLIS);
        out.extend_from_slice(&at.to_le_bytes());
    }
    let policy = settings.maxmemory_policy;
    if policy.is_lfu() {
        out.push(opcode::FREQUENCY);
        out.push(access::lfu_counter(entry.access(), now, settings) as u8);
    } else if matches!(policy, EvictionPolicy::AllKeysLru | EvictionPolicy::VolatileLru) {
        out.push(opcode::IDLE);
        put_length(out, u64::from(access::idle_seconds(entry.access(), now)));
    }
    out.push(match entry.value() {
        ValueRef::Cold(_) => kind_of_tag(entry.tag()),
        value => kind_of(value),
    });
    put_string(out, entry.key());
}

/// The end of the entries; the checksum follows.
pub fn put_end(out: &mut Vec<u8>) {
    out.push(opcode::EOF);
}

/// The last eight bytes of a file. `crc` covers everything before them.
pub fn checksum(crc: Crc64) -> [u8; 8] {
    crc.value().to_le_bytes()
}
