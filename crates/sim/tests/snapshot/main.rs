//! A node that takes snapshots beside writes, on a disk that loses power at any of its syncs.

mod crash;
mod gone;
mod large;
mod world;
