//! Scripts and functions, and their arguments.

use crate::step::Arguments;
use resp::Reply;
use std::rc::Rc;

/// The kind of code that an interpreter runs. The globals differ, and so do some errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeKind {
    /// Scripts of EVAL: keys and arguments are globals.
    Scripts,
    /// Libraries of functions. A function gets keys and arguments as parameters.
    Functions,
}

/// A compiled script, or a function of a library. It belongs to one interpreter, and is valid until
/// it is forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ScriptRef(pub(crate) u32);

/// A call of a script or function, with its arguments.
#[derive(Debug)]
pub struct Invocation {
    pub script: ScriptRef,
    /// The hash of a script or the name of a function, for errors.
    pub name: Rc<str>,
    /// The number of keys among `given`.
    pub keys: usize,
    /// The keys, and behind them the arguments.
    pub given: Arguments,
    /// The reply to which the script's value is appended, in the protocol of its client.
    pub reply: Reply,
}
