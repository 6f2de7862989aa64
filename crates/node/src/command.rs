//! The node's own commands: those that need a session, the server or other sessions.

pub mod config;
pub mod connection;
pub mod help;
pub mod scripting;
pub mod transaction;

use crate::server::Server;
use crate::session::Session;
use engine::command::{Args, Command, Flags, Group, Outcome};

/// Runs a command of the node. The session is out of the server's map while it runs.
pub type SessionFn = fn(&mut Server, &mut Session, Args<'_>) -> Outcome;

/// Declares a command of the node.
pub const fn session(usage: &'static str, function: SessionFn) -> Command<SessionFn> {
    Command::new(usage, function, Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
}

/// Declares a command for operators.
pub const fn admin(usage: &'static str, function: SessionFn) -> Command<SessionFn> {
    session(usage, function).with(Flags::ADMIN).group(Group::Server)
}

/// Every family of the node.
pub const FAMILIES: &[&[Command<SessionFn>]] = &[
    config::COMMANDS,
    connection::COMMANDS,
    help::COMMANDS,
    scripting::COMMANDS,
    transaction::COMMANDS,
];
