//! What commands do: the functions of the engine's families and of the node's own, by the
//! catalogue's ids. Everything else about a command is in the catalogue.

use crate::server::Server;
use base::ConnectionId;
use catalog::{CommandId, Kind};
use engine::command::{Args, DataFn, Outcome};

/// Runs a command of the node. The client's session is found by its connection.
pub type NodeFn = fn(&mut Server, ConnectionId, Args<'_>) -> Outcome;

/// A command's implementation.
#[derive(Clone, Copy)]
pub enum Function {
    /// Of the engine: it knows keys alone.
    Data(DataFn),
    /// Of the node: it knows the server and the session.
    Node(NodeFn),
}

impl Function {
    /// Of what kind the command is.
    pub fn kind(self) -> Kind {
        match self {
            Self::Data(DataFn::Read(_)) => Kind::Read,
            Self::Data(DataFn::Write(_)) => Kind::Write,
            Self::Node(_) => Kind::Node,
        }
    }
}

/// The functions of all commands.
pub struct Functions(Vec<Option<Function>>);

impl Functions {
    /// The functions of commands, in the order of their ids.
    pub fn new(functions: Vec<Option<Function>>) -> Self {
        Self(functions)
    }

    /// The function of a command; `None` of a container, whose subcommands have some.
    #[inline]
    pub fn of(&self, id: CommandId) -> Option<Function> {
        self.0[usize::from(id.0)]
    }
}
