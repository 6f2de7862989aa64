//! The file log on a disk that loses power, fails and fills up.

mod conformance;
mod crash;
mod damage;
mod harness;
mod rivals;
mod space;
