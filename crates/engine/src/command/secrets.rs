//! Which arguments of a command are secret, so that MONITOR and SLOWLOG do not show them.

use super::Args;

/// What stands for a secret wherever one would be shown. Redis's word.
pub const REDACTED: &str = "(redacted)";

/// Where the secrets of a command's arguments are.
#[derive(Clone, Copy, Debug)]
pub enum Secrets {
    None,
    /// At the arguments that the function finds, in order: passwords, and the users they belong to.
    Among(fn(Args<'_>) -> Vec<usize>),
    /// From this argument on stands another request, with its secrets.
    InRequest(usize),
}
