//! Replies as a client reads them: RESP2 and RESP3, both in the words of RESP2 as far as it has
//! them.

/// One reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    /// Also a map, its keys and values in turn, and a set.
    Array(Vec<Self>),
    /// What came by itself, of RESP3.
    Push(Vec<Self>),
}

/// What one of the connection's requests did not ask for, or not only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The answer to the oldest request without one.
    Answer,
    /// A published message, or an invalidation.
    Message,
}

impl Reply {
    pub fn bulk(bytes: &[u8]) -> Self {
        Self::Bulk(bytes.to_vec())
    }

    pub fn ok() -> Self {
        Self::Simple(b"OK".to_vec())
    }

    /// What it is on a connection that subscribes or monitors: confirmations answer requests, and
    /// messages and lines of MONITOR answer none.
    pub fn kind(&self) -> Kind {
        let is_message = match self {
            Self::Array(elements) | Self::Push(elements) => match elements.first() {
                Some(Self::Bulk(word)) => {
                    let is_published = matches!(&word[..], b"message" | b"pmessage" | b"smessage");
                    is_published || matches!(&word[..], b"invalidate" | b"tracking-redir-broken")
                }
                _ => false,
            },
            // A line of MONITOR begins with the time.
            Self::Simple(line) => line.first().is_some_and(u8::is_ascii_digit),
            _ => false,
        };
        if is_message { Kind::Message } else { Kind::Answer }
    }

    /// The error's line begins with this.
    pub fn is_error(&self, code: &str) -> bool {
        matches!(self, Self::Error(line) if line.starts_with(code.as_bytes()))
    }
}

/// The first reply of a stream and its length in bytes; `None` while it is incomplete.
///
/// # Errors
/// The bytes are no reply.
pub fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let Some(text) = bytes.get(1..end) else { return Err("no reply: an empty line".to_owned()) };
    let kind = bytes[0];
    let mut used = end + 2;
    let wrong = || format!("no reply: {}", String::from_utf8_lossy(&bytes[..end]));
    let number = || -> Result<i64, String> {
        std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or_else(wrong)
    };
    let reply = match kind {
        b'+' | b',' | b'(' => Reply::Simple(text.to_vec()),
        b'-' => Reply::Error(text.to_vec()),
        b':' => Reply::Integer(number()?),
        b'#' => Reply::Integer(i64::from(text == b"t")),
        b'_' => Reply::Null,
        b'$' | b'*' if number()? < 0 => Reply::Null,
        b'$' | b'=' | b'!' => {
            let length = number()? as usize;
            let Some(rest) = bytes.get(used..used + length + 2) else { return Ok(None) };
            used += length + 2;
            Reply::bulk(&rest[..length])
        }
        b'*' | b'~' | b'%' | b'>' => {
            let mut elements = Vec::new();
            for _ in 0..number()? * if kind == b'%' { 2 } else { 1 } {
                let Some((element, length)) = parse(&bytes[used..])? else { return Ok(None) };
                used += length;
                elements.push(element);
            }
            if kind == b'>' { Reply::Push(elements) } else { Reply::Array(elements) }
        }
        _ => return Err(wrong()),
    };
    Ok(Some((reply, used)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_whole_or_not_at_all() {
        let bytes = b"*4\r\n$3\r\na\r\n\r\n:-7\r\n*-1\r\n-ERR x\r\n+OK\r\n";
        let array = Reply::Array(vec![
            Reply::bulk(b"a\r\n"),
            Reply::Integer(-7),
            Reply::Null,
            Reply::Error(b"ERR x".to_vec()),
        ]);
        let whole = bytes.len() - 5;
        for cut in 0..whole {
            assert_eq!(parse(&bytes[..cut]), Ok(None), "{cut}");
        }
        assert_eq!(parse(bytes), Ok(Some((array, whole))));
        assert_eq!(parse(&bytes[whole..]), Ok(Some((Reply::ok(), 5))));
        assert!(parse(b"hello\r\n").is_err());
    }

    #[test]
    fn replies_of_resp3_are_read_in_the_words_of_resp2() {
        let map = b"%2\r\n+a\r\n:1\r\n$1\r\nb\r\n_\r\n";
        let (a, b) = (Reply::Simple(b"a".to_vec()), Reply::bulk(b"b"));
        let expected = Reply::Array(vec![a, Reply::Integer(1), b, Reply::Null]);
        assert_eq!(parse(map), Ok(Some((expected, map.len()))));
        let push = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n";
        let (read, length) = parse(push).unwrap().unwrap();
        assert_eq!((read.kind(), length), (Kind::Message, push.len()));
        assert_eq!(parse(b"#t\r\n"), Ok(Some((Reply::Integer(1), 4))));
        assert_eq!(parse(b"~1\r\n,1.5\r\n").unwrap().unwrap().1, 10);
    }
}
