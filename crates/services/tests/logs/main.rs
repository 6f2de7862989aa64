//! Logs and snapshots that services keep, against real servers, which `tests/logs/…` start and name
//! in the environment. Without them only those in a directory are tested here.
//!
//! | module | holds |
//! |---|---|
//! | `place` | what the tests below need of a service |
//! | `bench` | the conformance suite of `txlog` over a service |
//! | `writer` | the only writer of a log, and a reader that holds it to its word |
//! | `driven` | a store driven by hand |
//! | `reading` | a log read by a tool, beside its writer |
//! | `outside` | the clock, chance, and the harness that kills servers |
//! | `etcd`, `jetstream`, `objects` | the services, each with what it alone must keep |

mod bench;
mod driven;
#[cfg(feature = "etcd")]
mod etcd;
mod jetstream;
mod objects;
mod outside;
mod place;
mod reading;
mod writer;
