//! The steps of a run: questions of a script to the node, and the node's answers.

use crate::script::ScriptRef;
use resp::{Protocol, Reply};

/// Why [`crate::Interpreter::resume`] returned.
#[derive(Debug)]
pub enum Step {
    /// The script calls a command. Answer with [`Answer::Reply`].
    Call(Call),
    /// The script asks whether its user may run this command (`redis.acl_check_cmd`). Answer with
    /// [`Answer::Allowed`] or [`Answer::UnknownCommand`].
    CheckRights(Arguments),
    /// The script writes to the server's log. Answer with [`Answer::GoOn`].
    Log {
        /// Redis's number: 0 debug, 1 verbose, 2 notice, 3 warning.
        level: u8,
        text: Vec<u8>,
    },
    /// The script has used up its steps. Answer with [`Answer::GoOn`], after others had their turn.
    Paused,
    /// The run ended in this way. There is nothing to resume any more.
    Done(Ending),
}

/// The answer to a [`Step`], for [`crate::Interpreter::resume`].
#[derive(Debug)]
pub enum Answer {
    /// Begins a script that was just started.
    Begin,
    /// Continues after a log line or a pause.
    GoOn,
    /// A command's reply, encoded for the protocol of its [`Call`]: one whole value.
    Reply(Vec<u8>),
    /// Whether the user may run the command, to [`Step::CheckRights`].
    Allowed(bool),
    /// There is no such command, to [`Step::CheckRights`].
    UnknownCommand,
}

/// A command that a script calls.
#[derive(Debug)]
pub struct Call {
    pub arguments: Arguments,
    /// Whether an error ends the script (`redis.call`) or is returned to it (`redis.pcall`).
    pub raises: bool,
    /// The protocol of the expected reply, as `redis.setresp` chose it.
    pub protocol: Protocol,
}

/// Strings in one buffer: a command's arguments, its name first; or keys and arguments of a script.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Arguments {
    bytes: Vec<u8>,
    ranges: Vec<(u32, u32)>,
}

impl Arguments {
    /// The bytes in which [`Self::ranges`] lie.
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

    /// These strings in one buffer; `None` if they do not fit 32-bit ranges.
    pub fn of<'a>(arguments: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        Self::default().with(arguments)
    }

    /// These strings behind those that are here; `None` if they do not fit 32-bit ranges.
    pub fn with<'a>(mut self, arguments: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        arguments.into_iter().all(|argument| self.push(argument)).then_some(self)
    }

    /// Makes room for this many arguments of so many bytes in all.
    pub(crate) fn reserve(&mut self, count: usize, bytes: usize) {
        self.ranges.reserve(count);
        self.bytes.reserve(bytes);
    }

    /// The memory of its buffers, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.ranges.capacity() * size_of::<(u32, u32)>()
    }

    /// Removes all arguments, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ranges.clear();
    }

    /// Appends an argument; returns false if it does not fit 32-bit ranges.
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
pub enum Ending {
    /// A script's or function's value, appended to the reply that the run was started with.
    Reply(Reply),
    /// The script failed, or returned an error. The reply is as it was when the run started.
    Failed(Reply, ScriptError),
    /// A library's code ran to its end, and registered these functions.
    Loaded(Vec<LoadedFunction>),
    /// A library's code failed.
    NotLoaded(ScriptError),
}

/// The error of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScriptError {
    /// The error reply without its `-`, code first: `ERR … script: 1b…, on @user_script:1.`
    pub text: Vec<u8>,
    /// Whether a command raised it, which has counted it in the statistics of errors.
    pub was_counted: bool,
    /// Whether the error is a lack of memory. The text proves nothing: it may be the script's own.
    pub lacks_memory: bool,
}

impl ScriptError {
    /// An error that no command raised.
    pub fn of(text: impl Into<Vec<u8>>) -> Self {
        Self { text: text.into(), was_counted: false, lacks_memory: false }
    }

    /// The error of a script that memory ran out for.
    pub(crate) fn no_memory(text: impl Into<Vec<u8>>) -> Self {
        Self { lacks_memory: true, ..Self::of(text) }
    }
}

/// A function that a library registered.
#[derive(Debug)]
pub struct LoadedFunction {
    pub name: Vec<u8>,
    pub description: Option<Vec<u8>>,
    /// The names of its flags, each one of [`FUNCTION_FLAGS`].
    pub flags: Vec<&'static str>,
    /// The function, to be started. Valid until [`crate::Interpreter::forget`].
    pub callback: ScriptRef,
}

/// The flags that a function or a script's first line may declare, as Redis spells them.
pub const FUNCTION_FLAGS: [&str; 5] =
    ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];
