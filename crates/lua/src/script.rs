//! What is run: scripts and functions, and what they are called with.

use resp::Reply;

/// What an interpreter is for. The globals differ, and so do some errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// EVAL: keys and arguments are globals.
    Scripts,
    /// Libraries of functions, which are handed keys and arguments.
    Functions,
}

/// A compiled script, or a function of a library. It belongs to one interpreter, until it is
/// forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ScriptRef(pub(crate) u32);

/// A script with what it is called with.
#[derive(Debug)]
pub struct Invocation {
    pub script: ScriptRef,
    /// The hash of a script, the name of a function: errors name it.
    pub name: String,
    pub keys: Vec<Vec<u8>>,
    pub arguments: Vec<Vec<u8>>,
    /// What the script answers is appended to this, for the protocol of its client.
    pub reply: Reply,
}
