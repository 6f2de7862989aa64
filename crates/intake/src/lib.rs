//! What another server wrote, taken into an engine: RDB files, and append-only files with the
//! commands in them. No server runs, and no log is written: whoever calls makes of the engine what
//! it needs.
//!
//! | file | holds |
//! |---|---|
//! | [`aof`] | where the files of an append-only file are, and in which order they count |
//! | `aof::manifest` | the text that names them |
//! | [`reading`] | the files read in slices: RDB data, requests, annotations, a cut end |
//! | [`target`] | the engine that is filled, by RDB data and by single commands |
//! | [`executor`] | requests as a loading Redis executes them: SELECT, MULTI, functions, keys |
//! | [`libraries`] | the code of the functions that came with it, run once: does it end? |
//! | `scripts` | EVAL and its kin, which append-only files before Redis 7.0 may hold |
//!
//! Keys whose time has come are kept: whoever wrote the file decided when they went, and said so.
//!
//! Absent, on purpose: sockets (the dialogue with a master is `peers`'), clocks (the caller says
//! what time it is), threads, and whatever a command needs of a server: what is neither about keys
//! nor in the table of [`executor`] is refused by its name.
#![forbid(unsafe_code)]

pub mod aof;
pub mod executor;
pub mod libraries;
pub mod reading;
mod scripts;
pub mod target;
