//! A node that takes snapshots beside writes, on a disk that loses power at any of its syncs; a
//! replica of Redis that follows it, and a master that it follows itself.

mod archived;
mod behind;
mod branch;
mod claim;
mod conformance;
mod crash;
mod due;
mod flips;
mod follow;
mod follower;
mod full;
mod gone;
mod history;
mod lanes;
mod large;
mod listen;
mod making;
mod master;
mod moments;
mod open;
mod parts;
mod pins;
mod replicaof;
mod shifted;
mod slices;
mod transfer;
mod worker;
mod world;
