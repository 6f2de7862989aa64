//! What a script asks of whoever runs it, and what it is answered.

use crate::script::ScriptRef;
use resp::{Protocol, Reply};

/// Where a script stands after [`crate::Interpreter::resume`].
#[derive(Debug)]
pub enum Step {
    /// It calls a command. Answer with [`Answer::Reply`].
    Call(Call),
    /// It asks whether its user may run this command: `redis.acl_check_cmd`. Answer with
    /// [`Answer::Allowed`] or [`Answer::UnknownCommand`].
    CheckRights(Arguments),
    /// It writes to the server's log. Answer with [`Answer::GoOn`].
    Log {
        /// Redis's number: 0 debug, 1 verbose, 2 notice, 3 warning.
        level: u8,
        text: Vec<u8>,
    },
    /// It took as many steps as it may at a time. Answer with [`Answer::GoOn`], when others had
    /// their turn.
    Paused,
    /// It ended, with what is left to answer its client. There is nothing to resume any more.
    Done(Outcome),
}

/// What [`crate::Interpreter::resume`] hands to a script.
#[derive(Debug)]
pub enum Answer {
    /// To a script that was just started.
    Begin,
    /// To a log line and to a pause.
    GoOn,
    /// A command's reply, encoded for the protocol of its [`Call`]: one whole value.
    Reply(Vec<u8>),
    /// Whether the user may run the command.
    Allowed(bool),
    /// There is no such command.
    UnknownCommand,
}

/// A command that a script calls.
#[derive(Debug)]
pub struct Call {
    pub arguments: Arguments,
    /// Whether an error ends the script (`redis.call`), or is a value to it (`redis.pcall`).
    pub raises: bool,
    /// The protocol in which the reply is expected: `redis.setresp`.
    pub protocol: Protocol,
}

/// Arguments of a command, the name first, in one buffer.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Arguments {
    bytes: Vec<u8>,
    ranges: Vec<(u32, u32)>,
}

impl Arguments {
    /// What the ranges point into.
    pub fn source(&self) -> &[u8] {
        &self.bytes
    }

    /// Start and length of each argument in [`Self::source`].
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.ranges.iter().map(|&(start, length)| &self.bytes[start as usize..][..length as usize])
    }

    /// Appends an argument; false if 32-bit ranges cannot tell where it lies.
    #[must_use]
    pub(crate) fn push(&mut self, argument: &[u8]) -> bool {
        let (Ok(start), Ok(length)) =
            (u32::try_from(self.bytes.len()), u32::try_from(argument.len()))
        else {
            return false;
        };
        self.bytes.extend_from_slice(argument);
        self.ranges.push((start, length));
        start.checked_add(length).is_some()
    }
}

/// How a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// A script's or function's value, appended to the reply that the run was started with.
    Reply(Reply),
    /// The script failed, or answers an error. The reply is as it was when the run was started.
    Failed(Reply, ScriptError),
    /// A library's code ran to its end, and registered these.
    Loaded(Vec<LoadedFunction>),
    /// A library's code failed.
    NotLoaded(ScriptError),
}

/// Why a script failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScriptError {
    /// The error reply without its mark, its code first: `ERR … script: 1b…, on @user_script:1.`
    pub text: Vec<u8>,
    /// Whether it came from a command, which counted it already in the statistics of errors.
    pub was_counted: bool,
}

/// A function that a library registered.
#[derive(Debug)]
pub struct LoadedFunction {
    pub name: Vec<u8>,
    pub description: Option<Vec<u8>>,
    /// The names of its flags, each one of [`FUNCTION_FLAGS`].
    pub flags: Vec<&'static str>,
    /// To start it with. It belongs to its interpreter until [`crate::Interpreter::forget`].
    pub callback: ScriptRef,
}

/// The flags that a function or a script's first line may declare, as Redis spells them.
pub const FUNCTION_FLAGS: [&str; 5] =
    ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];
