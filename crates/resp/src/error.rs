//! What a client did wrong on the wire. The session answers the line, then closes.

/// A violation of the protocol: the connection cannot be understood any further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtocolError {
    /// A line of an inline request longer than [`crate::decode::LINE_BYTES_MAX`].
    InlineTooBig,
    /// No end of line after `*` within [`crate::decode::LINE_BYTES_MAX`].
    CountTooBig,
    /// No end of line after `$` within [`crate::decode::LINE_BYTES_MAX`].
    LengthTooBig,
    /// The number of arguments is not a number, or beyond 2^31 - 1.
    InvalidCount,
    /// The length of an argument is not a number, negative, or beyond `proto-max-bulk-len`.
    InvalidLength,
    /// An argument that does not begin with `$` but with this byte.
    ExpectedBulk(u8),
    /// An inline request with an open quote, or one followed by something other than a blank.
    UnbalancedQuotes,
    /// More arguments than a client may send before it has authenticated.
    UnauthenticatedCount,
    /// A longer argument than a client may send before it has authenticated.
    UnauthenticatedLength,
}

impl ProtocolError {
    /// The error line as Redis 7.0.15 words it, without the leading `-` and the line's end.
    pub fn line(self) -> Vec<u8> {
        let text: &[u8] = match self {
            Self::InlineTooBig => b"too big inline request",
            Self::CountTooBig => b"too big mbulk count string",
            Self::LengthTooBig => b"too big bulk count string",
            Self::InvalidCount => b"invalid multibulk length",
            Self::InvalidLength => b"invalid bulk length",
            Self::ExpectedBulk(_) => b"expected '$', got '",
            Self::UnbalancedQuotes => b"unbalanced quotes in request",
            Self::UnauthenticatedCount => b"unauthenticated multibulk length",
            Self::UnauthenticatedLength => b"unauthenticated bulk length",
        };
        let mut line = [b"ERR Protocol error: ", text].concat();
        if let Self::ExpectedBulk(byte) = self {
            // A line's end inside the line would desynchronize the client.
            line.push(if matches!(byte, b'\r' | b'\n') { b' ' } else { byte });
            line.push(b'\'');
        }
        line
    }
}
