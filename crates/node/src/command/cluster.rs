//! READONLY and READWRITE (Redis documentation, group cluster): whether a connection takes what a
//! replica has applied. A primary answers both, and they change nothing there.

use super::{SessionFn, plain};
use crate::server::Server;
use crate::session::Session;
use engine::command::{Args, Command, Flags, Group, Outcome};

pub const COMMANDS: &[Command<SessionFn>] = &[
    plain("READONLY", read_only)
        .doc("Enables read-only queries for a connection to a Redis Cluster replica node.")
        .group(Group::Cluster)
        .since("3.0.0")
        .cost("O(1)")
        .with(Flags::LOADING.union(Flags::STALE))
        .fast(),
    plain("READWRITE", read_write)
        .doc("Enables read-write queries for a connection to a Redis Cluster replica node.")
        .group(Group::Cluster)
        .since("3.0.0")
        .cost("O(1)")
        .with(Flags::LOADING.union(Flags::STALE))
        .fast(),
];

fn read_only(_: &mut Server, session: &mut Session, _: Args<'_>) -> Outcome {
    session.reads_replica = true;
    session.reply().ok();
    Ok(())
}

fn read_write(_: &mut Server, session: &mut Session, _: Args<'_>) -> Outcome {
    session.reads_replica = false;
    session.reply().ok();
    Ok(())
}
