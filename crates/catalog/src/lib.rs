//! Commands as data, and what users may do with them.
//!
//! | file | holds |
//! |---|---|
//! | [`commands`] | every command with what follows from its row; found by name |
//! | [`key_specs`] | where the arguments are that are keys, as Redis specifies it |
//! | [`keys`] | the keys of one request, and what becomes of each |
//! | [`arguments`] | the arguments of a command as a tree, from its usage line |
//! | [`history`] | what releases changed of a command, and what took its place |
//! | [`demand`] | what a request needs of the server's state |
//! | [`secrets`] | the arguments of a request, and the rules of a user, that nobody is shown |
//! | [`category`] | which commands `@name` stands for |
//! | [`acl`] | users, their passwords and rights |
//!
//! Rows come from whoever has functions for them: the engine's families, and the node's. Here they
//! are without functions, so that whatever asks what a command is need not know what it does.
//!
//! Absent, on purpose: functions, sessions and servers (who is disconnected because a right is gone
//! is decided in `node`), files (the text of an ACL file is read and made here, the file is not),
//! and any table of commands that is there without being handed over.
#![forbid(unsafe_code)]

pub mod acl;
pub mod arguments;
pub mod category;
pub mod commands;
pub mod demand;
pub mod history;
pub mod key_specs;
pub mod keys;
pub mod secrets;

pub use commands::{Catalog, CommandId, Kind, Registered};
pub use demand::Demand;
