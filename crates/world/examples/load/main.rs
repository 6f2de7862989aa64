//! A client that does as little as one can: load for a server whose core is to be the limit.
//!
//! A load generator that costs more for a request than the server does measures itself: its core is
//! full while the server waits. So this one formats nothing, allocates nothing and asks the kernel
//! for nothing per request beyond a send and a receive for each batch:
//!
//! ```text
//! epoll ─▶ receive into one buffer ─▶ count replies ─▶ next prepared batch, new digits ─▶ send
//! ```
//! It prints one line of JSON, and with `--by-second` one for each second before it. `idle` is
//! the share of the time in which it had nothing to do; near 0 the load was the limit, and the rate
//! says nothing about the server.
//!
//! ```text
//! cargo run --release -p world --example load -- --port 6379 --connections 100 --pipeline 16 \
//!     --requests 1000000 SET key:__rand_int__ __value__
//! ```
#![forbid(unsafe_code)]

mod arguments;
mod by_second;
mod clock;
mod connection;
mod histogram;
mod memcached;
mod pace;
mod replies;
mod requests;
mod run;

use arguments::Wanted;
use connection::Dialer;
use histogram::Histogram;
use requests::Requests;
use run::{Run, Seen};
use std::process::ExitCode;

fn main() -> ExitCode {
    let wanted = match arguments::parse(std::env::args().skip(1)) {
        Ok(wanted) => wanted,
        Err(message) => {
            eprintln!("{message}\n{}", arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    match run(&wanted) {
        Ok(seen) => {
            println!("{}", told(&seen));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: &Wanted) -> Result<Seen, String> {
    let requests = Requests::prepare(&wanted.mix, &wanted.shape)?;
    let dialer = Dialer::new(
        wanted.port,
        wanted.authority.as_deref(),
        wanted.shape.protocol,
        wanted.goes_on,
    )?;
    let connections =
        (0..wanted.connections).map(|_| dialer.dial()).collect::<Result<Vec<_>, _>>()?;
    Run::new(connections, requests, wanted)?.until_all_are_answered()
}

/// What was seen, as one line of JSON.
fn told(seen: &Seen) -> String {
    let apart = seen.apart.as_ref().map_or(String::new(), |apart| {
        format!(", \"hot\": {{{}}}, \"cold\": {{{}}}", times(&apart.hot), times(&apart.cold))
    });
    format!(
        "{{\"requests\": {}, \"seconds\": {:.6}, \"requests_per_second\": {:.1}, {}, \
         \"missed\": {}, \"refused\": {}, \"cpu_seconds\": {:.6}, \"idle\": {:.4}{apart}}}",
        seen.requests,
        seen.seconds,
        seen.requests as f64 / seen.seconds,
        times(&seen.latencies),
        seen.outcomes.missed,
        seen.outcomes.refused,
        seen.cpu_seconds,
        seen.idle,
    )
}

/// Quantiles, as fields of JSON.
fn times(latencies: &Histogram) -> String {
    let ms = |nanos: u64| format!("{:.4}", nanos as f64 / 1e6);
    let quantile = |share| ms(latencies.quantile(share));
    format!(
        "\"count\": {}, \"p50_ms\": {}, \"p90_ms\": {}, \"p99_ms\": {}, \"p999_ms\": {}, \
         \"max_ms\": {}",
        latencies.total(),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        quantile(0.999),
        ms(latencies.max()),
    )
}
