//! A node that takes snapshots beside writes, on a disk that loses power at any of its syncs; and a
//! replica of Redis that follows it.

mod crash;
mod follow;
mod follower;
mod gone;
mod large;
mod world;
