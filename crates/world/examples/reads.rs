//! What a disk gives: threads that read random blocks of 4 KiB past the page cache, each its next
//! block once the last is there. A server that waits for the disk is held against it.
//!
//! It prints one line of JSON.
//!
//! ```text
//! cargo run --release -p world --example reads -- FILE THREADS SECONDS
//! ```
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a measurement of the machine, not of the server")]

use base::disk::{DIRECT_BLOCK_BYTES, block_buffer};
use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::io::pread;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}\nusage: reads FILE THREADS SECONDS");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, threads, seconds] = arguments.as_slice() else {
        return Err("three arguments are needed".to_owned());
    };
    let threads: usize = threads.parse().map_err(|_| format!("{threads} is no number"))?;
    let seconds: f64 = seconds.parse().map_err(|_| format!("{seconds} is no number"))?;
    let began = Instant::now();
    let until = began + Duration::from_secs_f64(seconds);
    let workers: Vec<_> = (0..threads)
        .map(|number| {
            let path = path.clone();
            std::thread::spawn(move || read_until(&path, number as u64, until))
        })
        .collect();
    let mut nanos = Vec::new();
    for worker in workers {
        nanos.extend(worker.join().map_err(|_| "a thread panicked".to_owned())??);
    }
    let rate = nanos.len() as f64 / began.elapsed().as_secs_f64();
    nanos.sort_unstable();
    let quantile = |of_thousand: usize| {
        let index = (nanos.len() * of_thousand / 1000).min(nanos.len().saturating_sub(1));
        nanos.get(index).map_or(0.0, |&nanos| nanos as f64 / 1e6)
    };
    Ok(format!(
        "{{\"threads\": {threads}, \"reads_per_second\": {rate:.1}, \"p50_ms\": {:.4}, \
         \"p99_ms\": {:.4}}}",
        quantile(500),
        quantile(990),
    ))
}

/// How long each read took, in nanoseconds.
fn read_until(path: &str, seed: u64, until: Instant) -> Result<Vec<u64>, String> {
    let failed = |error| format!("{path}: {error}");
    let file = open(path, OFlags::RDONLY | OFlags::DIRECT, Mode::empty()).map_err(failed)?;
    let blocks = fstat(&file).map_err(failed)?.st_size as u64 / DIRECT_BLOCK_BYTES as u64;
    if blocks == 0 {
        return Err(format!("{path} has no block"));
    }
    let mut memory = Vec::new();
    let start = block_buffer(&mut memory, DIRECT_BLOCK_BYTES);
    memory.resize(start + DIRECT_BLOCK_BYTES, 0);
    let mut taken = Vec::new();
    // A linear congruence modulo 2⁶⁴ (Knuth's MMIX), of which the high half is used.
    let mut random = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    loop {
        let began = Instant::now();
        if began >= until {
            return Ok(taken);
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let block = ((u128::from(random) * u128::from(blocks)) >> 64) as u64;
        let offset = block * DIRECT_BLOCK_BYTES as u64;
        let count = pread(&file, &mut memory[start..], offset).map_err(failed)?;
        if count != DIRECT_BLOCK_BYTES {
            return Err(format!("{path}: {count} bytes of a block"));
        }
        taken.push(began.elapsed().as_nanos() as u64);
    }
}
