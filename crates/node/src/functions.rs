//! What commands do: the functions of the engine's families and of the node's own, by the
//! catalogue's ids. Everything else about a command is in the catalogue.

use crate::command::SessionFn;
use catalog::{Catalog, CommandId, Kind};
use engine::command::DataFn;
use std::sync::OnceLock;

/// A command's implementation.
#[derive(Clone, Copy)]
pub enum Function {
    /// Of the engine: it knows keys alone.
    Data(DataFn),
    /// Of the node: it knows the server and the session.
    Session(SessionFn),
}

impl Function {
    fn kind(self) -> Kind {
        match self {
            Self::Data(DataFn::Read(_)) => Kind::Read,
            Self::Data(DataFn::Write(_)) => Kind::Write,
            Self::Session(_) => Kind::Session,
        }
    }
}

/// The functions of all commands.
pub struct Functions(Vec<Option<Function>>);

impl Functions {
    /// The function of a command; `None` of a container, whose subcommands have some.
    #[inline]
    pub fn of(&self, id: CommandId) -> Option<Function> {
        self.0[usize::from(id.0)]
    }
}

/// Every family of the engine and of the node, merged once per process: the catalogue, in which no
/// command is renamed, and the functions.
pub fn standard() -> (&'static Catalog, &'static Functions) {
    static STANDARD: OnceLock<(Catalog, Functions)> = OnceLock::new();
    let (catalog, functions) = STANDARD.get_or_init(|| {
        let data = engine::command::FAMILIES.iter().flat_map(|family| family.iter());
        let data = data.map(|row| row.with_function(Function::Data(row.function)));
        let session = crate::command::FAMILIES.iter().flat_map(|family| family.iter());
        let session = session.map(|row| row.with_function(Function::Session(row.function)));
        let (catalog, functions) = Catalog::new(data.chain(session), Function::kind);
        (catalog, Functions(functions))
    });
    (catalog, functions)
}
