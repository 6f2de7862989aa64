//! The file log on a disk that loses power, fails and fills up.
#![allow(clippy::unwrap_used, reason = "test code may unwrap, helpers of tests too")]

mod conformance;
mod crash;
mod damage;
mod harness;
mod rivals;
mod space;
