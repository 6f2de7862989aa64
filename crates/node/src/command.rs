//! The node's own commands: those that need a session, the server or other sessions.

pub mod connection;
pub mod transaction;

use crate::server::Server;
use crate::session::Session;
use engine::command::{Args, Command, Flags, Outcome};

/// Runs a command of the node. The session is out of the server's map while it runs.
pub type SessionFn = fn(&mut Server, &mut Session, Args<'_>) -> Outcome;

/// Declares a command of the node.
pub const fn session(usage: &'static str, function: SessionFn) -> Command<SessionFn> {
    Command::new(usage, function, Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
}

/// Every family of the node.
pub const FAMILIES: &[&[Command<SessionFn>]] = &[connection::COMMANDS, transaction::COMMANDS];
