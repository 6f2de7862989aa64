//! Snapshots and cold values, as opaque bytes. Empty so far: the log alone keeps the data.
#![forbid(unsafe_code)]
