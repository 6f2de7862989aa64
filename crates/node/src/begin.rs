//! Puts a server together: the commands of all families, what the configuration declares of them
//! and of users, and the server that runs them. Above everything else here, so that a server knows
//! no command.

use crate::command::standard;
use crate::configured::{Configured, configured};
use crate::core::{Garbage, Options, Process};
use crate::server::Server;

/// A server that has just begun, and has loaded nothing.
///
/// # Panics
/// If the configuration declares what [`configured`] refuses: whoever read it has asked that.
pub fn begin(options: Options, garbage: Garbage) -> Server {
    options.limits.check();
    let (catalog, functions) = standard();
    let Configured { renamed, acl } =
        configured(&options.config, catalog).expect("checked as the file was read");
    // A process has one, and keeps it in all its lives.
    let catalog = renamed.map_or(catalog, |renamed| Box::leak(Box::new(renamed)));
    Server::new(Process::new(options, catalog, acl, garbage), functions)
}
