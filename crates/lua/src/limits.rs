//! Limits of an interpreter.

/// The longest source code that is compiled for a client, in bytes. Compiling takes some 25 ns a
/// byte; the result takes up to 16 times as much memory.
pub const SOURCE_BYTES_MAX: usize = 4 << 20;

/// How long a script of `EVAL` or `SCRIPT LOAD` may be compiled by the clock, in milliseconds. It
/// cannot be interrupted. Twice as long as the longest code usually takes, and an eighth of the
/// usual lease.
pub const COMPILE_MS_MAX: u64 = 250;

/// Steps that the code of a library may take where it comes in: FUNCTION LOAD, FUNCTION RESTORE,
/// and an import. What Redis lets in within its half second is let in here: that is some 50 million
/// steps, and so this many on a machine twenty times as fast.
pub const LOAD_STEPS_MAX: u64 = 1_000_000_000;

/// Steps that the code of a library may take which the log holds, when it is loaded anew: by a
/// replica, after a start, after a failover. It bounds what never ends. Nothing that came in may
/// fail there because of where it runs, so steps count, of which a slow machine makes no more; and
/// several times as many as came in, because garbage is collected at other times. Some 40 seconds.
pub const RELOAD_STEPS_MAX: u64 = 4 * LOAD_STEPS_MAX;

/// Limits of an interpreter: memory, stack, and steps between pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Memory of all scripts and all their values, in bytes. Redis has no such limit: there a
    /// script can take all of the machine's memory. A reply of a million elements takes some 60 MiB
    /// as a Lua value; the default has room for several. A guess.
    pub memory_bytes: usize,
    /// Bytes of one script's reply. A reply may contain one string many times over.
    pub reply_bytes: usize,
    /// Address space of the interpreter's own stack, in bytes; unused parts take no memory. Lua
    /// nests at most 200 calls of C functions, each with buffers of some 10 KiB.
    pub stack_bytes: usize,
    /// Steps between two pauses. A step is about one Lua instruction, 5 to 20 ns; a function on
    /// long strings takes one step per some bytes.
    pub pause_steps: u32,
    /// Lua instructions between two checks of the step count; fewer while a script uses much
    /// memory. A check takes some 100 ns.
    pub look_instructions: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            reply_bytes: 512 << 20,
            stack_bytes: 16 << 20,
            pause_steps: 10_000,
            look_instructions: 100,
        }
    }
}
