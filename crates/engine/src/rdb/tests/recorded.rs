//! Against what redis-server 7.0.15 wrote: a file and payloads with every type and encoding.

use super::load;
use crate::digest::Digest;
use crate::dump::dump;
use crate::keyspace::Keyspace;
use crate::rdb::Crc64;
use crate::testing::Bench;
use crate::value;
use crate::value::EntryRef;
use base::DatabaseId;
use base::sha1::sha1;
use std::collections::BTreeMap;

const FILE: &[u8] = include_bytes!("redis-7.0.15-values.rdb");

/// The words of a line of values.txt, its abbreviations expanded.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in line.split(' ') {
        let inside = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
        let number = |text: &str| text.parse::<usize>().expect("a number");
        if let Some((first, last)) = inside.and_then(|inside| inside.split_once("..")) {
            words.extend((number(first)..=number(last)).map(|number| number.to_string()));
        } else if let Some((text, count)) = inside.and_then(|inside| inside.split_once('*')) {
            words.push(text.repeat(number(count)));
        } else {
            words.push(word.to_owned());
        }
    }
    words
}

/// The values of values.txt, made by Kiln's own commands.
fn made() -> Bench {
    let mut bench = Bench::new();
    for line in include_str!("values.txt").lines() {
        if line.starts_with(['#', '!']) {
            continue;
        }
        if let Some(database) = line.strip_prefix("SELECT ") {
            bench.context.database = DatabaseId(database.parse().expect("a number"));
            continue;
        }
        let words = words(line);
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        assert!(!bench.run_words(&words).starts_with('-'), "{line}");
    }
    bench
}

fn encodings(keyspace: &Keyspace) -> BTreeMap<(DatabaseId, Vec<u8>), &'static str> {
    let entries = keyspace.databases().flat_map(|(id, database)| {
        database.table().iter().map(move |entry| ((id, entry.key().to_vec()), entry))
    });
    entries.map(|(name, entry)| (name, value::encoding(entry))).collect()
}

/// The recorded payloads: database, key, the hash of the uncompressed one, the compressed one.
fn dumps() -> impl Iterator<Item = (DatabaseId, Vec<u8>, &'static str, Vec<u8>)> {
    let lines = include_str!("redis-7.0.15-dumps.txt").lines();
    lines.filter(|line| !line.starts_with('#')).map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [database, key, hash, payload] = fields[..] else { panic!("four fields: {line}") };
        let database = DatabaseId(database.parse().expect("a number"));
        (database, bytes(key), hash, bytes(payload))
    })
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let pairs = hexadecimal.as_bytes().chunks(2);
    let text = pairs.map(|pair| std::str::from_utf8(pair).expect("digits"));
    text.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect()
}

fn find<'a>(bench: &'a Bench, database: DatabaseId, key: &[u8]) -> EntryRef<'a> {
    let keyspace = &bench.engine.keyspace;
    let found = keyspace.database(database).find(keyspace.hash(key), key);
    found.unwrap_or_else(|| panic!("no key {}", String::from_utf8_lossy(key)))
}

#[test]
fn a_file_of_redis_with_every_encoding_is_read() {
    let loaded = load(FILE).expect("a whole file");
    let made = made();
    assert_eq!(Digest::of_keyspace(&loaded), Digest::of_keyspace(&made.engine.keyspace));
    // A string that was changed in place keeps room to grow; what is loaded does not, as in Redis.
    let mut expected = encodings(&made.engine.keyspace);
    for (key, encoding) in [("appended", "int"), ("bits", "embstr"), ("hll:sparse", "embstr")] {
        expected.insert((DatabaseId(0), key.as_bytes().to_vec()), encoding);
    }
    let found = encodings(&loaded);
    for ((database, key), encoding) in expected {
        let name = String::from_utf8_lossy(&key).into_owned();
        assert_eq!(found.get(&(database, key)), Some(&encoding), "{name}");
    }
}

#[test]
fn a_damaged_file_of_redis_is_refused_without_a_panic() {
    for at in (0..FILE.len()).step_by(3) {
        let mut damaged = FILE.to_vec();
        damaged[at] ^= 0x41;
        assert!(load(&damaged).is_err(), "byte {at}");
    }
}

#[test]
fn dump_gives_the_bytes_that_redis_gives() {
    let made = made();
    let mut wrong = Vec::new();
    for (database, key, expected, _) in dumps().filter(|(_, _, hash, _)| *hash != "-") {
        let payload = dump(find(&made, database, &key).value(), &made.engine.keyspace.work);
        let hash: String = sha1(&payload).iter().map(|byte| format!("{byte:02x}")).collect();
        if hash != expected {
            wrong.push(String::from_utf8_lossy(&key).into_owned());
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn restore_takes_what_redis_dumped() {
    let mut restored = Bench::new();
    for (database, key, _, payload) in dumps() {
        restored.context.database = database;
        assert_eq!(restored.run_words(&[b"RESTORE", &key, b"0", &payload]), "+OK");
        match key.as_slice() {
            b"due" => restored.check("PEXPIREAT due 1900000000123", ":1"),
            b"hash:pack" => restored.check("EXPIREAT hash:pack 4000000000", ":1"),
            _ => {}
        }
    }
    let loaded = load(FILE).expect("a whole file");
    assert_eq!(Digest::of_keyspace(&restored.engine.keyspace), Digest::of_keyspace(&loaded));
    assert_eq!(encodings(&restored.engine.keyspace), encodings(&loaded));
}

#[test]
fn damaged_payloads_are_refused_without_a_panic() {
    let mut bench = Bench::new();
    for (_, key, _, payload) in dumps() {
        let mut is_answered = |damaged: &[u8]| {
            let reply = bench.run_words(&[b"RESTORE", b"k", b"0", damaged, b"REPLACE"]);
            let texts = ["-ERR Bad data format", "-ERR DUMP payload version or checksum are wrong"];
            reply == "+OK" || texts.contains(&reply.as_str())
        };
        let (value, _) = payload.split_at(payload.len() - 8);
        let step = value.len() / 40 + 1;
        for at in (0..value.len()).step_by(step) {
            for mask in [0x01, 0x40, 0x80, 0xff] {
                // With a checksum that fits, so that the damage is met by who reads the value.
                let mut damaged = value.to_vec();
                damaged[at] ^= mask;
                assert!(is_answered(&summed(damaged)), "{} {at}", key.escape_ascii());
            }
            assert!(is_answered(&summed(value[..at].to_vec())), "{} cut {at}", key.escape_ascii());
        }
    }
}

/// A payload that ends with the checksum of what stands before.
fn summed(mut payload: Vec<u8>) -> Vec<u8> {
    let mut crc = Crc64::default();
    crc.update(&payload);
    payload.extend_from_slice(&crc.value().to_le_bytes());
    payload
}
