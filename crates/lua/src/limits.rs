//! What one interpreter may take.

/// The limits of an interpreter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes that all scripts and all their values may occupy. Redis has no such limit: there a
    /// script can take the machine's memory. Replies of a million elements take some 60 MiB; the
    /// default leaves room for several of them. A guess.
    pub memory_bytes: usize,
    /// Bytes of address space for the interpreter's own stack; what is not used takes no memory.
    /// Lua nests at most 200 calls of C, each with buffers of some 10 KiB.
    pub stack_bytes: usize,
    /// Steps between two pauses. A step is about an instruction of Lua, 5 to 20 ns; functions that
    /// handle long strings take a step per some bytes.
    pub pause_steps: u32,
    /// Instructions of Lua between two looks at the steps; fewer, where a script uses much memory.
    /// A look takes some 100 ns.
    pub look_instructions: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            stack_bytes: 16 << 20,
            pause_steps: 10_000,
            look_instructions: 100,
        }
    }
}
