//! What blocks of values cost: `cargo run --release -p allocator --example heap_cost`. Prints
//! nanoseconds for one of each, of the best of some rounds. Compared with an older build, it says
//! what a change to where blocks come from costs.
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::time::Instant;
use structures::entry::Payload;
use structures::quicklist::{End, NodeLimits};
use structures::{Entry, Listpack, Quicklist};

#[global_allocator]
static ALLOCATOR: allocator::Jemalloc = allocator::Jemalloc;

const ROUNDS: usize = 15;

/// Prints the best round's time for one of `count`.
fn measure(name: &str, count: usize, mut round: impl FnMut()) {
    let times = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        round();
        began.elapsed().as_nanos() as f64 / count as f64
    });
    println!("{name:40} {:8.2} ns", times.fold(f64::INFINITY, f64::min));
}

fn main() {
    let value = [7; 1000];
    for bytes in [16, 100, 1000] {
        measure(&format!("an entry of {bytes} B made and dropped"), 1_000_000, || {
            for _ in 0..1_000_000 {
                let payload = Payload::Bytes(black_box(&value[..bytes]));
                black_box(Entry::<()>::new(b"key:000000000001", payload, None));
            }
        });
    }
    let mut entries: Vec<_> = (0..10_000)
        .map(|_| Entry::<()>::new(b"key:000000000001", Payload::Bytes(&value[..100]), None))
        .collect();
    measure("one of many entries exchanged", 1_000_000, || {
        for turn in 0..1_000_000 {
            let bytes = 50 + turn * 31 % 200;
            let payload = Payload::Bytes(black_box(&value[..bytes]));
            entries[turn * 7919 % 10_000] = Entry::new(b"key:000000000001", payload, None);
        }
    });
    measure("a listpack of ten elements", 100_000, || {
        for _ in 0..100_000 {
            let mut pack = Listpack::new();
            (0..10).for_each(|_| pack.push_back(black_box(b"element")));
            black_box(pack);
        }
    });
    measure("an element pushed to a list", 1_000_000, || {
        let mut list = Quicklist::new(NodeLimits::default());
        (0..1_000_000).for_each(|_| list.push(End::Back, black_box(b"element of a list")));
        black_box(list.len());
    });
    measure("an element of a listpack read", 1_000_000, || {
        let mut pack = Listpack::new();
        (0..100).for_each(|_| pack.push_back(b"element"));
        for _ in 0..10_000 {
            black_box(black_box(&pack).iter().count());
        }
    });
}
