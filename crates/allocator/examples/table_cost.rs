//! What the table costs: bytes an item, nanoseconds an operation, and the longest pause.
//!
//! `cargo run --release -p allocator --example table_cost [millions of keys]`
//!
//! Keys of 16 bytes with values of 100, as in docs/measurements. The allocator is the product's.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the machine's clock")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use structures::{Element, Entry, KeyHasher, Member, Payload, SortedSet, Table};

#[global_allocator]
static ALLOCATOR: allocator::Jemalloc = allocator::Jemalloc;

/// Requests that a turn of the loop prefetches together.
const BATCH: usize = 16;

fn key(n: u64) -> [u8; 16] {
    let mut key = *b"key:000000000000";
    let mut rest = n;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn shuffled(n: u64, bound: u64) -> u64 {
    let mixed = u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ n << 31);
    (mixed.wrapping_mul(u128::from(bound)) >> 64) as u64
}

fn report(what: &str, operations: u64, took: Duration) {
    println!("{what:<34}{:>8.1} ns", took.as_nanos() as f64 / operations as f64);
}

fn fill(hasher: KeyHasher, keys: u64) -> Table<Entry<()>> {
    let mut table = Table::new(hasher);
    let mut pauses = vec![0u32; 64];
    let start = Instant::now();
    let mut last = start;
    for n in 0..keys {
        let key = key(n);
        table.insert_new(hasher.hash(&key), Entry::new(&key, Payload::Bytes(&[7; 100]), None));
        let now = Instant::now();
        pauses[(now - last).as_nanos().max(1).ilog2() as usize] += 1;
        last = now;
    }
    report("insert, the clock included", keys, start.elapsed());
    for (log, count) in pauses.iter().enumerate().filter(|&(log, &n)| n > 0 && log >= 13) {
        println!("    {count:>8} inserts took {} to {} µs", (1 << log) / 1000, (2 << log) / 1000);
    }
    table
}

fn find(table: &Table<Entry<()>>, keys: u64, rounds: u64) {
    let hasher = *table.hasher();
    let start = Instant::now();
    for n in 0..rounds {
        let key = key(shuffled(n, keys));
        black_box(table.find(hasher.hash(&key), &key).map(|entry| entry.value()));
    }
    report("find, one by one", rounds, start.elapsed());
    let start = Instant::now();
    for batch in 0..rounds / BATCH as u64 {
        let keys: [_; BATCH] =
            std::array::from_fn(|i| key(shuffled(batch * BATCH as u64 + i as u64, keys)));
        let hashes = keys.map(|key| hasher.hash(&key));
        hashes.iter().for_each(|&hash| table.prefetch_bucket(hash));
        hashes.iter().for_each(|&hash| table.prefetch_displaced(hash));
        for (key, &hash) in keys.iter().zip(&hashes) {
            black_box(table.find(hash, key).map(|entry| entry.value()));
        }
    }
    report("find, in prefetched batches of 16", rounds, start.elapsed());
}

fn walk(table: &mut Table<Entry<()>>) {
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    let mut bytes = 0;
    table.begin_walk();
    loop {
        let slice = Instant::now();
        let done = table.walk(1_000, |entry| bytes += entry.key().len());
        longest = longest.max(slice.elapsed());
        if done {
            break;
        }
    }
    report("walk", table.len() as u64, start.elapsed());
    println!("    longest slice of 1000 entries: {} µs; {bytes} bytes", longest.as_micros());
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2);
    let keys = millions * 1_000_000;
    let hasher = KeyHasher::fixed(0x5eed);
    let mut table = fill(hasher, keys);
    let structure = table.allocated_bytes() as f64 / table.len() as f64;
    println!("structure: {structure:.2} bytes a key, entries 128 more");
    find(&table, keys, 4_000_000);
    walk(&mut table);
    let start = Instant::now();
    for n in 0..keys {
        black_box(table.remove(hasher.hash(&key(n)), &key(n)));
    }
    report("remove", keys, start.elapsed());
    let mut set = Table::new(hasher);
    let start = Instant::now();
    for n in 0..keys as i64 {
        let member = Member::of_integer(n);
        set.insert(Member::hash(member.as_ref(), &hasher), member);
    }
    report("set of integers: insert", keys, start.elapsed());
    println!("    {:.2} bytes each", set.allocated_bytes() as f64 / set.len() as f64);
    let mut sorted = SortedSet::new(hasher);
    let start = Instant::now();
    for n in 0..keys / 4 {
        sorted.insert(&key(n), shuffled(n, 1 << 40) as f64);
    }
    report("sorted set: insert, random scores", keys / 4, start.elapsed());
    println!("    {:.2} bytes each", sorted.allocated_bytes() as f64 / sorted.len() as f64);
}
