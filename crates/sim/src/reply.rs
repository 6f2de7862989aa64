//! Replies as a client reads them (RESP2).

/// One reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Self>),
}

impl Reply {
    pub fn bulk(bytes: &[u8]) -> Self {
        Self::Bulk(bytes.to_vec())
    }

    pub fn ok() -> Self {
        Self::Simple(b"OK".to_vec())
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
    let (kind, text) = (bytes[0], &bytes[1..end]);
    let mut used = end + 2;
    let wrong = || format!("no reply: {}", String::from_utf8_lossy(&bytes[..end]));
    let number = || -> Result<i64, String> {
        std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or_else(wrong)
    };
    let reply = match kind {
        b'+' => Reply::Simple(text.to_vec()),
        b'-' => Reply::Error(text.to_vec()),
        b':' => Reply::Integer(number()?),
        b'$' | b'*' if number()? < 0 => Reply::Null,
        b'$' => {
            let length = number()? as usize;
            let Some(rest) = bytes.get(used..used + length + 2) else { return Ok(None) };
            used += length + 2;
            Reply::bulk(&rest[..length])
        }
        b'*' => {
            let mut elements = Vec::new();
            for _ in 0..number()? {
                let Some((element, length)) = parse(&bytes[used..])? else { return Ok(None) };
                used += length;
                elements.push(element);
            }
            Reply::Array(elements)
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
}
