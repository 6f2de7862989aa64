//! Refusals: the error lines a client gets, with Redis's exact texts.

use std::borrow::Cow;

/// The longest code of an error, in bytes. Redis looks for a blank within 32, the `-` among them.
const CODE_BYTES_MAX: usize = 30;

/// Bytes of a request as an error quotes them: as text in one line, up to the first zero byte,
/// where C's strings end.
pub fn quoted(bytes: &[u8]) -> String {
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).replace(['\r', '\n'], " ")
}

/// One error reply: its code (`ERR`, `WRONGTYPE`) and text, without the leading `-`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub Cow<'static, str>);

impl Refusal {
    pub const WRONG_TYPE: Self =
        Self::of("WRONGTYPE Operation against a key holding the wrong kind of value");
    /// What is not in memory is met only by mistake: see [`crate::cold`].
    pub(crate) const NOT_IN_MEMORY: Self = Self::of("ERR the value is not in memory");
    pub const LOST: Self =
        Self::of("ERR the value was lost by the tier; it is loaded again from the log");
    pub const OUT_OF_MEMORY: Self =
        Self::of("OOM command not allowed when used memory > 'maxmemory'.");
    pub const INVALID_HOST: Self = Self::of("ERR Invalid master host");
    pub const SYNTAX: Self = Self::of("ERR syntax error");
    pub const NOT_AN_INTEGER: Self = Self::of("ERR value is not an integer or out of range");
    pub const NOT_A_FLOAT: Self = Self::of("ERR value is not a valid float");
    pub const NO_SUCH_KEY: Self = Self::of("ERR no such key");
    pub const OUT_OF_RANGE: Self = Self::of("ERR index out of range");
    pub const NOT_POSITIVE: Self = Self::of("ERR value is out of range, must be positive");
    pub const TOO_LONG: Self =
        Self::of("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

    /// A refusal with a fixed text.
    pub const fn of(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// A refusal with a text that names something of the request.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into()))
    }

    /// Redis's text for a call with too few or too many arguments.
    pub fn arity(command: &str) -> Self {
        Self::new(format!("ERR wrong number of arguments for '{command}' command"))
    }

    /// Redis's text for a container's subcommand that does not fit what follows it, quoted as sent.
    pub fn subcommand(container: &str, subcommand: &[u8]) -> Self {
        let named = quoted(&subcommand[..subcommand.len().min(128)]);
        Self::new(format!(
            "ERR unknown subcommand or wrong number of arguments for '{named}'. Try {container} \
             HELP."
        ))
    }

    /// The first word, by which INFO errorstats counts. `ERR` if there is no blank behind a word
    /// that is short, as in Redis: a script chooses its errors. The end of a line is a blank too,
    /// as where the error is sent.
    pub fn code(&self) -> &str {
        let is_blank = |byte| matches!(byte, b' ' | b'\r' | b'\n');
        let blank = self.0.bytes().take(CODE_BYTES_MAX + 1).position(is_blank);
        blank.map_or("ERR", |at| &self.0[..at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_short_word_with_a_blank_behind_it() {
        let longest = "E".repeat(CODE_BYTES_MAX);
        for (text, code) in [
            ("WRONGTYPE Operation against a key", "WRONGTYPE"),
            ("MYCODE", "ERR"),
            ("X\r\nrole:slave\r\n", "X"),
            ("", "ERR"),
            (&format!("{longest} x"), &longest),
            (&format!("{longest}E x"), "ERR"),
            (&format!("{}é x", "E".repeat(CODE_BYTES_MAX - 1)), "ERR"),
        ] {
            assert_eq!(Refusal::new(text.to_owned()).code(), code, "{text}");
        }
    }
}
